//! The reports that processes on a card read of each other, and pages of containers that have no process here.
//!
//! A page holds seats, and a container can write anything into the seats of its own page. A [`Page`] reports
//! something for each of its seats as a function of the clock alone, true or not, and uses no card. The node knows
//! the container's share.

use super::{Place, START_NS, Tenant, World};
use crate::simulator::card::BIN_NS;
use crate::simulator::setup::Ablation;
use gpucap_core::page::sampled::Sampled;
use gpucap_core::throttle::{Meter, PeerReport, UsageReport};
use gpucap_core::units::{ComputeLimit, Share};

/// A page of a container without a process on the card.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The number of seats with a report.
    pub places: u64,
    /// What the container may have, as the node knows it.
    pub limit: ComputeLimit,
    /// The content of its reports.
    pub says: Says,
}

impl Page {
    /// Makes the page of a container with a fixed share of 1 %.
    #[must_use]
    pub const fn of_one_percent(places: u64, says: Says) -> Self {
        Self { places, limit: ComputeLimit::fixed(Share::LEAST), says }
    }
}

/// The last report of an ended process.
pub(super) struct Ghost {
    pub(super) card: usize,
    pub(super) page: usize,
    pub(super) key: u64,
    pub(super) report: UsageReport,
}

/// The content of each seat's report.
#[derive(Debug, Clone, Copy)]
pub enum Says {
    /// The last report of an ended process: it never changes.
    Nothing,
    /// Work has been in flight since the beginning, and this much is done in a hundred nanoseconds.
    Busy(u64),
    /// The same, though nothing was ever in flight.
    Unseen(u64),
    /// Work is in flight in every other period of this many nanoseconds, and three times as much as fits into one is
    /// done.
    Now(u64),
    /// Work goes up and down by an hour.
    Swings,
    /// The largest number in every word.
    Most,
    /// A thread waits for work of which there is none.
    Waits,
    /// A launch is held back that does not exist.
    HeldBack,
    /// Something now and then.
    Flaps(Flaps),
    /// A launch that may be long is in flight in half of each period of this many nanoseconds, and in the other half work
    /// is done without a pause.
    LongThenBusy(u64),
}

/// These bits at the beginning of each period, and none in the rest of it.
#[derive(Debug, Clone, Copy)]
pub struct Flaps {
    /// Of the second word.
    pub bits: u64,
    /// For how long.
    pub on_ns: u64,
    /// Of how long.
    pub every_ns: u64,
    /// When the first period begins.
    pub from_ns: u64,
    /// Nanoseconds of work in a hundred of that time.
    pub rate: u64,
    /// It counts as present then, whether or not the bits say that work is in flight.
    pub is_there: bool,
    /// In the rest of the period there is no page.
    pub goes: bool,
}

impl Flaps {
    /// Whether it is in the first part of a period, and for how long it has been there in all.
    fn times(&self, now: u64) -> (bool, u64) {
        let passed = now.saturating_sub(self.from_ns);
        let (periods, rest) = (passed / self.every_ns, passed % self.every_ns);
        (rest < self.on_ns, periods * self.on_ns + rest.min(self.on_ns))
    }

    fn at(&self, now: u64) -> UsageReport {
        let (is_on, on_ns) = self.times(now);
        let there_ns = if self.is_there { on_ns } else { 0 };
        let occupied = match is_on {
            true if self.bits & OUT != 0 => (now - there_ns) | self.bits,
            true => there_ns | self.bits,
            false => there_ns,
        };
        UsageReport { work: on_ns / 100 * self.rate, occupied }
    }
}

/// Set in the second word while work is in flight.
const OUT: u64 = 1 << 63;
/// Set while its launch in flight may be long.
const LONG: u64 = 1 << 62;
/// Set while a thread waits for work, and while a launch is held back.
const WAITS: u64 = 1 << 61;
const HELD: u64 = 1 << 60;

