//! The annotation by which HAMi's and Volcano's schedulers say what a pod was given.
//!
//! `<uuid>,<type>,<MiB>,<cores>:` for each device, `;` behind each container, init containers first, nothing for one
//! without a GPU. Which place is ours, a container does not know: all places count, and for a device that several of
//! them name the lowest. A device that no place names was not given to the pod.

use gpucap_core::units::Amount;
use gpucap_core::uuid::DeviceName;

use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

/// The grants in the annotation `key`. `all`: it lists everything the pod was given; else it lists what is still to
/// be handed out, and then a device that it does not list is not forbidden.
pub(super) fn read(facts: &Facts<'_>, key: &str, all: bool) -> Result<Vec<Grant>, Reason> {
    let source = format!("annotation {key}");
    let held = facts.annotations.get(key).map(|held| held.trim()).unwrap_or_default();
    let mut named = Vec::new();
    for device in held.split([':', ';']).map(str::trim).filter(|device| !device.is_empty()) {
        named.extend(one(&source, held, device)?);
    }
    if named.is_empty() {
        return Ok(vec![]);
    }
    let others = if all { None } else { Some(DeviceLimit::default()) };
    Ok(vec![Grant::new(source, held, DeviceLimits { named, others })])
}

fn one(
    source: &str,
    held: &str,
    device: &str,
) -> Result<Option<(DeviceName, DeviceLimit)>, Reason> {
    let wrong = || Reason::value(source, held, "a device is <uuid>,<type>,<MiB>,<cores>");
    let mut parts = device.split(',').map(str::trim);
    let mut next = || parts.next().ok_or_else(wrong);
    let (uuid, kind, memory, core) = (next()?, next()?, next()?, next()?);
    let is_ours = ["GPU-", "MIG-"].iter().any(|prefix| uuid.starts_with(prefix));
    if !kind.to_ascii_uppercase().contains("NVIDIA") && !is_ours {
        // Both schedulers list the devices of other vendors in annotations of their own, but for a few versions.
        return Ok(None);
    }
    let name = name(uuid).ok_or_else(wrong)?;
    let memory = Amount::Bytes(number::units(source, memory, 1 << 20)?);
    let core = number::percent_or_free(source, core)?;
    Ok(Some((name, DeviceLimit { core, ..DeviceLimit::memory(memory) })))
}

/// A card's name, behind which a share (`::2`) or a MIG slot (`[1-0]`) may stand.
pub(super) fn name(text: &str) -> Option<DeviceName> {
    let end = text.find(['[', ':']).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}
