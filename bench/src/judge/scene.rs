//! Containers on a card under chosen switches, and what each got compared with the contract.
//!
//! What a program can use of its share is what an [oracle](Setup::oracle) gets for it: a gate that knows the duration
//! of each kernel. The contract, in points of the card:
//!
//! * no container has more than its share and two points, in the mean and over any ten seconds; one operation may be
//!   longer;
//! * an honest container has no less than what the oracle gets for it, less two points. It is said of a shortfall if there
//!   is none with the switches to it on both sides, of its own as far as they were charged: where the card's events
//!   contain a switch, it is paid for.
//! * pages with false reports give away at most their containers' shares.

use super::job::{Job, Length};
use crate::simulator::card::BIN_NS;
use crate::simulator::{Outcome, Page, Process, Samples, Setup, World};
use gpucap_core::sync::Word;
use gpucap_core::throttle::{DEVICE_WORDS, DeviceWords};
use gpucap_core::units::{ComputeLimit, Share};

/// One process of a container.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its threads.
    pub jobs: Vec<Job>,
    /// A share of its own, in percent, below the container's.
    pub percent: Option<u16>,
}

/// A container, under one share.
#[derive(Debug, Clone)]
pub struct Container {
    /// In percent; none if it has no limit.
    pub percent: Option<u16>,
    /// Its processes.
    pub members: Vec<Member>,
}

/// What must hold besides the shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extra {
    /// Nothing.
    Nothing,
    /// The longest time for which a stream may be held, in milliseconds: by then all launches behind it must be
    /// queued.
    Held(f64),
    /// The latest time of the second launch of some process, in milliseconds.
    Second(f64),
    /// The bounds of the median and of the 99th percentile of the launches' waits, in milliseconds.
    Waits(f64, f64),
}

/// Containers on a card.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// The containers.
    pub containers: Vec<Container>,
    /// Pages of containers that use no card.
    pub pages: Vec<Page>,
    /// The time until its mean is meaningful.
    pub seconds: u64,
    /// Whether each container is to get what it can use.
    pub is_honest: bool,
    /// Whether the node publishes samples of processes without a report.
    pub is_sampled: bool,
    /// The further conditions.
    pub extra: Extra,
}

/// Returns containers that are all honest, for ten seconds.
pub(super) fn scene(name: String, containers: Vec<Container>) -> Scene {
    let (pages, extra) = (Vec::new(), Extra::Nothing);
    Scene { name, containers, pages, seconds: 10, is_honest: true, is_sampled: false, extra }
}

/// What a container got, in percent of the card.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its share.
    pub asked: f64,
    /// What it can use of that.
    pub goal: f64,
    /// What it got.
    pub got: f64,
    /// The same with the switches to its processes, as far as they were charged.
    pub with_switches: f64,
    /// In its poorest and richest second.
    pub seconds: (f64, f64),
    /// In its richest ten seconds.
    pub most: f64,
    /// What the meter charged, of what it got.
    pub charged: f64,
    /// How far it is above the allowed range.
    pub over: f64,
    /// And below.
    pub under: f64,
    /// It is below, and would not be if switches counted.
    pub by_switches: bool,
    /// The quantity that the scene checks besides: its value, and the bound.
    pub extra: Option<(f64, f64)>,
}

const WARM_UP_NS: u64 = 1_000_000_000;
/// The tolerance of each share.
const POINTS: f64 = 2.0;
/// The first moment of a run.
const START_NS: u64 = 1_000_000_000;
const SECOND: usize = 100;

impl Container {
    /// One process with one thread.
    #[must_use]
    pub fn one(percent: u16, job: Job) -> Self {
        Self::of(percent, vec![job])
    }

    /// A process with one thread for each job.
    #[must_use]
    pub fn of(percent: u16, jobs: Vec<Job>) -> Self {
        let member = |job| Member { jobs: vec![job], percent: None };
        Self { percent: Some(percent), members: jobs.into_iter().map(member).collect() }
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.members.iter().flat_map(|member| &member.jobs)
    }

    /// Returns the longest operation that it ever has.
    fn longest_ns(&self) -> u64 {
        self.jobs().map(|job| Length::most(job.length)).max().unwrap_or(0)
    }
}

impl Scene {
    /// Returns what each container under a limit got.
    #[must_use]
    pub fn run(&self, setup: &Setup) -> Vec<Found> {
        let got = self.outcomes(setup);
        // There is no better reference when the scene is about the calls and not about the card.
        let can = self.is_honest.then(|| self.outcomes(&Setup { oracle: true, ..*setup }));
        let found = |(place, container): (usize, &Container)| {
            let can = can.as_ref().map(|can| {
                let can = &can[place];
                let busy = mean(&sum(can, |outcome| &outcome.busy));
                [busy, busy + mean(&sum(can, |outcome| &outcome.switches))]
            });
            Some(self.found(container, &got[place], can, f64::from(container.percent?)))
        };
        self.containers.iter().enumerate().filter_map(found).collect()
    }

