//! Nodes of executable graphs: how one changes, and whether it does anything.
//!
//! A node goes by the handle that it has in the graph from which the executable one was made.
//! What a kernel becomes counts for the duration of the launches to come; other parameters are
//! checked and not kept.

use crate::arg::{In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::graph::{Graphs, Node};
use crate::graph_kernel::Launched;
use crate::graph_params::{Called, Copied, Filled};
use gpucap_abi::cuda::{CUevent, CUgraph, CUgraphExec, CUgraphNode, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// The function.
    fn cuGraphExecKernelNodeSetParams(exec: CUgraphExec, node: CUgraphNode,
        params: *const [u64; 7]) => set_function, driver, "cuGraphExecKernelNodeSetParams" @ 10010;
    /// The function, or the kernel where there is none.
    fn cuGraphExecKernelNodeSetParams_v2(exec: CUgraphExec, node: CUgraphNode,
        params: *const [u64; 9]) => set_kernel, driver, "cuGraphExecKernelNodeSetParams" @ 12000;
    fn cuGraphExecMemcpyNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const Copied,
        context: *mut c_void) => set_copy, driver, "cuGraphExecMemcpyNodeSetParams" @ 10020;
    fn cuGraphExecMemsetNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const Filled,
        context: *mut c_void) => set_fill, driver, "cuGraphExecMemsetNodeSetParams" @ 10020;
    fn cuGraphExecHostNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const Called)
        => set_host, driver, "cuGraphExecHostNodeSetParams" @ 10020;
    fn cuGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent)
        => set_event, driver, "cuGraphExecEventRecordNodeSetEvent" @ 11010;
    fn cuGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent)
        => set_event, driver, "cuGraphExecEventWaitNodeSetEvent" @ 11010;
    /// A graph that does as much.
    fn cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph)
        => set_child, driver, "cuGraphExecChildGraphNodeSetParams" @ 11010;
    fn cuGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: *mut u32)
        => is_enabled, driver, "cuGraphNodeGetEnabled" @ 11060;
    /// Only kernels, copies and memsets can be disabled.
    fn cuGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: u32)
        => enable, driver, "cuGraphNodeSetEnabled" @ 11060;
}

impl Graphs {
    /// For everything that a graph does, the node that it is of.
    pub(crate) fn owners(&self, graph: u64) -> Result<Vec<u64>, CuError> {
        let list = self.table.get(graph).ok_or(CuError::INVALID_VALUE)?;
        let each = list.iter().map(|handle| (*handle, self.nodes.get(*handle)));
        let each = each.map(|(handle, node)| (handle, node.map_or(0, |(_, nodes)| nodes.len())));
        Ok(each.flat_map(|(handle, count)| std::iter::repeat_n(handle, count)).collect())
    }
}

/// Changes what an executable graph does for a node; `f` says what becomes of it, if it may.
fn change(
    exec: CUgraphExec,
    node: CUgraphNode,
    f: impl FnOnce(&[Node]) -> Option<Vec<Node>>,
) -> CuResult {
    let mut state = state()?;
    let found = state.execs.get_mut(exec.address()).ok_or(CuError::INVALID_VALUE)?;
    let owners = found.owners.iter().enumerate();
    let places = owners.filter(|(_, owner)| **owner == node.address()).map(|(at, _)| at);
    let places: Vec<_> = places.collect();
    let now: Vec<_> = places.iter().map(|at| found.nodes[*at]).collect();
    if now.is_empty() {
        return Err(CuError::INVALID_VALUE);
    }
    let then = f(&now).filter(|then| then.len() == now.len()).ok_or(CuError::INVALID_VALUE)?;
    for (at, node) in places.into_iter().zip(then) {
        found.nodes[at] = node;
    }
    Ok(())
}

/// Leaves a node of this kind as it is.
fn check(exec: CUgraphExec, node: CUgraphNode, kind: fn(&Node) -> bool) -> CuResult {
    change(exec, node, |now| now.iter().all(kind).then(|| now.to_vec()))
}

const fn is_copy(node: &Node) -> bool {
    matches!(node, Node::Copy | Node::Work(_))
}

fn set_launched(exec: CUgraphExec, node: CUgraphNode, launched: Launched) -> CuResult {
    let made = launched.node()?;
    change(exec, node, |now| matches!(now, [Node::Kernel { .. }]).then(|| vec![made]))
}

fn set_function(exec: CUgraphExec, node: CUgraphNode, params: In<[u64; 7]>) -> CuResult {
    let [function, ..] = params.get()?;
    set_launched(exec, node, Launched::Function(function))
}

fn set_kernel(exec: CUgraphExec, node: CUgraphNode, params: In<[u64; 9]>) -> CuResult {
    let [function, .., kernel, _] = params.get()?;
    set_launched(exec, node, Launched::given(function, kernel))
}

fn set_copy(
    exec: CUgraphExec,
    node: CUgraphNode,
    params: In<Copied>,
    _context: Out<c_void>,
) -> CuResult {
    params.get()?;
    check(exec, node, is_copy)
}

fn set_fill(
    exec: CUgraphExec,
    node: CUgraphNode,
    params: In<Filled>,
    _context: Out<c_void>,
) -> CuResult {
    params.get()?;
    check(exec, node, is_copy)
}

fn set_host(exec: CUgraphExec, node: CUgraphNode, params: In<Called>) -> CuResult {
    params.get()?;
    check(exec, node, |node| matches!(node, Node::Host | Node::Empty))
}

fn set_event(exec: CUgraphExec, node: CUgraphNode, event: CUevent) -> CuResult {
    state()?.events.get(event.address()).ok_or(CuError::INVALID_HANDLE)?;
    check(exec, node, |node| matches!(node, Node::Empty))
}

fn set_child(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) -> CuResult {
    let nodes = state()?.graphs.nodes(child.address())?;
    change(exec, node, |_| Some(nodes))
}

fn is_enabled(exec: CUgraphExec, node: CUgraphNode, enabled: Out<u32>) -> CuResult {
    check(exec, node, |_| true)?;
    let state = state()?;
    let found = state.execs.get(exec.address()).ok_or(CuError::INVALID_VALUE)?;
    enabled.put((!found.disabled.contains(&node.address())).into())
}

fn enable(exec: CUgraphExec, node: CUgraphNode, enabled: u32) -> CuResult {
    check(exec, node, |node| is_copy(node) || matches!(node, Node::Kernel { .. }))?;
    let mut state = state()?;
    let found = state.execs.get_mut(exec.address()).ok_or(CuError::INVALID_VALUE)?;
    if enabled == 0 {
        found.disabled.insert(node.address());
    } else {
        found.disabled.remove(&node.address());
    }
    Ok(())
}
