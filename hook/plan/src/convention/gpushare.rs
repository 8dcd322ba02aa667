//! Alibaba's gpushare device plugin, version 1, and cGPU by hand: `ALIYUN_COM_GPU_MEM_*` in the environment.
//!
//! `_CONTAINER` (else `_POD`) units of memory out of `_DEV` that the GPU has. The unit is a switch of the plugin (GiB
//! unless set) that a container does not see; so the ratio counts as a limit too, and a wrong unit cannot give more
//! than the intended part of the GPU. `_IDX` is the GPU on the host, and -1 means that the plugin found no GPU: the
//! kubelet starts such a container all the same. `ALIYUN_COM_GPU_SCHD_WEIGHT` is a weight among containers, not a
//! limit.

use gpucap_core::limits::file::MemoryLimit;
use gpucap_core::units::{Bytes, Share};

use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let get = |name: &str| facts.env.get(name);
    let index = "ALIYUN_COM_GPU_MEM_IDX";
    if let Some(held) = get(index) {
        // The plugin's own word for failure; any other text that is no number is not from the plugin.
        if held.split(',').any(|word| number::whole("", word.trim()).is_err()) {
            let why = "no GPU was allocated: the device plugin failed for this pod";
            return Err(Reason::value(format!("environment {index}"), held, why));
        }
    }
    let container = ("ALIYUN_COM_GPU_MEM_CONTAINER", get("ALIYUN_COM_GPU_MEM_CONTAINER"));
    let pod = ("ALIYUN_COM_GPU_MEM_POD", get("ALIYUN_COM_GPU_MEM_POD"));
    let (name, held) = if container.1.is_some() { container } else { pod };
    let Some(held) = held else { return Ok(vec![]) };
    let source = format!("environment {name}");
    let bytes = number::units(&source, held, facts.node.aliyun_memory_unit)?;
    let part = match get("ALIYUN_COM_GPU_MEM_DEV") {
        Some(device) => {
            let source = "environment ALIYUN_COM_GPU_MEM_DEV";
            let device_bytes = number::units(source, device, facts.node.aliyun_memory_unit)?;
            Some(ratio(bytes, device_bytes))
        }
        None => None,
    };
    let limit = DeviceLimit::memory(MemoryLimit { bytes: Some(bytes), part });
    Ok(vec![Grant::new(source, held, DeviceLimits::every(limit))])
}

/// The part rounded up, since the plugin rounds the card down; so next to the right unit it never counts.
fn ratio(of: Bytes, whole: Bytes) -> Share {
    let parts = u128::from(of.0).saturating_mul(Share::DENOMINATOR.into());
    let parts = parts.div_ceil(u128::from(whole.0).max(1)).max(100);
    u16::try_from(parts).ok().and_then(Share::from_parts).unwrap_or(Share::FULL)
}
