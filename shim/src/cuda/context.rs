//! Primary contexts: charged at a known price while they exist, with everything that ends with them.
//!
//! What a context costs stands in no argument. The price comes from the limits file, where the hook has measured it, or
//! from `GPUCAP_CONTEXT_MEM`. Whether the context still exists is asked of the driver, which counts the retains.

use crate::call::Call;
use crate::driver;
use crate::hooks::Next;
use crate::session::Session;
use gpucap_abi::arg::Out;
use gpucap_abi::cuda::{CUcontext, CUdevice, CuError, CuResult};
use gpucap_core::ledger::Kind;

/// `cuDevicePrimaryCtxRetain`: the first one pays.
pub(crate) fn primary_retain(
    call: &Call,
    next: impl Next<CuError>,
    context: Out<CUcontext>,
    ordinal: CUdevice,
) -> CuResult {
    let session = call.session()?;
    let Some(device) = session.device(call.driver, ordinal)? else { return next().map(drop) };
    let mut primary = device.primary.lock();
    if primary.record.is_some() {
        return next().map(drop);
    }
    let charge = session.charge(device, Kind::Context, device.context_price)?;
    let written = next()?;
    primary.context = context.get(&written).map_or(0, CUcontext::address);
    primary.record = Some(charge.commit());
    Ok(())
}

/// `cuDevicePrimaryCtxRelease`: the last one refunds.
pub(crate) fn primary_release(
    call: &Call,
    next: impl Next<CuError>,
    ordinal: CUdevice,
) -> CuResult {
    ended(call, next, ordinal)
}

/// `cuDevicePrimaryCtxReset`: ends the context however often it was retained.
pub(crate) fn primary_reset(call: &Call, next: impl Next<CuError>, ordinal: CUdevice) -> CuResult {
    ended(call, next, ordinal)
}

fn ended(call: &Call, next: impl Next<CuError>, ordinal: CUdevice) -> CuResult {
    let session = call.session()?;
    let Some(device) = session.device(call.driver, ordinal)? else { return next().map(drop) };
    let mut primary = device.primary.lock();
    next()?;
    if driver::cuda::primary_context_active(call.driver, ordinal) == Some(false) {
        let context = core::mem::take(&mut primary.context);
        let record = primary.record.take();
        drop(primary);
        record.into_iter().for_each(|record| session.refund(record));
        end(session, context);
    }
    Ok(())
}

/// Refunds what ended with a context.
fn end(session: &Session, context: u64) {
    if context != 0 {
        session.memory.end_context(context, |record| session.refund(record));
        session.arrays.end_context(context, |record| session.refund(record));
    }
}
