//! Koordinator: `scheduling.koordinator.sh/device-allocated`, what its scheduler gave the pod.
//!
//! `{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory":"8Gi",...}}]}`. A minor
//! is the number of the device file, which need not be the place in any order; newer versions add the UUID as `id`. It
//! speaks of the pod as a whole: each of its containers has that much.

use gpucap_core::limits::file::MemoryLimit;
use gpucap_core::units::UnitError;
use serde_json::Value;

use super::device_list;
use crate::encoding::json;
use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

const KEY: &str = "scheduling.koordinator.sh/device-allocated";

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let Some(held) = facts.annotations.get(KEY) else { return Ok(vec![]) };
    let source = format!("annotation {KEY}");
    let wrong = |why: &str| Reason::value(&*source, held, why);
    let value: Value = serde_json::from_str(held).map_err(|_| wrong("not JSON"))?;
    if !value.is_object() {
        return Err(wrong("no JSON object"));
    }
    let devices = match value.get("gpu") {
        None | Some(Value::Null) => &[][..],
        Some(devices) => devices.as_array().ok_or_else(|| wrong("gpu is no list"))?,
    };
    let mut names = Vec::new();
    let mut numbered = Vec::new();
    for (place, device) in (0_u32..).zip(devices) {
        if !device.is_object() {
            return Err(wrong("a device is no JSON object"));
        }
        names.push(name(facts, device));
        numbered.push((place, limit(&source, device)?));
    }
    if numbered.is_empty() {
        return Ok(vec![]);
    }
    let name = |place| names.get(usize::try_from(place).ok()?).copied().flatten();
    Ok(vec![Grant::new(&*source, held, DeviceLimits::numbered(&numbered, name, None))])
}

fn name(facts: &Facts<'_>, device: &Value) -> Option<gpucap_core::uuid::DeviceName> {
    if let Some(name) = json::text(device, &["id"]).and_then(device_list::name) {
        return Some(name);
    }
    let minor = u32::try_from(device.get("minor")?.as_u64()?).ok()?;
    facts.cards.iter().find(|card| card.minor == Some(minor)).map(|card| card.name)
}

fn limit(source: &str, device: &Value) -> Result<DeviceLimit, Reason> {
    let get = |name: &'static str| {
        // Versions before 1.0 had the resources in another domain.
        let find = |domain| device.get("resources")?.get(format!("{domain}/{name}"));
        let value = ["koordinator.sh", "kubernetes.io"].into_iter().find_map(find)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((format!("{source} {name}"), text))
    };
    let bytes = |(source, text): (String, String)| {
        text.parse().map_err(|why: UnitError| Reason::value(source, &text, why))
    };
    let share = |(source, text): (String, String)| number::percent(&source, &text);
    let memory = MemoryLimit {
        bytes: get("gpu-memory").map(bytes).transpose()?,
        part: get("gpu-memory-ratio").map(share).transpose()?,
    };
    Ok(DeviceLimit { core: get("gpu-core").map(share).transpose()?, ..DeviceLimit::memory(memory) })
}
