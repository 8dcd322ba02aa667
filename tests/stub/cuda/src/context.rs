//! Contexts: each costs memory on its device, and takes with it what was made in it.
//!
//! A thread has a stack of current contexts. The primary context of a device keeps its handle for
//! the life of the process; it is alive while a process retains it, as green contexts do. A context that is gone but still
//! current answers CONTEXT_IS_DESTROYED. Memory of pools and of `cuMemCreate` outlives contexts.

use crate::arg::Out;
use crate::context_end::{finish, finish_primary};
use crate::current::{stack, top};
use crate::driver::{state, unit};
use crate::export::exports;
use crate::state::{State, Table};
use gpucap_abi::cuda::{CUcontext, CUdevice, CuError, CuResult};
use gpucap_stub_device::card::Holding;
use gpucap_stub_device::catalog::Unit;
use std::ffi::c_void;

exports! {
    /// The first one makes the context.
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice)
        => primary_retain, driver, "cuDevicePrimaryCtxRetain" @ 7000;
    /// The last one ends the context.
    fn cuDevicePrimaryCtxRelease(device: CUdevice)
        => primary_release, driver, "cuDevicePrimaryCtxRelease" @ 7000;
    /// The last one ends the context.
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice)
        => primary_release, driver, "cuDevicePrimaryCtxRelease" @ 11000;
    /// Ends the context, whatever retains it.
    fn cuDevicePrimaryCtxReset(device: CUdevice)
        => primary_reset, driver, "cuDevicePrimaryCtxReset" @ 7000;
    /// Ends the context, whatever retains it.
    fn cuDevicePrimaryCtxReset_v2(device: CUdevice)
        => primary_reset, driver, "cuDevicePrimaryCtxReset" @ 11000;
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
    fn cuCtxCreate_v2(context: *mut CUcontext, flags: u32, device: CUdevice)
        => create, driver, "cuCtxCreate" @ 3020;
    /// Becomes current; affinity is accepted and ignored.
    fn cuCtxCreate_v3(context: *mut CUcontext, affinity: *mut c_void, count: i32, flags: u32,
        device: CUdevice) => create_with_affinity, driver, "cuCtxCreate" @ 11040;
    /// Becomes current; parameters are accepted and ignored.
    fn cuCtxCreate_v4(context: *mut CUcontext, parameters: *mut c_void, flags: u32,
        device: CUdevice) => create_with_parameters, driver, "cuCtxCreate" @ 12050;
    /// Becomes current; nothing is drawn.
    fn cuGLCtxCreate(context: *mut CUcontext, flags: u32, device: CUdevice)
        => create_first, driver, "cuGLCtxCreate" @ 2000;
    /// Becomes current; nothing is drawn.
    fn cuGLCtxCreate_v2(context: *mut CUcontext, flags: u32, device: CUdevice)
        => create, driver, "cuGLCtxCreate" @ 3020;
    /// Becomes current; nothing is decoded.
    fn cuVDPAUCtxCreate(context: *mut CUcontext, flags: u32, device: CUdevice, video: u32,
        address: *mut c_void) => create_video, driver, "cuVDPAUCtxCreate" @ 3010;
    /// Becomes current; nothing is decoded.
    fn cuVDPAUCtxCreate_v2(context: *mut CUcontext, flags: u32, device: CUdevice, video: u32,
        address: *mut c_void) => create_video, driver, "cuVDPAUCtxCreate" @ 3020;
    /// Ends the context and what it holds.
    fn cuCtxDestroy(context: CUcontext) => destroy, driver, "cuCtxDestroy" @ 2000;
    /// Ends the context and what it holds.
    fn cuCtxDestroy_v2(context: CUcontext) => destroy, driver, "cuCtxDestroy" @ 4000;
    /// One more use of the current context.
    fn cuCtxAttach(context: *mut CUcontext, flags: u32) => attach, context, "cuCtxAttach" @ 2000;
    /// One use less; the last ends the context.
    fn cuCtxDetach(context: CUcontext) => detach, context, "cuCtxDetach" @ 2000;
}

/// A context, alive or (a primary one) waiting to be retained again.
pub(crate) struct Context {
    pub(crate) unit: Unit,
    pub(crate) device: CUdevice,
    primary: bool,
    /// Of a green context, the primary context of its device, which holds all that is made in it.
    of: Option<u64>,
    /// Retains of a primary context, attachments of another; 0 is dead.
    pub(crate) uses: u32,
    pub(crate) flags: u32,
    pub(crate) version: u32,
    pub(crate) limits: [usize; LIMITS],
}

/// The contexts of the process.
#[derive(Default)]
pub(crate) struct Contexts {
    table: Table<Context>,
    /// Handles of contexts that have ended, which the next ones get: a driver's are addresses of objects that it frees.
    spare: Vec<u64>,
    /// Handle of each ordinal's primary context, once it has one.
    primary: Vec<(CUdevice, u64)>,
}

pub(crate) const CONTEXT_IS_DESTROYED: CuError = CuError::new(709).unwrap();
const PRIMARY_CONTEXT_ACTIVE: CuError = CuError::new(708).unwrap();
pub(crate) const LIMITS: usize = 8;
const DEFAULT_LIMITS: [usize; LIMITS] = [1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0];
/// Stack size, printf buffer and heap: the ones that take memory when they grow.
const LIMITS_WITH_MEMORY: [usize; 3] = [0, 1, 2];

