//! What is launched, and where: as a call names it, and as the meter sees it.

use crate::call::Call;
use crate::session::Session;
use crate::sys;
use crate::throttle::Contents;
use gpucap_abi::cuda::{CU_STREAM_PER_THREAD, CUcontext, CUfunction, CUgraphExec, CUstream};
use gpucap_core::throttle::{Launch, Signature};

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

/// A stream as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamRef(CUstream);

impl StreamRef {
    /// Interprets a handle as [`handle`](Self::handle) returns it.
    pub(super) const fn of_handle(handle: CUstream) -> Self {
        Self(handle)
    }

    /// Interprets the argument of a call: in the per-thread form, null is the thread's own default stream.
    pub(crate) fn named(call: &Call, stream: CUstream) -> Self {
        let own = call.per_thread && stream == CUstream::NULL;
        Self(if own { CU_STREAM_PER_THREAD } else { stream })
    }

    /// Returns whether this is the thread's own default stream.
    pub(crate) fn is_of_thread(self) -> bool {
        self.0 == CU_STREAM_PER_THREAD
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
    pub(super) fn signature(self) -> Signature {
        match self {
            Self::Kernel { function, threads } => Signature::kernel(function.address(), threads),
            Self::Graph { exec } => Signature::graph(exec.address()),
            Self::Memset { bytes } => Signature::transfer(1, bytes),
            Self::DeviceCopy { bytes } => Signature::transfer(2, bytes),
        }
    }

    /// The launch for the meter.
    pub(super) fn launch(self, call: &Call, signature: Signature) -> Launch {
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
