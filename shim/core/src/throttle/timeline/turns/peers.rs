//! What is kept of the peers on a device: the credit of each container's page, and what each peer has left to be given.

use super::lending::{ACTIVE_NS, SHORT_NS, SILENT_NS, WAITING_NS};
use crate::{
    throttle::usage_report::{PeerReport, UNKNOWN_NS, UsageReport},
    units::{ComputeLimit, Share, signed},
};

/// How much more of a container's reports may count; of this process's own container, all of it.
#[derive(Debug)]
pub(crate) struct PageCredit {
    pub(crate) number: u64,
    /// What the node wrote about its container; `None` for this process's own.
    pub(crate) limit: Option<ComputeLimit>,
    /// The part of the device that it may have at present: while this process's container is idle, and beside it.
    pub(crate) parts: [Option<Share>; 2],
    /// When it last showed work; `None` if it was not seen to. And whether it had work in flight at the latest look.
    pub(crate) active_at: Option<u64>,
    pub(crate) is_in_flight: bool,
    /// Its launches are held back by its own limit, and nothing of it is on the device.
    pub(crate) is_held: bool,
    /// By how much it is behind its guarantee since it was last idle or held back. A new process does not know since when
    /// and takes it to be nearly short: if it had to find out first, `W8 10 us, sync` at a fixed 50 % would get 36 beside
    /// processes of 30 to 100 % that live for 30 ms each (`attacks killed`).
    pub(crate) behind_ns: i64,
    pub(crate) allowed_ns: u64,
    /// The same of what its processes are taken to have been given at most.
    pub(crate) most_allowed_ns: u64,
    pub(crate) seen_at: u64,
}

/// Another process on the device, or all processes of another container.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) key: u64,
    /// Whether it is of this process's container, and pays out of the same bucket.
    pub(crate) is_own: bool,
    /// It has a launch of unknown length in flight, of which nothing counts until it is measured.
    is_unmeasured: bool,
    pub(crate) work: u64,
    pub(crate) occupied_ns: u64,
    /// Its reported work that counts and has not been given yet, in the mean and at most.
    pub(crate) left_ns: [i64; 2],
    /// Its reported work that does not count yet.
    pub(crate) beyond_ns: u64,
    /// What counts at most before it is reported: the time of a launch that may be long.
    pub(crate) ahead_ns: u64,
    /// How much of what was reported had counted ahead.
    pub(crate) was_ahead_ns: u64,
    /// For how long it had work in flight since the latest look.
    pub(crate) there_ns: u64,
    /// What it was entitled to lately, and did not need.
    pub(crate) unused_ns: u64,
    pub(crate) is_in_flight: bool,
    /// Since when a thread of it has been waiting, or may have had a long launch in flight, and nothing has changed;
    /// `None` if none does.
    pub(crate) waits_since: Option<u64>,
    /// Since when its latest launch has been held back, at the longest.
    pub(crate) held_since: Option<u64>,
    /// What it published last, and since when.
    report: UsageReport,
    changed_at: u64,
    pub(crate) seen_at: u64,
}

/// Reports are late, and are corrected once measured: this much more counts.
const LATE_PARTS: u64 = 8;
/// Work already in flight at the first look is unknown; this much is assumed of another container's.
const IN_FLIGHT_AT_FIRST_NS: u64 = 200_000_000;
/// Turns, and a switch from one to the next with them, are shorter.
pub(crate) const LONG_TURN_NS: u64 = 5_000_000;
/// Late or wrong reports are corrected by at most this much.
const MOST_LEFT_NS: u64 = 10_000_000_000;
/// Work in flight beyond what was reported is reported at least this often: without news, a process that does not take
/// turns is stopped, or has not looked at what has ended.
const SILENT_AT_LEAST_NS: u64 = 200_000_000;
/// A container that has used little may use its share of this much time at once: the time in which a long kernel is
/// paid off.
const MOST_CREDIT_NS: u64 = 4_000_000_000;
/// A new container begins with this much credit: short-lived processes do not get fresh trust each time.
const CREDIT_AT_FIRST_NS: u64 = 200_000_000;

impl PageCredit {
    pub(crate) fn new(published: &PeerReport, now: u64) -> Self {
        let guaranteed = published.limit.and_then(ComputeLimit::guaranteed);
        let allowed_ns = match published.limit {
            None => u64::MAX,
            Some(_) => guaranteed.map_or(0, |share| share.of(CREDIT_AT_FIRST_NS)),
        };
        Self {
            number: published.page,
            limit: published.limit,
            parts: [guaranteed; 2],
            active_at: None,
            is_in_flight: false,
            is_held: false,
            behind_ns: signed(guaranteed.map_or(0, |share| share.of(SHORT_NS))),
            allowed_ns,
            most_allowed_ns: allowed_ns,
            seen_at: now,
        }
    }