impl Says {
    fn at(self, now: u64) -> UsageReport {
        let (work, occupied) = match self {
            Self::Nothing => (0, 0),
            Self::Busy(rate) => (now / 100 * rate, OUT | 1),
            Self::Unseen(rate) => (now / 100 * rate, 0),
            Self::Now(period) => {
                let (turn, half) = (now / period, now / period / 2 * period);
                // This long before, and since the beginning of this period if it is an active one.
                let occupied = if turn % 2 == 1 { OUT | (now - half - now % period) } else { half };
                (turn.div_ceil(2) * period * 3, occupied)
            }
            Self::Swings => (now / 1_000_000 % 2 * 3_600_000_000_000, OUT | 1),
            Self::Most => (u64::MAX, u64::MAX),
            // The work changes: a wait without news counts for a time only.
            Self::Waits => (now, WAITS),
            Self::HeldBack => (now, HELD),
            Self::Flaps(flaps) => return flaps.at(now),
            Self::LongThenBusy(every_ns) => {
                let busy_ns = (now % every_ns).saturating_sub(every_ns / 2);
                let long = if busy_ns == 0 { LONG } else { 0 };
                (now / every_ns * (every_ns / 2) + busy_ns, OUT | long | 1)
            }
        };
        UsageReport { work, occupied }
    }
}

/// The first number of seats in pages without processes.
const KEYS: u64 = 1 << 40;

