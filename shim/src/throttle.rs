//! The limit of GPU time: what is done before and after each launch, and what else the meter is told.
//!
//! Handlers say what is about to run and where; nothing here changes what the driver answers. Called by the handlers
//! of the classes `launch` and `order`, which only a process with a limit of time reaches, and of what ends there.
//!
//! Nearly every launch goes the [short way](mod@launch): its thread [remembers](memory) the stream, its cost is known, and it
//! takes that out of what the thread has [prepaid](lanes) in it. The others, one in some dozens or one in a quarter of a
//! millisecond of GPU time, come to the [`gate`] of their device: they wait if they must, and are measured by two
//! [events](timing). What that means is decided in [`gpucap_core::throttle`].
//!
//! A launch in a stream that is being captured runs nothing and passes untouched, and so does everything that a tool
//! launches while the driver calls it back.

mod captures;
mod gate;
mod heirs;
mod lanes;
mod launch;
mod memory;
mod names;
mod neighbours;
mod timing;

use crate::call::Call;
use crate::driver::cuda as driver;
use crate::held::Held;
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
use lanes::{Key, Lane, Purse};
use launch::purse;
use std::{iter, ptr};

pub(crate) use captures::Captures;
pub(crate) use gate::Gate;
pub(crate) use lanes::Lanes;
pub(crate) use launch::{launch, launch_together};
pub(crate) use names::Names;
pub(crate) use neighbours::Neighbours;

/// What is launched: all that is known of its duration beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A kernel, of so many threads in all; of the first API, whose blocks are described elsewhere, so many blocks.
    Kernel { function: CUfunction, threads: u64 },
    /// A graph.
    Graph { exec: CUgraphExec },
    /// Memory of the device is filled.
    Memset { bytes: u64 },
    /// Memory of the device is copied to memory of the device.
    DeviceCopy { bytes: u64 },
}

/// What is known of an executable graph. An update keeps the nodes of a graph and changes what they are given; so a
/// graph has its collectives as it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Contents {
    /// How many nodes it was made of.
    nodes: u64,
    /// Whether one of its kernels is a collective.
    has_collective: bool,
}

/// Collectives come in every layer of a model: that a graph has none is plain after so many nodes. About each of them the
/// driver is asked two short questions.
const NODES_LOOKED_AT: usize = 10_000;

/// A stream as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamRef(CUstream);

impl StreamRef {
    /// What the argument of a call means: in the per-thread form, null is the thread's own default stream.
    pub(crate) fn named(call: &Call, stream: CUstream) -> Self {
        let own = call.per_thread && stream == CUstream::NULL;
        Self(if own { CU_STREAM_PER_THREAD } else { stream })
    }

    /// A handle that means the same stream in the driver's plain forms, of the same thread and context: null is the
    /// legacy default stream, 2 the thread's own.
    pub(crate) const fn handle(self) -> CUstream {
        self.0
    }
}

/// What a wait has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All work in a stream.
    Stream(StreamRef),
    /// All work in a context; null is the current one.
    Context(CUcontext),
    /// For something, nobody knows for what: whatever has ended can be seen.
    Something,
}

impl Work {
    /// What it is remembered under.
    fn signature(self) -> Signature {
        match self {
            Self::Kernel { function, threads } => Signature::kernel(function.address(), threads),
            Self::Graph { exec } => Signature::graph(exec.address()),
            Self::Memset { bytes } => Signature::transfer(1, bytes),
            Self::DeviceCopy { bytes } => Signature::transfer(2, bytes),
        }
    }

