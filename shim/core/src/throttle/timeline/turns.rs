//! Turns: how much of the time between two moments the device worked for this process.
//!
//! A device serves the processes with work in rotation, so the measured duration of an operation contains the turns
//! of others too. The other processes are known from their reports ([`UsageReport`]), each in its container's
//! [page](crate::page), which this process reads now and then. Between two looks a peer has been given what it had
//! left to do, or half of the time for which it was present, and at its end what it did not need of such halves shortly
//! before, whichever is less; all peers together, and this process, what there was to give: the smallest demands in full, the
//! rest in equal parts. That is correct in the mean. At most, each was given all that it had left in all the time for
//! which it was present, or all of that time, if it reports that its work in flight may take far longer than it has
//! reserved: what then remains is certainly this process's. Without that notice, `T10 1 in 100 takes 15 ms, waited
//! for, 30, beside 40` leaves the other one 23 of 40 %.
//!
//! A peer may publish anything. So its reports count only up to the share that the node gave its container: a page
//! has credit that fills at that share (and slightly faster, since reports are late), and reported work counts as far
//! as that credit goes. What it is taken to have been given at most has a credit of its own, which fills alike. A
//! process that publishes nothing is not seen, and more is charged than was used, never less; a false report gives
//! away at most its own container's share.

mod division;
pub(crate) mod lending;
mod peers;

use std::collections::VecDeque;

use lending::Demand;
pub(crate) use peers::LONG_TURN_NS;
use peers::{PageCredit, Peer};

use crate::{
    throttle::usage_report::{PeerReport, UsageReport},
    units::{ComputeLimit, Share},
};

/// The turns of this process on one device.
#[derive(Debug)]
pub(crate) struct Turns {
    /// What this process's container may have, and what the other ones with work in flight are guaranteed.
    limit: ComputeLimit,
    active: Demand,
    pages: Vec<PageCredit>,
    peers: Vec<Peer>,
    points: VecDeque<Point>,
    looked_at: u64,
    /// No other container was overlooked.
    sees_all: bool,
    /// Peers present at the first look have reported work from before it.
    has_looked: bool,
    /// For how long this process had had work in flight at the latest look.
    occupied_ns: u64,
}

/// A time, and how much of the time up to it was this process's, in the mean and at least, and the same of its container;
/// linear between two points.
///
/// Without the mean in presence, `W4 4 streams x 50 us` misses its bound at 30 % beside the same at 70 %; without the
/// least, `W8 10 us, sync` does at 10 % beside `W2 40 ms kernels` at 70 %.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    at: u64,
    own: u64,
    least: u64,
    container: u64,
    container_least: u64,
    /// In how much of it nothing of this process was seen in flight, and no sibling had it in the mean.
    unseen: u64,
}

/// A look costs a few system calls for each peer.
const LOOK_NS: u64 = 500_000;
/// After this time without a look a process makes no calls. If a thread looked beside calls, more would be charged than is
/// due: `T11 4 of around 3 ms and one with 10 us each 200 us, 90` would get 78 of 84.
const OVERDUE_NS: u64 = 20_000_000;
/// What was seen longer ago does not say who works now.
const FRESH_NS: u64 = 10_000_000;
/// A page that is absent for less time keeps its credit. Further pages are ignored: a node of Kubernetes runs
/// 110 pods unless it is configured otherwise.
const REMEMBERED_NS: u64 = 10_000_000_000;
const PAGES: usize = 256;
/// At least the latest half of the points is kept in full: a quarter of a second of looks. Only a size: measurements
/// that go farther back are longer, and need less.
const POINTS: usize = 1024;
/// The latest points are compared one by one before the others are searched.
const LATEST: usize = 4;

impl Turns {
    pub(crate) const fn new(now: u64) -> Self {
        Self {
            limit: ComputeLimit::fixed(Share::FULL),
            active: Demand::NONE,
            pages: Vec::new(),
            peers: Vec::new(),
            points: VecDeque::new(),
            looked_at: now,
            sees_all: true,
            has_looked: false,
            occupied_ns: 0,
        }
    }

