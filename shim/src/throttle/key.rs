//! How a stream is identified in this process.
//!
//! A key stays valid as long as its stream: once that has ended, its handle may be that of another one, so what is listed
//! by keys is removed before.

use crate::sys;
use gpucap_abi::cuda::{CU_STREAM_PER_THREAD, CUcontext, CUstream};

/// Identifies a stream. Handles are unique; the names of default streams mean one stream per context, or one per
/// thread, and only for these the other fields are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(super) stream: CUstream,
    pub(super) context: CUcontext,
    pub(super) thread: u32,
}

impl Key {
    /// No stream's: the legacy default stream of a context has that context.
    pub(crate) const NONE: Self =
        Self { stream: CUstream::NULL, context: CUcontext::NULL, thread: 0 };

    /// Returns the key of a stream with a handle of its own; `None` for the names of default streams.
    pub(crate) fn of_handle(stream: CUstream) -> Option<Self> {
        let own = stream.address() > CU_STREAM_PER_THREAD.address();
        own.then_some(Self { stream, context: CUcontext::NULL, thread: 0 })
    }

    /// Returns the key of a default stream in the calling thread's current context.
    pub(crate) fn of_default(stream: CUstream, current: CUcontext) -> Self {
        if stream == CU_STREAM_PER_THREAD {
            Self { stream, context: current, thread: sys::thread() }
        } else {
            Self { stream: CUstream::NULL, context: current, thread: 0 }
        }
    }

    /// Returns whether this is the legacy default stream of a context.
    pub(crate) fn is_legacy(&self) -> bool {
        self.stream == CUstream::NULL && self.context != CUcontext::NULL
    }

    /// The context of a default stream; null for another one.
    pub(crate) fn context(&self) -> CUcontext {
        self.context
    }

    /// Returns whether the stream has a name in its thread only.
    pub(crate) fn is_of_thread(&self) -> bool {
        self.thread != 0
    }

    /// Returns whether this is a default stream of a context by this handle.
    pub(crate) fn is_default_of(&self, context: CUcontext) -> bool {
        self.context == context && context != CUcontext::NULL
    }
}
