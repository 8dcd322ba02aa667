//! Contexts: charged at a known price while they exist, and refunded with everything that ends with them.
//!
//! No argument shows the size of a context: it has a [price](context_price). Memory of pools and of the virtual memory management
//! outlives contexts (CUDA driver API, `cuCtxDestroy`); linear memory, managed memory, arrays and code do not.
//!
//! Whether a primary context still exists is asked of the driver, which counts its users. The lock of a device's
//! primary context is held across the driver's call: two threads that make it at the same moment make one context and
//! must be charged for one. A tool that the driver calls back on the same thread in this call finds the lock
//! [held](crate::driver::call_guard) and passes.

use super::context_price;
use crate::budget::device::{Device, Primary};
use crate::call::Call;
use crate::driver::call_guard::{DriverCallGuard, lock};
use crate::driver::{self, Next};
use crate::launch;
use crate::session::Session;
use crate::session::context_end::{self, Ending};
use crate::throttle::Gate;
use core::ffi::{c_int, c_void};
use gpucap_abi::arg::Out;
use gpucap_abi::cuda::{CUcontext, CUdevResourceDesc, CUdevice, CUgreenCtx, CuError, CuResult};
use gpucap_core::ledger::Kind;

/// `cuDevicePrimaryCtxRetain`: the first one pays.
pub(crate) fn primary_retain(
    call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    ordinal: CUdevice,
) -> CuResult {
    retain(call, ordinal, |primary| {
        let written = next()?;
        primary.context = context.get(&written).map_or(0, CUcontext::address);
        Ok(())
    })
}

/// `cuDevicePrimaryCtxRelease`: the last one refunds.
pub(crate) fn primary_release(
    call: &Call,
    next: impl Next<CuError>,
    ordinal: CUdevice,
) -> CuResult {
    release(call, ordinal, next)
}

/// `cuDevicePrimaryCtxReset`: ends the context however often it was retained.
pub(crate) fn primary_reset(call: &Call, next: impl Next<CuError>, ordinal: CUdevice) -> CuResult {
    release(call, ordinal, next)
}

/// `cuCtxCreate`, first and second form, and those for graphics.
pub(crate) fn create(
    call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    _flags: u32,
    ordinal: CUdevice,
) -> CuResult {
    let session = call.session()?;
    let device = session.budget.device(call.driver, ordinal)?;
    session.budget.gate(ordinal).into_iter().for_each(Gate::context_begins);
    let charge = device
        .map(|device| call.charge(session, device, Kind::Context, device.price.bytes()))
        .transpose()?;
    let written = next()?;
    if let Some(context) = context.get(&written) {
        let price = charge.map(|charge| charge.commit());
        let stale = session.contexts.made(context.address(), price);
        stale.into_iter().for_each(|record| session.budget.refund(record));
    }
    Ok(())
}

/// `cuCtxCreate_v3`.
pub(crate) fn create_with_affinity(
    call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    _params: Out<c_void>,
    _count: c_int,
    flags: u32,
    ordinal: CUdevice,
) -> CuResult {
    create(call, next, context, flags, ordinal)
}

/// `cuCtxCreate_v4`.
pub(crate) fn create_with_params(
    call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    _params: Out<c_void>,
    flags: u32,
    ordinal: CUdevice,
) -> CuResult {
    create(call, next, context, flags, ordinal)
}

/// `cuVDPAUCtxCreate`.
pub(crate) fn create_vdpau(
    call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    flags: u32,
    ordinal: CUdevice,
    _vdp_device: u32,
    _vdp_proc_address: Out<c_void>,
) -> CuResult {
    create(call, next, context, flags, ordinal)
}

/// `cuCtxDestroy`.
pub(crate) fn destroy(call: &Call, next: impl Next<CuError>, context: CUcontext) -> CuResult {
    match Session::begun() {
        Some(session) => end(call, session, context, next, || false),
        None => next().map(drop),
    }
}

/// `cuCtxAttach`: the context is the calling thread's current one, which the driver returns.
pub(crate) fn attach(
    _call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    _flags: u32,
) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    let _one = session.contexts.counting.change();
    let written = next()?;
    if let Some(context) = context.get(&written) {
        session.contexts.attach(context.address());
    }
    Ok(())
}

/// `cuCtxDetach`: the last one destroys.
pub(crate) fn detach(call: &Call, next: impl Next<CuError>, context: CUcontext) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    if let Some(ordinal) = device_of_primary(session, context) {
        return release(call, ordinal, next);
    }
    // Who is the last is the driver's order of calls.
    let _one = session.contexts.counting.change();
    let has_other_user = || session.contexts.detach(context.address());
    if !has_other_user() {
        // Unless a tool attaches to it within the call.
        return end(call, session, context, next, has_other_user);
    }
    next().map(drop).inspect_err(|_| session.contexts.attach(context.address()))
}

/// The device whose primary context this is.
fn device_of_primary(session: &Session, context: CUcontext) -> Option<CUdevice> {
    if context == CUcontext::NULL {
        return None;
    }
    let _held = DriverCallGuard::enter()?;
    let is_it = |device: &Device| device.primary.lock().context == context.address();
    session.budget.limited().find(|(_, device)| is_it(device)).map(|(ordinal, _)| ordinal)
}

