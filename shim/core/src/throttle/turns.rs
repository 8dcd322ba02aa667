//! Turns: how much of the time between two moments the device worked for this process.
//!
//! A device serves the processes with work in rotation, so the measured duration of an operation contains the turns
//! of others too. The other processes are known from their reports ([`UsageReport`]), each in its container's
//! [page](crate::page), which this process reads now and then. Between two looks a peer has been given what it had
//! left to do, or half of the time for which it was present, whichever is less; all peers together, and this process,
//! what there was to give: the smallest demands in full, the rest in equal parts. That is correct in the mean. At
//! most, each was given all that it had left in all the time for which it was present, or all of that time, if it
//! reports that its work in flight may take far longer than it has reserved: what then remains is certainly this
//! process's. Without that notice, `T10 1 in 100 takes 15 ms, waited for, 30, beside 40` leaves the other one 23 of 40 %.
//!
//! A peer may publish anything. So its reports count only up to the share that the node gave its container: a page
//! has credit that fills at that share (and slightly faster, since reports are late), and reported work counts as far
//! as that credit goes. What it is taken to have been given at most has a credit of its own, which fills alike. A
//! process that publishes nothing is not seen, and more is charged than was used, never less; a false report gives
//! away at most its own container's share.

use std::collections::VecDeque;

use super::usage_report::{PeerReport, UNKNOWN_NS, UsageReport};
use crate::units::Share;

/// The turns of this process on one device.
#[derive(Debug)]
pub(super) struct Turns {
    pages: Vec<Page>,
    peers: Vec<Peer>,
    points: VecDeque<Point>,
    looked_at: u64,
    /// Peers present at the first look have reported work from before it.
    has_looked: bool,
    /// For how long this process had had work in flight at the latest look.
    occupied_ns: u64,
}

/// A time, and how much of the time up to it was this process's, in the mean and at least, and how much its
/// container's, in the mean; linear between two points.
///
/// Without the mean in presence, `W4 4 streams x 50 us` misses its bound at 30 % beside the same at 70 %; without the
/// least, `W8 10 us, sync` does at 10 % beside `W2 40 ms kernels` at 70 %.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    at: u64,
    own: u64,
    least: u64,
    container: u64,
}

/// How much more of a container's reports may count; of this process's own container, all of it.
#[derive(Debug)]
struct Page {
    number: u64,
    allowed_ns: u64,
    /// The same of what its processes are taken to have been given at most.
    most_allowed_ns: u64,
    seen_at: u64,
}

/// Another process on the device, or all processes of another container.
#[derive(Debug)]
struct Peer {
    key: u64,
    /// Whether it is of this process's container, and pays out of the same bucket.
    is_own: bool,
    work: u64,
    occupied_ns: u64,
    /// Its reported work that counts and has not been given yet, in the mean and at most.
    left_ns: [i64; 2],
    /// Its reported work that does not count yet.
    beyond_ns: u64,
    /// What counts at most before it is reported: the time of a launch that may be long.
    ahead_ns: u64,
    /// For how long it had work in flight since the latest look.
    there_ns: u64,
    is_in_flight: bool,
    seen_at: u64,
}

/// Reports are late, and are corrected once measured: this much more counts.
const LATE_PARTS: u64 = 8;
/// Work already in flight at the first look is unknown; this much is assumed of another container's.
const IN_FLIGHT_AT_FIRST_NS: u64 = 200_000_000;
/// Turns, and a switch from one to the next with them, are shorter.
const LONG_TURN_NS: u64 = 5_000_000;
/// A look costs a few system calls for each peer.
const LOOK_NS: u64 = 500_000;
/// Late or wrong reports are corrected by at most this much.
const MOST_LEFT_NS: u64 = 10_000_000_000;
/// A container that has used little may use its share of this much time at once: the time in which a long kernel is
/// paid off.
const SAVED_NS: u64 = 4_000_000_000;
/// A new container begins with this much credit: short-lived processes do not get fresh trust each time.
const SAVED_AT_FIRST_NS: u64 = 200_000_000;
/// A page that is absent for less time keeps its credit. Further pages are ignored.
const REMEMBERED_NS: u64 = 10_000_000_000;
const PAGES: usize = 256;
const POINTS: usize = 1024;
/// The latest points are compared one by one before the others are searched.
const LATEST: usize = 4;

impl Turns {
    pub(super) const fn new(now: u64) -> Self {
        Self {
            pages: Vec::new(),
            peers: Vec::new(),
            points: VecDeque::new(),
            looked_at: now,
            has_looked: false,
            occupied_ns: 0,
        }
    }

    /// Returns whether it is time to read the peers' reports.
    pub(super) const fn is_look_due(&self, now: u64) -> bool {
        !self.has_looked || now.saturating_sub(self.looked_at) >= LOOK_NS
    }

