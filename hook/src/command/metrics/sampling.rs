//! `gpucap metrics --sample`: for which part of the time each GPU worked for each process, by the driver's samples.
//!
//! One thread reads what `gpucap-driver samples` prints. What is of a container of the hook, or of a run by its ledger, goes to
//! the metrics, also if it has no compute limit. What is of a process that publishes no usage report goes to a usage page of its own, so that
//! the containers beside it need not pay for its time slices ([`crate::container::pages::unreported`]). What is of a container
//! beyond its compute limit is [counted](excess). Which is which is
//! decided by [`Containers`], and again every second. If anything fails nothing is published: containers are charged for
//! the time slices then, as without samples.

use super::excess::{self, Now};
use super::rounding::{self, PARTS, Samples};
use super::runs::Runs;
use crate::command::status::view::Sampled;
use crate::container::membership::{Containers, Owner};
use crate::container::pages;
use crate::container::pages::unreported::{Lock, NodePages};
use crate::container::records::{self, Record};
use crate::error::reason;
use crate::node::driver::Driver;
use crate::node::inputs;
use crate::node::proc::Process;
use crate::sys;
use crate::terminal::output;
use gpucap_core::page::sampled::{Clock, busy_ns};
use gpucap_core::process::FIRST_PID_NAMESPACE;
use gpucap_core::uuid::{DeviceName, Uuid};
use gpucap_plan::Node;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What the server knows of it.
#[derive(Debug, Default)]
pub(super) struct Sampling(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// By budget and GPU. A budget is the key of a container's record, or the path of another ledger.
    used: BTreeMap<(String, Uuid), Used>,
    /// Since when there are samples of a GPU, and since when a budget is known, in ns since 1970.
    gpus: BTreeMap<Uuid, u64>,
    budgets: BTreeMap<String, u64>,
    /// What containers with a compute limit had beyond it.
    beyond: BTreeMap<(String, Uuid), u64>,
    /// For how long GPUs worked for processes that had ended before they were sampled.
    unattributed: BTreeMap<Uuid, u64>,
}

/// What a GPU did for a budget.
#[derive(Debug, Default)]
struct Used {
    busy_ns: u64,
    last_ns: u64,
    /// Lengths of the latest samples, and how much of each it worked.
    latest: VecDeque<[u64; 2]>,
}

/// How much of the latest time the ratio is about.
const LATEST_NS: u64 = 2_000_000_000;
/// How often records are read again, and how long after a failure it is tried again.
const AGAIN_NS: u64 = 1_000_000_000;
const RETRY: Duration = Duration::from_secs(10);
/// The most lines of a look, and the most processes that are remembered.
const MOST: usize = 4096;

impl Sampling {
    /// Samples until the process ends.
    pub(super) fn follow(&self, config: &Path, through: &[String]) -> ! {
        let mut last = String::new();
        loop {
            let node = inputs::node_or_default(config).unwrap_or_default();
            let Err(why) =
                Sampler::begin(node, through, self).and_then(|mut sampler| sampler.run());
            self.lock().gpus.clear();
            if why != last {
                output::notice(format!("metrics: no samples: {why}; trying again"));
                last = why;
            }
            thread::sleep(RETRY);
        }
    }

    /// Returns what was sampled of a GPU for a budget; `None` if it is not sampled.
    pub(super) fn of(&self, budget: &str, gpu: Uuid) -> Option<Sampled> {
        let seen = self.lock();
        let since = *seen.gpus.get(&gpu)?.max(seen.budgets.get(budget)?);
        let Some(used) = seen.used.get(&(budget.to_owned(), gpu)) else {
            return Some(Sampled { permille: 0, busy_ns: 0, last_ns: since, beyond_ns: None });
        };
        let [length, busy] = used
            .latest
            .iter()
            .fold([0, 0], |[length, busy], [of, more]| [length + of, busy + more]);
        let permille = (busy * 1000).checked_div(length).unwrap_or(0).min(1000);
        let last_ns = used.last_ns.max(since);
        let beyond_ns = seen.beyond.get(&(budget.to_owned(), gpu)).copied();
        Some(Sampled { permille, busy_ns: used.busy_ns, last_ns, beyond_ns })
    }

