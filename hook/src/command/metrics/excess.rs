//! What containers have of a GPU's time beyond their limits, by the driver's samples ([`gpucap_core::page::excess`]).
//!
//! The limits are those that the node has written beside the containers' usage pages, or in its record of one that has none,
//! and the samples are the driver's: nothing that a container says counts. What is found goes to the metrics, and where the
//! node's configuration says so the container is held back ([`crate::container::pages::held`]).

use super::rounding::PARTS;
use crate::container::effective_limit::EffectiveLimit;
use crate::container::pages::{self, held::OfContainer};
use crate::container::records::Record;
use crate::sys::Map;
use gpucap_core::page::excess::Excess;
use gpucap_core::page::held::HeldPage;
use gpucap_core::units::Share;
use gpucap_core::uuid::Uuid;
use gpucap_plan::{Node, SampledExcess};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// By how much a time is to differ from what was written before it is written again.
const WRITES_NS: u64 = 100_000_000;

/// All containers of the node that have a compute limit.
#[derive(Debug)]
pub(super) struct Containers {
    directory: PathBuf,
    holds: bool,
    /// By the keys of their records.
    known: BTreeMap<String, Container>,
    /// What is left of containers that have ended, by their place: an engine may start another one there.
    ended: BTreeMap<String, BTreeMap<Uuid, Used>>,
}

#[derive(Debug)]
struct Container {
    place: String,
    /// As it was given them, for one that has no usage page.
    at_start: Vec<EffectiveLimit>,
    page: Option<OfContainer>,
    /// Mapped as long as it runs, so that none can keep it from being written.
    held: Option<Map<HeldPage>>,
    gpus: BTreeMap<Uuid, Used>,
    /// Until when it is held back, in ns since 1970, as was written; `None`: nothing was.
    written: Option<BTreeMap<Uuid, u64>>,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    most: Option<Share>,
    excess: Excess,
    beyond_ns: u64,
}

/// The present, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) monotonic_ns: u64,
    pub(super) unix_ns: u64,
}

impl Containers {
    pub(super) fn new(node: &Node) -> Self {
        let holds = node.sampled_excess == SampledExcess::Hold;
        let (known, ended) = (BTreeMap::new(), BTreeMap::new());
        Self { directory: pages::directory(node), holds, known, ended }
    }

    /// Notes the containers that there are, and reads their limits again. Returns whether some have ended, whose held pages are
    /// no longer mapped now.
    pub(super) fn note(&mut self, records: &[Record], now: Now) -> bool {
        let keys: BTreeSet<String> = records.iter().map(Record::key).collect();
        let mut before = std::mem::take(&mut self.known);
        let ended = before.extract_if(.., |key, _| !keys.contains(key));
        let ended: Vec<_> = ended.map(|(_, it)| (it.place, it.gpus)).collect();
        let has_ended = !ended.is_empty();
        self.ended.extend(ended);
        for record in records {
            let key = record.key();
            let mut container = before.remove(&key).unwrap_or_else(|| {
                let left = self.ended.remove(&record.place).unwrap_or_default();
                Container::new(record, left, &self.directory)
            });
            container.note(self.holds, now);
            self.known.insert(key, container);
        }
        let is_left =
            |used: &Used| used.most.is_some_and(|it| !used.excess.is_over(it, now.monotonic_ns));
        self.ended.retain(|_, gpus| gpus.values().any(is_left));
        has_ended
    }

    /// Adds a sample of a GPU that has just ended: for which part of its length it worked for each container, in [`PARTS`] of a
    /// percent.
    pub(super) fn add(
        &mut self,
        gpu: Uuid,
        parts: &BTreeMap<String, u64>,
        length_ns: u64,
        now: Now,
    ) {
        for (key, container) in &mut self.known {
            let parts = parts.get(key).copied().unwrap_or(0);
            if parts > 0 && !container.gpus.contains_key(&gpu) {
                let (most, excess) = (container.most(gpu, None), Excess::new(now.monotonic_ns));
                container.gpus.insert(gpu, Used { most, excess, beyond_ns: 0 });
            }
            let Some(used) = container.gpus.get_mut(&gpu) else { continue };
            let Some(most) = used.most else { continue };
            let busy_ns = length_ns / (100 * PARTS) * parts;
            let beyond_ns = used.excess.add(most, busy_ns, now.monotonic_ns);
            used.beyond_ns = used.beyond_ns.saturating_add(beyond_ns);
            if self.holds {
                container.write(true, now);
            }
        }
    }

