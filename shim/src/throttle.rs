//! The compute limit in the shim: the actions before and after each launch, and all other events that the meter needs.
//!
//! Handlers pass what is about to run and where; nothing here changes the driver's answers. Called by handlers of the
//! classes `launch` and `order`, which only a process with a compute limit reaches, and when objects of the driver
//! end.
//!
//! Nearly every launch takes the [fast path](mod@launch): its thread [remembers](stream_cache) the stream, its cost is
//! known, and it takes that out of the thread's [allowance](stream_table) in it. The others, one in some dozens or one per
//! quarter of a millisecond of GPU time, go to the [`gate`] of their device: they wait if they must, and are measured
//! by two [events](timing). The decisions are made in [`gpucap_core::throttle`].
//!
//! A launch in a stream that is being captured runs nothing and passes unchanged. What a tool launches while the driver
//! calls it back under a lock of ours [waits](tool_launches) once that is released.

mod captures;
mod collectives;
mod gate;
mod interval;
mod launch;
mod peers;
mod stream_cache;
mod stream_table;
mod timing;
mod tool_launches;

use crate::call::Call;
use crate::driver::cuda as driver;
use crate::driver_call_guard::DriverCallGuard;
use crate::hooks::Next;
use crate::redirect::DriverCopy;
use crate::session::Session;
use crate::sys;
use captures::Capture;
use gpucap_abi::arg::Written;
use gpucap_abi::cuda::{
    CU_STREAM_PER_THREAD, CUcontext, CUdevice, CUfunction, CUgraph, CUgraphExec, CUstream, CuError,
    CuResult,
};
use gpucap_core::throttle::{Launch, Signature};
use launch::allowance;
use std::{iter, ptr};
use stream_table::{Key, StreamEntry, ThreadAllowance};

pub(crate) use captures::Captures;
pub(crate) use collectives::Collectives;
pub(crate) use gate::Gate;
pub(crate) use launch::{launch, launch_together};
pub(crate) use peers::Peers;
pub(crate) use stream_table::StreamTable;
pub(crate) use tool_launches::{ToolLaunches, settle as settle_tool_launches};

/// What is launched: all that is known about its duration beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A kernel with this many threads in all; for the first launch API, whose block size is set elsewhere, this many
    /// blocks.
    Kernel { function: CUfunction, threads: u64 },
    /// A graph.
    Graph { exec: CUgraphExec },
    /// A fill of device memory.
    Memset { bytes: u64 },
    /// A copy within device memory.
    DeviceCopy { bytes: u64 },
}

/// What is known about an executable graph. An update keeps the nodes of a graph and changes their parameters, so the
/// collectives of a graph stay as it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Contents {
    /// The number of its nodes.
    nodes: u64,
    /// Whether one of its kernels is a collective.
    has_collective: bool,
}

/// The number of nodes that are examined. Collectives come in every layer of a model, so a graph without one among
/// these nodes has none. Each node costs two short queries of the driver.
const NODES_LOOKED_AT: usize = 10_000;

/// A stream as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamRef(CUstream);

impl StreamRef {
    /// Interprets the argument of a call: in the per-thread form, null is the thread's own default stream.
    pub(crate) fn named(call: &Call, stream: CUstream) -> Self {
        let own = call.per_thread && stream == CUstream::NULL;
        Self(if own { CU_STREAM_PER_THREAD } else { stream })
    }

    /// Returns a handle that means the same stream in the driver's plain forms, for the same thread and context: null
    /// is the legacy default stream, 2 the thread's own.
    pub(crate) const fn handle(self) -> CUstream {
        self.0
    }
}

/// What a wait waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All work in a stream.
    Stream(StreamRef),
    /// All work in a context; null is the current one.
    Context(CUcontext),
    /// An unknown subset: whatever has ended can be seen.
    Something,
}

impl Work {
    /// The signature under which its cost is remembered.
    fn signature(self) -> Signature {
        match self {
            Self::Kernel { function, threads } => Signature::kernel(function.address(), threads),
            Self::Graph { exec } => Signature::graph(exec.address()),
            Self::Memset { bytes } => Signature::transfer(1, bytes),
            Self::DeviceCopy { bytes } => Signature::transfer(2, bytes),
        }
    }

    /// The launch for the meter.
    fn launch(self, call: &Call, signature: Signature) -> Launch {
        let launch = Launch::kernel(signature);
        let Some(session) = Session::begun() else { return launch };
        match self {
            Self::Kernel { function, .. }
                if session.collectives.is_collective(call.driver, function) =>
            {
                launch.collective(sys::monotonic_ns())
            }
            Self::Graph { exec } => {
                let contents = session.contents.lock().get(&exec.address()).copied();
                let Contents { nodes, has_collective } = contents.unwrap_or_default();
                let launch = Launch::graph(signature, nodes);
                if has_collective { launch.with_collectives() } else { launch }
            }
            _ => launch,
        }
    }
}

