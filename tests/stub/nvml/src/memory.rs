//! Memory as NVML reports it.
//!
//! The first form counts what the driver reserves as used; the second tells it apart. A device's
//! numbers include its slices. Of a device that uses the machine's memory there are none.

use crate::device::unit;
use crate::export::{Out, exports};
use gpucap_abi::nvml::{NvmlError, NvmlResult, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t};
use gpucap_stub_device::partition::Lineage;
use gpucap_stub_device::{card, settings};

exports! {
    /// Reserved memory counts as used.
    fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t) => info, library;
    /// Reserved memory apart; the version must be the structure's.
    fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t)
        => info_v2, library;
    /// A window of 64 GiB with nothing mapped.
    fn nvmlDeviceGetBAR1MemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t)
        => bar1, library;
}

fn numbers(device: nvmlDevice_t) -> Result<nvmlMemory_v2_t, NvmlError> {
    let unit = unit(device)?;
    if settings().shared_memory {
        return Err(NvmlError::NOT_SUPPORTED);
    }
    let (total, used) = (unit.memory(settings()), card().used(unit));
    let reserved = settings().reserved.min(total);
    let free = total.saturating_sub(reserved).saturating_sub(used);
    Ok(nvmlMemory_v2_t { version: nvmlMemory_v2_t::VERSION, total, reserved, free, used })
}

fn info(device: nvmlDevice_t, memory: Out<nvmlMemory_t>) -> NvmlResult {
    memory.required()?;
    let found = numbers(device)?;
    memory.put(nvmlMemory_t {
        total: found.total,
        free: found.free,
        used: found.used + found.reserved,
    })
}

fn info_v2(device: nvmlDevice_t, memory: Out<nvmlMemory_v2_t>) -> NvmlResult {
    if memory.get()?.version != nvmlMemory_v2_t::VERSION {
        return Err(NvmlError::ARGUMENT_VERSION_MISMATCH);
    }
    let found = numbers(device)?;
    // This form alone accounts for a limit of the caller's cgroup, and not on MIG slices.
    let Some(partition) = card().partition(Lineage::own(), unit(device)?) else {
        return memory.put(found);
    };
    let (total, used) = (found.total.min(partition.hard), partition.used);
    let free = found.free.min(total.saturating_sub(used));
    memory.put(nvmlMemory_v2_t { total, reserved: 0, free, used, ..found })
}

fn bar1(device: nvmlDevice_t, memory: Out<nvmlMemory_t>) -> NvmlResult {
    unit(device)?;
    memory.put(nvmlMemory_t { total: 64 << 30, free: 64 << 30, used: 0 })
}