/// Who holds what is made in the current context, and its unit.
pub(crate) fn current() -> Result<(u64, Unit), CuError> {
    // Asked first: without a driver there is no context to miss.
    let state = state()?;
    let handle = top().ok_or(CuError::INVALID_CONTEXT)?;
    state.contexts.owner(handle).ok_or(CONTEXT_IS_DESTROYED)
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
    fn add(&mut self, context: Context) -> u64 {
        match self.spare.pop() {
            Some(handle) => self.table.put(handle, context),
            None => self.table.add(context),
        }
    }

    pub(crate) fn alive(&self, handle: u64) -> Option<&Context> {
        let context = self.table.get(handle).filter(|context| context.uses > 0)?;
        let is_alive = |primary| self.table.get(primary).is_some_and(|context| context.uses > 0);
        context.of.is_none_or(is_alive).then_some(context)
    }

    /// Who holds what is made in a living context, and its unit.
    pub(crate) fn owner(&self, handle: u64) -> Option<(u64, Unit)> {
        self.alive(handle).map(|context| (context.of.unwrap_or(handle), context.unit))
    }

    /// Every living context but green ones, with its unit.
    pub(crate) fn all_alive(&self) -> Vec<(u64, Unit)> {
        let own = |context: &Context| context.uses > 0 && context.of.is_none();
        let alive = self.table.iter().filter(|(_, context)| own(context));
        alive.map(|(handle, context)| (handle, context.unit)).collect()
    }

    pub(crate) fn alive_mut(&mut self, handle: u64) -> Option<&mut Context> {
        self.table.get_mut(handle).filter(|context| context.uses > 0)
    }

    /// The primary context of an ordinal, made dead if it never was.
    pub(crate) fn primary(&mut self, device: CUdevice, unit: Unit) -> u64 {
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
        let limits = DEFAULT_LIMITS;
        Self { unit, device, primary, of: None, uses, flags, version: 3020, limits }
    }
}

/// What a fresh context costs.
fn price() -> Holding {
    Holding { contexts: gpucap_stub_device::settings().context_memory, memory: 0 }
}

/// What the limits of a context cost beyond their defaults.
pub(crate) fn limits_price(limits: &[usize; LIMITS]) -> u64 {
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
        state.contexts.spare.push(handle);
    }
    state.end_context(handle);
    gpucap_stub_device::card().give(unit, price());
    gpucap_stub_device::card().give(unit, grown);
}

fn primary_retain(context: Out<CUcontext>, device: CUdevice) -> CuResult {
    context.required()?;
    context.put(as_context(retain(&mut *state()?, device)?))
}

/// One more user of the primary context; the first one makes it.
fn retain(state: &mut State, device: CUdevice) -> Result<u64, CuError> {
    let unit = unit(device)?;
    let handle = state.contexts.primary(device, unit);
    let primary = state.contexts.table.get_mut(handle).ok_or(CuError::UNKNOWN)?;
    if primary.uses == 0 && !gpucap_stub_device::card().take(unit, price()) {
        return Err(CuError::OUT_OF_MEMORY);
    }
    primary.uses += 1;
    Ok(handle)
}

fn primary_release(device: CUdevice) -> CuResult {
    finish_primary(device, 1)?;
    release(&mut *state()?, device)
}

/// One user of the primary context less; the last one ends it.
fn release(state: &mut State, device: CUdevice) -> CuResult {
    let unit = unit(device)?;
    let handle = state.contexts.primary(device, unit);
    let primary = state.contexts.alive_mut(handle).ok_or(CuError::INVALID_CONTEXT)?;
    if primary.uses > 1 {
        primary.uses -= 1;
    } else {
        end(state, handle);
    }
    Ok(())
}

/// A new green context: it retains the primary context.
pub(crate) fn add_green(device: CUdevice) -> Result<u64, CuError> {
    let mut state = state()?;
    let primary = retain(&mut state, device)?;
    let made = Context { of: Some(primary), ..Context::new(unit(device)?, device, false, 1, 0) };
    Ok(state.contexts.add(made))
}

/// Ends a green context, and releases the primary one.
pub(crate) fn end_green(green: CUcontext) -> CuResult {
    let handle = green.address();
    let state = state()?;
    let found = state.contexts.alive(handle).filter(|context| context.of.is_some());
    let device = found.ok_or(CuError::INVALID_CONTEXT)?.device;
    drop(state);
    finish_primary(device, 1)?;
    let mut state = crate::driver::state()?;
    state.contexts.table.remove(handle);
    state.contexts.spare.push(handle);
    release(&mut state, device)
}

fn primary_reset(device: CUdevice) -> CuResult {
    finish_primary(device, u32::MAX)?;
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

fn create_video(
    context: Out<CUcontext>,
    flags: u32,
    device: CUdevice,
    _video: u32,
    _address: Out<c_void>,
) -> CuResult {
    make(context, flags, device, 3020)
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
    let handle = add(flags, device, version)?;
    stack(|stack| stack.push(handle));
    context.put(as_context(handle))
}

/// A new context that is current nowhere.
fn add(flags: u32, device: CUdevice, version: u32) -> Result<u64, CuError> {
    let unit = unit(device)?;
    if !gpucap_stub_device::card().take(unit, price()) {
        return Err(CuError::OUT_OF_MEMORY);
    }
    let made = Context { version, ..Context::new(unit, device, false, 1, flags) };
    Ok(state()?.contexts.add(made))
}

fn destroy(context: CUcontext) -> CuResult {
    let handle = context.address();
    let state = state()?;
    let found = state.contexts.alive(handle).ok_or(CuError::INVALID_CONTEXT)?;
    if found.primary || found.of.is_some() {
        return Err(CuError::INVALID_CONTEXT);
    }
    drop(state);
    finish(handle)?;
    let mut state = crate::driver::state()?;
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

/// A context by handle.
pub(crate) fn as_context(handle: u64) -> CUcontext {
    CUcontext(handle as *mut c_void)
}