    /// Returns what each container had beyond the limit and the tolerance, in ns.
    pub(super) fn beyond(&self) -> BTreeMap<(String, Uuid), u64> {
        let of = |(key, container): (&String, &Container)| {
            let of = |(gpu, used): (&Uuid, &Used)| {
                Some(((key.clone(), *gpu), used.most.map(|_| used.beyond_ns)?))
            };
            container.gpus.iter().filter_map(of).collect::<Vec<_>>()
        };
        self.known.iter().flat_map(of).collect()
    }
}

impl Container {
    /// One that is seen for the first time, with what is left of those in its place.
    fn new(record: &Record, ended: BTreeMap<Uuid, Used>, pages: &Path) -> Self {
        let ended = ended.into_iter().map(|(gpu, used)| (gpu, Used { beyond_ns: 0, ..used }));
        Self {
            place: record.place.clone(),
            at_start: EffectiveLimit::all(&record.limits().unwrap_or_default(), None),
            page: OfContainer::find(pages, (record.pid, record.start_time)).ok(),
            held: None,
            gpus: ended.collect(),
            written: None,
        }
    }

    /// Reads its limits again, and writes what has come to differ.
    fn note(&mut self, holds: bool, now: Now) {
        if self.held.is_none() {
            self.held = self.page.as_ref().and_then(|page| page.map().ok());
            self.take_over(holds, now);
        }
        let gpus: Vec<Uuid> = self.gpus.keys().copied().collect();
        for gpu in gpus {
            let before = self.gpus.get(&gpu).and_then(|used| used.most);
            let most = self.most(gpu, before);
            self.gpus.entry(gpu).and_modify(|used| used.most = most);
        }
        self.write(holds, now);
    }

    /// A process that sampled before this one may have left it held back: it still owes that.
    fn take_over(&mut self, holds: bool, now: Now) {
        let Some(held) = self.held.as_ref().filter(|_| holds) else { return };
        let left: Vec<_> = held.get().held_by_samples(now.unix_ns).collect();
        for (gpu, left_ns) in left {
            let Some(most) = self.most(gpu, None) else { continue };
            let excess = Excess::owing(most, left_ns, now.monotonic_ns);
            self.gpus.entry(gpu).or_insert(Used { most: Some(most), excess, beyond_ns: 0 });
        }
    }

    /// The most that it may have of a GPU's time now; of one without a page, what it was given when it started. `None`: it
    /// has no limit. As `before` if that cannot be read at the moment.
    fn most(&self, gpu: Uuid, before: Option<Share>) -> Option<Share> {
        let at_start = || Some(EffectiveLimit::find(&self.at_start, gpu)?.at_start.core?.most());
        match self.page.as_ref().map(|page| page.most(gpu)) {
            Some(Ok(most)) => most,
            Some(Err(_)) => before.or_else(at_start),
            None => at_start(),
        }
    }

    /// Until when it is to be held back, in ns since 1970: for each GPU that it is not to have.
    fn until(&self, now: Now) -> BTreeMap<Uuid, u64> {
        let of = |(gpu, used): (&Uuid, &Used)| {
            let until = used.excess.held_until(used.most?, now.monotonic_ns)?;
            let left_ns = until.saturating_sub(now.monotonic_ns);
            Some((*gpu, now.unix_ns.saturating_add(left_ns)))
        };
        self.gpus.iter().filter_map(of).collect()
    }

