//! NVIDIA's MPS: what a client allows itself, also set by Amazon ECS.
//!
//! `CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2G,1=512M` counts the devices as CUDA does in the client, which
//! `CUDA_VISIBLE_DEVICES` and the speed of the cards decide: with unequal values the lowest is for every GPU.
//! `CUDA_MPS_ACTIVE_THREAD_PERCENTAGE` is a share of the processors of each GPU, and becomes one of its time. What `G`
//! and `M` stand for is not written anywhere; we take the smaller meaning, 10^9 and 10^6.

use gpucap_core::config::{Excerpt, PerGpu, Value};
use gpucap_core::units::Amount;

use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let mut grants = Vec::new();
    let name = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
    if let Some(held) = facts.env.get(name) {
        let source = format!("environment {name}");
        let list = PerGpu::<Amount>::parse(held).map_err(|why| Reason::Value {
            source: source.clone(),
            held: Excerpt::new(held.as_bytes()),
            why: format!("{why}; allowed: 0=2G,1=512M"),
        })?;
        let limit = list
            .values()
            .map(|&amount| DeviceLimit::memory(amount))
            .fold(DeviceLimit::default(), DeviceLimit::lower);
        grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
    }
    let name = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
    if let Some(held) = facts.env.get(name) {
        let source = format!("environment {name}");
        let limit = DeviceLimit::core(number::percent(&source, held)?);
        grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
    }
    Ok(grants)
}
