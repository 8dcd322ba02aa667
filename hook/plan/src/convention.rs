//! The sources of a container's limits, and their formats: one file for each convention.
//!
//! Each convention reads the [`Facts`] and returns the grants that it found there; finding nothing has no effect. It
//! never chooses among grants: the minimum does. A value that its convention does not allow is an error. Two zeros
//! differ: a cap of zero bytes is never "no cap", while a share of zero is "not throttled" in those conventions whose
//! own plugins write it so (HAMi, Volcano, vgpu-manager).

mod ack;
mod allocate_response;
mod allocation;
pub(crate) mod annotation;
mod device_list;
mod egpu;
mod environment;
mod gpushare;
mod hami;
mod koordinator;
mod kubelet;
mod mps;
mod vgpu_manager;
mod volcano;

use std::collections::BTreeMap;

use gpucap_core::config::Config;

use crate::document::card::Card;
use crate::document::env::{Env, Reading};
use crate::document::identity::Identity;
use crate::document::node::Node;
use crate::grant::Grant;
use crate::reason::Reason;

/// What a convention may look at.
#[derive(Clone)]
pub(crate) struct Facts<'a> {
    pub(crate) env: &'a Reading<'a>,
    pub(crate) annotations: &'a BTreeMap<String, String>,
    pub(crate) cards: &'a [Card],
    pub(crate) node: &'a Node,
    pub(crate) identities: &'a [Identity],
    pub(crate) allocations: &'a [Vec<u8>],
    pub(crate) checkpoint: Option<&'a [u8]>,
}

/// A convention: its name in the node's configuration, how it is read, and whether it looks at the environment.
struct Convention {
    name: &'static str,
    read: fn(&Facts<'_>) -> Result<Vec<Grant>, Reason>,
    of_env: bool,
}

/// More GPUs than any machine has. What names more is refused, for each of them is compared with each.
pub(crate) const MOST_GPUS: usize = 256;

/// All of them, the ones that are hardest to forge first.
const CONVENTIONS: &[Convention] = &[
    Convention { name: "allocation", read: allocation::read, of_env: false },
    Convention { name: "kubelet", read: kubelet::read, of_env: false },
    Convention { name: "annotation", read: annotation::read, of_env: true },
    Convention { name: "hami", read: hami::read, of_env: true },
    Convention { name: "volcano", read: volcano::read, of_env: false },
    Convention { name: "vgpu-manager", read: vgpu_manager::read, of_env: true },
    Convention { name: "koordinator", read: koordinator::read, of_env: false },
    Convention { name: "ack", read: ack::read, of_env: false },
    Convention { name: "gpushare", read: gpushare::read, of_env: true },
    Convention { name: "egpu", read: egpu::read, of_env: true },
    Convention { name: "mps", read: mps::read, of_env: true },
    Convention { name: environment::NAME, read: environment::read, of_env: true },
];

/// The annotations that these read; `*` is any ending. gpucap's own are in the node's domain, `gpucap` by default.
pub const ANNOTATIONS: [&str; 8] = [
    "gpucap/*",
    "hami.io/*",
    "volcano.sh/*",
    "nvidia.com/*",
    "scheduling.koordinator.sh/*",
    "scheduler.framework.gpushare.*",
    "gpushare.alibabacloud.com/*",
    "aliyun.com/*",
];

/// Whether some convention may read an annotation of this name.
#[must_use]
pub fn hears(node: &Node, annotation: &str) -> bool {
    annotation::is_own(node, annotation) || is_foreign(annotation)
}

fn is_foreign(annotation: &str) -> bool {
    let [_, others @ ..] = ANNOTATIONS;
    let mut beginnings = others.iter().map(|pattern| pattern.trim_end_matches('*'));
    beginnings.any(|beginning| annotation.starts_with(beginning))
}

/// What a person should know of a container that asks for nothing: the annotations that may have been meant to.
pub(crate) fn unheard(node: &Node, annotations: &BTreeMap<String, String>) -> Vec<String> {
    let keys = annotations.keys().filter(|key| hears(node, key)).take(MOST_UNHEARD);
    keys.map(|key| format!("annotation {} says no limit that is known here", key.escape_default()))
        .collect()
}

/// More are not named.
const MOST_UNHEARD: usize = 8;

/// The names that the node's configuration knows.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CONVENTIONS.iter().map(|convention| convention.name)
}

/// The grants of all conventions that the node reads, for every reading of the environment.
pub(crate) fn ask(facts: &Facts<'_>, env: &Env) -> Result<Vec<Grant>, Reason> {
    let mut grants = Vec::new();
    for (place, env) in env.readings()?.iter().enumerate() {
        let facts = Facts { env, ..facts.clone() };
        // The others say the same each time.
        let conventions = CONVENTIONS.iter().filter(|it| it.of_env || place == 0);
        for Convention { name, read, .. } in conventions {
            if facts.node.sources.contains(name) {
                let found = read(&facts)?;
                found.iter().try_for_each(Grant::bounded)?;
                grants.extend(found.into_iter().map(|grant| Grant { convention: name, ..grant }));
            }
        }
    }
    // What does not depend on a variable that has several values was said each time.
    let mut once = Vec::new();
    for grant in grants {
        if !once.contains(&grant) {
            once.push(grant);
        }
    }
    Ok(once)
}

/// The values of gpucap's own variables, if the node reads them: the grants contain them.
pub(crate) fn asked(env: &Env, node: &Node) -> Config {
    let heard = node.sources.contains(&environment::NAME);
    if heard { environment::asked(env) } else { Config::default() }
}

/// The switches by which a container asks for no limit.
pub(crate) fn off_switches(env: &Env) -> Vec<&'static str> {
    const SWITCHES: [&str; 3] = ["CUDA_DISABLE_CONTROL", "DISABLE_VGPU_CONTROL", "CGPU_DISABLE"];
    let on = |value: &str| {
        matches!(value.trim().to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "on")
    };
    let set = |name: &&str| env.iter().any(|(own, value)| own == *name && on(value));
    SWITCHES.into_iter().filter(set).collect()
}
