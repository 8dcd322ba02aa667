//! `nvmlDeviceGetMemoryInfo` and other functions that return a size: total is the limit, used is what the container's
//! live processes hold.

use super::Slice;
use crate::call::Call;
use crate::driver::{self, Next};
use gpucap_abi::arg::Out;
use gpucap_abi::nvml::{
    NvmlError, NvmlResult, nvmlDevice_t, nvmlDeviceAttributes_t, nvmlMemory_t, nvmlMemory_v2_t,
};

/// Version 1.
pub(crate) fn info(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    memory: Out<nvmlMemory_t>,
) -> NvmlResult {
    let written = next()?;
    if let Some(card) = memory.get(&written)
        && let Some((total, used)) = shown(call, device, card.total)
    {
        memory.set(&written, nvmlMemory_t { total, free: total.saturating_sub(used), used });
    }
    Ok(())
}

/// Version 2. The caller has set the struct's version, and the driver has accepted it.
///
/// Where the driver keeps a limit of its own on this cgroup, this form alone shows that limit as the card's memory; a
/// percentage is one of the card, so version 1 is asked how large that is.
pub(crate) fn info_v2(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    memory: Out<nvmlMemory_v2_t>,
) -> NvmlResult {
    let written = next()?;
    if let Some(card) = memory.get(&written)
        && let whole = driver::nvml::total_bytes(call.driver, device).unwrap_or(card.total)
        && let Some((total, used)) = shown(call, device, whole)
    {
        let free = total.saturating_sub(used);
        memory.set(
            &written,
            nvmlMemory_v2_t { version: card.version, total, reserved: 0, free, used },
        );
    }
    Ok(())
}

/// `nvmlDeviceGetAttributes`, both versions: the size of a MIG instance; cards have none.
pub(crate) fn attributes(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    attributes: Out<nvmlDeviceAttributes_t>,
) -> NvmlResult {
    let written = next()?;
    if let Some(instance) = attributes.get(&written)
        && let Some(bytes) = driver::nvml::total_bytes(call.driver, device)
        && let Some((total, _)) = shown(call, device, bytes)
    {
        let size = instance.memorySizeMB.min(total >> 20);
        attributes.set(&written, nvmlDeviceAttributes_t { memorySizeMB: size, ..instance });
    }
    Ok(())
}

/// Total and used of a device whose memory is limited.
fn shown(call: &Call, device: nvmlDevice_t, card_bytes: u64) -> Option<(u64, u64)> {
    let slice = Slice::of(call, device, card_bytes)?;
    let total = slice.limits.memory?;
    let used = slice.device.map_or(0, |device| slice.ledger.used(device));
    Some((total, used.min(total)))
}
