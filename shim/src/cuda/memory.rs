//! Linear memory: charged before the driver is asked, refunded when it has freed.

use super::allocation::{freed, keep};
use super::{current_context, current_device};
use crate::call::Call;
use crate::driver::{self, Next};
use crate::session::Session;
use gpucap_abi::arg::{Out, Word};
use gpucap_abi::cuda::{CuError, CuResult};
use gpucap_core::ledger::Kind;

/// `cuMemAlloc`: ends with the current context.
pub(crate) fn alloc<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<P>,
    bytes: impl Word,
) -> CuResult {
    charged(call, next, pointer, bytes.to_u64(), Kind::Alloc)
}

/// `cuMemAllocManaged`: charged in full. Where its pages live changes from one moment to the next, and a page that has
/// left the card comes back when it is touched.
pub(crate) fn alloc_managed<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<P>,
    bytes: impl Word,
    _flags: u32,
) -> CuResult {
    charged(call, next, pointer, bytes.to_u64(), Kind::Managed)
}

/// `cuMemAllocPitch`: the driver chooses the pitch. What it can be is charged first, and what it is not is refunded. If
/// it is more than any seen before, and that does not fit, the memory goes back before the application has seen it.
pub(crate) fn alloc_pitch<P: Word, S: Word>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<P>,
    pitch: Out<S>,
    width_bytes: S,
    height: S,
    _element_bytes: u32,
) -> CuResult {
    let Some((session, device)) = current_device(call)? else { return next().map(drop) };
    let context = current_context(call)?;
    let (width, height) = (width_bytes.to_u64(), height.to_u64());
    let row = device.pitch.most(width, || driver::cuda::pitch_alignment(call.driver));
    let charge = call.charge(session, device, Kind::Alloc, row.saturating_mul(height))?;
    let written = next()?;
    let pitch = pitch.get(&written).map_or(width, Word::to_u64);
    device.pitch.learn(width, pitch);
    let padding = pitch.saturating_sub(row).saturating_mul(height);
    match call.charge(session, device, Kind::Alloc, padding) {
        Ok(padding) => {
            let charge = charge.with(padding).less(pitch.saturating_mul(height));
            keep(session, pointer, &written, charge.at_home_in(context));
            Ok(())
        }
        Err(refusal) => {
            let free = |address: P| driver::cuda::free(call.driver, address.to_u64());
            if pointer.get(&written).and_then(free).is_none() {
                keep(session, pointer, &written, charge.at_home_in(context)); // it is still there
            }
            Err(refusal.into())
        }
    }
}

/// `cuMemFree`: of memory from a pool, the pool may keep what was freed.
pub(crate) fn free(call: &Call, next: impl Next<CuError>, pointer: impl Word) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    session.memory.end_one(pointer.to_u64(), next, |record| {
        freed(call, session, record, None);
    })
}

fn charged<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: Out<P>,
    bytes: u64,
    kind: Kind,
) -> CuResult {
    let Some((session, device)) = current_device(call)? else { return next().map(drop) };
    let context = current_context(call)?;
    let charge = call.charge(session, device, kind, bytes)?;
    let written = next()?;
    keep(session, pointer, &written, charge.at_home_in(context));
    Ok(())
}