    fn found(
        &self,
        of: &Container,
        outcomes: &[Outcome],
        can: Option<[f64; 2]>,
        asked: f64,
    ) -> Found {
        let bins = sum(outcomes, |outcome| &outcome.busy);
        let got = mean(&bins);
        let length = float(self.seconds) * 1e9;
        let charged: u64 = outcomes.iter().map(|outcome| outcome.totals.busy_ns).sum();
        let charged = float(charged) / float(bins.iter().sum::<u64>().max(1));
        let switches = mean(&sum(outcomes, |outcome| &outcome.switches));
        let with_switches = got.max((got + switches).min(got * charged));
        let [goal, goal_with_switches] =
            can.map_or([asked; 2], |can| can.map(|can| can.min(asked)));
        let longest = float(of.longest_ns());
        let reported: f64 =
            self.pages.iter().map(|page| f64::from(page.limit.share().percent())).sum();
        let windows = |length: usize| bins.windows(length.min(bins.len())).map(percent_of);
        let most = windows(10 * SECOND).fold(0.0, f64::max);
        let allowed = asked + POINTS + reported;
        // One operation may reach into a window that has had its share already.
        let one = |window_ns: f64| 100.0 * (longest / window_ns).min(1.0);
        let over = (got - allowed - one(length)).max(most - allowed - one(10e9));
        let own_over = of.members.iter().zip(outcomes).filter_map(|(member, outcome)| {
            let own = mean(&outcome.busy) - f64::from(member.percent?);
            Some(own - POINTS - reported - one(length))
        });
        let over = own_over.fold(over, f64::max);
        let under = |short: f64| if self.is_honest { short - POINTS - one(length) } else { -1.0 };
        let by_switches = under(goal_with_switches - with_switches) <= 0.0;
        let under = under(goal - got);
        let least = windows(SECOND).skip(SECOND).fold(100.0, f64::min);
        Found {
            asked,
            goal,
            got,
            with_switches,
            seconds: (least, windows(SECOND).fold(0.0, f64::max)),
            most,
            charged,
            over,
            under,
            by_switches: under > 0.0 && by_switches,
            extra: self.extra(outcomes),
        }
    }

    fn extra(&self, outcomes: &[Outcome]) -> Option<(f64, f64)> {
        let ms = |ns: u64| float(ns) / 1e6;
        match self.extra {
            Extra::Nothing => None,
            Extra::Held(most) => {
                let held = outcomes.iter().map(|outcome| outcome.held_most).max().unwrap_or(0);
                // A stream that is still held when the run ends is held for too long.
                Some((if held == 0 { f64::INFINITY } else { ms(held) }, most))
            }
            Extra::Second(most) => {
                let second = outcomes.iter().filter_map(|outcome| outcome.waits.get(1)).min();
                Some((second.map_or(f64::INFINITY, |wait| ms(*wait)), most))
            }
            Extra::Waits(half, most) => {
                let mut waits: Vec<u64> =
                    outcomes.iter().flat_map(|outcome| &outcome.waits).copied().collect();
                waits.sort_unstable();
                let at = |percent| waits.get(waits.len() * percent / 100).copied().map_or(0.0, ms);
                // The one that is nearer to its bound.
                let (p50, p99) = (at(50), at(99));
                Some(if p50 / half > p99 / most { (p50, half) } else { (p99, most) })
            }
        }
    }

    /// By container.
    fn outcomes(&self, setup: &Setup) -> Vec<Vec<Outcome>> {
        let words: Vec<[Word; DEVICE_WORDS]> =
            self.containers.iter().map(|_| <[Word; DEVICE_WORDS]>::default()).collect();
        let seats: Vec<DeviceWords<'_>> =
            words.iter().map(|words| DeviceWords::new(words.each_ref())).collect();
        let (mut processes, mut owners) = (Vec::new(), Vec::new());
        for (seat, container) in self.containers.iter().enumerate() {
            for member in &container.members {
                let percent = member.percent.or(container.percent);
                let limit = percent
                    .and_then(Share::from_percent)
                    .map(|share| (seat, ComputeLimit::fixed(share)));
                let streams = member.jobs.iter().map(|job| job.stream + 1).max().unwrap_or(1);
                let threads = member.jobs.iter().map(|job| job.program(START_NS)).collect();
                processes.push(Process { threads, streams, first: 0, limits: vec![limit] });
                owners.push(seat);
            }
        }
        let length = WARM_UP_NS + self.seconds * 1_000_000_000;
        let samples = self.is_sampled.then_some(Samples::DRIVER);
        let setup = Setup { samples, ..*setup };
        let world = World::new(setup, &seats, processes).with_pages(self.pages.clone());
        let outcomes = world.run(length).into_iter().map(|mut cards| {
            let mut outcome = cards.swap_remove(0);
            let bins = usize::try_from(length / BIN_NS).unwrap_or(usize::MAX);
            outcome.busy.resize(bins, 0);
            outcome.switches.resize(bins, 0);
            outcome
        });
        let mut by_container = vec![Vec::new(); self.containers.len()];
        outcomes.zip(owners).for_each(|(outcome, seat)| by_container[seat].push(outcome));
        by_container
    }
}

impl Found {
    /// Whether the contract holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.over <= 0.0 && self.under <= 0.0 && self.extra.is_none_or(|(is, most)| is <= most)
    }

    /// Returns how far it is from holding: above zero the contract is broken.
    #[must_use]
    pub fn badness(&self) -> f64 {
        let extra = self.extra.map_or(-1.0, |(is, most)| 10.0 * (is / most - 1.0));
        self.over.max(self.under).max(extra)
    }
}

/// The bins of all processes together.
fn sum(outcomes: &[Outcome], of: impl Fn(&Outcome) -> &Vec<u64>) -> Vec<u64> {
    let mut bins = vec![0; outcomes.first().map_or(0, |outcome| of(outcome).len())];
    for outcome in outcomes {
        bins.iter_mut().zip(of(outcome)).for_each(|(sum, own)| *sum += own);
    }
    bins
}

fn percent_of(bins: &[u64]) -> f64 {
    100.0 * float(bins.iter().sum()) / (float(BIN_NS) * float(bins.len() as u64)).max(1.0)
}

/// Excludes the time of learning.
fn mean(bins: &[u64]) -> f64 {
    percent_of(bins.get(SECOND..).unwrap_or(&[]))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) const fn float(value: u64) -> f64 {
    value as f64
}
