//! Stream capture: operations that become nodes of a graph instead of running.
//!
//! A capture has an origin stream; others join by waiting for an event that was recorded in it.
//! Nodes are chained in the order in which they were captured: which branch a node is on is not
//! simulated, and neither is an unjoined branch. Asking a capturing stream whether it is done is an
//! error, and spoils the capture; so does using the legacy default stream while a stream that waits
//! for it is captured. What else is forbidden in the mean time, [`crate::capture_mode`] says.

use crate::arg::{In, Out};
use crate::capture_mode::Mode;
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::graph::Node;
use crate::graph_kernel::Launched;
use crate::state::{State, Table};
use crate::stream::{Kind, Stream, thread_number};
use gpucap_abi::cuda::{
    CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphNode, CUstream, CuError, CuResult,
};
use gpucap_stub_device::catalog::Unit;
use std::ffi::c_void;

exports! {
    /// In global mode.
    fn cuStreamBeginCapture(stream: CUstream)
        => begin_first, context, "cuStreamBeginCapture" @ 10000;
    /// In global mode.
    fn cuStreamBeginCapture_ptsz(stream: CUstream)
        => begin_first, context, "cuStreamBeginCapture" @ 10000 ptsz;
    /// Not in the legacy default stream.
    fn cuStreamBeginCapture_v2(stream: CUstream, mode: i32)
        => begin, context, "cuStreamBeginCapture" @ 10010;
    /// Not in the legacy default stream.
    fn cuStreamBeginCapture_v2_ptsz(stream: CUstream, mode: i32)
        => begin, context, "cuStreamBeginCapture" @ 10010 ptsz;
    /// Nodes go into a graph that exists.
    fn cuStreamBeginCaptureToGraph(stream: CUstream, graph: CUgraph,
        dependencies: *const CUgraphNode, edges: *const c_void, count: usize, mode: i32)
        => begin_to_graph, context, "cuStreamBeginCaptureToGraph" @ 12030;
    /// Nodes go into a graph that exists.
    fn cuStreamBeginCaptureToGraph_ptsz(stream: CUstream, graph: CUgraph,
        dependencies: *const CUgraphNode, edges: *const c_void, count: usize, mode: i32)
        => begin_to_graph, context, "cuStreamBeginCaptureToGraph" @ 12030 ptsz;
    /// Not simulated.
    fn cuStreamBeginCaptureToCig(stream: CUstream, parameters: *mut c_void)
        => unsupported_with, context, "cuStreamBeginCaptureToCig" @ 13010;
    /// Not simulated.
    fn cuStreamBeginCaptureToCig_ptsz(stream: CUstream, parameters: *mut c_void)
        => unsupported_with, context, "cuStreamBeginCaptureToCig" @ 13010 ptsz;
    /// Not simulated.
    fn cuStreamEndCaptureToCig(stream: CUstream)
        => unsupported, context, "cuStreamEndCaptureToCig" @ 13010;
    /// Not simulated.
    fn cuStreamEndCaptureToCig_ptsz(stream: CUstream)
        => unsupported, context, "cuStreamEndCaptureToCig" @ 13010 ptsz;
    /// Not simulated.
    fn cuStreamBeginRecaptureToGraph(stream: CUstream, mode: i32, graph: CUgraph,
        callback: *mut c_void, data: *mut c_void)
        => recapture, context, "cuStreamBeginRecaptureToGraph" @ 13030;
    /// Not simulated.
    fn cuStreamBeginRecaptureToGraph_ptsz(stream: CUstream, mode: i32, graph: CUgraph,
        callback: *mut c_void, data: *mut c_void)
        => recapture, context, "cuStreamBeginRecaptureToGraph" @ 13030 ptsz;
    /// Null and INVALIDATED if the capture was spoilt.
    fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph)
        => end, context, "cuStreamEndCapture" @ 10000;
    /// Null and INVALIDATED if the capture was spoilt.
    fn cuStreamEndCapture_ptsz(stream: CUstream, graph: *mut CUgraph)
        => end, context, "cuStreamEndCapture" @ 10000 ptsz;
}

pub(crate) const UNSUPPORTED: CuError = CuError::new(900).unwrap();
const INVALIDATED: CuError = CuError::new(901).unwrap();
const UNMATCHED: CuError = CuError::new(903).unwrap();
/// A stream that is captured would wait for what is not.
const ISOLATION: CuError = CuError::new(905).unwrap();
/// The legacy default stream would wait for a stream that is captured.
pub(crate) const IMPLICIT: CuError = CuError::new(906).unwrap();
const WRONG_THREAD: CuError = CuError::new(908).unwrap();
const ILLEGAL_STATE: CuError = CuError::new(401).unwrap();
/// `CUDA_ERROR_CAPTURED_EVENT`
pub(crate) const EVENT_OF_CAPTURE: CuError = CuError::new(907).unwrap();