    /// Takes the peers' current reports and this process's own.
    pub(super) fn look(
        &mut self,
        peers: impl Iterator<Item = PeerReport>,
        own: UsageReport,
        now: u64,
    ) {
        let passed = now.saturating_sub(self.looked_at);
        let occupied_ns = own.occupied_ns(now);
        let there = occupied_ns.saturating_sub(self.occupied_ns).min(passed);
        let seen_ns = occupied_ns.max(self.occupied_ns);
        peers.for_each(|published| self.note_report(published, passed, now));
        self.peers.retain(|peer| peer.seen_at == now);
        // First the time in which this process had no work in flight, then the time in which it had.
        self.give(passed - there, passed, false);
        let rest = self.give(there, passed, true);
        self.peers.iter_mut().for_each(Peer::settle);
        if !self.peers.is_empty() || !self.points.is_empty() {
            self.note(rest.map(|rest| scaled(passed, rest, there)), passed, now);
        }
        (self.looked_at, self.has_looked, self.occupied_ns) = (now, true, seen_ns);
    }

    fn note_report(&mut self, published: PeerReport, passed: u64, now: u64) {
        let Some(place) = self.page(&published, now) else { return };
        let known = self.peers.iter().position(|peer| peer.key == published.key);
        if known.is_none() {
            // All work that a new peer reports was done since the latest look.
            let before = if self.has_looked { UsageReport::default() } else { published.report };
            self.peers.push(Peer::new(published.key, published.share.is_none(), before, now));
        }
        let at = known.unwrap_or(self.peers.len() - 1);
        if let (Some(peer), Some(page)) = (self.peers.get_mut(at), self.pages.get_mut(place)) {
            peer.update(published.report, page, passed, now);
        }
    }

    /// Returns the place of a page, with its credit refilled.
    fn page(&mut self, published: &PeerReport, now: u64) -> Option<usize> {
        let is_it = |page: &Page| page.number == published.page;
        let forgotten = |page: &Page| now.saturating_sub(page.seen_at) > REMEMBERED_NS;
        let known = self.pages.iter().position(is_it);
        let place = match known.or_else(|| self.pages.iter().position(forgotten)) {
            Some(place) => place,
            None if self.pages.len() < PAGES => {
                self.pages.push(Page::new(published, now));
                self.pages.len() - 1
            }
            None => return None,
        };
        let page = self.pages.get_mut(place)?;
        if page.number == published.page {
            page.fill(published.share, now);
        } else {
            *page = Page::new(published, now);
        }
        Some(place)
    }

    /// Gives the peers, and this process too if it was present, their parts of `ns` out of `passed`. Returns what is
    /// left, in the mean and at least, and what of it is the container's in the mean.
    fn give(&mut self, ns: u64, passed: u64, is_there: bool) -> [u64; 3] {
        let own = u64::from(is_there);
        let there = |peer: &Peer| scaled(peer.there_ns, ns, passed);
        let left = |ns: i64| u64::try_from(ns).unwrap_or(0);
        let wants = |peer: &Peer| {
            let [left_ns, _] = peer.left_ns;
            left(left_ns).min(there(peer) / (1 + own))
        };
        self.peers.sort_unstable_by_key(wants);
        let mut takers = self.peers.len() as u64 + own;
        let [mut rest, mut least, mut container] = [ns; 3];
        for peer in &mut self.peers {
            let given_ns = wants(peer).min(rest / takers.max(1));
            let [left_ns, left_most_ns] = peer.left_ns;
            let most_ns = left(left_most_ns).min(there(peer)).max(given_ns);
            peer.left_ns = [
                left_ns.saturating_sub(signed(given_ns)),
                left_most_ns.saturating_sub(signed(most_ns)),
            ];
            rest -= given_ns;
            container -= if peer.is_own { 0 } else { given_ns };
            least = least.saturating_sub(most_ns);
            takers -= 1;
        }
        [rest, least, container]
    }

    /// The longest time that a process waits for a turn and nothing else. If what lasts longer counted with its least
    /// too, `T10 1 in 100 takes 15 ms, waited for, 10, beside 40` would miss its bound.
    pub(super) fn longest_wait_ns(&self) -> u64 {
        let out = self.peers.iter().filter(|peer| peer.is_in_flight).count();
        LONG_TURN_NS.saturating_mul(out as u64 + 1)
    }

    /// Returns how much of the time from `start` to `end` was this process's, in the mean.
    pub(super) fn of(&self, start: u64, end: u64) -> u64 {
        self.between(start, end, |point| point.own)
    }

    /// Returns how much of it certainly was.
    pub(super) fn at_least(&self, start: u64, end: u64) -> u64 {
        self.between(start, end, |point| point.least)
    }

