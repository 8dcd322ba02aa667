//! Our own annotations: `<domain>/mem`, `/core-pct`, `/profile`, with the values of our variables.
//!
//! `<key>` is for every container of the pod, `<key>.<name>` for one of them: what Kubernetes allows as a key.
//! Both count: the pod's author can lower for one container, and a policy of the cluster for all. The domain is the
//! node's choice. An index means the same as in our variables.

use gpucap_core::config::{Excerpt, OptionRow, PerGpu, Profile, Value};
use gpucap_core::config::{GPU_CORE_PCT, GPU_MEM_LIMIT, GPU_PROFILE};
use gpucap_core::units::Amount;

use super::{Facts, environment};
use crate::card::Visible;
use crate::grant::{Cap, Grant};
use crate::node::Node;
use crate::reason::Reason;

/// What the annotations are called that say what `GPU_MEM_LIMIT` and `GPU_CORE_PCT` say.
pub(crate) const MEM: &str = "mem";
pub(crate) const CORE: &str = "core-pct";

/// The annotation of this name, on this node.
pub(crate) fn key(node: &Node, name: &str) -> String {
    format!("{}/{name}", node.annotation_domain)
}

pub(super) fn read(facts: &Facts<'_>) -> Result<Vec<Grant>, Reason> {
    let visible = Visible::of(facts.env, "NVIDIA_VISIBLE_DEVICES", facts.cards);
    let mut grants = Vec::new();
    for key in keys(facts, MEM) {
        let cap = |&amount: &Amount| Cap::memory(amount);
        grants.extend(one(facts, &visible, &key, GPU_MEM_LIMIT, cap)?);
    }
    for key in keys(facts, CORE) {
        let cap = |&share: &_| Cap::core(share);
        grants.extend(one(facts, &visible, &key, GPU_CORE_PCT, cap)?);
    }
    for key in keys(facts, "profile") {
        let cap = |&profile: &Profile| Cap::profile(profile);
        grants.extend(one(facts, &visible, &key, GPU_PROFILE, cap)?);
    }
    Ok(grants)
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
    cap: impl Fn(&T) -> Cap,
) -> Result<Option<Grant>, Reason> {
    let held = facts.annotations.get(key).map(|held| held.trim()).filter(|held| !held.is_empty());
    let Some(held) = held else { return Ok(None) };
    let source = format!("annotation {key}");
    let list = PerGpu::<T>::parse(held).map_err(|why| Reason::Value {
        source: source.clone(),
        held: Excerpt::new(held.as_bytes()),
        why: format!("{why}; allowed: {}", row.allowed),
    })?;
    Ok(Some(Grant::new(source, held, environment::caps(&list, visible, cap))))
}