/// Returns the time by the clock that launches and waits are timed with, in nanoseconds.
pub(crate) fn clock() -> u64 {
    sys::monotonic_ns()
}

/// Handles a successful return of a wait of the application that began at `began`.
pub(crate) fn synced(call: &Call, scope: Scope, began: u64) {
    let Some(session) = Session::begun().filter(|_| !DriverCallGuard::is_entered()) else { return };
    let _errno = sys::Errno::keep();
    match scope {
        Scope::Stream(stream) => {
            if let Some((ThreadAllowance { entry, .. }, _)) = allowance(call.driver, stream) {
                entry.gate.synced(call.driver, entry.stream().id.into_iter(), began);
            }
        }
        Scope::Context(context) => {
            let named = Some(context).filter(|context| *context != CUcontext::NULL);
            let context = named.or_else(|| driver::current_context(call.driver));
            for (gate, context) in session.gates().zip(iter::repeat(context)) {
                let Some(id) = context.and_then(|context| gate.context(context)) else { continue };
                let of_it = |entry: &StreamEntry| entry.stream().context == id;
                let streams =
                    session.streams.all(|entry| ptr::eq(entry.gate, gate) && of_it(entry));
                // Read before the gate is locked: the lock of a stream's entry is not taken under the meter's lock.
                let ids: Vec<_> = streams.iter().filter_map(|entry| entry.stream().id).collect();
                gate.synced(call.driver, ids.into_iter(), began);
            }
        }
        Scope::Something => session.gates().for_each(|gate| gate.settle(call.driver)),
    }
}

/// Handles something other than a launch that is about to enter a stream: a copy, a wait, a host function. Its time
/// is not device time, so the earlier launches are separated from the later ones.
pub(crate) fn fence(call: &Call, stream: StreamRef) {
    let Some(session) = Session::begun().filter(|_| !DriverCallGuard::is_entered()) else { return };
    let _errno = sys::Errno::keep();
    let (copy, handle) = (call.driver, stream.handle());
    if let Some(key) = key_of(copy, handle)
        && let Some(Some(entry)) = session.streams.find(key)
    {
        entry.gate.fence(copy, entry, handle);
    }
}

/// Returns the key of a stream; `None` for a default stream without a context.
fn key_of(copy: &DriverCopy, handle: CUstream) -> Option<Key> {
    let of_default = || Some(Key::of_default(handle, driver::current_context(copy)?));
    Key::of_handle(handle).or_else(of_default)
}

/// Destroys a stream. Once the driver returns, its handle may be that of another stream.
pub(crate) fn stream_ends(call: &Call, stream: CUstream, next: impl Next<CuError>) -> CuResult {
    let (Some(session), Some(ending)) = (Session::begun(), Key::of_handle(stream)) else {
        return next().map(drop);
    };
    // A tool that the driver calls back must not wait for a lock whose holder waits for this thread; the entry then
    // stays.
    if !DriverCallGuard::is_entered() {
        let _errno = sys::Errno::keep();
        // Its work goes on, and only an event will show for how long.
        if let Some(Some(entry)) = session.streams.find(ending) {
            entry.gate.fence(call.driver, entry, stream);
        }
        session.streams.end(|key, _| *key == ending, |entry, id| entry.gate.end_stream(id));
    }
    let captures = session.captures.end(|capture| capture.stream == ending);
    let answer = next();
    if answer.is_err() {
        captures.into_iter().for_each(|capture| session.captures.begin(capture));
    }
    answer.map(drop)
}

/// Prepares for the possible end of a context, and of its events: finished work is settled while its events can be
/// queried, and unfinished work gets an event behind it.
pub(crate) fn about_to_end(call: &Call, session: &Session) {
    settle_all(call, session, |_| true);
}

fn settle_all(call: &Call, session: &Session, of_it: impl Fn(&StreamEntry) -> bool) {
    if DriverCallGuard::is_entered() {
        return;
    }
    let _errno = sys::Errno::keep();
    for (handle, entry) in session.streams.with_handles(of_it) {
        entry.gate.fence_in(call.driver, entry, handle);
    }
    session.gates().for_each(|gate| gate.settle_all(call.driver));
}

/// Ends a context, with its streams and events. Work in flight is charged up to the driver's return: the driver waits
/// for the work or stops it. From then on the handle may be that of another context.
pub(crate) fn context_ends(
    call: &Call,
    session: &Session,
    context: CUcontext,
    next: impl Next<CuError>,
) -> Result<Written, CuError> {
    let ids: Vec<_> =
        session.gates().filter_map(|gate| Some((gate, gate.context(context)?))).collect();
    let of_it = |entry: &StreamEntry| {
        ids.iter().any(|(gate, id)| ptr::eq(entry.gate, *gate) && entry.stream().context == *id)
    };
    settle_all(call, session, of_it);
    session.captures.end(|capture| capture.context == context);
    session.streams.forget_free();
    code_ends(session);
    ids.iter().for_each(|(gate, id)| gate.context_is_ending(*id));
    session.streams.end(|_, entry| entry.is_some_and(of_it), |entry, id| entry.gate.end_stream(id));
    let answer = next();
    ids.iter().for_each(|(gate, id)| gate.context_ended(call.driver, *id, answer.is_ok()));
    answer
}

