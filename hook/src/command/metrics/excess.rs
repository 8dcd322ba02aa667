//! What containers have of a GPU's time beyond their limits, by the driver's samples ([`gpucap_core::page::excess`]).
//!
//! The limits are those that the node has written beside the containers' usage pages, and the samples are the driver's:
//! nothing that a container says counts. What is found goes to the metrics, and where the node's configuration says so the
//! container is held back ([`crate::container::pages::held`]).

use crate::container::pages::{self, held::OfContainer};
use crate::container::records::Record;
use gpucap_core::page::excess::Excess;
use gpucap_core::units::Share;
use gpucap_core::uuid::Uuid;
use gpucap_plan::{Node, SampledExcess};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How much later a container is to be held back before that is written.
const WRITES_NS: u64 = 100_000_000;

/// All containers of the node that have a compute limit and have used a GPU.
#[derive(Debug)]
pub(super) struct Containers {
    directory: PathBuf,
    holds: bool,
    known: BTreeMap<String, Container>,
}

#[derive(Debug)]
struct Container {
    /// Its first process, and when that started.
    owner: (u32, u64),
    gpus: BTreeMap<Uuid, Used>,
}

#[derive(Debug)]
struct Used {
    most: Option<Share>,
    excess: Excess,
    beyond_ns: u64,
    /// As it was written.
    held_until: u64,
}

impl Containers {
    pub(super) fn new(node: &Node) -> Self {
        let holds = node.sampled_excess == SampledExcess::Hold;
        Self { directory: pages::directory(node), holds, known: BTreeMap::new() }
    }

    /// Notes the containers that there are, and reads their limits again.
    pub(super) fn note(&mut self, records: &[Record]) {
        let mut before = std::mem::take(&mut self.known);
        for record in records {
            let owner = (record.pid, record.start_time);
            let known = before.remove(&record.container).filter(|it| it.owner == owner);
            let mut container = known.unwrap_or_else(|| Container { owner, gpus: BTreeMap::new() });
            let page = OfContainer::find(&self.directory, owner).ok();
            for (gpu, used) in &mut container.gpus {
                used.most = page.as_ref().and_then(|page| page.most(*gpu));
            }
            self.known.insert(record.container.clone(), container);
        }
    }

    /// Adds a sample of a GPU: for which percentage of its length it worked for each container.
    pub(super) fn add(
        &mut self,
        gpu: Uuid,
        percent: &BTreeMap<String, u64>,
        length_ns: u64,
        now: u64,
    ) {
        for (id, container) in &mut self.known {
            let percent = percent.get(id).copied().unwrap_or(0).min(100);
            let page = || OfContainer::find(&self.directory, container.owner);
            if percent > 0 {
                container.gpus.entry(gpu).or_insert_with(|| Used {
                    most: page().ok().and_then(|page| page.most(gpu)),
                    excess: Excess::default(),
                    beyond_ns: 0,
                    held_until: 0,
                });
            }
            let Some(used) = container.gpus.get_mut(&gpu) else { continue };
            let Some(most) = used.most else { continue };
            let busy_ns = length_ns / 100 * percent;
            let beyond_ns = used.excess.add(most, [busy_ns, length_ns]);
            used.beyond_ns = used.beyond_ns.saturating_add(beyond_ns);
            let until = used.excess.held_until(most, now).unwrap_or(0);
            if self.holds && until > used.held_until.saturating_add(WRITES_NS) {
                used.held_until = until;
                let all: Vec<_> =
                    container.gpus.iter().map(|(gpu, it)| (*gpu, it.held_until)).collect();
                // If it fails, the next sample tries again.
                if page().and_then(|page| page.hold(&self.directory, &all)).is_err()
                    && let Some(used) = container.gpus.get_mut(&gpu)
                {
                    used.held_until = 0;
                }
            }
        }
    }

    /// Returns what each container had beyond the limit and the tolerance, in ns.
    pub(super) fn beyond(&self) -> BTreeMap<(String, Uuid), u64> {
        let of = |(id, container): (&String, &Container)| {
            let of = |(gpu, used): (&Uuid, &Used)| {
                Some(((id.clone(), *gpu), used.most.map(|_| used.beyond_ns)?))
            };
            container.gpus.iter().filter_map(of).collect::<Vec<_>>()
        };
        self.known.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::slices::Slices;
    use gpucap_core::page::held;
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::symlink;

    const SECOND: u64 = 1_000_000_000;

    /// A node whose pages are in a directory of this test, with a container of 10 % and one of 100.
    fn node(name: &str, excess: &str) -> (Node, [Record; 2]) {
        let run_dir = std::env::temp_dir().join(format!("gpucap-{name}-{}", std::process::id()));
        let all = run_dir.join("pages/all");
        fs::create_dir_all(&all).expect("a directory");
        for (pid, percent) in [(7, 10), (8, 100)] {
            symlink(format!("all/{pid}"), run_dir.join(format!("pages/{pid}-5"))).expect("a link");
            fs::write(all.join(format!("{pid}.share")), format!("* {percent}\n")).expect("shares");
        }
        let config = json!({"run_dir": run_dir, "sampled_excess": excess}).to_string();
        let record = |pid: u32| Record {
            container: format!("c{pid}"),
            pid,
            start_time: 5,
            names: None,
            limits: None,
            native_limits: None,
            slices: Slices::default(),
            pod_uids: vec![],
            waiting: None,
        };
        (Node::parse("test", config.as_bytes()).expect("a configuration"), [7, 8].map(record))
    }

    fn held_until(node: &Node, pid: u32, gpu: Uuid) -> Option<u64> {
        let file = pages::directory(node).join(format!("all/{pid}.held"));
        held::until(&fs::read(file).ok()?, gpu)
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted_and_held_where_the_node_says_so() {
        for holds in [false, true] {
            let word = if holds { "hold" } else { "report" };
            let (node, records) = node(word, word);
            let mut all = Containers::new(&node);
            all.note(&records);
            let [gpu, other] = [1, 2].map(|number| Uuid([number; 16]));
            let busy = |percent| BTreeMap::from([("c7".into(), percent), ("c8".into(), 100)]);
            let key = |id: &str| (id.to_owned(), gpu);
            for second in 1..=10 {
                all.add(gpu, &busy(13), SECOND, second * SECOND);
            }
            assert_eq!(all.beyond(), BTreeMap::from([(key("c7"), 0), (key("c8"), 0)]));
            for second in 11..=20 {
                all.add(gpu, &busy(100), SECOND, second * SECOND);
            }
            // Of ten seconds two are given at once, and in all but the first 0.135 flow in.
            let beyond_ns = all.beyond()[&key("c7")];
            assert_eq!(beyond_ns, 6_785_000_000);
            assert_eq!(all.beyond()[&key("c8")], 0);
            let until = held_until(&node, 7, gpu);
            let due = 20 * SECOND + beyond_ns * 1000 / 135;
            assert_eq!(until.is_some(), holds);
            assert!(until.is_none_or(|until| until.abs_diff(due) < SECOND / 10), "{until:?} {due}");
            assert_eq!((held_until(&node, 7, other), held_until(&node, 8, gpu)), (None, None));
            // Another container of that id begins anew.
            let again = Record { pid: 8, ..records[0].clone() };
            all.note(&[again]);
            assert_eq!(all.beyond(), BTreeMap::new());
            fs::remove_dir_all(&node.run_dir).expect("removed");
        }
    }
}
