//! Contexts: each costs memory on its device, and takes with it what was made in it.
//!
//! A thread has a stack of current contexts. The primary context of a device keeps its handle for the life of the
//! process; it is alive while somebody retains it. A context that is gone but still current answers
//! CONTEXT_IS_DESTROYED. Memory of pools and of `cuMemCreate` outlives contexts.

use crate::arg::Out;
use crate::driver::{state, unit};
use crate::export::exports;
use crate::state::{State, Table};
use gpucap_abi::cuda::{CUcontext, CUdevice, CuError, CuResult};
use gpucap_stub_device::card::Holding;
use gpucap_stub_device::catalog::Unit;
use std::cell::RefCell;
use std::ffi::c_void;

exports! {
    /// The first one makes the context.
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice)
        => primary_retain, driver, "cuDevicePrimaryCtxRetain" @ 7000;
    /// The last one ends the context.
    fn cuDevicePrimaryCtxRelease(device: CUdevice) => primary_release, driver, "cuDevicePrimaryCtxRelease" @ 7000;
    /// The last one ends the context.
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice)
        => primary_release, driver, "cuDevicePrimaryCtxRelease" @ 11000;
    /// Ends the context, whoever retains it.
    fn cuDevicePrimaryCtxReset(device: CUdevice) => primary_reset, driver, "cuDevicePrimaryCtxReset" @ 7000;
    /// Ends the context, whoever retains it.
    fn cuDevicePrimaryCtxReset_v2(device: CUdevice) => primary_reset, driver, "cuDevicePrimaryCtxReset" @ 11000;
    /// Flags for the next start.
    fn cuDevicePrimaryCtxSetFlags(device: CUdevice, flags: u32)
        => primary_set_flags, driver, "cuDevicePrimaryCtxSetFlags" @ 7000;
    /// Flags for the next start, or of the live context.
    fn cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: u32)
        => primary_set_flags, driver, "cuDevicePrimaryCtxSetFlags" @ 11000;
    /// Flags, and whether it is alive.
    fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut u32, active: *mut i32)
        => primary_state, driver, "cuDevicePrimaryCtxGetState" @ 7000;
    /// Becomes current.
    fn cuCtxCreate(context: *mut CUcontext, flags: u32, device: CUdevice)
        => create_first, driver, "cuCtxCreate" @ 2000;
    /// Becomes current.
    fn cuCtxCreate_v2(context: *mut CUcontext, flags: u32, device: CUdevice) => create, driver, "cuCtxCreate" @ 3020;
    /// Becomes current; affinity is accepted and ignored.
    fn cuCtxCreate_v3(context: *mut CUcontext, affinity: *mut c_void, count: i32, flags: u32, device: CUdevice)
        => create_with_affinity, driver, "cuCtxCreate" @ 11040;
    /// Becomes current; parameters are accepted and ignored.
    fn cuCtxCreate_v4(context: *mut CUcontext, parameters: *mut c_void, flags: u32, device: CUdevice)
        => create_with_parameters, driver, "cuCtxCreate" @ 12050;
    /// Ends the context and what it holds.
    fn cuCtxDestroy(context: CUcontext) => destroy, driver, "cuCtxDestroy" @ 2000;
    /// Ends the context and what it holds.
    fn cuCtxDestroy_v2(context: CUcontext) => destroy, driver, "cuCtxDestroy" @ 4000;
    /// One more use of the current context.
    fn cuCtxAttach(context: *mut CUcontext, flags: u32) => attach, context, "cuCtxAttach" @ 2000;
    /// One use less; the last ends the context.
    fn cuCtxDetach(context: CUcontext) => detach, context, "cuCtxDetach" @ 2000;
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
    fn cuCtxGetDevice_v2(device: *mut CUdevice, context: CUcontext) => get_device_of, driver, "cuCtxGetDevice" @ 13000;
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
    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: u32) => peer_access, context, "cuCtxEnablePeerAccess" @ 4000;
    /// Peers need no enabling here.
    fn cuCtxDisablePeerAccess(peer: CUcontext) => peer_access_off, context, "cuCtxDisablePeerAccess" @ 4000;
}