    /// As the meter sees it.
    fn launch(self, call: &Call, signature: Signature) -> Launch {
        let launch = Launch::kernel(signature);
        let Some(session) = Session::begun() else { return launch };
        match self {
            Self::Kernel { function, .. } if session.names.is_collective(call.driver, function) => {
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

/// A wait of the application has just come back with success.
pub(crate) fn synced(call: &Call, scope: Scope) {
    let Some(session) = Session::begun().filter(|_| !Held::is_entered()) else { return };
    let _errno = sys::Errno::keep();
    match scope {
        Scope::Stream(stream) => {
            if let Some((Purse { lane, .. }, _)) = purse(call.driver, stream) {
                lane.gate.synced(call.driver, lane.stream().id.into_iter());
            }
        }
        Scope::Context(context) => {
            let named = Some(context).filter(|context| *context != CUcontext::NULL);
            let context = named.or_else(|| driver::current_context(call.driver));
            for (gate, context) in session.gates().zip(iter::repeat(context)) {
                let Some(id) = context.and_then(|context| gate.context(context)) else { continue };
                let of_it = |lane: &Lane| lane.stream().context == id;
                let streams = session.lanes.all(|lane| ptr::eq(lane.gate, gate) && of_it(lane));
                // Asked before the gate is: no lane's stream is waited for under the meter's lock.
                let ids: Vec<_> = streams.iter().filter_map(|lane| lane.stream().id).collect();
                gate.synced(call.driver, ids.into_iter());
            }
        }
        Scope::Something => session.gates().for_each(|gate| gate.settle(call.driver)),
    }
}

/// Something that is no launch is about to enter a stream: a copy, a wait, a function of the host. The time that it takes
/// there is not the device's, so what was launched before it ends here.
pub(crate) fn fence(call: &Call, stream: StreamRef) {
    let Some(session) = Session::begun().filter(|_| !Held::is_entered()) else { return };
    let _errno = sys::Errno::keep();
    let (copy, handle) = (call.driver, stream.handle());
    if let Some(key) = key_of(copy, handle)
        && let Some(Some(lane)) = session.lanes.find(key)
    {
        lane.gate.fence(copy, lane, handle);
    }
}

/// What tells a stream from others; `None` if it is a default stream of no context.
fn key_of(copy: &DriverCopy, handle: CUstream) -> Option<Key> {
    let of_default = || Some(Key::of_default(handle, driver::current_context(copy)?));
    Key::of_handle(handle).or_else(of_default)
}

/// Destroys a stream. From the driver's return on, its handle may be that of another stream.
pub(crate) fn stream_ends(call: &Call, stream: CUstream, next: impl Next<CuError>) -> CuResult {
    let (Some(session), Some(ending)) = (Session::begun(), Key::of_handle(stream)) else {
        return next().map(drop);
    };
    // A tool that the driver calls back must not wait for who waits for this thread; the lane then serves on.
    if !Held::is_entered() {
        let _errno = sys::Errno::keep();
        // Its work goes on, and only an event will tell for how long.
        if let Some(Some(lane)) = session.lanes.find(ending) {
            lane.gate.fence(call.driver, lane, stream);
        }
        session.lanes.end(|key, _| *key == ending, |lane, id| lane.gate.end_stream(id));
    }
    let captures = session.captures.end(|capture| capture.stream == ending);
    let answer = next();
    if answer.is_err() {
        captures.into_iter().for_each(|capture| session.captures.begin(capture));
    }
    answer.map(drop)
}

/// A context may be about to end, and its events with it: what has run is settled while they can be asked, and what
/// has not gets an event behind it.
pub(crate) fn about_to_end(call: &Call, session: &Session) {
    settle_all(call, session, |_| true);
}

fn settle_all(call: &Call, session: &Session, of_it: impl Fn(&Lane) -> bool) {
    if Held::is_entered() {
        return;
    }
    let _errno = sys::Errno::keep();
    for (handle, lane) in session.lanes.with_handles(of_it) {
        lane.gate.fence_in(call.driver, lane, handle);
    }
    session.gates().for_each(|gate| gate.settle_all(call.driver));
}

/// Ends a context, and its streams and events with it. What is out then is charged for the time until the driver comes
/// back: it waits for the work or stops it. From then on its handle may be that of another one.
pub(crate) fn context_ends(
    call: &Call,
    session: &Session,
    context: CUcontext,
    next: impl Next<CuError>,
) -> Result<Written, CuError> {
    let ids: Vec<_> =
        session.gates().filter_map(|gate| Some((gate, gate.context(context)?))).collect();
    let of_it = |lane: &Lane| {
        ids.iter().any(|(gate, id)| ptr::eq(lane.gate, *gate) && lane.stream().context == *id)
    };
    settle_all(call, session, of_it);
    session.captures.end(|capture| capture.context == context);
    session.lanes.forget_free();
    code_ends(session);
    ids.iter().for_each(|(gate, id)| gate.context_is_ending(*id));
    session.lanes.end(|_, lane| lane.is_some_and(of_it), |lane, id| lane.gate.end_stream(id));
    let answer = next();
    ids.iter().for_each(|(gate, id)| gate.context_ended(call.driver, *id, answer.is_ok()));
    answer
}

/// Does what may end the primary context of a device. Whether it does is known afterwards, and which of the contexts it
/// is, nobody says: all of the device begin anew. The caller [holds](crate::held) already.
pub(crate) fn primary_may_end(
    call: &Call,
    session: &Session,
    ordinal: CUdevice,
    next: impl Next<CuError>,
) -> Result<Written, CuError> {
    session.lanes.forget_free();
    code_ends(session);
    let standing = session.standing(call.driver, ordinal)?;
    let Some(gate) = standing.and_then(|standing| standing.time.as_ref()) else { return next() };
    let (answer, ended) = gate.while_nobody_asks(|timing| {
        let answer = next();
        let ended = driver::primary_context_active(call.driver, ordinal) == Some(false);
        if ended {
            timing.end_all(sys::monotonic_ns());
        }
        (answer, ended)
    });
    if ended {
        // The next primary context has the same handle: a lane that outlived this one would be its default stream's.
        let end = |lane: &Lane, id| lane.gate.end_stream_held(id);
        session.lanes.end(|_, lane| lane.is_some_and(|lane| ptr::eq(lane.gate, gate)), end);
        session.captures.end(|capture| capture.device == Some(ordinal));
    }
    answer
}

/// Begins a capture: before it is over, no call that would spoil it may be made, nor while the driver begins.
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

/// The capture of a stream is over.
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

/// Code is about to be unloaded: handles of its functions may be those of others then. Also called in processes without
/// a limit of time.
pub(crate) fn code_ends(session: &Session) {
    if session.gates().next().is_some() {
        session.names.forget();
    }
}

/// An executable graph has been made of a graph. Also called in processes without a limit of time.
pub(crate) fn graph_made(call: &Call, exec: CUgraphExec, graph: CUgraph) {
    if let Some(session) = Session::begun().filter(|session| session.gates().next().is_some())
        && let Some(nodes) = driver::graph::node_count(call.driver, graph)
    {
        let _errno = sys::Errno::keep();
        let is_collective = |function| session.names.is_collective(call.driver, function);
        let has_collective =
            driver::graph::has_kernel(call.driver, graph, NODES_LOOKED_AT, is_collective);
        let contents = Contents { nodes: nodes as u64, has_collective };
        session.contents.lock().insert(exec.address(), contents);
    }
}

/// An executable graph now does something else.
pub(crate) fn graph_changed(_call: &Call, exec: CUgraphExec) {
    if let Some(session) = Session::begun() {
        let _errno = sys::Errno::keep();
        session.gates().for_each(|gate| gate.changed(Signature::graph(exec.address())));
    }
}

/// An executable graph is about to be destroyed. From the driver's return on, its handle may be that of another one.
/// Also called in processes without a limit of time.
pub(crate) fn graph_ends(call: &Call, exec: CUgraphExec) {
    if let Some(session) = Session::begun() {
        session.contents.lock().remove(&exec.address());
    }
    graph_changed(call, exec);
}