    /// Returns whether it is time to read the peers' reports.
    pub(crate) const fn is_look_due(&self, now: u64) -> bool {
        !self.has_looked || now.saturating_sub(self.looked_at) >= LOOK_NS
    }

    /// Returns whether none has been made since `then`, or for long.
    pub(crate) const fn is_look_overdue(&self, then: u64, now: u64) -> bool {
        self.looked_at <= then || now.saturating_sub(self.looked_at) >= OVERDUE_NS
    }

    /// Takes the peers' current reports and this process's own.
    pub(crate) fn take_reports(
        &mut self,
        peers: impl Iterator<Item = PeerReport>,
        own: UsageReport,
        now: u64,
    ) {
        let passed = now.saturating_sub(self.looked_at);
        let occupied_ns = own.occupied_ns(now);
        let there = occupied_ns.saturating_sub(self.occupied_ns).min(passed);
        // What turned out later not to have been in flight is less than at the latest look. Short of a turn, the same time
        // is not counted twice; after a pause, in which no event was looked at, what follows counts all the same. Without
        // that, `T12 10 us, 30 in every other 20 ms, beside 70` misses its bound by 7 to 8 points more.
        let seen_ns =
            self.occupied_ns.min(occupied_ns.saturating_add(LONG_TURN_NS)).max(occupied_ns);
        peers.for_each(|published| self.note_report(published, [there, passed], now));
        self.peers.retain(|peer| peer.seen_at == now);
        let (own, unseen_ns) = self.divide_time(there, passed);
        self.peers.iter_mut().for_each(Peer::settle);
        self.divide(now);
        if !self.peers.is_empty() || !self.points.is_empty() {
            self.note(own, [unseen_ns, passed], now);
        }
        (self.looked_at, self.has_looked, self.occupied_ns) = (now, true, seen_ns);
    }

    /// Divides the device among the containers with work in flight.
    fn divide(&mut self, now: u64) {
        self.active = self.demand(0, now);
        for page in &mut self.pages {
            let Some(limit) = page.limit.filter(|limit| limit.borrows()) else { continue };
            let all = if page.is_active(0, now) { self.active } else { self.active.with(limit) };
            page.parts = [all, all.with(self.limit)].map(|all| all.most(limit));
        }
    }

    /// Returns the demand of the containers that are active for a launch of `launch_ns`.
    fn demand(&self, launch_ns: u64, now: u64) -> Demand {
        let active = |page: &&PageCredit| page.is_active(launch_ns, now);
        let limits = self.pages.iter().filter(active).filter_map(|page| Some((page, page.limit?)));
        limits.fold(Demand::NONE, |all, (page, limit)| {
            all.with_present(limit, page.is_held, page.is_short())
        })
    }

    /// Returns whether a container was seen that borrows: it has to know of waits.
    pub(crate) fn are_watched(&self) -> bool {
        let limits = self.pages.iter().filter_map(|page| page.limit);
        limits.into_iter().any(ComputeLimit::borrows)
    }

    /// Returns whether this process's container borrows.
    pub(crate) fn borrows(&self) -> bool {
        self.limit.borrows()
    }

    /// How many other processes of the container take turns.
    pub(crate) fn siblings(&self) -> u64 {
        self.peers.iter().filter(|peer| peer.is_own && peer.takes_turns()).count() as u64
    }

    /// Sets what this process's container may have.
    pub(crate) const fn set_limit(&mut self, limit: ComputeLimit) {
        self.limit = limit;
    }

    /// Returns the part of the device that this process's container may have, for a launch of `launch_ns`, beside the
    /// others with work in flight; `None` if there is none for it. Unless all others were seen lately that is its
    /// guarantee, and of low priority the least: a process that can keep itself from seeing them is lent nothing.
    pub(crate) fn available(&self, launch_ns: u64, now: u64) -> Option<Share> {
        let is_fresh = now.saturating_sub(self.looked_at) < FRESH_NS;
        if self.has_looked && self.sees_all && is_fresh {
            // Low priority leaves the device to others as soon as they work, and waits for no longer pause of theirs.
            let is_short = launch_ns <= lending::ACTIVE_NS || self.limit.guaranteed().is_none();
            let active = if is_short { self.active } else { self.demand(launch_ns, now) };
            active.with(self.limit).part(self.limit)
        } else {
            Some(self.limit.share())
        }
    }

