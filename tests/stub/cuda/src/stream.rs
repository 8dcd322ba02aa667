//! Streams.

use crate::state::State;
use gpucap_abi::cuda::{CUstream, CuError, CuResult};
use std::ffi::c_void;

/// The per-thread default stream.
pub(crate) const PER_THREAD: CUstream = CUstream(2 as *mut c_void);

/// `CUhostFn`
pub(crate) type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
/// `CUstreamCallback`
pub(crate) type Callback = Option<unsafe extern "C" fn(CUstream, u32, *mut c_void)>;

impl State {
    /// Whether a stream is one.
    pub(crate) fn check_stream(&self, stream: CUstream) -> CuResult {
        if stream.address() <= 2 { Ok(()) } else { Err(CuError::INVALID_HANDLE) }
    }
}
