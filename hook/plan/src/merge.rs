//! Joins what the sources say: for each device and quantity the lowest, and only devices that all of them allow.
//!
//! The order of the grants changes nothing, saying a thing twice changes nothing, and adding a grant never raises. What
//! makes this less than obvious is that a limits file cannot say "not this one" beside `*`, and that a MIG instance is
//! also meant by the name of its card, which is not known here. Hence two refusals.

use gpucap_core::limits::file::Key;
use gpucap_core::uuid::DeviceName;

use crate::grant::{DeviceLimit, Grant, MOST_GPUS};
use crate::reason::Reason;

/// What holds for each GPU of the limits file, in the order of the names; `*` comes last.
///
/// # Errors
/// No device is left; more are named than any machine has; or cards and MIG instances are both named, and one of them was struck out.
pub(crate) fn merge(grants: &[Grant]) -> Result<Vec<(Key, DeviceLimit)>, Reason> {
    let mut names: Vec<DeviceName> =
        grants.iter().flat_map(|grant| &grant.by_device.named).map(|&(name, _)| name).collect();
    names.sort_unstable_by_key(|name| (name.uuid, name.kind));
    names.dedup_by_key(|name| name.uuid);
    if names.len() > MOST_GPUS {
        return Err(Reason::TooManyGpus);
    }

    let of = |name: DeviceName| join(grants.iter().map(|grant| grant.by_device.of(name)));
    let others = join(grants.iter().map(|grant| grant.by_device.others));
    let (kept, struck): (Vec<_>, Vec<_>) = names.into_iter().partition(|&name| of(name).is_some());
    let other_kind = |name: &DeviceName| kept.iter().any(|kept| kept.kind != name.kind);
    if struck.iter().any(other_kind) {
        return Err(Reason::CardsAndInstances);
    }
    let mut joined: Vec<(Key, DeviceLimit)> =
        kept.iter().filter_map(|&name| Some((Key::Name(name), of(name)?))).collect();
    joined.extend(others.map(|limit| (Key::Every, limit)));
    if joined.is_empty() { Err(Reason::NothingInCommon) } else { Ok(joined) }
}

/// The lowest of all; none if one of them forbids.
fn join(mut limits: impl Iterator<Item = Option<DeviceLimit>>) -> Option<DeviceLimit> {
    limits.try_fold(DeviceLimit::default(), |lowest, limit| Some(lowest.lower(limit?)))
}