    /// Sets whether the next looks see all other containers.
    pub(crate) const fn set_sees_all(&mut self, sees_all: bool) {
        self.sees_all = sees_all;
    }

    fn note_report(&mut self, published: PeerReport, [there, passed]: [u64; 2], now: u64) {
        let Some(place) = self.page(&published, there, now) else { return };
        let known = self.peers.iter().position(|peer| peer.key == published.key);
        if known.is_none() {
            // All work that a new peer reports was done since the latest look.
            let before = if self.has_looked { UsageReport::default() } else { published.report };
            self.peers.push(Peer::new(published.key, published.limit.is_none(), before, now));
        }
        let at = known.unwrap_or(self.peers.len() - 1);
        if let (Some(peer), Some(page)) = (self.peers.get_mut(at), self.pages.get_mut(place)) {
            peer.update(published.report, page, passed, now);
        }
    }

    /// Returns the place of a page, with its credit refilled.
    fn page(&mut self, published: &PeerReport, there: u64, now: u64) -> Option<usize> {
        let is_it = |page: &PageCredit| page.number == published.page;
        let forgotten = |page: &PageCredit| now.saturating_sub(page.seen_at) > REMEMBERED_NS;
        let known = self.pages.iter().position(is_it);
        let place = match known.or_else(|| self.pages.iter().position(forgotten)) {
            Some(place) => place,
            None if self.pages.len() < PAGES => {
                self.pages.push(PageCredit::new(published, now));
                self.pages.len() - 1
            }
            None => return None,
        };
        let page = self.pages.get_mut(place)?;
        if page.number == published.page {
            page.fill(published.limit, there, now);
        } else {
            *page = PageCredit::new(published, now);
        }
        Some(place)
    }

    /// What each other process of the container has in flight.
    fn siblings_left(&self) -> impl Iterator<Item = u64> {
        let siblings = self.peers.iter().filter(|peer| peer.is_own && peer.is_in_flight);
        siblings.map(|peer| u64::try_from(peer.left_ns[0]).unwrap_or(0))
    }

    /// What those have in flight together that have at most `most_ns`.
    pub(crate) fn siblings_left_ns(&self, most_ns: u64) -> u64 {
        self.siblings_left().filter(|left_ns| *left_ns <= most_ns).sum()
    }

    /// Returns whether one of them has more.
    pub(crate) fn have_siblings_longer(&self, most_ns: u64) -> bool {
        self.siblings_left().any(|left_ns| left_ns > most_ns)
    }

    /// Returns whether a launch of another process of the container has been held back since before a time.
    pub(crate) fn have_siblings_held_before(&self, since: u64) -> bool {
        let siblings = self.peers.iter().filter(|peer| peer.is_own);
        siblings.filter_map(|peer| peer.held_since).any(|at| at < since)
    }

    /// The longest time that a process waits for a turn and nothing else.
    pub(crate) fn longest_wait_ns(&self) -> u64 {
        LONG_TURN_NS.saturating_mul(self.others() + 1)
    }

    /// How many other processes take turns.
    pub(crate) fn others(&self) -> u64 {
        self.peers.iter().filter(|peer| peer.takes_turns()).count() as u64
    }

    /// Returns whether the device may have worked for another process at the latest look, or since the one before.
    pub(crate) fn has_others(&self) -> bool {
        self.peers.iter().any(Peer::may_work)
    }

    /// Returns whether it may have worked for another process of the container.
    pub(crate) fn has_siblings(&self) -> bool {
        self.peers.iter().any(|peer| peer.is_own && peer.may_work())
    }

    /// Returns how much of the time from `start` to `end` was this process's, in the mean.
    pub(crate) fn of(&self, start: u64, end: u64) -> u64 {
        self.between(start, end, |point| point.own)
    }

