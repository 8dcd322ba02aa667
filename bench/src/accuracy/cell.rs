//! One workload at one percentage: what it got, and what its launches waited.

use super::bounds::Bound;
use crate::simulator::card::BIN_NS;
use crate::simulator::workloads::{Threads, Workload};
use crate::simulator::{Outcome, Process, Setup, World};
use gpucap_core::sync::Word;
use gpucap_core::throttle::{DEVICE_WORDS, DeviceWords};
use gpucap_core::units::{ComputeLimit, Share};
use serde_json::{Value, json};

/// What a run showed. Shares are percent of the card.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The workload's name.
    pub workload: &'static str,
    /// What was asked for; none if it ran without a limit.
    pub percent: Option<u16>,
    /// What it should get: what was asked for, or what it can use.
    pub goal: f64,
    /// What it got.
    pub share: f64,
    /// The second in which it was farthest from its goal, and by how much: above or below.
    pub worst: f64,
    /// The most that it got in any second.
    pub most: f64,
    /// Work done, as a part of what its share of the work done without a limit would be.
    pub throughput: f64,
    /// What the meter charged, as a part of the time that the card was busy.
    pub charged: f64,
    /// Launches that went through the meter, as a part of all.
    pub slow: f64,
    /// What of its share passed in collectives that waited for another card, while nothing else ran.
    pub spun: f64,
    /// The longest that one of them waited, in milliseconds.
    pub spun_most: f64,
    /// Milliseconds that launches were held back.
    pub wait_p50: f64,
    /// The one that 99 % do not exceed.
    pub wait_p99: f64,
    /// The longest.
    pub wait_most: f64,
    /// For how much of the time its threads did nothing, from 0 to 1.
    pub paused: f64,
    /// Work per second, in solo nanoseconds.
    work_rate: f64,
}

/// As many as processes and cards of any workload, for who gives each its own bucket.
const SEATS: usize = 8;
/// Bins in the second that windows have.
const WINDOW: usize = 100;
/// Time to learn, before anything counts.
pub(crate) const WARM_UP_NS: u64 = 1_000_000_000;

/// Runs a workload for `seconds`; `solo` is the same without a limit.
#[must_use]
pub fn run(
    workload: &Workload,
    percent: Option<u16>,
    seconds: u64,
    setup: &Setup,
    solo: Option<&Cell>,
) -> Cell {
    let words: Vec<[Word; DEVICE_WORDS]> =
        std::iter::repeat_with(Default::default).take(SEATS).collect();
    let seats: Vec<DeviceWords<'_>> =
        words.iter().map(|words| DeviceWords::new(words.each_ref())).collect();
    let limit = |card: usize| {
        let asked = if card == 0 { percent } else { workload.elsewhere.or(percent) };
        asked.and_then(Share::from_percent).map(|share| (card, ComputeLimit::fixed(share)))
    };
    let mine = |(number, (threads, streams)): (usize, Threads)| {
        let cards = if workload.apart { number..number + 1 } else { 0..workload.cards };
        Process { threads, streams, first: cards.start, limits: cards.map(limit).collect() }
    };
    let beside = |(threads, streams): Threads| Process {
        threads,
        streams,
        first: 0,
        limits: vec![None; workload.cards],
    };
    let mut processes: Vec<_> = (workload.processes)().into_iter().enumerate().map(mine).collect();
    let count = processes.len();
    processes.extend((workload.beside)().into_iter().map(beside));
    let length = WARM_UP_NS + seconds * 1_000_000_000;
    let outcomes = World::new(*setup, &seats, processes).run(length);
    let of_the_first_card =
        outcomes.into_iter().take(count).filter_map(|cards| cards.into_iter().next());
    summary(workload.name, percent, &of_the_first_card.collect::<Vec<_>>(), length, solo)
}

