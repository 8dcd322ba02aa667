//! What can be asked of a stream.

use crate::arg::Out;
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::stream::{Kind, NON_BLOCKING, Stream};
use gpucap_abi::cuda::{CUcontext, CUdevice, CUstream, CuError, CuResult};
use gpucap_stub_device::catalog::Unit;
use std::ffi::c_void;

exports! {
    /// Flags it was made with.
    fn cuStreamGetFlags(stream: CUstream, flags: *mut u32)
        => flags, context, "cuStreamGetFlags" @ 5050;
    /// Flags it was made with.
    fn cuStreamGetFlags_ptsz(stream: CUstream, flags: *mut u32)
        => flags, context, "cuStreamGetFlags" @ 7000 ptsz;
    /// Priority it was made with.
    fn cuStreamGetPriority(stream: CUstream, priority: *mut i32)
        => priority, context, "cuStreamGetPriority" @ 5050;
    /// Priority it was made with.
    fn cuStreamGetPriority_ptsz(stream: CUstream, priority: *mut i32)
        => priority, context, "cuStreamGetPriority" @ 7000 ptsz;
    /// A number that no other stream of the process has.
    fn cuStreamGetId(stream: CUstream, id: *mut u64) => id, context, "cuStreamGetId" @ 12000;
    /// A number that no other stream of the process has.
    fn cuStreamGetId_ptsz(stream: CUstream, id: *mut u64)
        => id, context, "cuStreamGetId" @ 12000 ptsz;
    /// Context it was made in.
    fn cuStreamGetCtx(stream: CUstream, context: *mut CUcontext)
        => context_of, context, "cuStreamGetCtx" @ 9020;
    /// Context it was made in.
    fn cuStreamGetCtx_ptsz(stream: CUstream, context: *mut CUcontext)
        => context_of, context, "cuStreamGetCtx" @ 9020 ptsz;
    /// Context it was made in; no stream here is of a green context.
    fn cuStreamGetCtx_v2(stream: CUstream, context: *mut CUcontext, green: *mut *mut c_void)
        => context_of_v2, context, "cuStreamGetCtx" @ 12050;
    /// Context it was made in; no stream here is of a green context.
    fn cuStreamGetCtx_v2_ptsz(stream: CUstream, context: *mut CUcontext, green: *mut *mut c_void)
        => context_of_v2, context, "cuStreamGetCtx" @ 12050 ptsz;
    /// Device of its context.
    fn cuStreamGetDevice(stream: CUstream, device: *mut CUdevice)
        => device_of, context, "cuStreamGetDevice" @ 12080;
    /// Device of its context.
    fn cuStreamGetDevice_ptsz(stream: CUstream, device: *mut CUdevice)
        => device_of, context, "cuStreamGetDevice" @ 12080 ptsz;
    /// Managed memory does not migrate here.
    fn cuStreamAttachMemAsync(stream: CUstream, pointer: u64, bytes: usize, flags: u32)
        => attach, context, "cuStreamAttachMemAsync" @ 6000;
    /// Managed memory does not migrate here.
    fn cuStreamAttachMemAsync_ptsz(stream: CUstream, pointer: u64, bytes: usize, flags: u32)
        => attach, context, "cuStreamAttachMemAsync" @ 7000 ptsz;
}

/// A fact about a stream.
fn fact<T>(stream: CUstream, f: impl FnOnce(u64, &Stream) -> T) -> Result<T, CuError> {
    let current = current()?;
    let mut state = state()?;
    let handle = state.stream(stream, current)?;
    state.streams.get_mut(handle).map(|stream| f(handle, stream)).ok_or(CuError::INVALID_HANDLE)
}

/// The context and the unit of a stream.
pub(crate) fn home(stream: CUstream) -> Result<(u64, Unit), CuError> {
    fact(stream, |_, stream| (stream.context, stream.unit))
}

fn flags(stream: CUstream, flags: Out<u32>) -> CuResult {
    let kind = fact(stream, |_, stream| stream.kind)?;
    flags.put(if kind == Kind::NonBlocking { NON_BLOCKING } else { 0 })
}

fn priority(stream: CUstream, priority: Out<i32>) -> CuResult {
    priority.put(fact(stream, |_, stream| stream.priority)?)
}

fn id(stream: CUstream, id: Out<u64>) -> CuResult {
    id.put(fact(stream, |handle, _| handle)?)
}

fn context_of(stream: CUstream, context: Out<CUcontext>) -> CuResult {
    context.put(CUcontext(fact(stream, |_, stream| stream.context)? as *mut c_void))
}

fn context_of_v2(stream: CUstream, context: Out<CUcontext>, green: Out<*mut c_void>) -> CuResult {
    green.put_if_asked(std::ptr::null_mut());
    context_of(stream, context)
}

fn device_of(stream: CUstream, device: Out<CUdevice>) -> CuResult {
    let unit = fact(stream, |_, stream| stream.unit)?;
    let ordinal = crate::driver::driver()?.units.iter().position(|known| *known == unit);
    device.put(ordinal.and_then(|ordinal| i32::try_from(ordinal).ok()).ok_or(CuError::UNKNOWN)?)
}

fn attach(stream: CUstream, _pointer: u64, _bytes: usize, _flags: u32) -> CuResult {
    state()?.check_stream(stream)
}