    /// Returns for how long each GPU that is sampled worked for no process that was seen.
    pub(super) fn unattributed(&self) -> BTreeMap<Uuid, u64> {
        self.lock().unattributed.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's own state.
struct Sampler<'s> {
    node: Node,
    shared: &'s Sampling,
    _lock: Lock,
    driver: crate::node::driver::Following,
    pages: NodePages,
    has_readers: bool,
    containers: Containers,
    excesses: excess::Containers,
    owners: BTreeMap<(u32, u64), (Owner, u64)>,
    runs: Runs,
    clocks: BTreeMap<Uuid, Clock>,
    began_at: u64,
    looked_at: u64,
    pending: Vec<(String, u32, u64)>,
    /// Of the look that follows, for which part of the time the GPU worked, if it says so.
    all: Option<(String, u64)>,
}

impl<'s> Sampler<'s> {
    fn begin(node: Node, through: &[String], shared: &'s Sampling) -> Result<Self, String> {
        let failed = |why| reason(&why);
        if Process::own().namespace("pid") != Some(FIRST_PID_NAMESPACE) {
            return Err("the driver numbers processes as in the first pid namespace, and this is another one".into());
        }
        let lock = Lock::take(&node).map_err(failed)?;
        let lock = lock.ok_or("another gpucap samples on this node")?;
        let pages = NodePages::new(&node, &lock).map_err(failed)?;
        let driver = Driver::find(&node)?.follow(&["samples".to_owned()], through)?;
        let now = sys::monotonic_ns();
        let excesses = excess::Containers::new(&node);
        Ok(Self {
            node,
            shared,
            _lock: lock,
            driver,
            pages,
            has_readers: false,
            containers: Containers::default(),
            excesses,
            owners: BTreeMap::new(),
            runs: Runs::default(),
            clocks: BTreeMap::new(),
            began_at: now,
            looked_at: 0,
            pending: Vec::new(),
            all: None,
        })
    }