/// `cuGreenCtxCreate`: retains the primary context of its device.
pub(crate) fn create_green(
    call: &Call,
    next: impl Next<CuError>,
    green: Out<CUgreenCtx>,
    _resources: CUdevResourceDesc,
    ordinal: CUdevice,
    _flags: u32,
) -> CuResult {
    let session = call.session()?;
    retain(call, ordinal, |primary| {
        let written = next()?;
        if let Some(green) = green.get(&written) {
            session.contexts.made_green(green.address(), ordinal);
        }
        if primary.context == 0 {
            let context = driver::cuda::primary_context(call.driver, ordinal);
            primary.context = context.map_or(0, CUcontext::address);
        }
        Ok(())
    })
}

/// `cuGreenCtxDestroy`: releases it.
pub(crate) fn destroy_green(call: &Call, next: impl Next<CuError>, green: CUgreenCtx) -> CuResult {
    let session = call.session()?;
    let handle = green.address();
    let Some(green) = session.contexts.take_green(handle) else { return next().map(drop) };
    // What was made in it is the primary context's; from here on its name may be another context's.
    let _one = session.limits_of_contexts.change();
    let mut passed = Vec::new();
    if let Some(primary) = primary_context(call, session, green.device) {
        let names = green.contexts.iter().map(|context| Ending::begin(session, *context));
        passed.extend(names.map(|name| name.pass_on(session, primary)));
    }
    let names = launch::names_end(call, session, green.device, &green.contexts);
    release(call, green.device, next).inspect_err(|_| {
        passed.into_iter().for_each(|limits| limits.take_back(session));
        names.into_iter().for_each(|names| names.take_back());
        session.contexts.put_back_green(handle, green);
    })
}

/// The primary context of a device, while it is charged for.
fn primary_context(call: &Call, session: &Session, ordinal: CUdevice) -> Option<u64> {
    let device = session.budget.device(call.driver, ordinal).ok()??;
    let primary = lock(&device.primary)?;
    Some(primary.context).filter(|context| *context != 0)
}

/// `cuCtxFromGreenCtx`.
pub(crate) fn from_green(
    _call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    green: CUgreenCtx,
) -> CuResult {
    let written = next()?;
    if let (Some(context), Some(session)) = (context.get(&written), Session::begun()) {
        session.contexts.derived(green.address(), context.address());
    }
    Ok(())
}

/// Something that keeps the primary context alive: the first one pays its price.
fn retain(call: &Call, ordinal: CUdevice, make: impl FnOnce(&mut Primary) -> CuResult) -> CuResult {
    let session = call.session()?;
    let device = session.budget.device(call.driver, ordinal)?;
    session.budget.gate(ordinal).into_iter().for_each(Gate::context_begins);
    let Some((device, mut primary)) =
        device.and_then(|device| Some((device, lock(&device.primary)?)))
    else {
        return make(&mut Primary::default());
    };
    context_end::settle(call.driver, session, ordinal, &mut primary);
    if primary.record.is_some() {
        let before = primary.context;
        make(&mut primary)?;
        // The driver has not said whether the earlier one is over: it is if there is another one now.
        if core::mem::take(&mut primary.is_in_doubt) && primary.context != before && before != 0 {
            Ending::begin(session, before).refund(session);
        }
        return Ok(());
    }
    let charge = call.charge(session, device, Kind::Context, device.price.bytes())?;
    make(&mut primary)?;
    primary.record = Some(context_price::correct(session, device, charge.commit()));
    Ok(())
}

/// Releases a use of the primary context: if it is gone, so is what it held. Its handle stays its own, so that what
/// it held can be looked for afterwards; until then no other thread can make it again.
fn release(call: &Call, ordinal: CUdevice, next: impl Next<CuError>) -> CuResult {
    let session = call.session()?;
    launch::about_to_end(call, session);
    let Some(_held) = DriverCallGuard::enter() else { return next().map(drop) };
    let next = || launch::primary_may_end(call, session, ordinal, next);
    let Some(device) = session.budget.device(call.driver, ordinal)? else {
        return next().map(drop);
    };
    let mut primary = device.primary.lock();
    next()?;
    primary.is_in_doubt = true;
    context_end::settle(call.driver, session, ordinal, &mut primary);
    Ok(())
}

/// Ends a context, and with it what it holds, unless it lives on all the same.
fn end(
    call: &Call,
    session: &Session,
    context: CUcontext,
    next: impl Next<CuError>,
    lives_on: impl FnOnce() -> bool,
) -> CuResult {
    let ending = Ending::begin(session, context.address());
    match launch::context_ends(call, session, context, next) {
        Ok(_) if lives_on() => {
            ending.undo(session);
            Ok(())
        }
        Ok(_) => {
            ending.refund(session);
            Ok(())
        }
        Err(error) => {
            ending.undo(session);
            Err(error)
        }
    }
}