    /// Returns how much of it certainly was.
    pub(crate) fn at_least(&self, start: u64, end: u64) -> u64 {
        self.between(start, end, |point| point.least)
    }

    /// Returns how much of `ns` within it was, in the mean.
    pub(crate) fn part(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.of(start, end), passed).min(ns)
    }

    /// Returns how much of `ns` within it was the container's, in the mean.
    pub(crate) fn part_of_container(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.between(start, end, |point| point.container), passed).min(ns)
    }

    /// Returns how much of `ns` within it was the container's at least.
    pub(crate) fn least_part_of_container(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.between(start, end, |point| point.container_least), passed).min(ns)
    }

    /// Returns in how much of it nothing of this process was seen in flight, and no sibling had it in the mean.
    pub(crate) fn unseen(&self, start: u64, end: u64) -> u64 {
        match self.points.is_empty() {
            true => 0,
            false => self.between(start, end, |point| point.unseen),
        }
    }

    /// Returns how much of `ns` within it certainly was.
    pub(crate) fn least_part(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.at_least(start, end), passed).min(ns)
    }

    fn note(
        &mut self,
        [own_ns, least_ns, container_ns, container_least_ns]: [u64; 4],
        [unseen_ns, passed]: [u64; 2],
        now: u64,
    ) {
        if self.points.is_empty() {
            let at = now.saturating_sub(passed);
            let [own, least, container, container_least] = [now; 4];
            let unseen = 0;
            self.points.push_back(Point { at, own, least, container, container_least, unseen });
        }
        let before = self.points.back().copied().unwrap_or_default();
        if self.points.len() >= POINTS {
            // Older points are kept at lower resolution.
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place > POINTS / 2 || place % 2 == 1
            });
        }
        let own = before.own.saturating_add(own_ns);
        let least = before.least.saturating_add(least_ns);
        let container = before.container.saturating_add(container_ns);
        let unseen = before.unseen.saturating_add(unseen_ns);
        let container_least = before.container_least.saturating_add(container_least_ns);
        self.points.push_back(Point { at: now, own, least, container, container_least, unseen });
    }

    fn between(&self, start: u64, end: u64, sum: impl Fn(&Point) -> u64) -> u64 {
        if self.points.is_empty() {
            return end.saturating_sub(start);
        }
        let until = |at| self.until(at, &sum);
        until(end).saturating_sub(until(start)).min(end.saturating_sub(start))
    }

    /// Returns the place of the first point that is not before a time. Most questions are about the latest looks.
    fn after(&self, at: u64) -> usize {
        let before = self.points.iter().rev().take(LATEST).position(|point| point.at < at);
        match before {
            Some(later) => self.points.len() - later,
            None => self.points.partition_point(|point| point.at < at),
        }
    }

    /// Returns the value of a sum at a time.
    fn until(&self, at: u64, sum: impl Fn(&Point) -> u64) -> u64 {
        let after = self.after(at);
        let point = |place: usize| self.points.get(place).copied().unwrap_or_default();
        if after == 0 {
            let first = point(0);
            return sum(&first).saturating_sub(first.at.saturating_sub(at));
        }
        // Beyond the latest look the sum is extrapolated.
        let last = self.points.len() - 1;
        let (from, to) =
            if after > last { (last.saturating_sub(1), last) } else { (after - 1, after) };
        let (from, to) = (point(from), point(to));
        let (passed, gained) = (to.at.saturating_sub(from.at), sum(&to).saturating_sub(sum(&from)));
        sum(&from).saturating_add(scaled(at.saturating_sub(from.at), gained, passed))
    }
}

/// Returns `ns * part / whole`; `ns` if `whole` is zero.
pub(crate) fn scaled(ns: u64, part: u64, whole: u64) -> u64 {
    // Most products fit into a word, whose division is several times as fast.
    if let Some(product) = ns.checked_mul(part) {
        return product.checked_div(whole).unwrap_or(ns);
    }
    let scaled = (u128::from(ns) * u128::from(part)).checked_div(whole.into());
    scaled.map_or(ns, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
}
