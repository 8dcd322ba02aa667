//! Parameters of nodes that copy, set memory or call the host, and of nodes that stand for
//! events.
//!
//! What a client gave is kept and told again; a copy takes no time, and no function is called. A
//! node tells only the parameters of its own kind.

use crate::arg::{In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::graph::{Graphs, Node, add, kind};
use crate::graph_kernel::Launched;
use crate::state::FIRST_HANDLE;
use gpucap_abi::cuda::{CUevent, CUgraph, CUgraphExec, CUgraphNode, CuError, CuResult};
use std::ffi::c_void;

exports! {
    fn cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: *mut Copied)
        => copy, driver, "cuGraphMemcpyNodeGetParams" @ 10000;
    fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: *const Copied)
        => set_copy, driver, "cuGraphMemcpyNodeSetParams" @ 10000;
    fn cuGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut Filled)
        => fill, driver, "cuGraphMemsetNodeGetParams" @ 10000;
    fn cuGraphMemsetNodeSetParams(node: CUgraphNode, params: *const Filled)
        => set_fill, driver, "cuGraphMemsetNodeSetParams" @ 10000;
    fn cuGraphHostNodeGetParams(node: CUgraphNode, params: *mut Called)
        => host, driver, "cuGraphHostNodeGetParams" @ 10000;
    fn cuGraphHostNodeSetParams(node: CUgraphNode, params: *const Called)
        => set_host, driver, "cuGraphHostNodeSetParams" @ 10000;
    /// Kept as a node that does nothing.
    fn cuGraphAddEventRecordNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, event: CUevent)
        => add_record, driver, "cuGraphAddEventRecordNode" @ 11010;
    /// Kept as a node that does nothing.
    fn cuGraphAddEventWaitNode(node: *mut CUgraphNode, graph: CUgraph,
        dependencies: *const CUgraphNode, count: usize, event: CUevent)
        => add_wait, driver, "cuGraphAddEventWaitNode" @ 11010;
    fn cuGraphEventRecordNodeGetEvent(node: CUgraphNode, event: *mut u64)
        => recorded, driver, "cuGraphEventRecordNodeGetEvent" @ 11010;
    fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent)
        => set_recorded, driver, "cuGraphEventRecordNodeSetEvent" @ 11010;
    fn cuGraphEventWaitNodeGetEvent(node: CUgraphNode, event: *mut u64)
        => awaited, driver, "cuGraphEventWaitNodeGetEvent" @ 11010;
    fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent)
        => set_awaited, driver, "cuGraphEventWaitNodeSetEvent" @ 11010;
    /// The function.
    fn cuGraphKernelNodeSetParams(node: CUgraphNode, params: *const [u64; 7])
        => set_function, driver, "cuGraphKernelNodeSetParams" @ 10000;
    /// The function, or the kernel where there is none.
    fn cuGraphKernelNodeSetParams_v2(node: CUgraphNode, params: *const [u64; 9])
        => set_kernel, driver, "cuGraphKernelNodeSetParams" @ 12000;
    fn cuGraphNodeGetContainingGraph(node: CUgraphNode, graph: *mut CUgraph)
        => graph_of, driver, "cuGraphNodeGetContainingGraph" @ 13010;
    /// Its place in its graph.
    fn cuGraphNodeGetLocalId(node: CUgraphNode, id: *mut u32)
        => local_id, driver, "cuGraphNodeGetLocalId" @ 13010;
    /// A number that no other node of the process has.
    fn cuGraphNodeGetToolsId(node: CUgraphNode, id: *mut u64)
        => tools_id, driver, "cuGraphNodeGetToolsId" @ 13010;
    /// A number that no other graph of the process has.
    fn cuGraphGetId(graph: CUgraph, id: *mut u32) => graph_id, driver, "cuGraphGetId" @ 13010;
    /// A number that no other executable graph of the process has.
    fn cuGraphExecGetId(exec: CUgraphExec, id: *mut u32)
        => exec_id, driver, "cuGraphExecGetId" @ 13010;
}

/// `CUDA_MEMCPY3D`
pub(crate) type Copied = [u64; 25];
/// `CUDA_MEMSET_NODE_PARAMS`
pub(crate) type Filled = [u64; 5];
/// `CUDA_HOST_NODE_PARAMS`
pub(crate) type Called = [u64; 2];

/// What a node was given: its kind, and the words of its parameters.
pub(crate) type Given = (i32, Vec<u64>);

/// The same, for a node that is about to be made.
#[expect(clippy::unnecessary_wraps, reason = "a node need not be given anything")]
pub(crate) fn given(kind: i32, params: &[u64]) -> Option<Given> {
    Some((kind, params.to_vec()))
}

/// The same, of the words by which a node of any kind is described.
pub(crate) fn given_words(kind: i32, words: &[u64; 29]) -> Option<Given> {
    let params = match kind {
        // Flags and a context come first.
        kind::MEMCPY => &words[2..27],
        kind::MEMSET => &words[..5],
        kind::HOST => &words[..2],
        kind::WAIT_EVENT | kind::EVENT_RECORD => &words[..1],
        _ => return None,
    };
    given(kind, params)
}

impl Graphs {
    /// What a node of this kind was given.
    fn told<const N: usize>(&self, node: CUgraphNode, kind: i32) -> Result<[u64; N], CuError> {
        let found = self.given.get(&node.address()).filter(|given| given.0 == kind);
        let (_, params) = found.ok_or(CuError::INVALID_VALUE)?;
        params.as_slice().try_into().map_err(|_| CuError::INVALID_VALUE)
    }
}

