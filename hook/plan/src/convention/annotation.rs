//! Our own annotations: `<domain>/mem`, `/core-pct`, `/profile`, `/core-policy`, `/core-max-pct`, `/core-priority`, with
//! the values of our variables.
//!
//! `<key>` is for every container of the pod, `<key>.<name>` for one of them: what Kubernetes allows as a key.
//! Both count: the pod's author can lower for one container, and a policy of the cluster for all. The domain is the
//! node's choice. An index means the same as in our variables.

use gpucap_core::config::{CorePolicy, CorePriority};
use gpucap_core::config::{Excerpt, OptionRow, PerGpu, Profile, Slices, Value, ValueError};
use gpucap_core::config::{GPU_CORE_MAX_PCT, GPU_CORE_PCT, GPU_CORE_POLICY, GPU_CORE_PRIORITY};
use gpucap_core::config::{GPU_MEM_LIMIT, GPU_PROFILE};
use gpucap_core::units::Amount;

use super::environment;
use crate::document::card::Visible;
use crate::document::node::Node;
use crate::facts::Facts;
use crate::grant::{DeviceLimit, DeviceLimits, Grant};
use crate::reason::Reason;

/// What the annotations are called that say what our variables say.
pub(crate) const MEM: &str = "mem";
pub(crate) const CORE: &str = "core-pct";
const PROFILE: &str = "profile";
pub(crate) const POLICY: &str = "core-policy";
pub(crate) const MAX: &str = "core-max-pct";
pub(crate) const PRIORITY: &str = "core-priority";

/// The annotation of this name, on this node.
pub(crate) fn key(node: &Node, name: &str) -> String {
    format!("{}/{name}", node.annotation_domain)
}

/// The other name of an annotation, which an engine reads.
const OTHERS: [&str; 1] = ["without-plugin"];

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    known(facts)?;
    let visible = Visible::of(facts.env, "NVIDIA_VISIBLE_DEVICES", facts.cards);
    let mut grants = Vec::new();
    for key in keys(facts, MEM) {
        let limit = |&amount: &Amount, _| DeviceLimit::memory(amount);
        grants.extend(one(facts, &visible, &key, GPU_MEM_LIMIT, limit)?);
    }
    for key in keys(facts, CORE) {
        let limit = |&share: &_, _| DeviceLimit::core(share);
        grants.extend(one(facts, &visible, &key, GPU_CORE_PCT, limit)?);
    }
    for key in keys(facts, PROFILE) {
        let limit = |&profile: &Profile, slices| DeviceLimit::profile(profile, slices);
        grants.extend(one(facts, &visible, &key, GPU_PROFILE, limit)?);
    }
    for key in keys(facts, MAX) {
        let limit = |&most: &_, _| DeviceLimit::core_max(most);
        grants.extend(one(facts, &visible, &key, GPU_CORE_MAX_PCT, limit)?);
    }
    for key in keys(facts, POLICY) {
        let policy = parsed::<CorePolicy>(facts, &key, GPU_CORE_POLICY)?;
        grants.extend(policy.map(|(held, policy)| every(&key, held, DeviceLimit::policy(policy))));
    }
    for key in keys(facts, PRIORITY) {
        let priority = parsed::<CorePriority>(facts, &key, GPU_CORE_PRIORITY)?;
        grants.extend(
            priority.map(|(held, priority)| every(&key, held, DeviceLimit::priority(priority))),
        );
    }
    Ok(grants)
}

/// Whether an annotation is in our domain, or in one that is taken for it: `gpucap.io/` where ours is `gpucap/`.
pub(super) fn is_own(node: &Node, annotation: &str) -> bool {
    let Some((domain, _)) = annotation.split_once('/') else { return false };
    let rest = domain.strip_prefix(node.annotation_domain.as_str());
    let is_dotted = node.annotation_domain.contains('.');
    rest.is_some_and(|rest| rest.is_empty() || !is_dotted && rest.starts_with('.'))
}

/// An unknown annotation in gpucap's domain is a misspelt limit: if it were ignored, the container would run
/// without a limit.
fn known(facts: &Facts<'_>) -> Result<(), Reason> {
    let names = [MEM, CORE, PROFILE, POLICY, MAX, PRIORITY];
    let is_known = |key: &str| {
        let (domain, name) = key.split_once('/').unwrap_or_default();
        let name = name.split_once('.').map_or(name, |(name, _container)| name);
        domain == facts.node.annotation_domain && (names.contains(&name) || OTHERS.contains(&name))
    };
    let mut own = facts.annotations.iter().filter(|(key, _)| is_own(facts.node, key));
    let Some((key, held)) = own.find(|(key, _)| !is_known(key)) else { return Ok(()) };
    let allowed = names.map(|name| self::key(facts.node, name)).join(", ");
    let why = format!("there is no such annotation; allowed: {allowed}, each also with .CONTAINER");
    Err(Reason::value(format!("annotation {}", key.escape_default()), held, why))
}

/// The pod's key, and the container's as far as we know its name.
fn keys(facts: &Facts<'_>, name: &str) -> Vec<String> {
    let key = key(facts.node, name);
    let own = facts.identities.iter().map(|own| format!("{key}.{}", own.container));
    own.chain([key.clone()]).collect()
}

fn one<T: Value>(
    facts: &Facts<'_>,
    visible: &Visible,
    key: &str,
    row: OptionRow,
    limit: impl Fn(&T, Slices) -> DeviceLimit,
) -> Result<Option<Grant>, Reason> {
    let Some((held, list)) = parsed::<PerGpu<T>>(facts, key, row)? else { return Ok(None) };
    let limits = environment::device_limits(&list, (visible, facts.cards), limit);
    let limits = limits.ok_or_else(|| Reason::value(source(key), held, environment::NO_GPU))?;
    Ok(Some(Grant::new(source(key), held, limits)))
}

/// What an annotation holds, as it is written and as the variable of this row means it.
fn parsed<'a, T: Value>(
    facts: &Facts<'a>,
    key: &str,
    row: OptionRow,
) -> Result<Option<(&'a str, T)>, Reason> {
    let held = facts.annotations.get(key).map(|held| held.trim()).filter(|held| !held.is_empty());
    let Some(held) = held else { return Ok(None) };
    let wrong = |why: ValueError| Reason::Value {
        source: source(key),
        held: Excerpt::new(held.as_bytes()),
        why: format!("{why}; allowed: {}", row.allowed),
    };
    Ok(Some((held, T::parse(held).map_err(wrong)?)))
}

/// What holds for every GPU.
fn every(key: &str, held: &str, limit: DeviceLimit) -> Grant {
    Grant::new(source(key), held, DeviceLimits::every(limit))
}

fn source(key: &str) -> String {
    format!("annotation {key}")
}