    fn run(&mut self) -> Result<std::convert::Infallible, String> {
        loop {
            let now = sys::monotonic_ns();
            if now.saturating_sub(self.looked_at) >= AGAIN_NS {
                self.refresh(now);
            }
            let due = self.pages.due(now).unwrap_or(u64::MAX).min(self.looked_at + AGAIN_NS);
            // A moment later, so that it is over.
            let wait = Duration::from_nanos(due.saturating_sub(now)) + Duration::from_millis(1);
            for line in self.driver.lines(wait)? {
                self.line(&line)?;
            }
            self.pages.renew(sys::monotonic_ns()).map_err(|why| reason(&why))?;
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        let number =
            |word: &str| word.parse::<u64>().map_err(|_| format!("{line:?} is not understood"));
        match words[..] {
            ["busy", gpu, pid, percent] if self.pending.len() < MOST => {
                let pid =
                    u32::try_from(number(pid)?).map_err(|_| format!("{line:?} has no process"))?;
                self.pending.push((gpu.to_owned(), pid, number(percent)?.min(100)));
            }
            ["all", gpu, percent] => self.all = Some((gpu.to_owned(), number(percent)?.min(100))),
            ["look", gpu, length_ns] => {
                let uuid = gpu.parse::<DeviceName>().map_err(|why| why.to_string())?.uuid;
                let (own, others) =
                    std::mem::take(&mut self.pending).into_iter().partition(|(of, ..)| of == gpu);
                self.pending = others;
                let all = self.all.take().filter(|(of, _)| of == gpu).map(|(_, percent)| percent);
                self.take_samples(uuid, own, all, number(length_ns)?);
            }
            ["none", gpu, ..] => {
                let text = words.get(2..).unwrap_or_default().join(" ");
                output::notice(format!("metrics: no samples of {gpu}: {text}"));
            }
            ["lost", index, ..] => {
                let text = words.get(2..).unwrap_or_default().join(" ");
                output::notice(format!("metrics: no samples of GPU {index}: {text}"));
            }
            ["error", ..] => return Err(words.get(1..).unwrap_or_default().join(" ")),
            _ => {}
        }
        Ok(())
    }

    /// Takes the samples of one GPU: processes, and for which part of the time it worked for each, and for all.
    fn take_samples(
        &mut self,
        gpu: Uuid,
        busy: Vec<(String, u32, u64)>,
        all: Option<u64>,
        length_ns: u64,
    ) {
        let (now, unix_ns) = (sys::monotonic_ns(), sys::unix_ns());
        let began_at = self.began_at;
        let clock = self.clocks.entry(gpu).or_insert_with(|| Clock::new(began_at));
        let length_ns = clock.cover(length_ns, now);
        let (mut reported, mut unreported, mut seen) = (0, BTreeMap::new(), Samples::default());
        let mut used: BTreeMap<String, Samples> = BTreeMap::new();
        for (_, pid, percent) in busy {
            let Some((process, owner)) = self.owner(pid, now) else {
                reported += percent;
                continue;
            };
            seen.add(percent);
            let budget = match &owner {
                Owner::Container { key, .. } => key.clone(),
                Owner::Other => self.runs.ledger(process, now, AGAIN_NS).map(str::to_owned),
                Owner::Unknown => None,
            };
            if let Some(budget) = budget {
                used.entry(budget).or_default().add(percent);
            }
            match owner {
                Owner::Container { has_share: true, .. } | Owner::Unknown => reported += percent,
                Owner::Container { .. } | Owner::Other => {
                    unreported.insert(process, percent);
                }
            }
        }
        let used = rounding::parts(used, seen, all);
        self.excesses.add(gpu, &used, length_ns, Now { monotonic_ns: now, unix_ns });
        self.shared.lock().add(gpu, &used, length_ns, unix_ns);
        if let Some(all) = all {
            self.shared.lock().add_unattributed(gpu, all.saturating_sub(seen.percent()), length_ns);
        }
        for process in self.pages.processes() {
            unreported.entry(process).or_insert(0);
        }
        if !self.has_readers {
            return;
        }
        let percentages: Vec<u64> = unreported.values().copied().collect();
        let busy = busy_ns(length_ns, reported, &percentages);
        for (process, busy_ns) in unreported.into_keys().zip(busy) {
            // Without its page the process is charged for, as without samples: the next look tries again.
            if self.pages.add(process, gpu, [busy_ns, length_ns], now).is_err() {
                self.pages.remove(process);
            }
        }
    }

    /// Returns whose a process is, and when it started; `None` if it has ended, and has not been seen in the last second.
    fn owner(&mut self, pid: u32, now: u64) -> Option<((u32, u64), Owner)> {
        let Some(stat) = Process(pid).stat().ok().flatten() else {
            let of_it = self.owners.range((pid, 0)..=(pid, u64::MAX)).next_back();
            let lately = of_it.filter(|(_, (_, at))| now.saturating_sub(*at) < AGAIN_NS);
            return lately.map(|(process, (owner, _))| (*process, owner.clone()));
        };
        let process = (pid, stat.start_time);
        match self.owners.get(&process) {
            // Of a container that reports, whatever it does later.
            Some((owner @ Owner::Container { has_share: true, .. }, _)) => {
                let owner = owner.clone();
                self.owners.insert(process, (owner.clone(), now));
                return Some((process, owner));
            }
            Some((owner, at)) if now.saturating_sub(*at) < AGAIN_NS => {
                return Some((process, owner.clone()));
            }
            _ => {}
        }
        self.note(&records::all(&records::directory(&self.node)), now);
        let owner = self.containers.owner(Process(pid));
        // Another one has taken the number in the mean time.
        if Process(pid).has_ended(stat.start_time) {
            return None;
        }
        if !matches!(owner, Owner::Other | Owner::Container { has_share: false, .. }) {
            self.pages.remove(process);
        }
        if self.owners.len() >= MOST {
            self.owners.retain(|(pid, start_time), _| !Process(*pid).has_ended(*start_time));
        }
        self.owners.insert(process, (owner.clone(), now));
        Some((process, owner))
    }

    /// Notes the containers that there are: a sample of one that is not noted is lost.
    fn note(&mut self, records: &[Record], now: u64) {
        self.containers.note(records);
        if self.excesses.note(records, Now { monotonic_ns: now, unix_ns: sys::unix_ns() }) {
            // The hook that was there for their ends could not unmount what was mapped here.
            pages::sweep(&pages::directory(&self.node));
        }
    }

    /// Looks again at what may have changed.
    fn refresh(&mut self, now: u64) {
        self.looked_at = now;
        let records = records::all(&records::directory(&self.node));
        self.note(&records, now);
        self.shared.lock().beyond = self.excesses.beyond();
        self.runs.retain(|(pid, start_time)| !Process(pid).has_ended(start_time));
        let containers: Vec<String> = records.iter().map(Record::key).collect();
        let budgets = containers.iter().chain(self.runs.ledgers());
        self.shared.lock().note(&budgets.collect(), sys::unix_ns());
        self.has_readers = self.pages.have_readers();
        for process in self.pages.processes() {
            let (pid, start_time) = process;
            if !self.has_readers || Process(pid).has_ended(start_time) {
                self.pages.remove(process);
            } else {
                // It goes if it is of a container after all.
                let _ = self.owner(pid, now);
            }
        }
    }
}

impl Seen {
    /// Adds a look at a GPU: parts of a percent by budget.
    fn add(&mut self, gpu: Uuid, used: &BTreeMap<String, u64>, length_ns: u64, unix_ns: u64) {
        self.gpus.entry(gpu).or_insert(unix_ns);
        for budget in used.keys() {
            self.budgets.entry(budget.clone()).or_insert(unix_ns);
            self.used.entry((budget.clone(), gpu)).or_default();
        }
        for ((budget, _), of) in self.used.iter_mut().filter(|((_, of), _)| *of == gpu) {
            let busy_ns = length_ns / (100 * PARTS) * used.get(budget).copied().unwrap_or(0);
            of.busy_ns = of.busy_ns.saturating_add(busy_ns);
            if busy_ns > 0 {
                of.last_ns = unix_ns;
            }
            of.latest.push_back([length_ns, busy_ns]);
            while of.latest.iter().map(|[length, _]| length).sum::<u64>() > LATEST_NS {
                of.latest.pop_front();
            }
        }
    }

