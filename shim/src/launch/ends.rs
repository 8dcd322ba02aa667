//! Ends and beginnings that the meter has to know of: of streams, contexts, captures, code and graphs.
//!
//! Once the driver has returned from such a call, the handle may be that of another object.

use super::implicit;
use super::work::StreamRef;
use crate::call::Call;
use crate::driver::Next;
use crate::driver::call_guard::DriverCallGuard;
use crate::driver::cuda as driver;
use crate::session::Session;
use crate::sys;
use crate::throttle::{Capture, Contents, ContextId, Gate, Key, StreamEntry, StreamLookup};
use core::ffi::c_void;
use gpucap_abi::arg::Written;
use gpucap_abi::cuda::{CUcontext, CUdevice, CUgraph, CUgraphExec, CUstream, CuError, CuResult};
use gpucap_core::throttle::Signature;
use std::ptr;

/// The number of nodes that are examined. Collectives come in every layer of a model, so a graph without one among
/// these nodes has none. Each node costs two short queries of the driver.
const NODES_LOOKED_AT: usize = 10_000;

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
        if let StreamLookup::Known(Some(entry)) = session.streams.find(ending) {
            entry.gate.fence_in(call.driver, entry, stream);
        }
        session.streams.end(|key, _| *key == ending, |entry, id| entry.gate.end_stream(id));
    }
    let answer = next();
    if answer.is_ok() {
        session.captures.outlive(|capture| capture.stream == ending);
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
    implicit::fence_all(call.driver, session, of_it);
    session.budget.gates().for_each(|gate| gate.settle_all(call.driver));
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
        session.budget.gates().filter_map(|gate| Some((gate, gate.context(context)?))).collect();
    let of_it = |entry: &StreamEntry| {
        ids.iter().any(|(gate, id)| ptr::eq(entry.gate, *gate) && entry.stream().context == *id)
    };
    settle_all(call, session, of_it);
    session.captures.end(|capture| capture.context == context);
    session.streams.forget_free();
    code_ends(session);
    ids.iter().for_each(|(gate, id)| gate.context_is_ending(*id));
    let is_of_it = |_: &Key, entry: Option<&StreamEntry>| entry.is_some_and(of_it);
    session.streams.end(is_of_it, |entry, id| entry.gate.end_stream(id));
    let answer = next();
    if answer.is_ok() {
        // Another thread may have launched in it since: what has the handle of such a stream next is another one.
        session.streams.end(is_of_it, |entry, id| entry.gate.end_stream_of_ended(call.driver, id));
    }
    ids.iter().for_each(|(gate, id)| gate.context_ended(call.driver, *id, answer.is_ok()));
    answer
}

/// Calls a function that may end the primary context of a device. Whether it did is known afterwards. Of the contexts of
/// the device those end that the program has not made itself: the primary one, and what its green contexts were used as.
/// The caller [holds](crate::driver::call_guard) the guard already.
pub(crate) fn primary_may_end(
    call: &Call,
    session: &Session,
    ordinal: CUdevice,
    next: impl Next<CuError>,
) -> Result<Written, CuError> {
    session.streams.forget_free();
    code_ends(session);
    let standing = session.budget.standing(call.driver, ordinal)?;
    let Some(gate) = standing.and_then(|standing| standing.time.as_ref()) else { return next() };
    let lasts = |context: CUcontext| session.contexts.is_own(context.address());
    let (answer, ended) = gate.with_queries_excluded(|timing| {
        let answer = next();
        let is_over = driver::primary_context_active(call.driver, ordinal) == Some(false);
        (answer, is_over.then(|| timing.end_each(sys::monotonic_ns(), |context| !lasts(context))))
    });
    if let Some(ended) = ended {
        // The next primary context has the same handle: an entry that outlived this one would be taken for its
        // default stream's.
        let of_them = |entry: &StreamEntry| {
            ptr::eq(entry.gate, gate) && ended.contains(&entry.stream().context)
        };
        let end = |entry: &StreamEntry, id| entry.gate.end_stream_held(id);
        session.streams.end(|_, entry| entry.is_some_and(of_them), end);
        session.captures.end(|capture| capture.device == Some(ordinal) && !lasts(capture.context));
        // The process may end without a further call.
        gate.settle_all_held(call.driver);
    }
    answer
}

