//! vgpu-manager: its device plugin's variables and its annotations.
//!
//! `CUDA_MEM_LIMIT_<i>=2048m` and `CUDA_CORE_LIMIT_<i>` count the cards as `MANAGER_VISIBLE_DEVICE_<i>`, else
//! `MANAGER_VISIBLE_DEVICES` says. `CUDA_CORE_SOFT_LIMIT_<i>` is how far idle time may be borrowed, `CUDA_MEM_RATIO`
//! how far memory is oversold: neither is a limit. The annotations name container and card:
//! `<container>[<id>_<uuid>_<cores>_<MiB>,...];...`.

use gpucap_core::units::Amount;
use gpucap_core::uuid::DeviceName;

use super::{device_list, hami};
use crate::document::card::Visible;
use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let visible = Visible::of(facts.env, "MANAGER_VISIBLE_DEVICES", facts.cards);
    let single = facts.env.numbered("MANAGER_VISIBLE_DEVICE_")?;
    let name = |index| {
        let own = single.iter().find(|(number, _)| *number == index);
        own.map_or_else(|| visible.listed_at(index), |(_, name)| name.parse().ok())
    };
    let memory = |source: &str, held: &str| {
        Ok(DeviceLimit::memory(Amount::Bytes(number::suffixed(source, held)?)))
    };
    let core = |source: &str, held: &str| {
        Ok(DeviceLimit { core: number::percent_or_free(source, held)?, ..DeviceLimit::default() })
    };
    let mut grants = hami::indexed(facts.env, "CUDA_MEM_LIMIT", name, memory)?;
    grants.extend(hami::indexed(facts.env, "CUDA_CORE_LIMIT", name, core)?);
    for (key, all) in [("real-allocated", true), ("pre-allocated", false)] {
        grants.extend(annotation(facts, &format!("nvidia.com/{key}"), all)?);
    }
    Ok(grants)
}

fn annotation(facts: &Facts<'_>, key: &str, all: bool) -> Result<Option<Grant>, Reason> {
    let source = format!("annotation {key}");
    let held = facts.annotations.get(key).map(|held| held.trim()).unwrap_or_default();
    let wrong = || {
        let why = "a container is <name>[<id>_<uuid>_<cores>_<MiB>,...]";
        Reason::value(&*source, held, why)
    };
    let own = facts.identities;
    let mut named = Vec::new();
    for container in held.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, devices) = container.split_once('[').ok_or_else(wrong)?;
        let devices = devices.strip_suffix(']').ok_or_else(wrong)?;
        if !own.is_empty() && !own.iter().any(|own| own.container == name) {
            continue;
        }
        for device in devices.split(',').filter(|device| !device.is_empty()) {
            named.push(one(&source, held, device).unwrap_or_else(|| Err(wrong()))?);
        }
    }
    if named.is_empty() {
        return Ok(None);
    }
    let others = if all { None } else { Some(DeviceLimit::default()) };
    Ok(Some(Grant::new(&*source, held, DeviceLimits { named, others })))
}

type Named = (DeviceName, DeviceLimit);

fn one(source: &str, held: &str, device: &str) -> Option<Result<Named, Reason>> {
    // From the end: nothing says that an id has no such sign in it.
    let mut parts = device.rsplitn(4, '_').map(str::trim);
    let (memory, core, uuid) = (parts.next()?, parts.next()?, parts.next()?);
    let name = device_list::name(uuid)?;
    let limit = || {
        let memory = Amount::Bytes(number::units(source, memory, 1 << 20)?);
        Ok(DeviceLimit {
            core: number::percent_or_free(source, core)?,
            ..DeviceLimit::memory(memory)
        })
    };
    Some(limit().map(|limit| (name, limit)).map_err(|reason| match reason {
        Reason::Value { source, why, .. } => Reason::value(source, held, why),
        other => other,
    }))
}
