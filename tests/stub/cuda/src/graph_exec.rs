//! Executable graphs, and the memory of graphs.
//!
//! A launch is one operation of its stream, as long as all its nodes. Allocation nodes take from a
//! reserve of their own on each device when they run, and free nodes give to it; the reserve stays
//! until it is trimmed. An address that is still allocated cannot be allocated by another launch.

use crate::arg::Out;
use crate::capture;
use crate::driver::{state, unit};
use crate::export::exports;
use crate::graph::{Node, NodeParams, meaning};
use crate::graph_node::is_memory;
use crate::memory::Kind;
use crate::state::{State, Table};
use gpucap_abi::cuda::{CUdevice, CUgraph, CUgraphExec, CUgraphNode, CUstream, CuError, CuResult};
use std::collections::HashSet;
use std::ffi::{c_char, c_void};

exports! {
    /// As the graph is now.
    fn cuGraphInstantiate(exec: *mut CUgraphExec, graph: CUgraph, error: *mut CUgraphNode,
        log: *mut c_char, bytes: usize) => instantiate, driver, "cuGraphInstantiate" @ 10000;
    /// As the graph is now.
    fn cuGraphInstantiate_v2(exec: *mut CUgraphExec, graph: CUgraph, error: *mut CUgraphNode,
        log: *mut c_char, bytes: usize) => instantiate, driver, "cuGraphInstantiate" @ 11000;
    /// As the graph is now. Flag 1: unfreed memory is freed by the next launch.
    fn cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: u64)
        => instantiate_with_flags, driver, "cuGraphInstantiateWithFlags" @ 11040;
    /// As the graph is now, with flags in a structure.
    fn cuGraphInstantiateWithParams(exec: *mut CUgraphExec, graph: CUgraph,
        params: *mut InstantiateParams)
        => instantiate_with_params, driver, "cuGraphInstantiateWithParams" @ 12000;
    /// As the graph is now, with flags in a structure.
    fn cuGraphInstantiateWithParams_ptsz(exec: *mut CUgraphExec, graph: CUgraph,
        params: *mut InstantiateParams)
        => instantiate_with_params, driver, "cuGraphInstantiateWithParams" @ 12000 ptsz;
    /// Memory that its launches left allocated stays.
    fn cuGraphExecDestroy(exec: CUgraphExec) => destroy, driver, "cuGraphExecDestroy" @ 10000;
    /// Flags it was made with.
    fn cuGraphExecGetFlags(exec: CUgraphExec, flags: *mut u64)
        => get_flags, driver, "cuGraphExecGetFlags" @ 12000;
    /// Replaces what it does by what a graph with as many nodes does.
    fn cuGraphExecUpdate(exec: CUgraphExec, graph: CUgraph, error: *mut CUgraphNode,
        result: *mut i32) => update, driver, "cuGraphExecUpdate" @ 10020;
    /// Replaces what it does by what a graph with as many nodes does.
    fn cuGraphExecUpdate_v2(exec: CUgraphExec, graph: CUgraph, result: *mut UpdateResult)
        => update_v2, driver, "cuGraphExecUpdate" @ 12000;
    /// Checked and not kept.
    fn cuGraphExecNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *mut NodeParams)
        => node_set_params, driver, "cuGraphExecNodeSetParams" @ 12020;
    /// One operation of the stream.
    fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream)
        => launch, context, "cuGraphLaunch" @ 10000;
    /// One operation of the stream.
    fn cuGraphLaunch_ptsz(exec: CUgraphExec, stream: CUstream)
        => launch, context, "cuGraphLaunch" @ 10000 ptsz;
    /// Takes the memory that a launch would take.
    fn cuGraphUpload(exec: CUgraphExec, stream: CUstream)
        => upload, context, "cuGraphUpload" @ 11010;
    /// Takes the memory that a launch would take.
    fn cuGraphUpload_ptsz(exec: CUgraphExec, stream: CUstream)
        => upload, context, "cuGraphUpload" @ 11010 ptsz;
    /// Used and reserved memory of graphs, now and at most.
    fn cuDeviceGetGraphMemAttribute(device: CUdevice, attribute: i32, value: *mut c_void)
        => get_attribute, driver, "cuDeviceGetGraphMemAttribute" @ 11040;
    /// Sets a high mark back.
    fn cuDeviceSetGraphMemAttribute(device: CUdevice, attribute: i32, value: *mut c_void)
        => set_attribute, driver, "cuDeviceSetGraphMemAttribute" @ 11040;
    /// Gives the unused reserve back to the card.
    fn cuDeviceGraphMemTrim(device: CUdevice) => trim, driver, "cuDeviceGraphMemTrim" @ 11040;
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
struct InstantiateParams {
    flags: u64,
    upload: CUstream,
    error: CUgraphNode,
    result: i32,
}