    /// Returns how much of `ns` within it was, in the mean.
    pub(super) fn part(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.of(start, end), passed).min(ns)
    }

    /// Returns how much of `ns` within it was the container's, in the mean.
    pub(super) fn part_of_container(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.between(start, end, |point| point.container), passed).min(ns)
    }

    /// Returns how much of `ns` within it certainly was.
    pub(super) fn least_part(&self, ns: u64, start: u64, end: u64) -> u64 {
        let passed = end.saturating_sub(start);
        scaled(ns, self.at_least(start, end), passed).min(ns)
    }

    fn note(&mut self, [own_ns, least_ns, container_ns]: [u64; 3], passed: u64, now: u64) {
        if self.points.is_empty() {
            let at = now.saturating_sub(passed);
            self.points.push_back(Point { at, own: now, least: now, container: now });
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
        self.points.push_back(Point { at: now, own, least, container });
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
pub(super) fn scaled(ns: u64, part: u64, whole: u64) -> u64 {
    // Most products fit into a word, whose division is several times as fast.
    if let Some(product) = ns.checked_mul(part) {
        return product.checked_div(whole).unwrap_or(ns);
    }
    let scaled = (u128::from(ns) * u128::from(part)).checked_div(whole.into());
    scaled.map_or(ns, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
}

impl Page {
    fn new(published: &PeerReport, now: u64) -> Self {
        let allowed_ns = published.share.map_or(u64::MAX, |share| share.of(SAVED_AT_FIRST_NS));
        Self { number: published.page, allowed_ns, most_allowed_ns: allowed_ns, seen_at: now }
    }

    fn fill(&mut self, share: Option<Share>, now: u64) {
        let passed = now.saturating_sub(std::mem::replace(&mut self.seen_at, now));
        let Some(share) = share else { return };
        let more = share.of(passed);
        let more = more.saturating_add(more / LATE_PARTS);
        for credit in [&mut self.allowed_ns, &mut self.most_allowed_ns] {
            *credit = credit.saturating_add(more).min(share.of(SAVED_NS));
        }
    }

    /// Takes back that so much counted.
    const fn refund(&mut self, ns: u64) {
        self.allowed_ns = self.allowed_ns.saturating_add(ns);
        self.most_allowed_ns = self.most_allowed_ns.saturating_add(ns);
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

impl Peer {
    const fn new(key: u64, is_own: bool, report: UsageReport, now: u64) -> Self {
        let (work, occupied_ns, is_in_flight) =
            (report.work, report.occupied_ns(now), report.is_in_flight());
        let beyond_ns = if is_in_flight && !is_own { IN_FLIGHT_AT_FIRST_NS } else { 0 };
        Self {
            key,
            is_own,
            work,
            occupied_ns,
            left_ns: [0; 2],
            beyond_ns,
            ahead_ns: 0,
            there_ns: 0,
            is_in_flight,
            seen_at: now,
        }
    }

    fn update(&mut self, report: UsageReport, page: &mut Page, passed: u64, now: u64) {
        let occupied_ns = report.occupied_ns(now);
        self.there_ns = occupied_ns.saturating_sub(self.occupied_ns).min(passed);
        let more = report.work.wrapping_sub(self.work).cast_signed();
        // Within a container unmeasured work counts once it is measured: see `account`.
        let unknown = signed(UNKNOWN_NS);
        let more = match more {
            change if self.is_own && change > unknown / 2 => change.saturating_sub(unknown),
            change if self.is_own && change < -unknown / 2 => change.saturating_add(unknown),
            change => change,
        };
        match u64::try_from(more) {
            Ok(more) => self.beyond_ns = self.beyond_ns.saturating_add(more).min(MOST_LEFT_NS),
            Err(_less) => {
                // Work that never counted goes first; the rest was reported but was not present.
                let less = more.unsigned_abs();
                let never = less.min(self.beyond_ns);
                self.beyond_ns -= never;
                let less = signed(less - never);
                let [left_ns, most_ns] = self.left_ns.map(|ns| ns.saturating_sub(less));
                // It has had what it was given.
                let given = left_ns.min(0).unsigned_abs();
                page.refund(less.unsigned_abs().saturating_sub(given));
                self.left_ns = [left_ns.max(0), most_ns.max(0)];
            }
        }
        let counts = self.beyond_ns.min(page.allowed_ns);
        self.beyond_ns -= counts;
        page.allowed_ns -= counts;
        let counted_ahead = self.ahead_ns.min(counts);
        self.ahead_ns -= counted_ahead;
        // Its launch in flight may take far longer than it has reported: at most, it was given all of the time.
        let ahead = if report.may_be_long() { self.there_ns } else { 0 };
        let at_most = (counts - counted_ahead).saturating_add(ahead).min(page.most_allowed_ns);
        page.most_allowed_ns -= at_most;
        self.ahead_ns = self.ahead_ns.saturating_add(ahead.min(at_most));
        let [left_ns, most_ns] = self.left_ns;
        let add = |ns: i64, more| ns.saturating_add_unsigned(more).min(signed(MOST_LEFT_NS));
        self.left_ns = [add(left_ns, counts), add(most_ns, at_most)];
        // A surplus that did not count now is not reported again.
        self.occupied_ns = self.occupied_ns.max(occupied_ns);
        self.work = report.work;
        (self.is_in_flight, self.seen_at) = (report.is_in_flight(), now);
    }

    /// Demand that remained when it had no more work in flight was given between two looks.
    fn settle(&mut self) {
        if !self.is_in_flight {
            (self.left_ns, self.beyond_ns, self.ahead_ns) = ([0; 2], 0, 0);
        }
    }
}
