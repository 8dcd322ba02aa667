//! The kubelet's checkpoint of its device plugins: what a plugin answered, before the pod's author could change it.
//!
//! A pod's own variables stand behind a plugin's and win. The checkpoint still has the plugin's answer, so every
//! convention of variables is asked once more, of those. Resources of which each unit is a device of its own are
//! counted: GiB of `aliyun.com/gpu-mem`, percent of `aliyun.com/gpu-core.percentage`. `nvidia.com/mig-1g.5gb` given out
//! by a plugin that only pretends to slice is a profile; a real MIG instance is sliced by the card itself.
//!
//! It is read only if the node's configuration names it, and only lowers: its format is the kubelet's own, and the
//! kubelet writes it when it likes. What cannot be read in it says nothing.

use gpucap_core::config::{Profile, Value as _};
use gpucap_core::units::{Amount, Share};
use serde_json::Value;
use std::collections::BTreeMap;

use super::{egpu, environment, gpushare, hami, mps, nvidia, vgpu_manager};
use crate::document::env::{Env, Reading};
use crate::document::identity::ContainerIdentity;
use crate::encoding::allocate_response;
use crate::encoding::json;
use crate::encoding::number;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

/// Where the checkpoint has what was assigned: an entry for each container and resource.
pub(super) const ENTRIES: &[&str] = &["Data", "PodDeviceEntries"];

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let Some(bytes) = facts.checkpoint.bytes() else { return Ok(vec![]) };
    let Ok(value) = json::parse("checkpoint", bytes) else { return Ok(vec![]) };
    let is_own = |entry: &&Value| facts.identities.iter().any(|own| is_of(entry, own));
    let mut grants = Vec::new();
    for entry in json::list(&value, ENTRIES).filter(is_own) {
        grants.extend(resource(facts, entry)?);
        let answer = json::text(entry, &["AllocResp"]).unwrap_or_default();
        grants.extend(answered(facts, &variables(answer))?);
    }
    Ok(grants)
}

/// Whether an entry is of this container.
pub(super) fn is_of(entry: &Value, own: &ContainerIdentity) -> bool {
    json::text(entry, &["PodUID"]) == Some(&own.pod_uid)
        && json::text(entry, &["ContainerName"]) == Some(&own.container)
}

/// What the plugin's variables say, by every convention.
fn answered(facts: &Facts<'_>, env: &Env) -> Result<Vec<Grant>, Reason> {
    let none = BTreeMap::new();
    let env = Reading::first(env).map_err(|reason| reason.renamed(named))?;
    let facts = Facts { env: &env, annotations: &none, ..facts.clone() };
    let conventions = [
        environment::read,
        gpushare::read,
        egpu::read,
        hami::read,
        vgpu_manager::read,
        mps::read,
        nvidia::read,
    ];
    let mut grants = Vec::new();
    for read in conventions {
        let found = read(&facts).map_err(|reason| reason.renamed(named))?.into_iter();
        grants.extend(found.map(|grant| Grant { source: named(&grant.source), ..grant }));
    }
    Ok(grants)
}

/// The variables in a plugin's answer.
fn variables(answer: &str) -> Env {
    let entries = allocate_response::variables(answer);
    Env::new(entries.iter().map(String::as_str))
}

fn named(source: &str) -> String {
    format!("kubelet, {source}")
}

/// What the number or the name of the resource says.
fn resource(facts: &Facts<'_>, entry: &Value) -> Result<Option<Grant>, Reason> {
    let Some(name) = json::text(entry, &["ResourceName"]) else { return Ok(None) };
    let devices = devices(entry);
    let source = named(name);
    let count = devices.len().to_string();
    let limit = match name {
        "aliyun.com/gpu-mem" => {
            let bytes = number::units(&source, &count, facts.node.aliyun_memory_unit)?;
            DeviceLimit::memory(Amount::Bytes(bytes))
        }
        "aliyun.com/gpu-core.percentage" => {
            let share = Share::parse(&count).map_err(|why| Reason::value(&*source, &count, why))?;
            DeviceLimit::core(share)
        }
        _ => match pretended(name, &devices) {
            Some(profile) => {
                let limits = DeviceLimits::by_slices(facts.cards, |slices| {
                    DeviceLimit::profile(profile, slices)
                });
                return Ok(Some(Grant::new(source, &count, limits)));
            }
            None => return Ok(None),
        },
    };
    Ok(Some(Grant::new(source, &count, DeviceLimits::every(limit))))
}

/// The profile of a resource that is named like one and is none: a real instance has an id `MIG-...`.
fn pretended(name: &str, devices: &[&str]) -> Option<Profile> {
    let real = devices.iter().any(|id| id.starts_with("MIG-"));
    let profile = name
        .split_once("/mig-")
        .map(|(_, profile)| profile.replace(".me", "+me").replace(".gfx", "+gfx"))?;
    if real { None } else { Profile::parse(&profile).ok() }
}

/// Older kubelets list the ids, newer ones list them by NUMA node.
pub(super) fn devices(entry: &Value) -> Vec<&str> {
    let ids = entry.get("DeviceIDs");
    let by_node = ids.and_then(Value::as_object).into_iter().flat_map(|nodes| nodes.values());
    let lists = ids.into_iter().filter(|ids| ids.is_array()).chain(by_node);
    lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect()
}