/// `CUgraphExecUpdateResultInfo`
#[repr(C)]
#[derive(Clone, Copy)]
struct UpdateResult {
    result: i32,
    error: CUgraphNode,
    from: CUgraphNode,
}

/// An executable graph.
pub(crate) struct Exec {
    pub(crate) nodes: Vec<Node>,
    /// The graph's node that each is of.
    pub(crate) owners: Vec<u64>,
    /// Nodes of the graph that do nothing for now.
    pub(crate) disabled: HashSet<u64>,
    flags: u64,
}

impl Exec {
    /// How long a launch occupies the engine.
    fn duration(&self) -> u64 {
        let enabled = self.nodes.iter().zip(&self.owners);
        let enabled = enabled.filter(|(_, owner)| !self.disabled.contains(owner));
        enabled.map(|(node, _)| node.duration()).sum()
    }
}

/// The executable graphs of the process.
pub(crate) type Execs = Table<Exec>;

const AUTO_FREE_ON_LAUNCH: u64 = 1;
/// `CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE`
const UPDATE_FAILURE: CuError = CuError::new(910).unwrap();
/// `CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED`
const TOPOLOGY_CHANGED: i32 = 2;
/// `CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED`
const NOT_SUPPORTED: i32 = 6;

/// Why nodes cannot take the place of others, if they cannot: there are not as many, or memory would change.
fn obstacle(nodes: &[Node], others: &[Node]) -> Option<i32> {
    let memory = |node: &&Node| matches!(node, Node::Alloc { .. } | Node::Free(_));
    if nodes.len() != others.len() {
        Some(TOPOLOGY_CHANGED)
    } else if !nodes.iter().filter(memory).eq(others.iter().filter(memory)) {
        Some(NOT_SUPPORTED)
    } else {
        None
    }
}

impl State {
    /// Runs the memory nodes of a launch, in order.
    fn run_memory_nodes(&mut self, exec: CUgraphExec, context: u64) -> CuResult {
        let found = self.execs.get(exec.address()).ok_or(CuError::INVALID_HANDLE)?;
        let (nodes, auto_free) = (found.nodes.clone(), found.flags & AUTO_FREE_ON_LAUNCH != 0);
        for node in nodes {
            match node {
                Node::Alloc { address, bytes, unit } => {
                    if auto_free {
                        self.free_graph_memory(address);
                    }
                    if self.memory.at(address).is_some() {
                        return Err(CuError::INVALID_VALUE);
                    }
                    let pool = self.pools.of_graphs(unit);
                    self.pools.take(pool, bytes)?;
                    self.memory.place_at(address, bytes, (context, unit), Kind::Graph(pool));
                }
                Node::Free(address) => self.free_graph_memory(address),
                _ => {}
            }
        }
        Ok(())
    }

    fn free_graph_memory(&mut self, address: u64) {
        if let Some(block) = self.memory.at(address)
            && let Kind::Graph(pool) = block.kind
        {
            self.memory.remove(address);
            self.free_in_pool(pool, block.bytes, None);
        }
    }
}

fn instantiate(
    exec: Out<CUgraphExec>,
    graph: CUgraph,
    error: Out<CUgraphNode>,
    _log: Out<c_char>,
    _bytes: usize,
) -> CuResult {
    error.put_if_asked(CUgraphNode::NULL);
    instantiate_with_flags(exec, graph, 0)
}

fn instantiate_with_flags(exec: Out<CUgraphExec>, graph: CUgraph, flags: u64) -> CuResult {
    exec.required()?;
    let mut state = state()?;
    let nodes = state.graphs.nodes(graph.address())?;
    let owners = state.graphs.owners(graph.address())?;
    let made = Exec { nodes, owners, disabled: HashSet::new(), flags };
    exec.put(CUgraphExec(state.execs.add(made) as *mut c_void))
}

fn instantiate_with_params(
    exec: Out<CUgraphExec>,
    graph: CUgraph,
    params: Out<InstantiateParams>,
) -> CuResult {
    let mut asked = params.get()?;
    instantiate_with_flags(exec, graph, asked.flags)?;
    asked.error = CUgraphNode::NULL;
    asked.result = 0;
    params.put(asked)
}