/// A context, alive or (a primary one) waiting to be retained again.
pub(crate) struct Context {
    pub(crate) unit: Unit,
    device: CUdevice,
    primary: bool,
    /// Retains of a primary context, attachments of another; 0 is dead.
    uses: u32,
    flags: u32,
    version: u32,
    limits: [usize; LIMITS],
}

/// The contexts of the process.
#[derive(Default)]
pub(crate) struct Contexts {
    table: Table<Context>,
    /// Handle of each ordinal's primary context, once it has one.
    primary: Vec<(CUdevice, u64)>,
}

thread_local! {
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

const CONTEXT_IS_DESTROYED: CuError = CuError::new(709).unwrap();
const PRIMARY_CONTEXT_ACTIVE: CuError = CuError::new(708).unwrap();
const LIMITS: usize = 8;
const DEFAULT_LIMITS: [usize; LIMITS] = [1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0];
/// Stack size, printf buffer and heap: the ones that take memory when they grow.
const LIMITS_WITH_MEMORY: [usize; 3] = [0, 1, 2];

/// The current context's handle and unit.
pub(crate) fn current() -> Result<(u64, Unit), CuError> {
    // Asked first: without a driver there is no context to miss.
    let state = state()?;
    let handle = top().ok_or(CuError::INVALID_CONTEXT)?;
    state.contexts.alive(handle).map(|context| (handle, context.unit)).ok_or(CONTEXT_IS_DESTROYED)
}

/// The current context if `context` is null, else that one.
pub(crate) fn or_current(context: CUcontext) -> Result<(u64, Unit), CuError> {
    if context == CUcontext::NULL {
        return current();
    }
    let handle = context.address();
    let state = state()?;
    state.contexts.alive(handle).map(|found| (handle, found.unit)).ok_or(CuError::INVALID_CONTEXT)
}

impl Contexts {
    fn alive(&self, handle: u64) -> Option<&Context> {
        self.table.get(handle).filter(|context| context.uses > 0)
    }

    fn alive_mut(&mut self, handle: u64) -> Option<&mut Context> {
        self.table.get_mut(handle).filter(|context| context.uses > 0)
    }

    /// The primary context of an ordinal, made dead if it never was.
    fn primary(&mut self, device: CUdevice, unit: Unit) -> u64 {
        if let Some((_, handle)) = self.primary.iter().find(|(known, _)| *known == device) {
            return *handle;
        }
        let context = Context::new(unit, device, true, 0, 0);
        let handle = self.table.add(context);
        self.primary.push((device, handle));
        handle
    }
}

impl Context {
    const fn new(unit: Unit, device: CUdevice, primary: bool, uses: u32, flags: u32) -> Self {
        Self { unit, device, primary, uses, flags, version: 3020, limits: DEFAULT_LIMITS }
    }
}

/// What a fresh context costs.
fn price() -> Holding {
    Holding { contexts: gpucap_stub_device::settings().context_memory, memory: 0 }
}

/// What the limits of a context cost beyond their defaults.
fn limits_price(limits: &[usize; LIMITS]) -> u64 {
    LIMITS_WITH_MEMORY.iter().map(|at| limits[*at].saturating_sub(DEFAULT_LIMITS[*at]) as u64).sum()
}

/// Ends a context: everything that lives in it goes.
fn end(state: &mut State, handle: u64) {
    let Some(context) = state.contexts.table.get_mut(handle) else { return };
    let unit = context.unit;
    let grown = Holding { contexts: limits_price(&context.limits), memory: 0 };
    context.uses = 0;
    context.limits = DEFAULT_LIMITS;
    if !context.primary {
        state.contexts.table.remove(handle);
    }
    state.end_context(handle);
    gpucap_stub_device::card().give(unit, price());
    gpucap_stub_device::card().give(unit, grown);
}

fn primary_retain(context: Out<CUcontext>, device: CUdevice) -> CuResult {
    let unit = unit(device)?;
    context.required()?;
    let mut state = state()?;
    let handle = state.contexts.primary(device, unit);
    let primary = state.contexts.table.get_mut(handle).ok_or(CuError::UNKNOWN)?;
    if primary.uses == 0 && !gpucap_stub_device::card().take(unit, price()) {
        return Err(CuError::OUT_OF_MEMORY);
    }
    primary.uses += 1;
    context.put(as_context(handle))
}

fn primary_release(device: CUdevice) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    let handle = state.contexts.primary(device, unit);
    let primary = state.contexts.alive_mut(handle).ok_or(CuError::INVALID_CONTEXT)?;
    if primary.uses > 1 {
        primary.uses -= 1;
    } else {
        end(&mut state, handle);
    }
    Ok(())
}

