//! When a launch may go, and what is reserved for it.

use std::sync::Arc;

use super::{Meter, PENDING, Permit};
use crate::{
    throttle::{
        Allowance, Launch,
        allowance::Taken,
        signature::Meeting,
        stream::{AllowanceEntry, Reserved, StreamId},
    },
    units::Share,
};

/// The size of a grant; smaller with a small share.
const GRANT_NS: u64 = 250_000;
/// The number of launches of a grant.
const GRANT_LAUNCHES: u8 = 192;
/// While work is in flight, its settlement can open the bucket before the computed time.
const RECHECK_NS: u64 = 1_000_000;
/// So can the first measurement of a function, and much sooner.
const RECHECK_UNMEASURED_NS: u64 = 200_000;
/// A collective of another device can arrive at any moment, and spins until it is noticed.
const RECHECK_GANG_NS: u64 = 200_000;
/// So can work of other processes.
const RECHECK_IDLE_NS: u64 = 10_000_000;
/// Work in flight for this long without a reached event may be waiting for the launch that waits for it.
const STALL_NS: u64 = 2_000_000_000;
const STALL_ESTIMATES: u64 = 8;
/// The same while an unmeasured launch is in flight: it may be a long kernel, and so may the next one.
const STALL_UNMEASURED_NS: u64 = 10_000_000_000;
/// After each launch that was let through because nothing moved, the patience doubles, until the gate opens
/// regularly: a launch that others wait for comes soon, and a queue of long kernels must not grow without bound.
const MOST_DOUBLINGS: u32 = 10;
/// A stream whose queue has not moved for this long waits for something other than the time slices of the device.
const STUCK_NS: u64 = 100_000_000;
/// The debt up to which a collective goes at once and is paid for afterwards, in time to flow in. A step of a program
/// with other kernels never owes this much for its collectives; without the bound, a program of collectives alone
/// would never pay.
const CREDIT_NS: u64 = 10_000_000_000;
/// The debt up to which a collective goes at once while its device meets no other device of the container. As far as
/// the meter sees nothing waits for it, and any kernel can be named as a collective, so only this much device time is
/// lent: a hundredth of ten seconds.
const CREDIT_ALONE_NS: u64 = 100_000_000;

