//! Alibaba's eGPU: `AMP_VGPU_ENABLE=1`, then `GPU_MEM_PER_DEVICE` in bytes and `GPU_UTIL_PER_DEVICE` in percent.
//!
//! Without the switch its variables mean nothing, as in eGPU itself: their names are too common. eGPU keeps 10 MB of
//! the memory for itself; gpucap needs none of it, and gives the whole.

use gpucap_core::units::Amount;

use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    if facts.env.get("AMP_VGPU_ENABLE") != Some("1") {
        return Ok(vec![]);
    }
    let mut grants = Vec::new();
    if let Some(held) = facts.env.get("GPU_MEM_PER_DEVICE") {
        let source = "environment GPU_MEM_PER_DEVICE";
        let bytes = number::units(source, held, 1)?;
        let limit = DeviceLimit::memory(Amount::Bytes(bytes));
        grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
    }
    if let Some(held) = facts.env.get("GPU_UTIL_PER_DEVICE") {
        let source = "environment GPU_UTIL_PER_DEVICE";
        let limit = DeviceLimit::core(number::percent(source, held)?);
        grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
    }
    Ok(grants)
}