    /// Fills the credit at the part of the device that the container may have, this process's having been `there` for
    /// some of the time. What it saves is as for its guarantee. If reports counted beyond it,
    /// `C1 false reports: 64 places at 4 x the clock; 5 ms` would miss its bound at 30 % beside 70.
    pub(crate) fn fill(&mut self, limit: Option<ComputeLimit>, there: u64, now: u64) {
        let passed = now.saturating_sub(std::mem::replace(&mut self.seen_at, now));
        if limit != self.limit {
            (self.limit, self.parts) = (limit, [limit.and_then(ComputeLimit::guaranteed); 2]);
        }
        let Some(limit) = limit else { return };
        let [alone, beside] = self.parts.map(|part| move |ns| part.map_or(0, |part| part.of(ns)));
        let more = alone(passed.saturating_sub(there)) + beside(there.min(passed));
        let more = more.saturating_add(more / LATE_PARTS);
        let saved_ns = limit.share().of(MOST_CREDIT_NS);
        for credit in [&mut self.allowed_ns, &mut self.most_allowed_ns] {
            *credit = credit.saturating_add(more).min(saved_ns);
        }
    }

    /// Returns whether its container is taken to have work, for a launch of `launch_ns` that would run in its time.
    /// Without a pause as long as that, `W2 40 ms kernels beside W5 training step` misses its bound at 30 and 70 %.
    pub(crate) fn is_active(&self, launch_ns: u64, now: u64) -> bool {
        let least_ns = if self.is_in_flight { SILENT_NS } else { ACTIVE_NS };
        self.active_at.is_some_and(|at| now.saturating_sub(at) < least_ns.max(launch_ns))
    }

    /// Notes the work that it reported in this time, throughout which it was active. What it reports at once it may do
    /// for as long as its share takes for it.
    fn note_work(&mut self, work_ns: u64, passed: u64) {
        let Some(share) = self.limit.and_then(ComputeLimit::guaranteed) else { return };
        let behind_ns = self.behind_ns.saturating_add_unsigned(share.of(passed));
        let behind_ns = match signed(work_ns) {
            0 => behind_ns,
            work_ns => behind_ns.saturating_sub(work_ns).max(-work_ns),
        };
        self.behind_ns = behind_ns.min(signed(share.of(2 * SHORT_NS)));
    }

    /// Returns whether it gets less than its guarantee: others borrow nothing then. If they did,
    /// `W1 10 us kernels beside W8 10 us, sync beside W10 inference 4 ms` would miss its bound at 20 % each.
    pub(crate) fn is_short(&self) -> bool {
        let guaranteed = self.limit.and_then(ComputeLimit::guaranteed);
        guaranteed.is_some_and(|share| self.behind_ns > signed(share.of(SHORT_NS)))
    }

    /// Takes back what counted, in the mean and at most.
    pub(crate) const fn refund(&mut self, [mean_ns, most_ns]: [u64; 2]) {
        self.allowed_ns = self.allowed_ns.saturating_add(mean_ns);
        self.most_allowed_ns = self.most_allowed_ns.saturating_add(most_ns);
    }
}

impl Peer {
    pub(crate) const fn new(key: u64, is_own: bool, report: UsageReport, now: u64) -> Self {
        let (work, occupied_ns, is_in_flight) =
            (report.work, report.occupied_ns(now), report.is_in_flight());
        let beyond_ns = if is_in_flight && !is_own { IN_FLIGHT_AT_FIRST_NS } else { 0 };
        Self {
            key,
            is_own,
            is_unmeasured: false,
            work,
            occupied_ns,
            left_ns: [0; 2],
            beyond_ns,
            ahead_ns: 0,
            was_ahead_ns: 0,
            there_ns: 0,
            unused_ns: 0,
            is_in_flight,
            waits_since: None,
            held_since: None,
            report,
            changed_at: now,
            seen_at: now,
        }
    }

    /// Returns whether it takes turns of the container for work of which nothing counts yet.
    pub(crate) const fn works_unmeasured(&self) -> bool {
        self.is_unmeasured && self.is_in_flight
    }