pub(crate) fn summary(
    workload: &'static str,
    percent: Option<u16>,
    outcomes: &[Outcome],
    length: u64,
    solo: Option<&Cell>,
) -> Cell {
    let first = index(WARM_UP_NS / BIN_NS);
    let mut bins = vec![0; index(length / BIN_NS)];
    for outcome in outcomes {
        bins.iter_mut().zip(&outcome.busy).for_each(|(sum, busy)| *sum += busy);
    }
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let busy: u64 = bins.iter().sum();
    let charged = sum(|outcome| outcome.totals.busy_ns);
    let slow = sum(|outcome| outcome.metered);
    let spun = 100.0 * float(sum(|outcome| outcome.spun.ns)) / float(length);
    let longest = outcomes.iter().map(|outcome| outcome.spun.longest_ns).max();
    let mut waits: Vec<u64> = outcomes.iter().flat_map(|outcome| &outcome.waits).copied().collect();
    waits.sort_unstable();
    let wait = |percent: usize| {
        let place = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
        float(waits.get(place).copied().unwrap_or(0)) / 1e6
    };
    let bins = bins.get(first..).unwrap_or(&[]);
    let percent_of = |bins: &[u64]| {
        100.0 * float(bins.iter().sum()) / (float(BIN_NS) * float(bins.len() as u64))
    };
    let share = percent_of(bins);
    let target = percent.map_or(100.0, f64::from);
    // A card that waits for another one has nothing to do; where nothing is held back it does so on the engine.
    let idle = |solo: &Cell| if target < 100.0 { solo.spun } else { 0.0 };
    let goal = solo.map_or(share, |solo| (solo.share - idle(solo)).min(target));
    let off = |window: &[u64]| percent_of(window) - goal;
    let worst = bins.windows(WINDOW).map(off).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let most = bins.windows(WINDOW).map(percent_of).max_by(f64::total_cmp);
    let work_rate = float(sum(|outcome| outcome.work)) / float(length);
    let throughput = solo.map_or(1.0, |solo| {
        work_rate / (solo.work_rate * (target / (solo.share - solo.spun)).min(1.0))
    });
    Cell {
        workload,
        percent,
        goal,
        share,
        worst: worst.unwrap_or(0.0),
        most: most.unwrap_or(0.0),
        throughput,
        charged: if percent.is_some() { float(charged) / float(busy) } else { 1.0 },
        slow: float(slow) / float(waits.len() as u64).max(1.0),
        spun,
        spun_most: float(longest.unwrap_or(0)) / 1e6,
        wait_p50: wait(50),
        wait_p99: wait(99),
        wait_most: wait(100),
        paused: float(sum(|outcome| outcome.paused_ns))
            / float(length)
            / float(outcomes.len() as u64).max(1.0),
        work_rate,
    }
}

impl Cell {
    /// How far the mean is from the goal, in points.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.share - self.goal
    }

    /// Whether it is as exact as it has to be.
    #[must_use]
    pub fn is_within(&self, bound: &Bound) -> bool {
        self.error() <= bound.mean
            && -self.error() <= bound.below.max(bound.mean)
            && self.worst.abs() <= bound.window
            && self.throughput >= bound.throughput
            && (bound.charged_least..=bound.charged).contains(&self.charged)
    }

    /// What was found, against what is allowed.
    #[must_use]
    pub fn verdict(&self, bound: &Bound) -> String {
        let percent = self.percent.map_or_else(|| "unset".into(), |percent| format!("{percent} %"));
        format!(
            "{} at {percent}: {:.2} of {:.2}, worst second {:+.2} (allowed {}), throughput {:.3} \
             (at least {}), charged {:.3} of busy (at most {})",
            self.workload,
            self.share,
            self.goal,
            self.worst,
            bound.window,
            self.throughput,
            bound.throughput,
            self.charged,
            bound.charged,
        )
    }

    /// A line of a report.
    #[must_use]
    pub fn to_json(&self, bound: &Bound) -> Value {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        json!({
            "kind": "share",
            "workload": self.workload,
            "percent": self.percent,
            "goal": round(self.goal),
            "share": round(self.share),
            "error": round(self.error()),
            "worst_second": round(self.worst),
            "throughput": round(self.throughput),
            "charged": round(self.charged),
            "metered_launches": round(self.slow),
            "spun": [round(self.spun), round(self.spun_most)],
            "wait_ms": [round(self.wait_p50), round(self.wait_p99), round(self.wait_most)],
            "bound": { "mean": bound.mean, "below": bound.below, "window": bound.window, "throughput": bound.throughput },
            "met": self.is_within(bound),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
const fn float(value: u64) -> f64 {
    value as f64
}

fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