fn get<const N: usize>(node: CUgraphNode, kind: i32, params: Out<[u64; N]>) -> CuResult {
    params.put(state()?.graphs.told(node, kind)?)
}

/// Replaces what a node of the same kind was given.
fn set<const N: usize>(node: CUgraphNode, kind: i32, params: [u64; N]) -> CuResult {
    let mut state = state()?;
    state.graphs.told::<N>(node, kind)?;
    state.graphs.given.insert(node.address(), (kind, params.to_vec()));
    Ok(())
}

fn copy(node: CUgraphNode, params: Out<Copied>) -> CuResult {
    get(node, kind::MEMCPY, params)
}

fn set_copy(node: CUgraphNode, params: In<Copied>) -> CuResult {
    set(node, kind::MEMCPY, params.get()?)
}

fn fill(node: CUgraphNode, params: Out<Filled>) -> CuResult {
    get(node, kind::MEMSET, params)
}

fn set_fill(node: CUgraphNode, params: In<Filled>) -> CuResult {
    set(node, kind::MEMSET, params.get()?)
}

fn host(node: CUgraphNode, params: Out<Called>) -> CuResult {
    get(node, kind::HOST, params)
}

fn set_host(node: CUgraphNode, params: In<Called>) -> CuResult {
    set(node, kind::HOST, params.get()?)
}

fn add_record(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    event: CUevent,
) -> CuResult {
    add_event(node, graph, (on, count), event, kind::EVENT_RECORD)
}

fn add_wait(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: In<CUgraphNode>,
    count: usize,
    event: CUevent,
) -> CuResult {
    add_event(node, graph, (on, count), event, kind::WAIT_EVENT)
}

fn add_event(
    node: Out<CUgraphNode>,
    graph: CUgraph,
    on: (In<CUgraphNode>, usize),
    event: CUevent,
    kind: i32,
) -> CuResult {
    state()?.events.get(event.address()).ok_or(CuError::INVALID_HANDLE)?;
    add(node, graph, on, vec![Node::Empty], given(kind, &[event.address()]))
}

fn recorded(node: CUgraphNode, event: Out<u64>) -> CuResult {
    get(node, kind::EVENT_RECORD, event.cast::<[u64; 1]>())
}

fn set_recorded(node: CUgraphNode, event: CUevent) -> CuResult {
    state()?.events.get(event.address()).ok_or(CuError::INVALID_HANDLE)?;
    set(node, kind::EVENT_RECORD, [event.address()])
}

fn awaited(node: CUgraphNode, event: Out<u64>) -> CuResult {
    get(node, kind::WAIT_EVENT, event.cast::<[u64; 1]>())
}

fn set_awaited(node: CUgraphNode, event: CUevent) -> CuResult {
    state()?.events.get(event.address()).ok_or(CuError::INVALID_HANDLE)?;
    set(node, kind::WAIT_EVENT, [event.address()])
}

fn set_launched(node: CUgraphNode, launched: Launched) -> CuResult {
    let made = launched.node()?;
    let mut state = state()?;
    let (_, nodes) = state.graphs.nodes.get_mut(node.address()).ok_or(CuError::INVALID_VALUE)?;
    match nodes.as_mut_slice() {
        [one @ Node::Kernel { .. }] => {
            *one = made;
            Ok(())
        }
        _ => Err(CuError::INVALID_VALUE),
    }
}

fn set_function(node: CUgraphNode, params: In<[u64; 7]>) -> CuResult {
    let [function, ..] = params.get()?;
    set_launched(node, Launched::Function(function))
}

fn set_kernel(node: CUgraphNode, params: In<[u64; 9]>) -> CuResult {
    let [function, .., kernel, _] = params.get()?;
    set_launched(node, Launched::given(function, kernel))
}

fn graph_of(node: CUgraphNode, graph: Out<CUgraph>) -> CuResult {
    let state = state()?;
    let (of, _) = state.graphs.nodes.get(node.address()).ok_or(CuError::INVALID_VALUE)?;
    graph.put(CUgraph(*of as *mut c_void))
}

fn local_id(node: CUgraphNode, id: Out<u32>) -> CuResult {
    let state = state()?;
    let (of, _) = state.graphs.nodes.get(node.address()).ok_or(CuError::INVALID_VALUE)?;
    let list = state.graphs.table.get(*of).ok_or(CuError::INVALID_VALUE)?;
    let place = list.iter().position(|handle| *handle == node.address());
    id.put(place.and_then(|place| u32::try_from(place).ok()).ok_or(CuError::INVALID_VALUE)?)
}

fn tools_id(node: CUgraphNode, id: Out<u64>) -> CuResult {
    state()?.graphs.nodes.get(node.address()).ok_or(CuError::INVALID_VALUE)?;
    id.put(node.address())
}

/// Handles are 64 bytes apart, and begin at the same address in every process.
fn number(handle: u64) -> u32 {
    u32::try_from((handle - FIRST_HANDLE) / 64).unwrap_or(u32::MAX)
}

fn graph_id(graph: CUgraph, id: Out<u32>) -> CuResult {
    state()?.graphs.nodes(graph.address())?;
    id.put(number(graph.address()))
}

fn exec_id(exec: CUgraphExec, id: Out<u32>) -> CuResult {
    state()?.execs.get(exec.address()).ok_or(CuError::INVALID_VALUE)?;
    id.put(number(exec.address()))
}
