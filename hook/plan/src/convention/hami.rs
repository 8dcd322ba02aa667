//! HAMi: its device plugin's variables, and its scheduler's annotations.
//!
//! `CUDA_DEVICE_MEMORY_LIMIT[_<i>]=3000m` counts the cards as `NVIDIA_VISIBLE_DEVICES` lists them: the plugin writes
//! both in one order, while HAMi's own library counts as CUDA does, which is how it mixes up unequal limits. One
//! `CUDA_DEVICE_SM_LIMIT` is for all; 0 is HAMi's way to write "not limited", and is written for each pod that asks
//! for memory alone. The annotations name cards by UUID (`device_list`).

use gpucap_core::units::Amount;

use super::device_list;
use crate::document::card::Visible;
use crate::document::env::Reading;
use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant, Numbered, lowest};
use crate::reason::Reason;

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let visible = Visible::of(facts.env, "NVIDIA_VISIBLE_DEVICES", facts.cards);
    let name = |index| visible.listed_at(index);
    let memory = |source: &str, held: &str| {
        Ok(DeviceLimit::memory(Amount::Bytes(number::suffixed(source, held)?)))
    };
    let core = |source: &str, held: &str| {
        Ok(DeviceLimit { core: number::percent_or_free(source, held)?, ..DeviceLimit::default() })
    };
    let mut grants = indexed(facts.env, "CUDA_DEVICE_MEMORY_LIMIT", name, memory)?;
    grants.extend(indexed(facts.env, "CUDA_DEVICE_SM_LIMIT", name, core)?);
    grants.extend(device_list::read(facts, "hami.io/vgpu-devices-allocated", true)?);
    grants.extend(device_list::read(facts, "hami.io/vgpu-devices-to-allocate", false)?);
    Ok(grants)
}

/// The variables `<name>` (for every GPU) and `<name>_<i>`. A GPU without a number of its own has the lowest: the
/// plugin writes one for each GPU that it gives, so another one was not given.
pub(super) fn indexed(
    env: &Reading<'_>,
    name: &str,
    gpu: impl Fn(u32) -> Option<gpucap_core::uuid::DeviceName>,
    limit: impl Fn(&str, &str) -> Result<DeviceLimit, Reason>,
) -> Result<Vec<Grant>, Reason> {
    let mut grants = Vec::new();
    if let Some(held) = env.get(name) {
        let source = format!("environment {name}");
        let limit = limit(&source, held)?;
        grants.push(Grant::new(source, held, DeviceLimits::every(limit)));
    }
    let mut numbered = Numbered::new();
    let mut said = Vec::new();
    for (number, held) in env.numbered(&format!("{name}_"))? {
        numbered.push((number, limit(&format!("environment {name}_{number}"), held)?));
        said.push(format!("{number}={held}"));
    }
    if !numbered.is_empty() {
        let limits = DeviceLimits::numbered(&numbered, gpu, Some(lowest(&numbered)));
        grants.push(Grant::new(format!("environment {name}_<i>"), &said.join(","), limits));
    }
    Ok(grants)
}