fn primary_reset(device: CUdevice) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    let handle = state.contexts.primary(device, unit);
    if state.contexts.alive(handle).is_some() {
        end(&mut state, handle);
    }
    Ok(())
}

fn primary_set_flags(device: CUdevice, flags: u32) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    let handle = state.contexts.primary(device, unit);
    let primary = state.contexts.table.get_mut(handle).ok_or(CuError::UNKNOWN)?;
    if primary.uses > 0 && primary.flags != flags && driver_is_old() {
        return Err(PRIMARY_CONTEXT_ACTIVE);
    }
    primary.flags = flags;
    Ok(())
}

/// Before CUDA 11 the flags of a live primary context could not change.
fn driver_is_old() -> bool {
    gpucap_stub_device::settings().cuda_version < 11000
}

fn primary_state(device: CUdevice, flags: Out<u32>, active: Out<i32>) -> CuResult {
    let unit = unit(device)?;
    let mut state = state()?;
    let handle = state.contexts.primary(device, unit);
    let primary = state.contexts.table.get(handle).ok_or(CuError::UNKNOWN)?;
    flags.put(primary.flags)?;
    active.put((primary.uses > 0).into())
}

fn create_first(context: Out<CUcontext>, flags: u32, device: CUdevice) -> CuResult {
    make(context, flags, device, 3010)
}

fn create(context: Out<CUcontext>, flags: u32, device: CUdevice) -> CuResult {
    make(context, flags, device, 3020)
}

fn create_with_affinity(
    context: Out<CUcontext>,
    _affinity: Out<c_void>,
    _count: i32,
    flags: u32,
    device: CUdevice,
) -> CuResult {
    make(context, flags, device, 3020)
}

fn create_with_parameters(
    context: Out<CUcontext>,
    _parameters: Out<c_void>,
    flags: u32,
    device: CUdevice,
) -> CuResult {
    make(context, flags, device, 3020)
}

fn make(context: Out<CUcontext>, flags: u32, device: CUdevice, version: u32) -> CuResult {
    context.required()?;
    let unit = unit(device)?;
    if !gpucap_stub_device::card().take(unit, price()) {
        return Err(CuError::OUT_OF_MEMORY);
    }
    let made = Context { version, ..Context::new(unit, device, false, 1, flags) };
    let handle = state()?.contexts.table.add(made);
    stack(|stack| stack.push(handle));
    context.put(as_context(handle))
}

fn destroy(context: CUcontext) -> CuResult {
    let handle = context.address();
    let mut state = state()?;
    let found = state.contexts.alive(handle).ok_or(CuError::INVALID_CONTEXT)?;
    if found.primary {
        return Err(CuError::INVALID_CONTEXT);
    }
    end(&mut state, handle);
    drop(state);
    stack(|stack| {
        if stack.last() == Some(&handle) {
            stack.pop();
        }
    });
    Ok(())
}

fn attach(context: Out<CUcontext>, flags: u32) -> CuResult {
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    context.required()?;
    let (handle, _) = current()?;
    let mut state = state()?;
    state.contexts.alive_mut(handle).ok_or(CONTEXT_IS_DESTROYED)?.uses += 1;
    context.put(as_context(handle))
}

fn detach(context: CUcontext) -> CuResult {
    let handle = context.address();
    let mut state = state()?;
    let found = state.contexts.alive_mut(handle).ok_or(CuError::INVALID_CONTEXT)?;
    if found.uses > 1 {
        found.uses -= 1;
        return Ok(());
    }
    drop(state);
    destroy(context)
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

/// A context by handle.
pub(crate) fn as_context(handle: u64) -> CUcontext {
    CUcontext(handle as *mut c_void)
}

fn top() -> Option<u64> {
    stack(|stack| stack.last().copied()).flatten()
}

/// The thread's stack; `None` when the thread is past the end of its thread-locals.
fn stack<T>(f: impl FnOnce(&mut Vec<u64>) -> T) -> Option<T> {
    STACK.try_with(|stack| f(&mut stack.borrow_mut())).ok()
}
