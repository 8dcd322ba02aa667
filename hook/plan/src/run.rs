//! What a `gpucap run` starts with, in the form of a limits file: so that it can be changed while it runs, as that of a
//! container can.

use gpucap_core::limits::{Limits, LimitsFile};
use serde_json::json;

use crate::decide::{Plan, Sources, plan};
use crate::document::card::Card;
use crate::document::container::Container;
use crate::document::node::{Lending, Node};
use crate::document::node_file::NodeFile;
use crate::source::Source;

/// The limits that these variables set on a machine with these GPUs, for the GPUs that they limit. `None` if that
/// depends on what is not known of a GPU.
#[must_use]
pub fn of_run(variables: &[(&str, String)], cards: &[Card]) -> Option<LimitsFile> {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.clone().into_bytes())
    };
    let limits = Limits::load(&lookup, None).ok()??;
    if cards.is_empty() && (limits.needs_index() || limits.needs_slices()) {
        return None;
    }
    let own = variables.iter().map(|(name, value)| format!("{name}={value}"));
    // Indices count as nvidia-smi does outside of any container.
    let env: Vec<String> = own.chain(["NVIDIA_VISIBLE_DEVICES=all".into()]).collect();
    let container = Container::of(&json!({
        "process": {"env": env},
        "linux": {"namespaces": [{"type": "mount"}]},
    }));
    // Its user decides what it is lent.
    let node =
        Node { sources: vec![Source::Environment], lending: Lending::Allowed, ..Node::default() };
    let sources = Sources {
        state: None,
        container: &container,
        node: Ok(&node),
        cards,
        allocations: &[],
        checkpoint: NodeFile::default(),
        claims: NodeFile::default(),
        calibration: None,
        driver: None,
        user_namespaces: false,
    };
    let Plan::Limits(mut limits) = plan(&sources) else { return None };
    limits.entries.retain(|entry| entry.memory.amounts().next().is_some() || entry.core.is_some());
    Some(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpucap_core::config::Slices;
    use gpucap_core::uuid::Uuid;

    /// The entries on a machine with this many GPUs, one line each.
    fn entries(variables: &[(&str, &str)], gpus: u8) -> Option<Vec<String>> {
        let variables: Vec<_> = variables.iter().map(|(name, it)| (*name, (*it).into())).collect();
        let card = |number| Card {
            name: Uuid([number; 16]).gpu(),
            minor: None,
            slices: Slices::Seven,
            model: String::new(),
        };
        let cards: Vec<Card> = (1..=gpus).map(card).collect();
        let text = of_run(&variables, &cards)?.write();
        let lines = text.lines().filter(|line| {
            ["gpu=", "mem=", "core", "GPU_"].iter().any(|start| line.starts_with(start))
        });
        let short = |line: &str| line.replace(&Uuid([2; 16]).gpu().to_string(), "second");
        Some(lines.map(short).collect())
    }

    #[test]
    fn a_run_has_the_limits_of_its_variables() {
        let two = [("GPU_MEM_LIMIT", "4GiB"), ("GPU_CORE_PCT", "30%")];
        let lines =
            ["GPU_MEM_LIMIT=4GiB", "GPU_CORE_PCT=30%", "gpu=*", "mem=4294967296", "core=30%"];
        for gpus in [0, 2] {
            assert_eq!(entries(&two, gpus).as_deref(), Some(&lines.map(str::to_owned)[..]));
        }
        let lent = [("GPU_CORE_PCT", "30%"), ("GPU_CORE_POLICY", "burst")];
        let lines = entries(&lent, 1).expect("limits");
        assert_eq!(
            lines.get(3..).map(|it| it.join(" ")).as_deref(),
            Some("core=30% core_max=100%")
        );
        let part = entries(&[("GPU_MEM_LIMIT", "25%")], 0).expect("limits");
        assert_eq!(part.last().map(String::as_str), Some("mem=25%"));
    }

    #[test]
    fn a_gpu_that_is_named_by_its_index_is_found_or_not_limited_here() {
        let second = [("GPU_MEM_LIMIT", "1=4GiB")];
        let lines = ["GPU_MEM_LIMIT=1=4GiB", "gpu=second", "mem=4294967296"];
        assert_eq!(entries(&second, 2).as_deref(), Some(&lines.map(str::to_owned)[..]));
        assert_eq!(entries(&second, 0), None, "which GPU that is, is not known");
        assert_eq!(entries(&[("GPU_PROFILE", "1g.10gb")], 0), None, "nor of how many slices");
        assert_eq!(entries(&[], 2), None);
    }
}
