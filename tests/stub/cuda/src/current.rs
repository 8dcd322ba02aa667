//! The current context: a stack per thread, and what can be asked and set there.

use crate::arg::Out;
use crate::context::{CONTEXT_IS_DESTROYED, LIMITS, as_context, current, limits_price, or_current};
use crate::driver::state;
use crate::export::exports;
use gpucap_abi::cuda::{CUcontext, CUdevice, CuError, CuResult};
use gpucap_stub_device::card::Holding;
use gpucap_stub_device::catalog::Unit;
use std::cell::RefCell;
use std::mem::ManuallyDrop;

exports! {
    /// Puts a context on the thread's stack.
    fn cuCtxPushCurrent(context: CUcontext) => push, driver, "cuCtxPushCurrent" @ 2000;
    /// Puts a context on the thread's stack.
    fn cuCtxPushCurrent_v2(context: CUcontext) => push, driver, "cuCtxPushCurrent" @ 4000;
    /// Takes the top off the thread's stack.
    fn cuCtxPopCurrent(context: *mut CUcontext) => pop, driver, "cuCtxPopCurrent" @ 2000;
    /// Takes the top off the thread's stack.
    fn cuCtxPopCurrent_v2(context: *mut CUcontext) => pop, driver, "cuCtxPopCurrent" @ 4000;
    /// Replaces the top; null takes it off.
    fn cuCtxSetCurrent(context: CUcontext) => set_current, driver, "cuCtxSetCurrent" @ 4000;
    /// Null if there is none.
    fn cuCtxGetCurrent(context: *mut CUcontext) => get_current, driver, "cuCtxGetCurrent" @ 4000;
    /// Device of the current context.
    fn cuCtxGetDevice(device: *mut CUdevice) => get_device, context, "cuCtxGetDevice" @ 2000;
    /// Device of a context; null is the current one.
    fn cuCtxGetDevice_v2(device: *mut CUdevice, context: CUcontext)
        => get_device_of, driver, "cuCtxGetDevice" @ 13000;
    /// 3010 for a context of the first API, 3020 for others.
    fn cuCtxGetApiVersion(context: CUcontext, version: *mut u32)
        => api_version, driver, "cuCtxGetApiVersion" @ 3020;
    /// Flags it was made with.
    fn cuCtxGetFlags(flags: *mut u32) => get_flags, context, "cuCtxGetFlags" @ 7000;
    /// Replaces the flags.
    fn cuCtxSetFlags(flags: u32) => set_flags, context, "cuCtxSetFlags" @ 12010;
    /// A number that no other context of the process has.
    fn cuCtxGetId(context: CUcontext, id: *mut u64) => id, driver, "cuCtxGetId" @ 12000;
    /// A limit.
    fn cuCtxGetLimit(value: *mut usize, limit: i32) => get_limit, context, "cuCtxGetLimit" @ 3010;
    /// Stack, printf buffer and heap take device memory as they grow.
    fn cuCtxSetLimit(limit: i32, value: usize) => set_limit, context, "cuCtxSetLimit" @ 3010;
    /// The cache preference is accepted.
    fn cuCtxSetCacheConfig(config: i32) => accept, context, "cuCtxSetCacheConfig" @ 3020;
    /// No preference.
    fn cuCtxGetCacheConfig(config: *mut i32) => zero, context, "cuCtxGetCacheConfig" @ 3020;
    /// The bank size is accepted.
    fn cuCtxSetSharedMemConfig(config: i32) => accept, context, "cuCtxSetSharedMemConfig" @ 4020;
    /// The default bank size.
    fn cuCtxGetSharedMemConfig(config: *mut i32) => zero, context, "cuCtxGetSharedMemConfig" @ 4020;
    /// 0 to -5.
    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32)
        => priority_range, context, "cuCtxGetStreamPriorityRange" @ 5050;
    /// Peers need no enabling here.
    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: u32)
        => peer_access, context, "cuCtxEnablePeerAccess" @ 4000;
    /// Peers need no enabling here.
    fn cuCtxDisablePeerAccess(peer: CUcontext)
        => peer_access_off, context, "cuCtxDisablePeerAccess" @ 4000;
}