/// Calls a function that may end the primary context of a device. Whether it did is known afterwards, but not which
/// of the contexts it is: all contexts of the device are registered anew. The caller [holds](crate::driver_call_guard) the guard
/// already.
pub(crate) fn primary_may_end(
    call: &Call,
    session: &Session,
    ordinal: CUdevice,
    next: impl Next<CuError>,
) -> Result<Written, CuError> {
    session.streams.forget_free();
    code_ends(session);
    let standing = session.standing(call.driver, ordinal)?;
    let Some(gate) = standing.and_then(|standing| standing.time.as_ref()) else { return next() };
    let (answer, ended) = gate.with_queries_excluded(|timing| {
        let answer = next();
        let ended = driver::primary_context_active(call.driver, ordinal) == Some(false);
        if ended {
            timing.end_all(sys::monotonic_ns());
        }
        (answer, ended)
    });
    if ended {
        // The next primary context has the same handle: an entry that outlived this one would be taken for its
        // default stream's.
        let end = |entry: &StreamEntry, id| entry.gate.end_stream_held(id);
        session.streams.end(|_, entry| entry.is_some_and(|entry| ptr::eq(entry.gate, gate)), end);
        session.captures.end(|capture| capture.device == Some(ordinal));
    }
    answer
}

/// Begins a capture: until it has ended, and while the driver begins it, no call may be made that would invalidate
/// it.
pub(crate) fn capture_begins(call: &Call, stream: CUstream, next: impl Next<CuError>) -> CuResult {
    let capture = Session::begun().and_then(|session| Some((session, capture(call, stream)?)));
    if let Some((session, capture)) = capture {
        session.captures.begin(capture);
        let _errno = sys::Errno::keep();
        session.gates().for_each(Gate::wait_for_questions);
    }
    let begun = next();
    if let (Some((session, capture)), Err(_)) = (capture, &begun) {
        session.captures.undo(capture);
    }
    begun.map(drop)
}

/// Handles the end of a stream's capture.
pub(crate) fn capture_ended(call: &Call, stream: CUstream) {
    if let Some(session) = Session::begun()
        && let Some(ended) = capture(call, stream)
    {
        session.captures.end(|capture| capture.stream == ended.stream);
    }
}

fn capture(call: &Call, stream: CUstream) -> Option<Capture> {
    let _errno = sys::Errno::keep();
    let (copy, handle) = (call.driver, StreamRef::named(call, stream).handle());
    let current = driver::current_context(copy)?;
    let stream = Key::of_handle(handle).unwrap_or_else(|| Key::of_default(handle, current));
    let context = driver::time::context_of(copy, handle).unwrap_or(current);
    let device = driver::time::in_context(copy, context, || driver::current_device(copy)).flatten();
    Some(Capture { stream, context, device })
}

/// Handles the unloading of code: handles of its functions may be reused then. Also called in processes without a
/// compute limit.
pub(crate) fn code_ends(session: &Session) {
    if session.gates().next().is_some() {
        session.collectives.forget();
    }
}

/// Handles the instantiation of a graph. Also called in processes without a compute limit.
pub(crate) fn graph_made(call: &Call, exec: CUgraphExec, graph: CUgraph) {
    if let Some(session) = Session::begun().filter(|session| session.gates().next().is_some())
        && let Some(nodes) = driver::graph::node_count(call.driver, graph)
    {
        let _errno = sys::Errno::keep();
        let is_collective = |function| session.collectives.is_collective(call.driver, function);
        let has_collective =
            driver::graph::has_kernel(call.driver, graph, NODES_LOOKED_AT, is_collective);
        let contents = Contents { nodes: nodes as u64, has_collective };
        session.contents.lock().insert(exec.address(), contents);
    }
}

/// Handles a change of an executable graph.
pub(crate) fn graph_changed(_call: &Call, exec: CUgraphExec) {
    if let Some(session) = Session::begun() {
        let _errno = sys::Errno::keep();
        session.gates().for_each(|gate| gate.changed(Signature::graph(exec.address())));
    }
}

/// Handles the destruction of an executable graph. Once the driver returns, its handle may be that of another one.
/// Also called in processes without a compute limit.
pub(crate) fn graph_ends(call: &Call, exec: CUgraphExec) {
    if let Some(session) = Session::begun() {
        session.contents.lock().remove(&exec.address());
    }
    graph_changed(call, exec);
}
