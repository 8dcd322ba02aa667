//! `nvmlDeviceGetMemoryInfo` and other functions that return a size: total is the limit, used is what the container's
//! live processes hold.
//!
//! Of a card that uses the machine's memory, NVML reports no size (`NOT_SUPPORTED`), and CUDA reports the machine's. A limit
//! in bytes is shown all the same; a share of an unknown size is not.

use super::{Slice, UNKNOWN_BYTES};
use crate::call::Call;
use crate::driver::{self, Next};
use crate::sys;
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
    let of =
        |(total, used): (u64, u64)| nvmlMemory_t { total, free: total.saturating_sub(used), used };
    match next() {
        Ok(written) => {
            if let Some(card) = memory.get(&written)
                && let Some(slice) = shown(call, device, card.total)
            {
                memory.set(&written, of(slice));
            }
        }
        Err(error) => memory.answer(of(shown_without_card(call, device, error)?)),
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
    let of = |version, (total, used): (u64, u64)| {
        let free = total.saturating_sub(used);
        nvmlMemory_v2_t { version, total, reserved: 0, free, used }
    };
    match next() {
        Ok(written) => {
            if let Some(card) = memory.get(&written)
                && let whole = driver::nvml::total_bytes(call.driver, device).unwrap_or(card.total)
                && let Some(slice) = shown(call, device, whole)
            {
                memory.set(&written, of(card.version, slice));
            }
        }
        Err(error) => {
            let slice = shown_without_card(call, device, error)?;
            memory.answer(of(nvmlMemory_v2_t::VERSION, slice));
        }
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

/// The same of a device of which NVML has answered that it reports no size; otherwise, that answer. A percentage of an
/// unknown size is above all memory of the machine, and so is a limit that CUDA cuts at it.
fn shown_without_card(
    call: &Call,
    device: nvmlDevice_t,
    answer: NvmlError,
) -> Result<(u64, u64), NvmlError> {
    let slice = match answer {
        NvmlError::NOT_SUPPORTED => shown(call, device, UNKNOWN_BYTES),
        _ => None,
    };
    slice.filter(|(total, _)| *total <= sys::memory_of_machine()).ok_or(answer)
}
