//! `nvmlDeviceGetMemoryInfo`: total is the cap, used is what the container's live processes hold.
//!
//! Works in a process that uses no CUDA: the book is read, no slot is taken. A device that is not capped, or whose
//! limits cannot be resolved, is shown as it is, so that an administrator can diagnose.

use crate::book;
use crate::call::Call;
use crate::device;
use crate::driver;
use crate::hooks::Next;
use crate::sys;
use crate::topology;
use gpucap_abi::arg::Out;
use gpucap_abi::nvml::{NvmlError, NvmlResult, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t};

/// Version 1.
pub(crate) fn info(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    memory: Out<nvmlMemory_t>,
) -> NvmlResult {
    let written = next()?;
    if let Some(card) = memory.get(&written)
        && let Some(Slice { total, used }) = slice(call, device, card.total)
    {
        memory.set(&written, nvmlMemory_t { total, free: total.saturating_sub(used), used });
    }
    Ok(())
}

/// Version 2. The caller has set the struct's version, and the driver has accepted it.
pub(crate) fn info_v2(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    memory: Out<nvmlMemory_v2_t>,
) -> NvmlResult {
    let written = next()?;
    if let Some(card) = memory.get(&written)
        && let Some(Slice { total, used }) = slice(call, device, card.total)
    {
        let free = total.saturating_sub(used);
        memory.set(
            &written,
            nvmlMemory_v2_t { version: card.version, total, reserved: 0, free, used },
        );
    }
    Ok(())
}

/// What a capped device is shown as.
struct Slice {
    total: u64,
    used: u64,
}

fn slice(call: &Call, handle: nvmlDevice_t, total_bytes: u64) -> Option<Slice> {
    let _errno = sys::Errno::keep();
    let uuid = driver::nvml::uuid(call.driver, handle)?.uuid;
    let limits = call.policy.limits.as_ref()?;
    let place = |_: &_| topology::of_handle(call.driver, handle);
    let total = device::resolve(limits, uuid, total_bytes, place).ok()?.memory?;
    let ledger = book::ledger(call.policy).ok()?;
    ledger.reap(&book::alive);
    let used = ledger.find_device(uuid.0).map_or(0, |index| ledger.used(index));
    Some(Slice { total, used: used.min(total) })
}
