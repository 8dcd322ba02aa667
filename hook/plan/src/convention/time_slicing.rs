//! Replicas of NVIDIA's device plugin as limits: `1` of `N` replicas of a GPU is `1/N` of its memory and of its time.
//!
//! A replica is a device `<uuid>::<n>` of a resource in the domain `nvidia.com` (NVIDIA/k8s-device-plugin,
//! `internal/rm/devices.go` and `device_map.go` at d786225). The kubelet's checkpoint names the replicas that a
//! container holds, and under `RegisteredDevices` those that the plugin offers (kubernetes/kubernetes,
//! `pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go` at 11626e9); of those it lists the healthy ones alone, so
//! replicas that are assigned, and the highest number, count too. The kubelet writes the file before the container is
//! made. Several replicas of a GPU add up. A GPU that the plugin assigned whole is not limited, and a container with
//! replicas may use no other GPU.
//!
//! It is read only if the node sets `time_slicing` to `enforce`, and then fails closed.

use gpucap_core::units::{Amount, Share};
use gpucap_core::uuid::DeviceName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use super::kubelet;
use crate::document::identity::ContainerIdentity;
use crate::encoding::json;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

const WHAT: &str = "the kubelet's checkpoint";
const DOMAIN: &str = "nvidia.com/";
/// Between a GPU's name and the number of a replica.
const MARK: &str = "::";

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    if !facts.node.time_slicing || facts.identities.is_empty() {
        return Ok(vec![]);
    }
    let file = (WHAT, facts.node.kubelet_checkpoint.as_deref());
    let checkpoint = facts.checkpoint.understood(file, facts.container, Checkpoint::of)?;
    let Some(checkpoint) = checkpoint else { return Ok(vec![]) };
    let mut grants = Vec::new();
    for own in facts.identities {
        grants.extend(checkpoint.grant(own)?);
    }
    Ok(grants)
}

/// The parts of the checkpoint that count here.
struct Checkpoint {
    /// What was assigned to containers.
    entries: Vec<Value>,
    /// The devices that plugins offer, by resource.
    registered: Value,
}

impl Checkpoint {
    fn of(mut value: Value) -> Result<Self, String> {
        let mut part = |key: &str| value.get_mut("Data")?.get_mut(key).map(Value::take);
        // A kubelet without plugins writes null.
        let entries = match part("PodDeviceEntries") {
            Some(Value::Array(entries)) => entries,
            Some(Value::Null) => vec![],
            _ => return Err("no Data.PodDeviceEntries: not a format of this version".into()),
        };
        let registered = part("RegisteredDevices").unwrap_or_default();
        Ok(Self { entries, registered })
    }

    /// What the plugin assigned to this container; `None` if that is no part of a GPU.
    fn grant(&self, own: &ContainerIdentity) -> Result<Option<Grant>, Reason> {
        let mut held: BTreeMap<(&str, DeviceName), BTreeSet<&str>> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| kubelet::is_of(entry, own)) {
            let resource = json::text(entry, &["ResourceName"]).unwrap_or_default();
            if !resource.starts_with(DOMAIN) {
                continue;
            }
            let ids = kubelet::devices(entry);
            if ids.is_empty() {
                let said = entry.get("DeviceIDs").map(Value::to_string).unwrap_or_default();
                return Err(Reason::value(named(resource), &said, "no devices"));
            }
            for id in ids {
                let (name, is_replica) = match id.split_once(MARK) {
                    Some((name, _)) => (name, true),
                    None => (id, false),
                };
                match name.parse() {
                    Ok(name) => _ = held.entry((resource, name)).or_default().insert(id),
                    // Other plugins have resources in this domain too, with devices such as PCI addresses.
                    Err(_) if !is_replica => {}
                    Err(why) => {
                        let why: gpucap_core::uuid::NotADeviceName = why;
                        return Err(Reason::value(named(resource), id, why));
                    }
                }
            }
        }
        let (mut limits, mut said) = (DeviceLimits { named: vec![], others: None }, Vec::new());
        for ((resource, name), ids) in held {
            let (count, all) = (ids.len(), self.count(resource, name)?);
            said.push(format!("{count} of {all} of {name}"));
            limits.named.push((name, part(count, all, resource, &ids)?));
        }
        // Whole GPUs alone need no limit, nor that others are refused.
        let is_part = limits.named.iter().any(|(_, limit)| *limit != DeviceLimit::default());
        Ok(is_part.then(|| Grant::new("kubelet, replicas", &said.join(", "), limits)))
    }

    /// The replicas that there are of a GPU, or 1 where it is assigned whole.
    fn count(&self, resource: &str, name: DeviceName) -> Result<usize, Reason> {
        let all = self.registered.get(resource).and_then(Value::as_array);
        let all = all.into_iter().flatten().filter_map(Value::as_str);
        let offered: Vec<&str> = all.clone().filter(is_of(name)).collect();
        if offered.is_empty() {
            // Without its plugin a resource has no device at all.
            let why = match all.count() {
                0 => "no replica of it is registered: the device plugin is not ready",
                _ => "the device plugin has no healthy replica of it",
            };
            return Err(Reason::value(named(resource), &name.to_string(), why));
        }
        let of_resource = |entry: &&Value| json::text(entry, &["ResourceName"]) == Some(resource);
        let assigned = self.entries.iter().filter(of_resource).flat_map(kubelet::devices);
        let ids: BTreeSet<&str> = offered.into_iter().chain(assigned.filter(is_of(name))).collect();
        let number = |id: &&str| id.split_once(MARK)?.1.parse::<usize>().ok()?.checked_add(1);
        let highest = ids.iter().filter_map(number).max().unwrap_or_default();
        Ok(highest.max(ids.len()))
    }
}

/// Whether a device is this GPU or a replica of it.
fn is_of(name: DeviceName) -> impl Fn(&&str) -> bool {
    move |id| {
        let own = id.split_once(MARK).map_or(*id, |(name, _)| name);
        own.parse::<DeviceName>().is_ok_and(|own| own.uuid == name.uuid)
    }
}

/// This part of a GPU. The whole of it is no limit.
fn part(
    count: usize,
    all: usize,
    resource: &str,
    ids: &BTreeSet<&str>,
) -> Result<DeviceLimit, Reason> {
    if count >= all {
        return Ok(DeviceLimit::default());
    }
    let parts = count.saturating_mul(Share::DENOMINATOR.into()).checked_div(all);
    let share = parts.and_then(|parts| Share::from_parts(u16::try_from(parts).ok()?));
    let Some(share) = share else {
        let held = ids.iter().copied().collect::<Vec<_>>().join(",");
        let why = format!("{count} of {all} replicas are less than 1% of the GPU");
        return Err(Reason::value(named(resource), &held, why));
    };
    Ok(DeviceLimit { core: Some(share), ..DeviceLimit::memory(Amount::OfDevice(share)) })
}

fn named(resource: &str) -> String {
    format!("kubelet, {}", resource.escape_default())
}