fn destroy(exec: CUgraphExec) -> CuResult {
    state()?.execs.remove(exec.address()).map(drop).ok_or(CuError::INVALID_VALUE)
}

fn get_flags(exec: CUgraphExec, flags: Out<u64>) -> CuResult {
    flags.put(state()?.execs.get(exec.address()).ok_or(CuError::INVALID_VALUE)?.flags)
}

fn update(
    exec: CUgraphExec,
    graph: CUgraph,
    error: Out<CUgraphNode>,
    result: Out<i32>,
) -> CuResult {
    error.put_if_asked(CUgraphNode::NULL);
    let mut state = state()?;
    let nodes = state.graphs.nodes(graph.address())?;
    let found = state.execs.get_mut(exec.address()).ok_or(CuError::INVALID_VALUE)?;
    if let Some(why) = obstacle(&found.nodes, &nodes) {
        result.put_if_asked(why);
        return Err(UPDATE_FAILURE);
    }
    found.nodes = nodes;
    result.put_if_asked(0);
    Ok(())
}

fn update_v2(exec: CUgraphExec, graph: CUgraph, result: Out<UpdateResult>) -> CuResult {
    result.required()?;
    let mut answer = UpdateResult { result: 0, error: CUgraphNode::NULL, from: CUgraphNode::NULL };
    let mut state = state()?;
    let nodes = state.graphs.nodes(graph.address())?;
    let found = state.execs.get_mut(exec.address()).ok_or(CuError::INVALID_VALUE)?;
    if let Some(why) = obstacle(&found.nodes, &nodes) {
        answer.result = why;
        result.put(answer)?;
        return Err(UPDATE_FAILURE);
    }
    found.nodes = nodes;
    result.put(answer)
}

fn node_set_params(exec: CUgraphExec, _node: CUgraphNode, params: Out<NodeParams>) -> CuResult {
    let asked = params.get()?;
    if is_memory(&asked) {
        return Err(CuError::NOT_SUPPORTED);
    }
    meaning(&asked)?;
    state()?.execs.get(exec.address()).map(drop).ok_or(CuError::INVALID_VALUE)
}

fn launch(exec: CUgraphExec, stream: CUstream) -> CuResult {
    let (nodes, duration) = match state()?.execs.get(exec.address()) {
        Some(found) => (found.nodes.clone(), found.duration()),
        None => return Err(CuError::INVALID_HANDLE),
    };
    if capture::take_child(stream, nodes)? {
        return Ok(());
    }
    let (context, _) = crate::context::current()?;
    state()?.run_memory_nodes(exec, context)?;
    crate::launch::host_cost();
    crate::launch::queued(stream, duration)
}

fn upload(exec: CUgraphExec, stream: CUstream) -> CuResult {
    capture::forbid(stream)?;
    let mut state = state()?;
    let found = state.execs.get(exec.address()).ok_or(CuError::INVALID_HANDLE)?;
    let allocs: Vec<_> = found
        .nodes
        .iter()
        .filter_map(|node| match node {
            // What an earlier launch has left allocated is there already.
            Node::Alloc { address, bytes, unit } if state.memory.at(*address).is_none() => {
                Some((*unit, *bytes))
            }
            _ => None,
        })
        .collect();
    for (unit, bytes) in allocs {
        // Taken and returned: the reserve grows and stays.
        let pool = state.pools.of_graphs(unit);
        state.pools.take(pool, bytes)?;
        state.free_in_pool(pool, bytes, None);
    }
    Ok(())
}

fn get_attribute(device: CUdevice, attribute: i32, value: Out<c_void>) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    let pool = state.pools.of_graphs(unit);
    let numbers = state.pools.numbers(pool);
    let number = usize::try_from(attribute).ok().and_then(|at| numbers.get(at).copied());
    value.cast::<u64>().put(number.ok_or(CuError::INVALID_VALUE)?)
}

fn set_attribute(device: CUdevice, attribute: i32, value: Out<c_void>) -> CuResult {
    let unit = unit(device)?;
    if !matches!(attribute, 1 | 3) || value.cast::<u64>().get()? != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut state = state()?;
    let pool = state.pools.of_graphs(unit);
    state.pools.reset_high(pool, attribute == 1);
    Ok(())
}

fn trim(device: CUdevice) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    let pool = state.pools.of_graphs(unit);
    state.pools.trim(pool, 0);
    Ok(())
}
