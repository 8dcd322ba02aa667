//! What the driver says of a device's size: the slice instead of the card.

use super::current_device;
use crate::book;
use crate::call::Call;
use crate::device::Device;
use crate::hooks::Next;
use crate::session::Session;
use crate::sys;
use gpucap_abi::arg::{Out, Word};
use gpucap_abi::cuda::{CUdevice, CuError, CuResult};

/// `cuDeviceTotalMem`.
pub(crate) fn total<W: Word>(
    call: &Call,
    next: impl Next<CuError>,
    bytes: Out<W>,
    ordinal: CUdevice,
) -> CuResult {
    let written = next()?;
    if let Ok(session) = call.session()
        && let Ok(Some(device)) = session.device(call.driver, ordinal)
    {
        bytes.set(&written, W::saturating_from(device.cap()));
    }
    Ok(())
}

/// `cuMemGetInfo`: free is what is left of the cap, and never more than the driver has.
pub(crate) fn info<W: Word>(
    call: &Call,
    next: impl Next<CuError>,
    free: Out<W>,
    total: Out<W>,
) -> CuResult {
    let written = next()?;
    if let Ok(Some((session, device))) = current_device(call) {
        let left = device.cap().saturating_sub(used(session, device));
        let free_now = free.get(&written).map_or(left, |free| left.min(free.to_u64()));
        free.set(&written, W::saturating_from(free_now));
        total.set(&written, W::saturating_from(device.cap()));
    }
    Ok(())
}

/// Bytes that the container's live processes hold.
fn used(session: &Session, device: &Device) -> u64 {
    let _errno = sys::Errno::keep();
    session.ledger.reap(&book::alive);
    session.ledger.used(device.index)
}