    /// Adds what a GPU worked for no process that was seen, in percent of the time.
    fn add_unattributed(&mut self, gpu: Uuid, percent: u64, length_ns: u64) {
        let unattributed = self.unattributed.entry(gpu).or_default();
        *unattributed = unattributed.saturating_add(length_ns / 100 * percent);
    }

    /// Notes the budgets that there are, and forgets the others.
    fn note(&mut self, budgets: &BTreeSet<&String>, unix_ns: u64) {
        self.budgets.retain(|budget, _| budgets.contains(budget));
        for budget in budgets {
            self.budgets.entry((*budget).clone()).or_insert(unix_ns);
        }
        self.used.retain(|(budget, _), _| budgets.contains(budget));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_container_has_what_was_sampled_of_its_processes() {
        let sampling = Sampling::default();
        let gpu = Uuid([1; 16]);
        assert_eq!(sampling.of("a", gpu), None, "not sampled");
        sampling.lock().note(&BTreeSet::from([&"a".to_owned()]), 7 * SECOND);
        let used = |percent| BTreeMap::from([("a".to_owned(), percent * PARTS)]);
        sampling.lock().add(gpu, &BTreeMap::new(), SECOND, 8 * SECOND);
        let idle = Sampled { permille: 0, busy_ns: 0, last_ns: 8 * SECOND, beyond_ns: None };
        assert_eq!(sampling.of("a", gpu), Some(idle), "idle since it is sampled");
        assert_eq!(sampling.of("b", gpu), None, "not known");
        sampling.lock().add(gpu, &used(50), SECOND, 9 * SECOND);
        sampling.lock().add(gpu, &used(0), SECOND, 10 * SECOND);
        let half =
            Sampled { permille: 250, busy_ns: SECOND / 2, last_ns: 9 * SECOND, beyond_ns: None };
        assert_eq!(sampling.of("a", gpu), Some(half));
        assert_eq!(sampling.of("a", Uuid([2; 16])), None);
        sampling.lock().note(&BTreeSet::new(), 11 * SECOND);
        assert_eq!(sampling.of("a", gpu), None, "it has ended");
    }
}