thread_local! {
    /// Never dropped: code that runs after the thread's other locals are gone may still call the driver.
    static STACK: ManuallyDrop<RefCell<Vec<u64>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

fn push(context: CUcontext) -> CuResult {
    let (handle, _) = known(context)?;
    stack(|stack| stack.push(handle));
    Ok(())
}

fn pop(context: Out<CUcontext>) -> CuResult {
    let handle = stack(Vec::pop).flatten().ok_or(CuError::INVALID_CONTEXT)?;
    context.put_if_asked(as_context(handle));
    Ok(())
}

fn set_current(context: CUcontext) -> CuResult {
    let handle = if context == CUcontext::NULL { None } else { Some(known(context)?.0) };
    stack(|stack| {
        stack.pop();
        stack.extend(handle);
    });
    Ok(())
}

fn get_current(context: Out<CUcontext>) -> CuResult {
    context.put(top().map_or(CUcontext::NULL, as_context))
}

fn get_device(device: Out<CUdevice>) -> CuResult {
    get_device_of(device, CUcontext::NULL)
}

fn get_device_of(device: Out<CUdevice>, context: CUcontext) -> CuResult {
    let (handle, _) = or_current(context)?;
    device.put(state()?.contexts.alive(handle).ok_or(CONTEXT_IS_DESTROYED)?.device)
}

fn api_version(context: CUcontext, version: Out<u32>) -> CuResult {
    let (handle, _) = or_current(context)?;
    version.put(state()?.contexts.alive(handle).ok_or(CONTEXT_IS_DESTROYED)?.version)
}

fn get_flags(flags: Out<u32>) -> CuResult {
    let (handle, _) = current()?;
    flags.put(state()?.contexts.alive(handle).ok_or(CONTEXT_IS_DESTROYED)?.flags)
}

fn set_flags(flags: u32) -> CuResult {
    let (handle, _) = current()?;
    state()?.contexts.alive_mut(handle).ok_or(CONTEXT_IS_DESTROYED)?.flags = flags;
    Ok(())
}

fn id(context: CUcontext, id: Out<u64>) -> CuResult {
    id.put(or_current(context)?.0)
}

fn get_limit(value: Out<usize>, limit: i32) -> CuResult {
    let at = limit_index(limit)?;
    let (handle, _) = current()?;
    value.put(state()?.contexts.alive(handle).ok_or(CONTEXT_IS_DESTROYED)?.limits[at])
}

fn set_limit(limit: i32, value: usize) -> CuResult {
    let at = limit_index(limit)?;
    let (handle, unit) = current()?;
    let mut state = state()?;
    let context = state.contexts.alive_mut(handle).ok_or(CONTEXT_IS_DESTROYED)?;
    let mut limits = context.limits;
    limits[at] = value;
    let (before, after) = (limits_price(&context.limits), limits_price(&limits));
    let holding = |contexts| Holding { contexts, memory: 0 };
    if after > before && !gpucap_stub_device::card().take(unit, holding(after - before)) {
        return Err(CuError::OUT_OF_MEMORY);
    }
    gpucap_stub_device::card().give(unit, holding(before.saturating_sub(after)));
    context.limits = limits;
    Ok(())
}

fn limit_index(limit: i32) -> Result<usize, CuError> {
    usize::try_from(limit).ok().filter(|at| *at < LIMITS).ok_or(CuError::INVALID_VALUE)
}

fn accept(_config: i32) -> CuResult {
    Ok(())
}

fn zero(value: Out<i32>) -> CuResult {
    value.put(0)
}

fn priority_range(least: Out<i32>, greatest: Out<i32>) -> CuResult {
    least.put_if_asked(0);
    greatest.put_if_asked(-5);
    Ok(())
}

fn peer_access(peer: CUcontext, flags: u32) -> CuResult {
    if flags == 0 { peer_access_off(peer) } else { Err(CuError::INVALID_VALUE) }
}

fn peer_access_off(peer: CUcontext) -> CuResult {
    known(peer).map(drop)
}

/// A live context given by handle.
fn known(context: CUcontext) -> Result<(u64, Unit), CuError> {
    if context == CUcontext::NULL { Err(CuError::INVALID_CONTEXT) } else { or_current(context) }
}

pub(crate) fn top() -> Option<u64> {
    stack(|stack| stack.last().copied()).flatten()
}

/// The thread's stack; `None` when the thread is past the end of its thread-locals.
pub(crate) fn stack<T>(f: impl FnOnce(&mut Vec<u64>) -> T) -> Option<T> {
    STACK.try_with(|stack| f(&mut stack.borrow_mut())).ok()
}
