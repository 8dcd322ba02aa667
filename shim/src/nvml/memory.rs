//! `nvmlDeviceGetMemoryInfo`: total is the cap, used is what the container's live processes hold.

use super::Slice;
use crate::call::Call;
use crate::hooks::Next;
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
        && let Some(slice) = Slice::of(call, device, card.total)
    {
        let (total, used) = (slice.total, slice.used());
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
        && let Some(slice) = Slice::of(call, device, card.total)
    {
        let (total, used) = (slice.total, slice.used());
        let free = total.saturating_sub(used);
        memory.set(
            &written,
            nvmlMemory_v2_t { version: card.version, total, reserved: 0, free, used },
        );
    }
    Ok(())
}
