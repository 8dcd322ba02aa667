//! What the driver says of a device's size: the slice instead of the card.

use super::current_device;
use crate::call::Call;
use crate::driver::{self, Next};
use crate::holdings::pools::Home;
use crate::session::Session;
use core::ffi::{c_int, c_void};
use gpucap_abi::arg::{Out, Word, Written};
use gpucap_abi::cuda::{CUdevice, CUmemoryPool, CuError, CuResult};

/// `cuDeviceTotalMem`.
pub(crate) fn total<W: Word>(
    call: &Call,
    next: impl Next<CuError>,
    bytes: Out<W>,
    ordinal: CUdevice,
) -> CuResult {
    let written = next()?;
    if let Ok(session) = call.session()
        && let Ok(Some(device)) = session.budget.device(call.driver, ordinal)
    {
        bytes.set(&written, W::saturating_from(device.memory_limit()));
    }
    Ok(())
}

/// `cuMemGetInfo`: free is the rest of the limit, and never more than the driver has.
pub(crate) fn info<W: Word>(
    call: &Call,
    next: impl Next<CuError>,
    free: Out<W>,
    total: Out<W>,
) -> CuResult {
    let written = next()?;
    if let Ok(Some((session, device))) = current_device(call) {
        let left = device.memory_limit().saturating_sub(session.budget.used(device));
        let free_now = free.get(&written).map_or(left, |free| left.min(free.to_u64()));
        free.set(&written, W::saturating_from(free_now));
        total.set(&written, W::saturating_from(device.memory_limit()));
    }
    Ok(())
}

/// `cuMemPoolGetAttribute`: a pool takes from the device in larger pieces than are asked for, and so may hold more
/// than the limit; the excess is not shown. An unknown pool is taken to belong to the current device.
pub(crate) fn pool_attribute(
    call: &Call,
    next: impl Next<CuError>,
    pool: CUmemoryPool,
    attribute: c_int,
    value: Out<c_void>,
) -> CuResult {
    /// `CU_MEMPOOL_ATTR_RESERVED_MEM_*`, `_USED_MEM_*` and, from 13.0 on, `_MAX_POOL_SIZE`.
    const SIZES: [c_int; 5] = [5, 6, 7, 8, 13];
    let written = next()?;
    if SIZES.contains(&attribute)
        && let Ok(session) = call.session()
    {
        let device = match session.pools.home(pool) {
            Some(Home::Device(ordinal)) => Some(ordinal),
            Some(Home::Elsewhere) => None,
            None => driver::cuda::current_device(call.driver),
        };
        cut(call, session, device, value, &written);
    }
    Ok(())
}

/// `cuDeviceGetGraphMemAttribute`: all of them are sizes.
pub(crate) fn graph_attribute(
    call: &Call,
    next: impl Next<CuError>,
    ordinal: CUdevice,
    _attribute: c_int,
    value: Out<c_void>,
) -> CuResult {
    let written = next()?;
    if let Ok(session) = call.session() {
        cut(call, session, Some(ordinal), value, &written);
    }
    Ok(())
}

/// Cuts a size at the limit of its device.
fn cut(
    call: &Call,
    session: &Session,
    ordinal: Option<CUdevice>,
    value: Out<c_void>,
    written: &Written,
) {
    let size = value.as_type::<u64>();
    if let Some(ordinal) = ordinal
        && let Ok(Some(device)) = session.budget.device(call.driver, ordinal)
        && let Some(bytes) = size.get(written)
    {
        size.set(written, bytes.min(device.memory_limit()));
    }
}
