//! The limit of GPU time: what is done before and after each launch, and what else the meter is told.
//!
//! Handlers say what is about to run and where; nothing here changes what the driver answers. Called by the handlers
//! of the classes `launch` and `order`, which only a process with a limit of time reaches, and of what ends there.

use crate::call::Call;
use crate::hooks::Next;
use gpucap_abi::cuda::{
    CU_STREAM_PER_THREAD, CUcontext, CUevent, CUfunction, CUgraph, CUgraphExec, CUstream, CuError,
    CuResult,
};

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
    #[expect(dead_code, reason = "the meter asks")]
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
    /// All work before a place in a queue.
    Event(CUevent),
}

/// Launches: waits until the share of time allows it, calls the driver and takes note of what comes of it.
pub(crate) fn launch(
    _call: &Call,
    _work: Work,
    _stream: StreamRef,
    next: impl Next<CuError>,
) -> CuResult {
    next().map(drop)
}

/// Launches several at once, each in a stream of its own: that call cannot be parted.
pub(crate) fn launch_together(
    _call: &Call,
    _parts: impl Iterator<Item = (Work, StreamRef)> + Clone,
    next: impl Next<CuError>,
) -> CuResult {
    next().map(drop)
}

/// A wait of the application has just come back with success.
pub(crate) const fn synced(_call: &Call, _scope: Scope) {}

/// A stream is about to be destroyed. From the driver's return on, its handle may be that of another stream.
pub(crate) const fn stream_ends(_call: &Call, _stream: CUstream) {}

/// A capture is about to begin: before it is over, no call that would spoil it may be made.
pub(crate) const fn capture_begins(_call: &Call) {}

/// A capture is over, or has not begun.
pub(crate) const fn capture_ended(_call: &Call) {}

/// An executable graph has been made of a graph. Also called in processes without a limit of time.
pub(crate) const fn graph_made(_call: &Call, _exec: CUgraphExec, _graph: CUgraph) {}

/// An executable graph now does something else.
pub(crate) const fn graph_changed(_call: &Call, _exec: CUgraphExec) {}

/// An executable graph is about to be destroyed. From the driver's return on, its handle may be that of another one.
/// Also called in processes without a limit of time.
pub(crate) const fn graph_ends(_call: &Call, _exec: CUgraphExec) {}
