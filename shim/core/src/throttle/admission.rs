//! Which launches go, and what is reserved for them.
//!
//! The gate closes at an empty bucket and opens at a quantum, so that one wake-up covers many launches. Beside it:
//!
//! * a launch that others wait for goes at once, and is paid for afterwards, up to a bound: a collective, and work
//!   before one in the streams of a device that others wait for;
//! * one launch goes if nothing has moved for a long time: the work in flight may wait for it;
//! * of launches of unknown length, one at a time is in flight.
//!
//! What is reserved and not settled, [`reserved_ns`](Admission::reserved_ns), is exactly the sum of what went in
//! less what came out: of each reservation, all is given back, and what was due is charged.

pub(crate) mod bucket;
pub(crate) mod dead;
pub(crate) mod gang;
mod recheck;
pub(crate) mod reserve;
pub(crate) mod shares;
pub(crate) mod unknown;
mod watch;
mod watched;

use bucket::{Bucket, PERIOD_NS};
use gang::Gang;
use shares::Shares;
use unknown::UnknownLaunches;
use watched::Watched;

use super::{
    charging::{Charging, time_account::TimeAccount},
    signature::{Launch, Meeting},
    timeline::Timeline,
};
use crate::units::{ComputeLimit, Share, signed};

/// The decisions at the gate of a device, as one process makes them.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    shares: Shares<'a>,
    limit: ComputeLimit,
    /// A container without a guarantee runs only in what is lent to it: not while an owner works.
    may_run: bool,
    gang: Gang<'a>,
    /// Between two openings no launch goes until the bucket holds a quantum.
    is_open: bool,
    /// The bucket holds enough for the launch that is held back: it waits for work in flight to end. If peers took that
    /// for the limit, `W7 kernel + copy`, fixed, 70, would get 38 of 46 beside one that borrows, 10 (`attacks owners`).
    waits_for_device: bool,
    /// From this time on, a launch that found the bucket empty may go as soon as the bucket holds anything.
    reopens_at: u64,
    /// How many launches were let through since the gate was last open only because nothing moved.
    let_through: u32,
    /// Since when the latest launch is held back; and since when it leaves its turn to another process.
    held_since: Option<u64>,
    yields_since: Option<u64>,
    /// When an owner came back the latest time, and what part of the device that left.
    came_back: Option<(u64, Option<Share>)>,
    /// Time that is reserved and not settled; and what of it is of long launches.
    reserved_ns: u64,
    long_ns: u64,
    /// What of it has passed already, in work that takes longer than expected.
    late_ns: u64,
    /// All time that was due beyond the guarantee.
    borrowed_ns: u64,
    /// Launches in flight whose signature has no measurement yet.
    unmeasured: u64,
    unknown: UnknownLaunches<'a>,
    watched: Watched,
    launches: u64,
    waits: u64,
    stalls: u64,
}

/// A process of the container that has waited for this long has the next turn of what is lent. Without a least wait,
/// queues of 2 ms and of 0.4 ms use 65 % of the device (`lending siblings`; `ci/ablations least-wait`).
const SIBLING_WAIT_NS: u64 = PERIOD_NS / 2;
/// It is left to it for this long: in that time it asks, if that is what it waits for.
const YIELD_NS: u64 = 2_000_000;
/// Work in flight for this long without a reached event may be waiting for the launch that waits for it.
const STALL_NS: u64 = 2_000_000_000;
const STALL_ESTIMATES: u64 = 8;
/// The same while an unmeasured launch is in flight: it may be a long kernel, and so may the next one.
const STALL_UNMEASURED_NS: u64 = 10_000_000_000;
/// After each launch that was let through because nothing moved, the stall time doubles, until the gate opens
/// regularly: a launch that others wait for comes soon, and a queue of long kernels must not grow without bound.
const MOST_STALL_DOUBLINGS: u32 = 10;
/// The debt up to which a collective goes at once and is paid for afterwards, in time to flow in. A step of a program
/// with other kernels never owes this much for its collectives; without the bound, a program of collectives alone
/// would never pay.
const CREDIT_NS: u64 = 10_000_000_000;
/// The debt up to which a collective goes at once while its device meets no other device of the container. As far as
/// the meter sees nothing waits for it, and any kernel can be named as a collective, so only this much device time is
/// lent: a hundredth of ten seconds. Else `T9 named as collectives, 300 ms` misses its bound at 5 % by 92 points.
const CREDIT_ALONE_NS: u64 = 100_000_000;