impl World<'_> {
    /// Reads the reports of other processes on the card of a stream, if it is time to. Returns how long that took.
    pub(super) fn look_around(&mut self, thread: usize, stream: usize, is_launch: bool) -> u64 {
        let (now, own) = (self.now, self.threads[thread].process);
        let card = self.processes[own].streams[stream].card;
        let is_due = |tenant: &Tenant<'_>| {
            let place = &tenant.places[card];
            let is_due = |meter: &Meter<'_, _>| meter.is_look_due(now);
            place.looks.may_begin(now) && place.meters.first().is_some_and(is_due)
        };
        if self.setup.without == Ablation::Page || !is_due(&self.processes[own]) {
            return 0;
        }
        let (mut peers, report) = self.own_reports(own, card);
        let place = &self.processes[own].places[card];
        let own_page = place.limit.map(|(page, _)| page);
        let borrows = place.meters.iter().any(Meter::may_borrow);
        let may_take_time =
            place.upkeep.may_take_time(now, is_launch) || place.others.is_none() || borrows;
        let mut took = self.setup.look_ns * u64::from(!peers.is_empty());
        if may_take_time {
            self.sample(card);
            let mut others = self.peer_reports(&report, own_page);
            others.extend(self.sampled_reports(card));
            took += self.setup.look_ns * others.len() as u64;
            self.processes[own].places[card].others = Some(others);
        }
        let place = &mut self.processes[own].places[card];
        peers.extend(place.others.iter().flatten());
        if place.question.is_due {
            let busy_ns = self.cards[card].all_busy_ns();
            let report = place.usage_report().map(|report| (u64::MAX, report));
            let reports =
                report.into_iter().chain(peers.iter().map(|peer| (peer.key, peer.report)));
            let found = place.question.ask(reports.collect(), self.unreported, busy_ns, now);
            place.meters.iter_mut().for_each(|meter| meter.set_unreported(found));
        }
        place.meters.iter_mut().for_each(|meter| meter.take_reports(peers.iter().copied(), now));
        place.looks.looked(now, now + took);
        took
    }

    /// A call that waits for a stream, or for all of them, begins or has returned.
    pub(super) fn waits(&mut self, thread: usize, stream: Option<usize>, begins: bool) {
        let tenant = &mut self.processes[self.threads[thread].process];
        let mut cards: Vec<usize> = match stream {
            Some(stream) => vec![tenant.streams[stream].card],
            None => tenant.streams.iter().map(|line| line.card).collect(),
        };
        cards.dedup();
        for card in cards {
            let Some(meter) = tenant.places[card].meters.first_mut() else { continue };
            if begins { meter.wait_begins() } else { meter.wait_ends() }
        }
    }

    /// Lets the node look at the samples that have come since it last did.
    fn sample(&mut self, card: usize) {
        let Some(samples) = self.setup.samples else { return };
        let (first, length) = (START_NS / BIN_NS, samples.bins * BIN_NS);
        let passed = self.now.saturating_sub(START_NS + samples.delay_ns);
        while self.looks[card] < passed / length {
            let look = self.looks[card];
            let bins = usize::try_from(first + look * samples.bins).unwrap_or(usize::MAX);
            let bins = bins..bins + usize::try_from(samples.bins).unwrap_or(usize::MAX);
            let published_at = START_NS + (look + 1) * length + samples.delay_ns;
            for process in 0..self.processes.len() {
                if self.processes[process].places[card].limit.is_none() {
                    let busy = self.cards[card].busy(process);
                    let busy: u64 = bins.clone().filter_map(|bin| busy.get(bin)).sum();
                    // In whole percents.
                    let busy_ns = busy * 100 / length * length / 100;
                    let sampled = self.sampled.entry((card, process)).or_default();
                    sampled.add(busy_ns, length, published_at);
                }
            }
            self.looks[card] += 1;
        }
    }

    /// The reports that the node publishes for processes without one, each in a page of its own.
    fn sampled_reports(&self, card: usize) -> Vec<PeerReport> {
        let here = self.sampled.iter().filter(|((of, _), _)| *of == card);
        let report = |(&(_, process), sampled): (&(usize, usize), &Sampled)| {
            let number = 2 * KEYS + process as u64;
            let limit = Some(ComputeLimit::fixed(Share::FULL));
            PeerReport { page: number, limit, key: number, report: sampled.report(self.now) }
        };
        here.map(report).filter(|peer| peer.report != UsageReport::default()).collect()
    }

    /// The reports of the other processes: those of the own container each for itself, the others with their page and
    /// share.
    fn own_reports(
        &self,
        own: usize,
        card: usize,
    ) -> (Vec<PeerReport>, Vec<(usize, ComputeLimit, UsageReport)>) {
        let own_page = self.processes[own].places[card].limit.map(|(page, _)| page);
        let others = self.processes.iter().enumerate().filter(|(number, _)| *number != own);
        let living = others.filter_map(|(_, tenant)| {
            let place = &tenant.places[card];
            Some((place.limit?.0, tenant.key, place.usage_report()?))
        });
        // The last report of an ended process stays until another one takes its seat.
        let dead = self.ghosts.iter().filter(|ghost| ghost.card == card);
        let report = living.chain(dead.map(|ghost| (ghost.page, ghost.key, ghost.report)));
        let (mut peers, mut rest) = (Vec::new(), Vec::new());
        for (page, key, report) in report {
            if Some(page) == own_page {
                peers.push(PeerReport { page: page as u64, limit: None, key, report });
            } else if let Some(limit) = self.shares.get(&(card, page)) {
                rest.push((page, *limit, report));
            }
        }
        (peers, rest)
    }

    /// The reports of other containers, each as one.
    fn peer_reports(
        &self,
        report: &[(usize, ComputeLimit, UsageReport)],
        own: Option<usize>,
    ) -> Vec<PeerReport> {
        let mut pages: Vec<_> = report.iter().map(|&(page, limit, _)| (page, limit)).collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        pages.dedup_by_key(|(page, _)| *page);
        let of_processes = pages.into_iter().filter(|(page, _)| Some(*page) != own);
        let of_processes = of_processes.map(|(page, limit)| {
            let of_it = report.iter().filter(|(other, ..)| *other == page);
            let report = UsageReport::together(of_it.map(|(.., report)| *report), self.now);
            let (number, key) = (page as u64, KEYS - 1 - page as u64);
            PeerReport { page: number, limit: Some(limit), key, report }
        });
        let is_here = |page: &Page| match page.says {
            Says::Flaps(flaps) => !flaps.goes || flaps.times(self.now).0,
            _ => true,
        };
        let of_pages = self.pages.iter().zip(KEYS..).filter(|(page, _)| is_here(page));
        let of_pages = of_pages.map(|(page, number)| {
            let says = (0..page.places).map(|_| page.says.at(self.now));
            PeerReport {
                page: number,
                limit: Some(page.limit),
                key: number,
                report: UsageReport::together(says, self.now),
            }
        });
        of_processes.chain(of_pages).collect()
    }
}

impl Place<'_> {
    /// The report of the process in its seat of the page, whose sums continue from one process to the next.
    pub(super) fn usage_report(&self) -> Option<UsageReport> {
        let (before, taken_at) = self.seat;
        let report = self.meters.first()?.usage_report().after(before, taken_at);
        Some(self.ended_at.map_or(report, |at| report.ended(at)))
    }
}
