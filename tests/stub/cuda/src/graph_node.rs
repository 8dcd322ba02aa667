//! Nodes of a graph that exist: what they are, how they change, how they go.

use crate::arg::Out;
use crate::driver::state;
use crate::export::exports;
use crate::graph::{AllocParams, Node, NodeParams, kind, meaning};
use gpucap_abi::cuda::{CUdeviceptr, CUgraph, CUgraphNode, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// Takes a node out of its graph.
    fn cuGraphDestroyNode(node: CUgraphNode) => destroy_node, driver, "cuGraphDestroyNode" @ 10000;
    /// Replaces what a node does; allocation nodes stay as they are.
    fn cuGraphNodeSetParams(node: CUgraphNode, params: *mut NodeParams)
        => node_set_params, driver, "cuGraphNodeSetParams" @ 12020;
    /// Replaces what a node does; allocation nodes stay as they are.
    fn cuGraphNodeSetParams_v2(node: CUgraphNode, params: *mut NodeParams)
        => node_set_params, driver, "cuGraphNodeSetParams" @ 13040;
    /// Nodes in the order in which they were added.
    fn cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize)
        => get_nodes, driver, "cuGraphGetNodes" @ 10000;
    /// `CUgraphNodeType`
    fn cuGraphNodeGetType(node: CUgraphNode, kind: *mut i32)
        => node_kind, driver, "cuGraphNodeGetType" @ 10000;
    /// What the node was made with.
    fn cuGraphMemAllocNodeGetParams(node: CUgraphNode, params: *mut AllocParams)
        => alloc_params, driver, "cuGraphMemAllocNodeGetParams" @ 11040;
    /// Address that the node frees.
    fn cuGraphMemFreeNodeGetParams(node: CUgraphNode, pointer: *mut CUdeviceptr)
        => free_params, driver, "cuGraphMemFreeNodeGetParams" @ 11040;
}

fn destroy_node(node: CUgraphNode) -> CuResult {
    let mut state = state()?;
    let (graph, _) = state.graphs.nodes.remove(node.address()).ok_or(CuError::INVALID_VALUE)?;
    if let Some(list) = state.graphs.table.get_mut(graph) {
        list.retain(|handle| *handle != node.address());
    }
    state.graphs.forget(&[node.address()]);
    Ok(())
}

fn node_set_params(node: CUgraphNode, params: Out<NodeParams>) -> CuResult {
    let asked = params.get()?;
    if is_memory(&asked) {
        return Err(CuError::NOT_SUPPORTED);
    }
    let what = meaning(&asked)?;
    let mut state = state()?;
    state.graphs.nodes.get_mut(node.address()).ok_or(CuError::INVALID_VALUE)?.1 = what;
    Ok(())
}

/// Whether the parameters are those of a node of memory, which nothing can change.
pub(crate) const fn is_memory(params: &NodeParams) -> bool {
    matches!(params.kind, kind::MEM_ALLOC | kind::MEM_FREE)
}

fn get_nodes(graph: CUgraph, nodes: Out<CUgraphNode>, count: Out<usize>) -> CuResult {
    let room = count.get()?;
    let state = state()?;
    let list = state.graphs.table.get(graph.address()).ok_or(CuError::INVALID_VALUE)?;
    if nodes.is_null() {
        return count.put(list.len());
    }
    for (index, handle) in list.iter().take(room).enumerate() {
        nodes.at(index).put(CUgraphNode(*handle as *mut c_void))?;
    }
    count.put(list.len().min(room))
}

pub(crate) fn of_node<T>(
    node: CUgraphNode,
    f: impl FnOnce(&[Node]) -> Option<T>,
) -> Result<T, CuError> {
    let state = state()?;
    let (_, nodes) = state.graphs.nodes.get(node.address()).ok_or(CuError::INVALID_VALUE)?;
    f(nodes).ok_or(CuError::INVALID_VALUE)
}

fn node_kind(node: CUgraphNode, out: Out<i32>) -> CuResult {
    if state()?.graphs.children.contains_key(&node.address()) {
        return out.put(kind::GRAPH);
    }
    if let Some((kind, _)) = state()?.graphs.given.get(&node.address()) {
        return out.put(*kind);
    }
    let found = of_node(node, |nodes| {
        Some(match nodes {
            [Node::Kernel { .. }] => kind::KERNEL,
            [Node::Work(_) | Node::Copy] => kind::MEMCPY,
            [Node::Host] => kind::HOST,
            [Node::Empty] => kind::EMPTY,
            [Node::Alloc { .. }] => kind::MEM_ALLOC,
            [Node::Free(_)] => kind::MEM_FREE,
            _ => kind::GRAPH,
        })
    })?;
    out.put(found)
}

fn alloc_params(node: CUgraphNode, params: Out<AllocParams>) -> CuResult {
    let (address, bytes, unit) = of_node(node, |nodes| match nodes {
        [Node::Alloc { address, bytes, unit }] => Some((*address, *bytes, *unit)),
        _ => None,
    })?;
    let mut answer = params.get()?;
    answer.pool.location = crate::driver::location(unit)?;
    answer.pointer = address;
    answer.bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    params.put(answer)
}

fn free_params(node: CUgraphNode, pointer: Out<CUdeviceptr>) -> CuResult {
    let address = of_node(node, |nodes| match nodes {
        [Node::Free(address)] => Some(*address),
        _ => None,
    })?;
    pointer.put(address)
}