impl<'a> Admission<'a> {
    pub(crate) fn new(bucket: Bucket<'a>, now: u64) -> Self {
        Self {
            limit: ComputeLimit::fixed(bucket.share()),
            shares: Shares::new(bucket),
            may_run: true,
            gang: Gang::alone(),
            is_open: true,
            waits_for_device: false,
            reopens_at: now,
            let_through: 0,
            held_since: None,
            yields_since: None,
            came_back: None,
            reserved_ns: 0,
            long_ns: 0,
            late_ns: 0,
            borrowed_ns: 0,
            unmeasured: 0,
            unknown: UnknownLaunches::new(None, 0),
            watched: Watched::default(),
            launches: 0,
            waits: 0,
            stalls: 0,
        }
    }

    /// Adds the container's other devices and processes: processes may differ in their shares, and devices may meet.
    pub(crate) fn among(self, gang: Gang<'a>) -> Self {
        let unknown = UnknownLaunches::new(gang.unknown(), gang.process());
        Self { shares: self.shares.published_in(gang.shares()), unknown, gang, ..self }
    }

    /// The account of the container's processes on the device.
    pub(crate) fn account(&self) -> TimeAccount<'_> {
        self.gang.account()
    }

    /// Changes the limit from now on.
    pub(crate) fn set_limit(&mut self, limit: ComputeLimit, now: u64) {
        self.limit = limit;
        self.shares.set_limit(limit, self.reserved_ns, now);
    }

    /// Sets the part of the device that the container may have at present; `None` if there is none for it.
    pub(crate) fn lend(&mut self, part: Option<Share>, now: u64) {
        self.may_run = part.is_some();
        self.shares.lend(part, self.short_ns(), now);
    }

    /// Records that the owner of what is lent has come back, which leaves this part: what of it is in flight still is paid
    /// for out of the guarantee, if there is one.
    pub(crate) fn gives_back(&mut self, part: Option<Share>, now: u64) {
        self.came_back = Some((now, part));
        if self.limit.guaranteed().is_some() {
            self.shares.gives_back(self.short_ns(), now);
        }
    }

    /// What is reserved of launches that are not long.
    const fn short_ns(&self) -> u64 {
        self.reserved_ns.saturating_sub(self.long_ns)
    }

    /// What is lent to the container at present.
    pub(crate) const fn lent(&self) -> Option<Share> {
        self.shares.lent()
    }

    /// The limit of this process.
    pub(crate) const fn limit(&self) -> ComputeLimit {
        self.limit
    }

    /// How many launches there were, how many had to wait, and how many went only because nothing moved.
    pub(crate) const fn counts(&self) -> [u64; 3] {
        [self.launches, self.waits, self.stalls]
    }

    /// Time that is reserved and not settled.
    pub(crate) const fn reserved_ns(&self) -> u64 {
        self.reserved_ns
    }

    /// All time that was due beyond the guarantee.
    pub(crate) const fn borrowed_ns(&self) -> u64 {
        self.borrowed_ns
    }

    /// Returns whether the limit holds the latest launch back, and not that the device has not done what is in flight.
    pub(crate) const fn is_at_limit(&self) -> bool {
        self.held_since.is_some() && (!self.waits_for_device || self.lent().is_some())
    }

    /// Returns whether a launch of unknown length is in flight.
    pub(crate) const fn has_unmeasured(&self) -> bool {
        self.unmeasured > 0
    }

    /// Returns when to ask again about a launch; `None` if it may go now.
    pub(crate) fn waits_until<E>(
        &mut self,
        launch: Launch,
        now: u64,
        timeline: &mut Timeline<E>,
        charging: &Charging,
    ) -> Option<u64> {
        self.shares.follow(self.reserved_ns, now);
        // Nothing would show the end of one more, nor what it takes: the others would be free.
        let is_free = self.shares.share() == Share::FULL;
        let has_room = timeline.has_much_room() || is_free;
        // Whether the gate is open matters even for launches that are exempt: the size of their allowance depends on it.
        let mut passes = self.passes(launch, now, timeline, charging) && has_room;
        let is_unknown = passes && self.is_unknown(launch, charging);
        let is_second = is_unknown && !self.begins_unknown(now, timeline);
        if !passes {
            self.unknown.pause();
        }
        if is_unknown && !is_second {
            // What the one before took was charged before its end was noted.
            passes = self.passes(launch, now, timeline, charging);
            if !passes {
                self.unknown.end();
            }
        }
        let may_stall = timeline.has_room() || is_free;
        if passes && !is_second || may_stall && self.is_stalled(now, timeline) {
            self.launches += 1;
            (self.held_since, self.yields_since) = (None, None);
            return None;
        }
        self.waits += 1;
        let held_ns = now.saturating_sub(*self.held_since.get_or_insert(now));
        Some(self.asks_again(is_second.then_some(held_ns), now, timeline, charging))
    }

    /// Returns whether a launch passes the gate, and leaves its turn to no other process.
    fn passes<E>(
        &mut self,
        launch: Launch,
        now: u64,
        timeline: &mut Timeline<E>,
        charging: &Charging,
    ) -> bool {
        let beside_ns = self.beside_ns(launch, charging);
        (self.opens(beside_ns, now, timeline, charging) || self.is_urgent(launch, now))
            && !self.yields(beside_ns, now, timeline)
    }

    /// Returns whether the gate is open. A thread that slept until the bucket should have held a quantum goes with
    /// less: another process may have taken it first.
    ///
    /// For operations that run side by side the sum is reserved, and most of it comes back. Without counting that in,
    /// a few short streams would close the gate long before the device has work for a turn.
    ///
    /// The gate is also closed while a device that this one meets is in debt.
    fn opens<E>(
        &mut self,
        beside_ns: u64,
        now: u64,
        timeline: &mut Timeline<E>,
        charging: &Charging,
    ) -> bool {
        let others_at = self.gang.out_of_debt_at(now);
        if !self.is_open && now < self.reopens_at && others_at > 0 {
            self.reopens_at = self.reopening(others_at, now);
        }
        let mut opens = self.has_enough(beside_ns, others_at, now, timeline, charging);
        if self.is_open && !opens {
            self.close_allowances(now, timeline);
            // Allowances are a large part of the little that may be borrowed at once.
            opens = self.lent().is_some()
                && self.has_enough(beside_ns, others_at, now, timeline, charging);
        }
        if self.is_open && !opens {
            self.reopens_at = self.reopening(others_at, now);
        }
        if opens {
            self.let_through = 0;
        }
        self.is_open = opens;
        opens
    }

    /// Returns whether there is enough for the gate to be open.
    fn has_enough<E>(
        &mut self,
        beside_ns: u64,
        others_at: u64,
        now: u64,
        timeline: &mut Timeline<E>,
        charging: &Charging,
    ) -> bool {
        // What is late has passed: it is not expected back.
        let back = charging.overlap_of(self.reserved_ns.saturating_sub(self.late_ns));
        let balance = self.shares.balance(now).saturating_add(signed(back));
        // The device may give less than the share: work that piles up in the mean time would run all at once. A queue
        // that waits for the host does not pile up by being slow: it is filled at the share's rate.
        let still_ns = timeline.stuck_ns(now).saturating_add(self.late_ns).saturating_add(back);
        let moving_ns = self.reserved_ns.saturating_sub(still_ns);
        // The owner of what is lent waits for all that the container has in flight: without this, 32 processes of low
        // priority with kernels of 0.4 ms leave `W5 training step`, 70, 51 (`lending cured`).
        let siblings_ns = self.lent().map_or(0, |_| timeline.turns().siblings_left_ns(beside_ns));
        let moving_ns = moving_ns.saturating_add(siblings_ns);
        let room = signed(self.shares.capacity_ns()) - signed(moving_ns);
        let quantum = signed(self.shares.quantum_ns());
        let may_pass = self.is_open || now >= self.reopens_at;
        let is_enough = |balance: i64| if may_pass { balance > 0 } else { balance >= quantum };
        // What a device that this one meets owes, and what is not lent, is not for the device to end.
        self.waits_for_device = is_enough(balance) && others_at <= now && self.may_run;
        let enough = is_enough(balance.min(room));
        self.may_run && enough && others_at <= now || self.shares.share() == Share::FULL
    }

    /// Returns beside what a launch of what is lent may be in flight: a short one beside a long one of another process of
    /// the container, for which an owner waits in any case. Otherwise, of `lending siblings`, four processes that wait for
    /// kernels of 10 us launch a thirteenth as often beside a queue of kernels of 8 ms as with a fixed limit.
    fn beside_ns(&self, launch: Launch, charging: &Charging) -> u64 {
        let most_ns = self.shares.capacity_ns();
        let estimate = charging.costs().estimate(launch.signature);
        if estimate.is_some_and(|ns| ns <= most_ns) { most_ns } else { u64::MAX }
    }

    /// Returns whether a launch of what is lent leaves its turn to another process of the container, whose launch has
    /// been held back for longer. Otherwise of two processes with kernels of 40 ms one gets two in 10 s.
    fn yields<E>(&mut self, beside_ns: u64, now: u64, timeline: &Timeline<E>) -> bool {
        let since = self.held_since.unwrap_or(now).min(now.saturating_sub(SIBLING_WAIT_NS));
        let turns = timeline.turns();
        let is_first = self.lent().is_none()
            || turns.have_siblings_longer(beside_ns)
            || !turns.have_siblings_held_before(since);
        !is_first && now.saturating_sub(*self.yields_since.get_or_insert(now)) < YIELD_NS
    }

    /// Returns when a closed gate opens: its device then holds a quantum, and no device that it meets is in debt.
    fn reopening(&self, others_at: u64, now: u64) -> u64 {
        self.shares.holds_at(self.shares.quantum_ns(), now).max(others_at)
    }

    /// Returns whether a launch may take any time.
    fn is_unknown(&self, launch: Launch, charging: &Charging) -> bool {
        self.shares.share() != Share::FULL && charging.costs().estimate(launch.signature).is_none()
    }

    /// Returns whether no other launch of unknown length is in flight: one at a time of a process is, but for streams that
    /// wait for the host, and one at a time of the container. Else `T2 functions never seen, 2500 ms`, 10, gets 38 too many.
    fn begins_unknown<E>(&mut self, now: u64, timeline: &Timeline<E>) -> bool {
        self.unmeasured <= timeline.stuck_unmeasured(now) && self.unknown.begin(now)
    }

    /// Returns whether a launch goes through a closed gate. The peers of a collective spin until it comes, and are
    /// charged for that, which may hold them back in turn. So no collective waits longer than the stall time, and
    /// neither does the work before it in the streams of a device that others wait for.
    fn is_urgent(&mut self, launch: Launch, now: u64) -> bool {
        let (is_exempt, is_stalled) = match launch.meeting {
            Meeting::Since(since) => (true, now.saturating_sub(since) >= self.doubled(STALL_NS)),
            // A program may launch only such graphs: if they passed, they would never be paid for.
            Meeting::Part | Meeting::None => (false, false),
        };
        if !is_exempt && !self.gang.is_waited_for(now) {
            return false;
        }
        let owed_ns = self.shares.owed_for_ns(now);
        if !self.gang.meets(now) {
            return owed_ns <= self.shares.takes_up(CREDIT_ALONE_NS);
        }
        if owed_ns > CREDIT_NS && is_stalled {
            self.let_through = self.let_through.saturating_add(1);
        }
        owed_ns <= CREDIT_NS || is_stalled
    }

    /// Returns whether to let one launch through: the work in flight may be waiting for it.
    fn is_stalled<E>(&mut self, now: u64, timeline: &mut Timeline<E>) -> bool {
        let Some(longest_ns) = timeline.longest_ns() else { return false };
        let least = if self.unmeasured > 0 { STALL_UNMEASURED_NS } else { STALL_NS };
        let stall_ns = self.doubled(longest_ns.saturating_mul(STALL_ESTIMATES).max(least));
        let is_stalled = now.saturating_sub(timeline.progress_at()) >= stall_ns;
        if is_stalled {
            timeline.expect_progress(now);
            self.let_through = self.let_through.saturating_add(1);
            self.stalls += 1;
        }
        is_stalled
    }

    /// Returns `ns`, doubled for each launch that went through the closed gate.
    fn doubled(&self, ns: u64) -> u64 {
        ns.saturating_mul(1 << self.let_through.min(MOST_STALL_DOUBLINGS))
    }

    /// Returns when no more is charged than has flowed in, provided that nothing changes; `now` if that is so.
    pub(crate) fn out_of_debt_at(&mut self, now: u64) -> u64 {
        self.shares.follow(self.reserved_ns, now);
        let is_full = self.shares.share() == Share::FULL;
        if is_full { now } else { self.shares.holds_at(0, now).max(now) }
    }
}