impl<E> Meter<'_, E> {
    /// The gate closes at an empty bucket and opens at a quantum, so that one wake-up covers many launches. A thread
    /// that slept until the bucket should have held a quantum goes with less: another process may have taken it
    /// first.
    ///
    /// For operations that run side by side the sum is reserved, and most of it comes back. Without counting that in,
    /// a few short streams would close the gate long before the device has work for a turn.
    ///
    /// The gate is also closed while a device that this one meets is in debt.
    pub(super) fn is_open(&mut self, now: u64) -> bool {
        let back = self.settlement.overlap_of(self.in_flight_ns);
        let level = self.shares.level(now).saturating_add(signed(back));
        // The device may give less than the share: work that piles up in the mean time would run all at once. A queue
        // that waits for the host does not pile up by being slow: it is filled at the share's rate.
        let moving_ns = self.in_flight_ns.saturating_sub(self.stuck_ns(now)).saturating_sub(back);
        let room = signed(self.shares.cap_ns()) - signed(moving_ns);
        let level = level.min(room);
        let quantum = signed(self.shares.quantum_ns());
        let others_at = self.gang.level_at(now);
        if !self.open && now < self.reopens_at && others_at > 0 {
            self.reopens_at = self.reopening(others_at, now);
        }
        let enough = if self.open || now >= self.reopens_at { level > 0 } else { level >= quantum };
        let open = enough && others_at <= now || self.shares.share() == Share::FULL;
        if self.open && !open {
            self.close_allowances(now);
            self.reopens_at = self.reopening(others_at, now);
        }
        if open {
            self.let_through = 0;
        }
        self.open = open;
        open
    }

    /// Returns whether another unmeasured launch is in flight beside this unmeasured one: either may take any time.
    /// Only one at a time is in flight, except in streams that wait for the host.
    pub(super) fn is_second(&self, launch: Launch, now: u64) -> bool {
        if self.unmeasured == 0
            || self.shares.share() == Share::FULL
            || self.costs.estimate(launch.signature).is_some()
        {
            return false;
        }
        let since = now.saturating_sub(STUCK_NS);
        let stuck = self.streams.iter().filter(|stream| stream.stuck_ns(since) > 0);
        let pending = stuck.flat_map(|stream| &stream.pending);
        let operations = pending.filter_map(|pending| pending.operation.as_ref());
        self.unmeasured > operations.filter(|operation| operation.cost.unmeasured).count() as u64
    }

    /// The reservations of streams in which nothing has moved for a while.
    fn stuck_ns(&self, now: u64) -> u64 {
        let since = now.saturating_sub(STUCK_NS);
        self.streams.iter().map(|stream| stream.stuck_ns(since)).fold(0, u64::saturating_add)
    }

    /// Returns when a closed gate opens: its device then holds a quantum, and no device that it meets is in debt.
    fn reopening(&self, others_at: u64, now: u64) -> u64 {
        self.shares.holds_at(self.shares.quantum_ns(), now).max(others_at)
    }

    /// Returns whether a launch goes through a closed gate. The peers of a collective spin until it comes, and are
    /// charged for that, which may hold them back in turn. So no collective waits longer than the stall time, and
    /// neither does the work before it in the streams of a device that others wait for.
    pub(super) fn is_urgent(&mut self, launch: Launch, now: u64) -> bool {
        let (is_exempt, is_stalled) = match launch.meeting {
            Meeting::Since(since) => (true, now.saturating_sub(since) >= self.patience(STALL_NS)),
            // A program may launch only such graphs: if they passed, they would never be paid for.
            Meeting::Part | Meeting::None => (false, false),
        };
        if !is_exempt && !self.gang.is_waited_for(now) {
            return false;
        }
        let owed_ns = self.shares.holds_at(0, now).saturating_sub(now);
        if !self.gang.meets(now) {
            return owed_ns <= self.shares.takes_up(CREDIT_ALONE_NS);
        }
        if owed_ns > CREDIT_NS && is_stalled {
            self.let_through = self.let_through.saturating_add(1);
        }
        owed_ns <= CREDIT_NS || is_stalled
    }

    /// Returns `ns`, doubled for each launch that went through the closed gate.
    fn patience(&self, ns: u64) -> u64 {
        ns.saturating_mul(1 << self.let_through.min(MOST_DOUBLINGS))
    }

    /// Removes an admitted collective that ended at `end`, or whose end will never be seen.
    pub(super) fn is_over(&mut self, reserved: Reserved, end: u64, now: u64) {
        self.unmeasured = self.unmeasured.saturating_sub(u64::from(reserved.unmeasured));
        if reserved.is_collective && self.shares.share() != Share::FULL {
            self.gang.ends(end, now);
        }
    }

    /// Closes the allowances at the beginning of a wait: what launches have taken so far was launched before it.
    pub(super) fn close_allowances(&mut self, now: u64) {
        for place in 0..self.streams.len() {
            let taken_ns = self.close_allowances_of(place, now);
            if let Some(stream) = self.streams.get_mut(place) {
                stream.unmarked_ns = stream.unmarked_ns.saturating_add(taken_ns);
            }
        }
    }

    /// Closes the allowances of a stream. Returns what launches have taken of them that is not settled.
    pub(super) fn close_allowances_of(&mut self, place: usize, now: u64) -> u64 {
        let closed = self.streams.get_mut(place).map(|stream| stream.close());
        let (taken, unused_ns) = closed.unwrap_or_default();
        self.release(unused_ns);
        self.account(taken, now)
    }

    /// Accounts for what launches took out of allowances. Returns the amount.
    pub(super) fn account(&mut self, taken: Taken, now: u64) -> u64 {
        self.totals.launches += taken.launches;
        if taken.unreserved_ns > 0 {
            self.reserve(taken.unreserved_ns, now);
        }
        taken.ns
    }

    /// Returns whether to let one launch through: the work in flight may be waiting for it.
    pub(super) fn is_stalled(&mut self, now: u64) -> bool {
        if self.pending == 0 {
            return false;
        }
        let fronts = self.streams.iter().filter_map(|stream| stream.pending.front());
        let reserved = fronts.filter_map(|front| front.operation.as_ref()).map(|it| it.cost.ns);
        let longest = reserved.max().unwrap_or(0);
        let least = if self.unmeasured > 0 { STALL_UNMEASURED_NS } else { STALL_NS };
        let patience = self.patience(longest.saturating_mul(STALL_ESTIMATES).max(least));
        let stalled = now.saturating_sub(self.progress_at) >= patience;
        if stalled {
            self.progress_at = now;
            self.let_through = self.let_through.saturating_add(1);
            self.totals.stalls += 1;
        }
        stalled
    }

    pub(super) fn recheck_at(&self, now: u64) -> u64 {
        let recheck = match (self.gang.meets(now), self.pending) {
            (true, _) => RECHECK_GANG_NS,
            (false, _) if self.unmeasured > 0 => RECHECK_UNMEASURED_NS,
            (false, 0) => RECHECK_IDLE_NS,
            (false, _) => RECHECK_NS,
        };
        let enough = if now < self.reopens_at { self.shares.quantum_ns() } else { 1 };
        let level_at = self.shares.holds_at(enough, now).max(self.gang.level_at(now));
        level_at.clamp(now + 1, now.saturating_add(recheck))
    }

    /// Closes the thread's allowance and reserves for the operation and, if its cost is known, for a new grant after
    /// it. The allowances of other threads in the stream stay open: what they have taken so far lies before the
    /// operation.
    pub(super) fn admit(
        &mut self,
        id: StreamId,
        allowance: &Arc<Allowance>,
        launch: Launch,
        now: u64,
    ) -> Permit {
        let reserved = self.reservation(launch);
        if reserved.is_collective && self.shares.share() != Share::FULL {
            self.gang.begins(now);
        }
        // A launch through a closed gate gets no grant; while estimates are doubted, every launch comes here.
        let known = self.costs.small(launch.signature).is_some();
        let lets_in =
            (known || reserved.is_collective) && self.open && !self.settlement.is_doubtful(now);
        let (grant, launches) = if lets_in { (self.grant_ns(), GRANT_LAUNCHES) } else { (0, 0) };
        let mut waited = false;
        let (taken, before, unused) = match self.streams.get_mut(usize::from(id.0)) {
            Some(stream) => {
                let (own, unused) = stream
                    .allowance_entry(allowance)
                    .map(AllowanceEntry::close)
                    .unwrap_or_default();
                let taken = stream.look().and(own);
                stream
                    .allowance_entry(allowance)
                    .into_iter()
                    .for_each(|entry| entry.open(grant, launches));
                let before = std::mem::take(&mut stream.unmarked_ns);
                waited = before > 0;
                (taken, before, unused)
            }
            None => (Taken::default(), 0, grant),
        };
        let batch_ns = self.account(taken, now).saturating_add(before);
        self.release(unused);
        self.reserve(reserved.ns.saturating_add(grant), now);
        Permit { stream: id, reserved, batch_ns, waited, events: self.pending < PENDING }
    }

    /// Returns what to reserve, and whether it is a guess. Each guess is larger by one unit than that of the latest
    /// unmeasured launch in flight: a deep queue of unknown work closes the gate after a few launches, whatever their
    /// length and functions.
    pub(super) fn reservation(&mut self, launch: Launch) -> Reserved {
        let signature = launch.signature;
        let is_collective = launch.meeting != Meeting::None;
        let (ns, unmeasured) = match self.costs.estimate(signature) {
            Some(ns) => (ns, false),
            None => (launch.first_ns.saturating_mul(self.unmeasured.saturating_add(1)), true),
        };
        self.unmeasured = self.unmeasured.saturating_add(u64::from(unmeasured));
        Reserved { signature, ns, unmeasured, is_collective }
    }

    pub(super) fn grant_ns(&self) -> u64 {
        let allowances = self.streams.iter().flat_map(|stream| &stream.allowances);
        let open = allowances.filter(|entry| entry.open).count().max(2);
        GRANT_NS.min(self.shares.quantum_ns() / (4 * open as u64))
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