/// What a capturing stream remembers: the number of its capture.
#[derive(Clone, Copy)]
pub(crate) struct Capture(pub(crate) u64);

/// A capture.
pub(crate) struct Session {
    pub(crate) graph: u64,
    /// The stream that ends it.
    origin: u64,
    /// The thread that began it.
    pub(crate) thread: u64,
    pub(crate) mode: Mode,
    pub(crate) spoilt: bool,
}

/// The captures of the process.
pub(crate) type Captures = Table<Session>;

/// Something that a stream is asked to do.
pub(crate) enum Operation {
    /// A kernel of this duration.
    Kernel(CUfunction, u64),
    /// A copy or a memset of this duration.
    Work(u64),
    Host,
    Record(CUevent),
    /// For an event that is not of the capture; whether it was recorded at all.
    Wait(bool),
    /// The recording of an event, or a wait for one, when the graph runs.
    Event,
    Free(CUdeviceptr),
}

/// Captures the operation if the stream is capturing; `false` if it must run.
pub(crate) fn take(stream: CUstream, operation: Operation) -> Result<bool, CuError> {
    let current = current()?;
    let mut state = state()?;
    let Some((id, graph)) = active(&mut state, stream, current)? else { return Ok(false) };
    let node = match operation {
        Operation::Kernel(function, ns) => {
            Node::Kernel { ns, launched: Launched::Function(function.address()) }
        }
        Operation::Work(duration) => Node::Work(duration),
        Operation::Wait(true) => {
            spoil(&mut state, id);
            return Err(ISOLATION);
        }
        Operation::Wait(false) => return Ok(true),
        Operation::Host | Operation::Event => Node::Empty,
        Operation::Free(address) => Node::Free(address),
        Operation::Record(event) => {
            let found = state.events.get_mut(event.address()).ok_or(CuError::INVALID_HANDLE)?;
            found.capture = Some(id);
            return Ok(true);
        }
    };
    state.graphs.append(graph, node)?;
    Ok(true)
}

/// Captures an allocation if the stream is capturing: its address.
pub(crate) fn take_allocation(
    stream: CUstream,
    bytes: u64,
    unit: Unit,
) -> Result<Option<CUdeviceptr>, CuError> {
    let current = current()?;
    let mut state = state()?;
    let Some((_, graph)) = active(&mut state, stream, current)? else { return Ok(None) };
    let address = state.memory.arena.take(bytes, 1).ok_or(CuError::OUT_OF_MEMORY)?;
    state.graphs.append(graph, Node::Alloc { address, bytes, unit })?;
    Ok(Some(address))
}

/// Captures a graph launch if the stream is capturing.
pub(crate) fn take_child(stream: CUstream, nodes: Vec<Node>) -> Result<bool, CuError> {
    let current = current()?;
    let mut state = state()?;
    let Some((_, graph)) = active(&mut state, stream, current)? else { return Ok(false) };
    for node in nodes {
        state.graphs.append(graph, node)?;
    }
    Ok(true)
}

/// The capture of a stream and its graph; an error if it is spoilt.
fn active(
    state: &mut State,
    stream: CUstream,
    current: (u64, Unit),
) -> Result<Option<(u64, u64)>, CuError> {
    let handle = state.stream(stream, current)?;
    if let Some(id) = capture_of_legacy(state, handle) {
        spoil(state, id);
        return Err(IMPLICIT);
    }
    let Some(Capture(id)) = state.streams.get_mut(handle).and_then(|stream| stream.capture) else {
        return Ok(None);
    };
    let session = state.captures.get(id).ok_or(CuError::UNKNOWN)?;
    if session.spoilt { Err(INVALIDATED) } else { Ok(Some((id, session.graph))) }
}

/// Spoils the capture of a stream that was asked what a capturing one cannot answer.
pub(crate) fn fail(state: &mut State, handle: u64) -> CuError {
    if let Some(Capture(id)) = state.streams.get_mut(handle).and_then(|stream| stream.capture) {
        spoil(state, id);
    }
    UNSUPPORTED
}

/// The capture that stands for the legacy default stream, if this is it: one of a stream that waits for it.
pub(crate) fn capture_of_legacy(state: &mut State, handle: u64) -> Option<u64> {
    let stream = state.streams.get_mut(handle)?;
    let context = stream.context;
    if stream.kind != Kind::Legacy {
        return None;
    }
    let waits = |stream: &&mut Stream| stream.context == context && stream.kind == Kind::Blocking;
    state
        .streams
        .iter_mut()
        .filter(waits)
        .find_map(|stream| stream.capture)
        .map(|capture| capture.0)
}