    /// Returns whether that is another time than was written.
    fn differs(&self, now: Now) -> bool {
        let (until, none) = (self.until(now), BTreeMap::new());
        let written = self.written.as_ref().unwrap_or(&none);
        // What is past and is no longer owed is the same.
        let of = |all: &BTreeMap<Uuid, u64>, gpu| *all.get(gpu).unwrap_or(&0).max(&now.unix_ns);
        let mut gpus = until.keys().chain(written.keys());
        gpus.any(|gpu| of(&until, gpu).abs_diff(of(written, gpu)) > WRITES_NS)
    }

    /// Writes it; where the node holds no container back, that this is not.
    fn write(&mut self, holds: bool, now: Now) {
        if self.written.is_some() && !(holds && self.differs(now)) {
            return;
        }
        let Some(held) = &self.held else { return };
        let until = if holds { self.until(now) } else { BTreeMap::new() };
        let lines: Vec<_> = until.iter().map(|(gpu, until)| (*gpu, *until)).collect();
        self.written = held.get().write(&lines).then_some(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::slices::Slices;
    use gpucap_core::limits::LimitsFile;
    use gpucap_core::limits::file::{Entry, Key};
    use serde_json::json;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    const SECOND: u64 = 1_000_000_000;

    fn at(second: u64) -> Now {
        Now { monotonic_ns: second * SECOND, unix_ns: (1_000_000 + second) * SECOND }
    }

    /// A node whose pages are in a directory of this test, with a container of 10 %, one of 100, and one of 10 without a page.
    fn node(name: &str, excess: &str) -> (Node, [Record; 3]) {
        let run_dir = std::env::temp_dir().join(format!("gpucap-{name}-{}", std::process::id()));
        let all = run_dir.join("pages/all");
        fs::create_dir_all(&all).expect("a directory");
        for (pid, percent) in [(7, 10), (8, 100)] {
            symlink(format!("all/{pid}"), run_dir.join(format!("pages/{pid}-5"))).expect("a link");
            fs::write(all.join(format!("{pid}.held")), [0; 4096]).expect("a page");
            page(&run_dir, pid).get().format();
            limit(&run_dir, pid, percent);
        }
        let config = json!({"run_dir": run_dir, "sampled_excess": excess}).to_string();
        let entry = Entry { core: Share::from_percent(10), ..Entry::new(Key::Every) };
        let limits = LimitsFile { entries: vec![entry], ..LimitsFile::default() };
        let record = |pid: u32| Record {
            container: format!("c{pid}"),
            place: format!("c{pid}"),
            pid,
            start_time: 5,
            names: None,
            limits: Some(limits.write()),
            native_limits: None,
            slices: Slices::default(),
            pod_uids: vec![],
            waiting: None,
        };
        (Node::parse("test", config.as_bytes()).expect("a configuration"), [7, 8, 9].map(record))
    }

    fn limit(run_dir: &Path, pid: u32, percent: u32) {
        let file = run_dir.join(format!("pages/all/{pid}.share"));
        fs::write(file, format!("* {percent}\n")).expect("shares");
    }

    fn page(run_dir: &Path, pid: u32) -> Map<HeldPage> {
        let file = run_dir.join(format!("pages/all/{pid}.held"));
        let file = File::options().read(true).write(true).open(file).expect("a page");
        Map::writable(&file).expect("mapped")
    }

    /// For how many seconds it is held back; `None` if it has no held page.
    fn held(node: &Node, pid: u32, gpu: Uuid, now: u64) -> Option<u64> {
        let file = pages::directory(node).join(format!("all/{pid}.held"));
        let page = Map::<HeldPage>::copy(&File::open(file).ok()?).expect("a page");
        Some(page.get().left_ns(gpu, at(now).unix_ns).div_ceil(SECOND))
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted_and_held_where_the_node_says_so() {
        for holds in [false, true] {
            let word = if holds { "hold" } else { "report" };
            let (node, records) = node(word, word);
            // Left by another process that samples.
            let [gpu, other] = [1, 2].map(|number| Uuid([number; 16]));
            let left = [(gpu, at(50).unix_ns)];
            assert!(page(Path::new(&node.run_dir), 7).get().write(&left));
            assert_eq!(held(&node, 7, gpu, 0), Some(50));
            let mut all = Containers::new(&node);
            all.note(&records, at(0));
            let where_held = |seconds| Some(if holds { seconds } else { 0 });
            // Where containers are held back this one still owes it.
            assert_eq!(held(&node, 7, gpu, 0), where_held(50));
            all.add(gpu, &BTreeMap::new(), SECOND, at(65));
            assert_eq!(held(&node, 7, gpu, 65), where_held(0));
            page(Path::new(&node.run_dir), 7).get().write(&[]).then_some(()).expect("written");
            let mut all = Containers::new(&node);
            all.note(&records, at(0));
            assert_eq!(held(&node, 7, gpu, 0), where_held(0));
            let busy = |percent| {
                let of = |(key, percent): (&str, u64)| (key.to_owned(), percent * PARTS);
                BTreeMap::from([("c7@7-5", percent), ("c8@8-5", 100), ("c9@9-5", percent)].map(of))
            };
            let key = |key: &str| (key.to_owned(), gpu);
            for second in 1..=10 {
                all.add(gpu, &busy(13), SECOND, at(second));
            }
            let none = ["c7@7-5", "c8@8-5", "c9@9-5"].map(|of| (key(of), 0));
            assert_eq!(all.beyond(), BTreeMap::from(none));
            for second in 11..=20 {
                all.add(gpu, &busy(100), SECOND, at(second));
            }
            // Of ten seconds two are given at once, and in all but the first 0.135 flow in.
            let beyond_ns = all.beyond()[&key("c7@7-5")];
            assert_eq!(beyond_ns, 6_785_000_000);
            assert_eq!(
                (all.beyond()[&key("c8@8-5")], all.beyond()[&key("c9@9-5")]),
                (0, beyond_ns)
            );
            let due = (beyond_ns * 1000 / 135).div_ceil(SECOND);
            assert_eq!(held(&node, 7, gpu, 20), where_held(due));
            assert_eq!(
                (held(&node, 7, other, 20), held(&node, 8, gpu, 20)),
                (where_held(0), where_held(0))
            );
            assert_eq!(held(&node, 9, gpu, 20), None, "it has no page");
            // What is owed takes a fifth of the time where five times as much may be had.
            limit(Path::new(&node.run_dir), 7, 50);
            all.note(&records, at(21));
            let due = (beyond_ns * 1000 / 635 - SECOND).div_ceil(SECOND);
            let left = held(&node, 7, gpu, 21);
            assert!(!holds || left.is_some_and(|left| left.abs_diff(due) <= 1), "{left:?}, {due}");
            all.add(gpu, &busy(0), SECOND, at(40));
            assert_eq!(held(&node, 7, gpu, 40), where_held(0), "all of it has flowed in");
            // Beyond which nothing is, whatever was owed.
            all.add(gpu, &busy(100), 20 * SECOND, at(60));
            assert_eq!(held(&node, 7, gpu, 60).is_some_and(|left| left > 0), holds);
            limit(Path::new(&node.run_dir), 7, 100);
            all.note(&records, at(61));
            assert_eq!(held(&node, 7, gpu, 61), where_held(0));
            limit(Path::new(&node.run_dir), 7, 10);
            all.note(&records, at(61));
            all.add(gpu, &busy(100), 20 * SECOND, at(61));
            // Another container in its place owes what that one has left; one elsewhere nothing.
            limit(Path::new(&node.run_dir), 8, 10);
            let again =
                |pid, place: &str| Record { pid, place: place.into(), ..records[0].clone() };
            all.note(&[], at(61));
            all.note(&[again(9, "other")], at(62));
            assert_eq!(all.beyond(), BTreeMap::new());
            all.note(&[again(8, "c7")], at(62));
            assert_eq!(all.beyond(), BTreeMap::from([(key("c7@8-5"), 0)]));
            assert_eq!(held(&node, 8, gpu, 62).is_some_and(|left| left > 100), holds);
            // That is forgotten once it has flowed in.
            all.note(&[], at(63));
            all.note(&[], at(5000));
            assert!(all.ended.is_empty());
            fs::remove_dir_all(&node.run_dir).expect("removed");
        }
    }
}
