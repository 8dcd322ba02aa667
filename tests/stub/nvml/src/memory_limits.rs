//! Limits of device memory for a cgroup (NVML 13.4), where the simulated driver has them (`STUB_GPU_MEMORY_LIMITS`).
//!
//! As NVIDIA documents them: a cgroup goes by the whole path of its directory; setting takes root, reading does not; a
//! handle of a MIG slice is not supported, nor is the root of the hierarchy; no limit is a soft one of 0 and a hard one
//! of all. As the backend "misc" answers, a cgroup below no limit at all is NOT_SUPPORTED to the getter.

use crate::device::unit;
use crate::export::{In, Out, exports};
use gpucap_abi::nvml::{
    NvmlError, NvmlResult, nvmlDevice_t, nvmlGetMemoryLimits_v1_t, nvmlSetMemoryLimits_v1_t,
};
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::partition::Lineage;
use gpucap_stub_device::{card, settings};
use std::ffi::c_char;

exports! {
    /// Only for root.
    fn nvmlDeviceSetMemoryLimits_v1(device: nvmlDevice_t, limits: *mut nvmlSetMemoryLimits_v1_t)
        => set, library;
    /// What holds, be it by a cgroup above.
    fn nvmlDeviceGetMemoryLimits_v1(device: nvmlDevice_t, limits: *mut nvmlGetMemoryLimits_v1_t)
        => limits, library;
}

fn set(device: nvmlDevice_t, limits: Out<nvmlSetMemoryLimits_v1_t>) -> NvmlResult {
    let unit = unit(device)?;
    let asked = limits.get()?;
    // SAFETY: geteuid has no precondition and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err(NvmlError::NO_PERMISSION);
    }
    let lineage = cgroup(unit, asked.nameSpace)?;
    if lineage.is_root() {
        return Err(NvmlError::NOT_SUPPORTED);
    }
    if asked.softLimit > asked.hardLimit {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    let set = card().limit(&lineage, unit, (asked.softLimit, asked.hardLimit));
    set.map_err(|_| NvmlError::INVALID_ARGUMENT)
}

fn limits(device: nvmlDevice_t, limits: Out<nvmlGetMemoryLimits_v1_t>) -> NvmlResult {
    let unit = unit(device)?;
    let asked = limits.get()?;
    let lineage = cgroup(unit, asked.nameSpace)?;
    let found = card().partition(&lineage, unit).ok_or(NvmlError::NOT_SUPPORTED)?;
    limits.put(nvmlGetMemoryLimits_v1_t {
        softLimit: found.soft,
        hardLimit: found.hard,
        currentUsed: found.used,
        ..asked
    })
}

/// The cgroup with this path, of a unit that can be limited.
fn cgroup(unit: Unit, path: *const c_char) -> Result<Lineage, NvmlError> {
    if !settings().memory_limits || unit.slice.is_some() {
        return Err(NvmlError::NOT_SUPPORTED);
    }
    // SAFETY: the contract of the structure: null, or a text that ends with a zero.
    let path: In<c_char> = unsafe { In::new(path) };
    Lineage::of_directory(&path.text()?).ok_or(NvmlError::NOT_FOUND)
}