/// Nothing will come of a capture.
pub(crate) fn spoil(state: &mut State, id: u64) {
    if let Some(session) = state.captures.get_mut(id) {
        session.spoilt = true;
    }
}

/// Fails if the stream is not capturing.
pub(crate) fn require(stream: CUstream) -> CuResult {
    let current = current()?;
    let mut state = state()?;
    active(&mut state, stream, current)?.map(drop).ok_or(ILLEGAL_STATE)
}

/// Fails, and spoils the capture, if the stream is capturing.
pub(crate) fn forbid(stream: CUstream) -> CuResult {
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    let capturing = state.streams.get_mut(handle).is_some_and(|stream| stream.capture.is_some());
    if capturing { Err(fail(&mut state, handle)) } else { Ok(()) }
}

/// Fails, and spoils the captures, if a stream of the context is capturing.
pub(crate) fn forbid_in_context(state: &mut State, context: u64) -> CuResult {
    let of_context = state.streams.iter_mut().filter(|stream| stream.context == context);
    let captures: Vec<_> = of_context.filter_map(|stream| stream.capture).collect();
    for Capture(id) in &captures {
        spoil(state, *id);
    }
    if captures.is_empty() { Ok(()) } else { Err(UNSUPPORTED) }
}

/// Makes a stream part of a capture whose event it waits for.
pub(crate) fn join(stream: CUstream, id: u64) -> CuResult {
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    if state.captures.get(id).is_none() {
        return Err(EVENT_OF_CAPTURE);
    }
    let found = state.streams.get_mut(handle).ok_or(CuError::INVALID_HANDLE)?;
    match found.capture {
        Some(Capture(own)) if own != id => Err(CuError::INVALID_VALUE),
        _ => {
            found.capture = Some(Capture(id));
            Ok(())
        }
    }
}

fn begin_first(stream: CUstream) -> CuResult {
    begin(stream, 0)
}

fn begin(stream: CUstream, mode: i32) -> CuResult {
    let graph = state()?.graphs.create();
    let begun = begin_into(stream, graph, mode);
    if begun.is_err() {
        state()?.graphs.destroy(graph)?;
    }
    begun
}

fn begin_to_graph(
    stream: CUstream,
    graph: CUgraph,
    _dependencies: In<CUgraphNode>,
    _edges: In<c_void>,
    _count: usize,
    mode: i32,
) -> CuResult {
    state()?.graphs.nodes(graph.address())?;
    begin_into(stream, graph.address(), mode)
}

fn begin_into(stream: CUstream, graph: u64, mode: i32) -> CuResult {
    let mode = Mode::new(mode)?;
    if stream.address() <= 1 {
        return Err(UNSUPPORTED);
    }
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    let thread = thread_number();
    let id = state.captures.add(Session { graph, origin: handle, thread, mode, spoilt: false });
    let found = state.streams.get_mut(handle).ok_or(CuError::INVALID_HANDLE)?;
    if found.capture.is_some() {
        state.captures.remove(id);
        return Err(ILLEGAL_STATE);
    }
    found.capture = Some(Capture(id));
    Ok(())
}

fn end(stream: CUstream, graph: Out<CUgraph>) -> CuResult {
    graph.required()?;
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    let found = state.streams.get_mut(handle).ok_or(CuError::INVALID_HANDLE)?;
    let Capture(id) = found.capture.ok_or(ILLEGAL_STATE)?;
    let session = state.captures.get(id).ok_or(CuError::UNKNOWN)?;
    if session.origin != handle {
        return Err(UNMATCHED);
    }
    if session.mode != Mode::Relaxed && session.thread != thread_number() {
        return Err(WRONG_THREAD);
    }
    for stream in state.streams.iter_mut() {
        if stream.capture.is_some_and(|capture| capture.0 == id) {
            stream.capture = None;
        }
    }
    let session = state.captures.remove(id).ok_or(CuError::UNKNOWN)?;
    if session.spoilt {
        graph.put(CUgraph::NULL)?;
        return Err(INVALIDATED);
    }
    graph.put(CUgraph(session.graph as *mut c_void))
}

fn unsupported(stream: CUstream) -> CuResult {
    state()?.check_stream(stream)?;
    Err(CuError::NOT_SUPPORTED)
}

fn unsupported_with(stream: CUstream, _parameters: Out<c_void>) -> CuResult {
    unsupported(stream)
}

fn recapture(
    stream: CUstream,
    _mode: i32,
    _graph: CUgraph,
    _callback: Out<c_void>,
    _data: Out<c_void>,
) -> CuResult {
    unsupported(stream)
}
