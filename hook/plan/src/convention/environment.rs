//! Our own variables, set by hand or by an image: `GPU_MEM_LIMIT`, `GPU_CORE_PCT`, `GPU_PROFILE`, and how the share may
//! be exceeded.
//!
//! Read by the same table as in the shim, so both understand the same. An index is the place in the order of nvidia-smi
//! inside the container. A GPU that a list does not name is not limited by it; a list that
//! names none that is here is refused. The shim reads the variables once more,
//! and can only lower.

use gpucap_core::config::{Config, OPTIONS, PerGpu, Selector, Slices, WithFile};
use gpucap_core::config::{GPU_CORE_MAX_PCT, GPU_CORE_PCT, GPU_CORE_POLICY, GPU_CORE_PRIORITY};
use gpucap_core::config::{GPU_MEM_LIMIT, GPU_PROFILE};
use gpucap_core::uuid::{DeviceName, Kind};

use crate::document::card::{Card, Visible};
use crate::document::env::Env;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant, lowest};
use crate::reason::Reason;

/// What the variables said, as each process will inherit them. Of one that has several values it is not known which one
/// a process sees: it is left out, and then lowers.
pub(super) fn asked(env: &Env) -> Config {
    let only = |name: &str| {
        let mut values = env.iter().filter(|(own, _)| *own == name).map(|(_, value)| value.trim());
        let first = values.next()?;
        values.all(|value| value == first).then(|| first.as_bytes().to_vec())
    };
    let limits = |name: &str| {
        let row = OPTIONS.iter().find(|row| row.name == name)?;
        only(name).filter(|_| row.with_file == WithFile::Lowers)
    };
    // Usable: otherwise the container was refused.
    Config::from_lookup(&limits).unwrap_or_default()
}

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let mut said = Vec::new();
    for row in OPTIONS.iter().filter(|row| row.with_file == WithFile::Lowers) {
        if let Some(value) = facts.env.get(row.name) {
            said.push((row.name, value));
        }
    }
    if said.is_empty() {
        return Ok(vec![]);
    }
    let lookup = |name: &str| {
        said.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_bytes().to_vec())
    };
    let config = Config::from_lookup(&lookup).map_err(|error| {
        let why = format!("{}; allowed: {}", error.why, error.allowed);
        Reason::Value { source: format!("environment {}", error.variable), held: error.held, why }
    })?;
    let grant = |name: &str, limits: Option<DeviceLimits>| {
        let held = said.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value);
        let source = format!("environment {name}");
        let limits = limits.ok_or_else(|| Reason::value(&*source, held, NO_GPU))?;
        Ok(Grant::new(source, held, limits))
    };
    let visible = Visible::of(facts.env, "NVIDIA_VISIBLE_DEVICES", facts.cards);
    let place = (&visible, facts.cards);
    let memory = config
        .memory
        .as_ref()
        .map(|list| device_limits(list, place, |&it, _| DeviceLimit::memory(it)));
    let core =
        config.core.as_ref().map(|list| device_limits(list, place, |&it, _| DeviceLimit::core(it)));
    let profile = config
        .profile
        .as_ref()
        .map(|list| device_limits(list, place, |&it, slices| DeviceLimit::profile(it, slices)));
    let most = config
        .core_max
        .as_ref()
        .map(|list| device_limits(list, place, |&it, _| DeviceLimit::core_max(it)));
    // These two are for every GPU.
    let every = |limit: DeviceLimit| Some(DeviceLimits::every(limit));
    let policy = config.core_policy.map(|policy| every(DeviceLimit::policy(policy)));
    let priority = config.core_priority.map(|priority| every(DeviceLimit::priority(priority)));
    let all = [
        (GPU_MEM_LIMIT, memory),
        (GPU_CORE_PCT, core),
        (GPU_PROFILE, profile),
        (GPU_CORE_POLICY, policy),
        (GPU_CORE_MAX_PCT, most),
        (GPU_CORE_PRIORITY, priority),
    ];
    all.into_iter().filter_map(|(row, limits)| Some(grant(row.name, limits?))).collect()
}

/// Why a list is refused of which no entry means a GPU: it would limit nothing.
pub(super) const NO_GPU: &str = "it names no GPU that is here";

/// The meaning of a value, per GPU; `None` if it is a list that names no GPU of the container, and none of the node.
pub(super) fn device_limits<T>(
    list: &PerGpu<T>,
    (visible, cards): (&Visible, &[Card]),
    limit: impl Fn(&T, Slices) -> DeviceLimit,
) -> Option<DeviceLimits> {
    let entries = match list {
        PerGpu::Every(value) => {
            return Some(DeviceLimits::by_slices(cards, |slices| limit(value, slices)));
        }
        PerGpu::Listed(entries) => entries,
    };
    // The node's MIG instances are not known, nor without a driver its cards.
    let is_here = |name: &DeviceName| {
        let shown = visible.shown.iter().flatten();
        let mut known = cards.iter().map(|card| card.name).chain(shown.copied());
        name.kind == Kind::Mig || cards.is_empty() || known.any(|it| it.uuid == name.uuid)
    };
    let of = |value: &T, name: DeviceName| {
        let own = cards.iter().find(|card| card.name.uuid == name.uuid);
        (name, limit(value, own.map_or_else(Slices::default, |card| card.slices)))
    };
    let mut named = Vec::new();
    let mut unknown = Vec::new();
    for (selector, value) in entries {
        match (*selector, &visible.shown) {
            (Selector::Name(name), _) => named.push(of(value, name)),
            (Selector::Index(index), None) => {
                unknown.push((index, limit(value, Slices::default())))
            }
            // An index beyond the last GPU is no GPU's.
            (Selector::Index(index), Some(shown)) => {
                let name = usize::try_from(index).ok().and_then(|index| shown.get(index));
                named.extend(name.map(|&name| of(value, name)));
            }
        }
    }
    if unknown.is_empty() && !named.iter().any(|(name, _)| is_here(name)) {
        return None;
    }
    // Whichever GPUs are meant by indices that we cannot place: none gets more than the lowest of those.
    let lowest = lowest(&unknown);
    let named = named.into_iter().map(|(name, limit)| (name, limit.lower(lowest))).collect();
    Some(DeviceLimits { named, others: Some(lowest) })
}