/// The handles of contexts that were names of another one.
pub(crate) struct Names {
    gate: &'static Gate,
    before: Vec<(CUcontext, ContextId)>,
}

impl Names {
    /// They are still names of it.
    pub(crate) fn take_back(self) {
        self.before.into_iter().for_each(|(handle, id)| self.gate.name(id, handle));
    }
}

/// Handles the end of names of a device's primary context: of those that a green context was used by. Work that was
/// launched by them goes on, and its events are the primary context's. From the driver's return on such a handle may be
/// that of another context: its default streams are others then.
pub(crate) fn names_end(
    call: &Call,
    session: &'static Session,
    ordinal: CUdevice,
    names: &[u64],
) -> Option<Names> {
    if DriverCallGuard::is_entered() || names.is_empty() {
        return None;
    }
    let _errno = sys::Errno::keep();
    let gate = session.budget.standing(call.driver, ordinal).ok()??.time.as_ref()?;
    for name in names {
        let name = CUcontext(*name as *mut c_void);
        let of_it = |key: &Key, _: &StreamEntry| key.is_default_of(name);
        for (stream, entry) in session.streams.with_handles(of_it) {
            driver::time::in_context(call.driver, name, || {
                entry.gate.fence(call.driver, entry, stream);
            });
        }
        for entry in session.streams.of_other_threads(of_it) {
            implicit::fence_latest(call.driver, entry);
        }
        session.captures.end(|capture| capture.stream.is_default_of(name));
        let end = |entry: &StreamEntry, id| entry.gate.end_stream(id);
        session.streams.end(|key, _| key.is_default_of(name), end);
    }
    let handles = names.iter().map(|name| CUcontext(*name as *mut c_void));
    let used: Vec<_> = handles.filter(|handle| gate.context(*handle).is_some()).collect();
    // Asking for a primary context that is over would make it anew.
    let is_active =
        !used.is_empty() && driver::primary_context_active(call.driver, ordinal) == Some(true);
    let primary = is_active.then(|| driver::primary_context(call.driver, ordinal)).flatten()?;
    let renamed =
        used.into_iter().filter_map(|handle| Some((handle, gate.rename(handle, primary)?)));
    Some(Names { gate, before: renamed.collect() })
}

/// Begins a capture: until it has ended, and while the driver begins it, no call may be made that would invalidate
/// it. What was launched in the stream before runs on, and nothing can be recorded behind it any more: it is marked now.
pub(crate) fn capture_begins(call: &Call, stream: CUstream, next: impl Next<CuError>) -> CuResult {
    let capture = Session::begun().and_then(|session| Some((session, capture(call, stream)?)));
    if let Some((session, capture)) = capture {
        let _errno = sys::Errno::keep();
        // Nor is the legacy default stream to be asked about while one that waits for it is captured.
        let legacy = Key::of_default(CUstream::NULL, capture.context);
        let own = StreamRef::named(call, stream).handle();
        for (key, handle) in [(capture.stream, own), (legacy, CUstream::NULL)] {
            if let StreamLookup::Known(Some(entry)) = session.streams.find(key)
                && !DriverCallGuard::is_entered()
            {
                entry.gate.fence_in(call.driver, entry, handle);
            }
        }
        session.captures.begin(capture);
        session.budget.gates().for_each(Gate::wait_for_questions);
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
    if session.budget.gates().next().is_some() {
        session.collectives.forget();
    }
}

/// Handles the instantiation of a graph. Also called in processes without a compute limit.
pub(crate) fn graph_made(call: &Call, exec: CUgraphExec, graph: CUgraph) {
    if let Some(session) =
        Session::begun().filter(|session| session.budget.gates().next().is_some())
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
        session.budget.gates().for_each(|gate| gate.changed(Signature::graph(exec.address())));
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
