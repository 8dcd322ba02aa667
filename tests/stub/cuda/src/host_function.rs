//! Host functions in streams.
//!
//! Each runs on a thread of its own when the stream reaches it. What is queued behind it must not
//! run before it has ended; here the next launch into the stream waits for that on the host, which
//! the real driver does not do.

use crate::arg::Out;
use crate::capture;
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::stream::{self, Point};
use gpucap_abi::cuda::{CUstream, CuError, CuResult};
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

exports! {
    /// Runs when the stream reaches it.
    fn cuLaunchHostFunc(stream: CUstream, function: HostFunction, data: *mut c_void)
        => launch, context, "cuLaunchHostFunc" @ 10000;
    /// Runs when the stream reaches it.
    fn cuLaunchHostFunc_ptsz(stream: CUstream, function: HostFunction, data: *mut c_void)
        => launch, context, "cuLaunchHostFunc" @ 10000 ptsz;
    /// Runs when the stream reaches it; how the device waits in the mean time makes no difference here.
    fn cuLaunchHostFunc_v2(stream: CUstream, function: HostFunction, data: *mut c_void, mode: u32)
        => launch_with_mode, context, "cuLaunchHostFunc" @ 13010;
    /// Runs when the stream reaches it; how the device waits in the mean time makes no difference here.
    fn cuLaunchHostFunc_v2_ptsz(stream: CUstream, function: HostFunction, data: *mut c_void,
        mode: u32) => launch_with_mode, context, "cuLaunchHostFunc" @ 13010 ptsz;
    /// Runs when the stream reaches it; not in a capturing stream.
    fn cuStreamAddCallback(stream: CUstream, callback: Callback, data: *mut c_void, flags: u32)
        => add_callback, context, "cuStreamAddCallback" @ 5000;
    /// Runs when the stream reaches it; not in a capturing stream.
    fn cuStreamAddCallback_ptsz(stream: CUstream, callback: Callback, data: *mut c_void, flags: u32)
        => add_callback, context, "cuStreamAddCallback" @ 7000 ptsz;
}

/// `CUhostFn`
pub(crate) type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
/// `CUstreamCallback`
pub(crate) type Callback = Option<unsafe extern "C" fn(CUstream, u32, *mut c_void)>;

/// A host function that may not have ended yet.
#[derive(Clone)]
pub(crate) struct Pending(Arc<(Mutex<bool>, Condvar)>);

impl Pending {
    fn new() -> Self {
        Self(Arc::new((Mutex::new(false), Condvar::new())))
    }

    pub(crate) fn is_done(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait(&self) {
        let (done, ended) = &*self.0;
        let mut guard = done.lock().unwrap_or_else(PoisonError::into_inner);
        while !*guard {
            guard = ended.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

fn launch(stream: CUstream, function: HostFunction, data: Out<c_void>) -> CuResult {
    let function = function.ok_or(CuError::INVALID_VALUE)?;
    if capture::take(stream, capture::Operation::Host)? {
        return Ok(());
    }
    let data = data.address();
    // SAFETY: the program that queued the function promises that it may be called with this data.
    run(stream, move || unsafe { function(data as *mut c_void) }).map(drop)
}

fn launch_with_mode(
    stream: CUstream,
    function: HostFunction,
    data: Out<c_void>,
    mode: u32,
) -> CuResult {
    // CU_HOST_TASK_BLOCKING, CU_HOST_TASK_SPINWAIT
    if mode > 1 {
        return Err(CuError::INVALID_VALUE);
    }
    launch(stream, function, data)
}

fn add_callback(stream: CUstream, callback: Callback, data: Out<c_void>, flags: u32) -> CuResult {
    let callback = callback.ok_or(CuError::INVALID_VALUE)?;
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    capture::forbid(stream)?;
    let (data, name) = (data.address(), stream.address());
    // SAFETY: the program that queued the callback promises that it may be called with this data.
    run(stream, move || unsafe { callback(CUstream(name as *mut c_void), 0, data as *mut c_void) })
        .map(drop)
}

/// Runs a function when the stream reaches it; where that is.
pub(crate) fn run(
    stream: CUstream,
    function: impl FnOnce() + Send + 'static,
) -> Result<Point, CuError> {
    let point = stream::push(stream, 0)?;
    let pending = Pending::new();
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    if let Some(found) = state.streams.get_mut(handle) {
        found.host = Some(pending.clone());
    }
    drop(state);
    std::thread::spawn(move || {
        point.wait();
        function();
        pending.end();
    });
    Ok(point)
}