    pub(crate) fn update(
        &mut self,
        report: UsageReport,
        page: &mut PageCredit,
        passed: u64,
        now: u64,
    ) {
        let occupied_ns = report.occupied_ns(now);
        self.there_ns = occupied_ns.saturating_sub(self.occupied_ns).min(passed);
        if std::mem::replace(&mut self.report, report) != report {
            self.changed_at = now;
        }
        let more = report.work.wrapping_sub(self.work).cast_signed();
        // Within a container unmeasured work counts once it is measured: see `time_account`.
        let unknown = signed(UNKNOWN_NS);
        let (more, is_unmeasured) = match more {
            change if self.is_own && change > unknown / 2 => (change.saturating_sub(unknown), true),
            change if self.is_own && change < -unknown / 2 => {
                (change.saturating_add(unknown), false)
            }
            change => (change, self.is_unmeasured),
        };
        self.is_unmeasured = is_unmeasured;
        match u64::try_from(more) {
            Ok(more) => self.beyond_ns = self.beyond_ns.saturating_add(more).min(MOST_LEFT_NS),
            Err(_less) => {
                // Work that never counted goes first; the rest was reported but was not present.
                let less = more.unsigned_abs();
                let never = less.min(self.beyond_ns);
                self.beyond_ns -= never;
                let less = less - never;
                // At most, the time of a launch that may be long counted before its work was reported, and counts still.
                let ahead = less.min(self.was_ahead_ns);
                self.was_ahead_ns -= ahead;
                self.ahead_ns = self.ahead_ns.saturating_add(ahead);
                let [left_ns, most_ns] = self.left_ns;
                let (left_ns, left_back) = taken_back(left_ns, less);
                let (most_ns, most_back) = taken_back(most_ns, less - ahead);
                page.refund([left_back, most_back]);
                self.left_ns = [left_ns, most_ns];
            }
        }
        let counts = self.beyond_ns.min(page.allowed_ns);
        self.beyond_ns -= counts;
        page.allowed_ns -= counts;
        let counted_ahead = self.ahead_ns.min(counts);
        self.ahead_ns -= counted_ahead;
        self.was_ahead_ns = self.was_ahead_ns.saturating_add(counted_ahead);
        // Its launch in flight may take far longer than it has reported: at most, it was given all of the time.
        let ahead = if report.may_be_long() { self.there_ns } else { 0 };
        let at_most = (counts - counted_ahead).saturating_add(ahead).min(page.most_allowed_ns);
        page.most_allowed_ns -= at_most;
        self.ahead_ns = self.ahead_ns.saturating_add(ahead.min(at_most));
        // A process that makes no call publishes nothing: of work in flight, no more is left than was reported.
        let [left_ns, most_ns] = self.left_ns;
        let begins = self.waits_since.filter(|_| report.work == self.work).unwrap_or(now);
        let waits = report.waits() || report.is_held_back() || report.may_be_long();
        self.waits_since = waits.then_some(begins);
        let waits = self.waits_since.is_some_and(|since| now.saturating_sub(since) < WAITING_NS);
        // Nor does one that is stopped keep its turn for ever.
        self.held_since = (waits && report.is_held_back()).then_some(begins);
        let has_more = report.work != self.work || left_ns > 0;
        // Work in flight of which nothing is seen may have ended without the process having looked.
        let works = if report.is_in_flight() { has_more } else { self.there_ns > 0 };
        if works || waits {
            page.active_at = Some(now);
        }
        page.is_in_flight = report.is_in_flight();
        let add = |ns: i64, more| ns.saturating_add_unsigned(more).min(signed(MOST_LEFT_NS));
        self.left_ns = [add(left_ns, counts), add(most_ns, at_most)];
        let is_done = !report.is_in_flight() || self.left_ns[0] <= 0;
        page.is_held = report.is_held_back() && !report.waits() && is_done;
        if report.is_held_back() || !page.is_active(0, now) {
            page.behind_ns = 0;
        } else {
            // Since it was last seen: of a page that is seen first, nothing is known of the time before.
            page.note_work(u64::try_from(more).unwrap_or(0), now.saturating_sub(self.seen_at));
        }
        // What turned out later not to have been in flight is not counted twice. That of another container is held to less
        // than a turn of it, as the own is: without that, `T12 10 us, 30 in every other 20 ms, beside 70` costs the other
        // one up to 7 points more.
        let surplus_ns = if self.is_own { u64::MAX } else { LONG_TURN_NS };
        let most_ns = occupied_ns.saturating_add(surplus_ns);
        self.occupied_ns = self.occupied_ns.min(most_ns).max(occupied_ns);
        self.work = report.work;
        (self.is_in_flight, self.seen_at) = (report.is_in_flight(), now);
    }

    /// Returns whether it may be given a turn: it has work in flight, and what it reported, as far as it counts, is not
    /// all given. If presence alone were enough, four pages of fixed 1 % with false reports would let
    /// `W19 10 us, some 10 ms`, 30, take 50 %, and an honest 62 % beside it would get 47
    /// (`attacks collusion`).
    pub(crate) const fn takes_turns(&self) -> bool {
        let [left_ns, most_ns] = self.left_ns;
        self.is_in_flight && (left_ns > 0 || most_ns > 0)
    }

    /// Returns whether the device may have worked for it lately.
    pub(crate) const fn may_work(&self) -> bool {
        let is_silent = self.seen_at.saturating_sub(self.changed_at) >= SILENT_AT_LEAST_NS;
        (self.is_in_flight || self.there_ns > 0) && (!is_silent || self.takes_turns())
    }

    /// Demand that remained when it had no more work in flight was given between two looks.
    pub(crate) fn settle(&mut self) {
        if !self.is_in_flight {
            (self.left_ns, self.beyond_ns) = ([0; 2], 0);
            (self.ahead_ns, self.was_ahead_ns) = (0, 0);
        }
    }
}

/// Takes `ns` back from what a peer had left. Returns what is left, and how much of it came back: what it had been given,
/// and more, remains. Without that, a report that is taken back now and then would let a peer be given a tenth more than
/// its share, at most, and `C1 false reports: up and down by an hour; 20 ms` would miss its bound.
fn taken_back(left_ns: i64, ns: u64) -> (i64, u64) {
    let back = u64::try_from(left_ns).unwrap_or(0).min(ns);
    (left_ns.saturating_sub_unsigned(back), back)
}
