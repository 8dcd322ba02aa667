//! The sources of a container's limits, and their formats: one file for each convention.
//!
//! Each convention reads the [`Facts`] and returns the grants that it found there; finding nothing has no effect. It
//! never chooses among grants: the minimum does. A value that its convention does not allow is an error. Two zeros
//! differ: a limit of zero bytes is never "no limit", while a share of zero is "not limited" in those conventions whose
//! own plugins write it so (HAMi, Volcano, vgpu-manager).

mod ack;
mod allocation;
pub(crate) mod annotation;
mod device_list;
mod dra;
mod egpu;
mod environment;
mod gpushare;
mod hami;
mod kai;
mod koordinator;
mod kubelet;
mod mps;
pub(crate) mod near_miss;
mod nvidia;
mod slice;
mod time_slicing;
mod vgpu_manager;
mod volcano;

use gpucap_core::config::Config;

use crate::document::env::Env;
use crate::document::node::Node;
use crate::facts::Facts;
use crate::grant::Grant;
use crate::reason::Reason;
use crate::source::Source;

/// How a source is read, and whether it looks at the environment.
type Reader = (fn(&Facts<'_>) -> Result<Vec<Grant>, Reason>, bool);

const fn reader(source: Source) -> Reader {
    match source {
        Source::Slice => (slice::read, false),
        Source::Allocation => (allocation::read, false),
        Source::Kubelet => (kubelet::read, false),
        Source::TimeSlicing => (time_slicing::read, false),
        Source::Dra => (dra::read, false),
        Source::Annotation => (annotation::read, true),
        Source::Hami => (hami::read, true),
        Source::Volcano => (volcano::read, false),
        Source::VgpuManager => (vgpu_manager::read, true),
        Source::Koordinator => (koordinator::read, false),
        Source::Ack => (ack::read, false),
        Source::Gpushare => (gpushare::read, true),
        Source::Egpu => (egpu::read, true),
        Source::Mps => (mps::read, true),
        Source::Kai => (kai::read, true),
        Source::Nvidia => (nvidia::read, true),
        Source::Environment => (environment::read, true),
    }
}

/// The annotations that these read, but for gpucap's own; `*` is any ending.
const FOREIGN: [&str; 7] = [
    "hami.io/*",
    "volcano.sh/*",
    "nvidia.com/*",
    "scheduling.koordinator.sh/*",
    "scheduler.framework.gpushare.*",
    "gpushare.alibabacloud.com/*",
    "aliyun.com/*",
];

/// The annotations that some convention may read, in the form of containerd's `pod_annotations`: `*` is any ending.
pub fn annotation_patterns(node: &Node) -> impl Iterator<Item = String> {
    let own = format!("{}/*", node.annotation_domain);
    std::iter::once(own).chain(FOREIGN.map(str::to_owned))
}

/// Whether some convention may read an annotation of this name.
#[must_use]
pub fn hears(node: &Node, annotation: &str) -> bool {
    annotation::is_own(node, annotation) || is_foreign(annotation)
}

fn is_foreign(annotation: &str) -> bool {
    let mut beginnings = FOREIGN.iter().map(|pattern| pattern.trim_end_matches('*'));
    beginnings.any(|beginning| annotation.starts_with(beginning))
}

/// The grants of all conventions that the node reads, for every reading of the environment.
pub(crate) fn ask(facts: &Facts<'_>, env: &Env) -> Result<Vec<Grant>, Reason> {
    slice::refuse_unread(facts)?;
    let mut grants = Vec::new();
    for (place, env) in env.readings()?.iter().enumerate() {
        let facts = Facts { env, ..facts.clone() };
        let read = |source: &&Source| facts.node.sources.contains(source);
        for &source in Source::ALL.iter().filter(read) {
            let (read, of_env) = reader(source);
            // The others say the same each time.
            if of_env || place == 0 {
                let found = read(&facts)?;
                found.iter().try_for_each(Grant::bounded)?;
                let convention = source.name();
                grants.extend(found.into_iter().map(|grant| Grant { convention, ..grant }));
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
    let heard = node.sources.contains(&Source::Environment);
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
