//! What is reserved for an admitted launch, the allowance for small ones after it, and what replaces both.

use std::sync::Arc;

use super::{Admission, bucket::PERIOD_NS, dead::Unfinished};
use crate::{
    throttle::{
        allowance::{Allowance, Taken},
        charging::{Charging, settlement::Due},
        signature::{Launch, Meeting},
        timeline::{
            Timeline,
            stream::{AllowanceEntry, Lent, Reserved, Stream, StreamId},
            turns::{lending::ACTIVE_NS, scaled},
        },
    },
    units::Share,
};

/// The right to one launch. A dropped permit leaves its reservation charged.
#[derive(Debug)]
#[must_use = "a permit goes back to the meter"]
pub struct Permit {
    pub(crate) stream: StreamId,
    pub(crate) reserved: Reserved,
    pub(crate) batch_ns: u64,
    pub(crate) waited: bool,
    pub(crate) events: bool,
}

impl Permit {
    /// Returns whether to record a timing event right before the launch and another one right after it.
    #[must_use]
    pub const fn wants_events(&self) -> bool {
        self.events
    }
}

/// The size of an allowance; smaller with a small share.
const ALLOWANCE_NS: u64 = 250_000;
/// The number of launches of an allowance.
const ALLOWANCE_LAUNCHES: u8 = 192;
/// The guess for an unmeasured launch of what is lent: a full bucket, of two periods, and one period more, in which no
/// other process of the container launches anything. Without this, `lending siblings` misses its bound: of
/// two processes with kernels of 0.4 and 40 ms the former gets a twentieth of its launches.
const UNKNOWN_LENT_NS: u64 = 3 * PERIOD_NS;
/// The guess for an unmeasured launch that cannot be held back doubles with each other one in flight, at most this
/// often: its caller waits for what is reserved, so a queue of unknown work grows slowly, whatever the length of each.
const MOST_GUESS_DOUBLINGS: u64 = 12;

impl Admission<'_> {
    /// Closes the thread's allowance and reserves for the operation and, if its cost is known, for a new allowance after
    /// it. The allowances of other threads in the stream stay open: what they have taken so far lies before the
    /// operation.
    pub(crate) fn admit<E>(
        &mut self,
        id: StreamId,
        allowance: &Arc<Allowance>,
        launch: Launch,
        now: u64,
        timeline: &mut Timeline<E>,
        charging: &Charging,
    ) -> Permit {
        let reserved = self.reservation(launch, charging);
        if reserved.is_collective && self.shares.share() != Share::FULL {
            self.gang.begins(now);
        }
        // A launch through a closed gate gets no allowance; while estimates are doubted, every launch comes here, and where
        // nothing looks at launches that have no event.
        let known = charging.costs().small(launch.signature).is_some();
        let is_unseen =
            self.measures_each(now) || timeline.stream(id).is_some_and(|stream| stream.is_shared);
        let is_shut = !self.is_open || is_unseen || charging.is_doubtful(now);
        let lets_in = (known || reserved.is_collective) && !is_shut;
        let (prepaid, launches) =
            if lets_in { (self.allowance_ns(timeline), ALLOWANCE_LAUNCHES) } else { (0, 0) };
        let (taken, before, unused, was_in_call) = match timeline.stream_mut(id) {
            Some(stream) => {
                let (own, unused) = stream
                    .allowance_entry(allowance)
                    .map(AllowanceEntry::close)
                    .unwrap_or_default();
                let taken = stream.newly_taken().and(own);
                stream
                    .allowance_entry(allowance)
                    .into_iter()
                    .for_each(|entry| entry.open(prepaid, launches));
                let was_in_call = taken.ns > 0 && std::mem::take(&mut stream.was_in_call);
                (taken, std::mem::take(&mut stream.unmarked_ns), unused, was_in_call)
            }
            None => (Taken::default(), 0, prepaid, false),
        };
        let batch_ns = self.account_for(taken, now).saturating_add(before);
        self.release(unused);
        self.reserve(reserved.ns.saturating_add(prepaid), now);
        self.note_long(reserved);
        let (waited, events) = (before > 0 || was_in_call, timeline.has_room());
        Permit { stream: id, reserved, batch_ns, waited, events }
    }

    /// Reserves for a launch that the driver took before it was admitted.
    pub(crate) fn admit_unheld<E>(
        &mut self,
        stream: StreamId,
        launch: Launch,
        now: u64,
        timeline: &Timeline<E>,
        charging: &Charging,
    ) -> Permit {
        let others = self.unmeasured.min(MOST_GUESS_DOUBLINGS);
        let mut reserved = self.reservation(launch, charging);
        if reserved.unmeasured {
            reserved.ns = launch.first_ns << others;
        }
        self.launches += 1;
        self.reserve(reserved.ns, now);
        self.note_long(reserved);
        Permit { stream, reserved, batch_ns: 0, waited: false, events: timeline.has_room() }
    }

    /// Closes the allowances at the beginning of a wait: what launches have taken so far was launched before it.
    pub(crate) fn close_allowances<E>(&mut self, now: u64, timeline: &mut Timeline<E>) {
        timeline.streams_mut().for_each(|stream| self.close_allowances_of(stream, now));
    }

    /// Closes the allowances of a stream.
    pub(crate) fn close_allowances_of<E>(&mut self, stream: &mut Stream<E>, now: u64) {
        let (taken, unused_ns) = stream.close();
        self.release(unused_ns);
        let taken_ns = self.account_for(taken, now);
        stream.unmarked_ns = stream.unmarked_ns.saturating_add(taken_ns);
    }

    /// Accounts for what launches took out of allowances. Returns the amount.
    pub(crate) fn account_for(&mut self, taken: Taken, now: u64) -> u64 {
        self.launches += taken.launches;
        if taken.unreserved_ns > 0 {
            self.reserve(taken.unreserved_ns, now);
        }
        taken.ns
    }

    /// Returns what to reserve, and whether it is a guess. Each guess is larger by one unit than that of the latest
    /// unmeasured launch in flight: a deep queue of unknown work closes the gate after a few launches, whatever their
    /// length and functions. Of what is lent the container's other processes have nothing until it is measured: else 32
    /// of low priority, each with new functions of 8 ms, leave `W4 4 streams x 50 us`, 70, 41.
    fn reservation(&mut self, launch: Launch, charging: &Charging) -> Reserved {
        let signature = launch.signature;
        let is_collective = launch.meeting != Meeting::None;
        let (ns, unmeasured) = match charging.costs().estimate(signature) {
            Some(ns) => (ns, false),
            None => {
                let least_ns = self.lent().map_or(0, |_| UNKNOWN_LENT_NS);
                let first_ns = launch.first_ns.max(least_ns);
                (first_ns.saturating_mul(self.unmeasured.saturating_add(1)), true)
            }
        };
        self.unmeasured = self.unmeasured.saturating_add(u64::from(unmeasured));
        // A long launch out of a guarantee costs what is lent now: it is expected to end within the pause.
        let is_long = ns > ACTIVE_NS && !unmeasured && self.limit.guaranteed().is_some();
        let long = is_long.then_some(self.shares.lent());
        Reserved { signature, ns, long, unmeasured, is_collective }
    }

    const fn note_long(&mut self, reserved: Reserved) {
        if reserved.long.is_some() {
            self.long_ns = self.long_ns.saturating_add(reserved.ns);
        }
    }

    fn allowance_ns<E>(&self, timeline: &Timeline<E>) -> u64 {
        let allowances = timeline.streams().iter().flat_map(|stream| &stream.allowances);
        let open = allowances.filter(|entry| entry.open).count().max(2);
        ALLOWANCE_NS.min(self.shares.period_ns() / (4 * open as u64))
    }

    /// Takes what is reserved for work before it is in flight.
    fn reserve(&mut self, ns: u64, now: u64) {
        self.reserved_ns = self.reserved_ns.saturating_add(ns);
        self.shares.charge(ns, now);
    }

    /// Charges the unfinished work of a dead process of the same bucket. Returns the charge.
    pub(crate) fn inherit(&mut self, left: Unfinished, now: u64) -> u64 {
        let owed = left.owed(now);
        self.shares.charge_as_of(left.paid_until, owed, now);
        owed
    }

    /// Returns until when the container is in debt, if it owes `ns` more.
    pub(crate) fn in_debt_until(&self, ns: u64, now: u64) -> u64 {
        self.shares.in_debt_until(ns, now)
    }

    /// Removes a launch that ended at `end`, or whose end will never be seen.
    pub(crate) fn forget_launch(&mut self, reserved: Reserved, end: u64, now: u64) {
        self.unmeasured = self.unmeasured.saturating_sub(u64::from(reserved.unmeasured));
        if reserved.is_collective && self.shares.share() != Share::FULL {
            self.gang.ends(end, now);
        }
    }

    /// Admits nothing of the container before this time.
    pub(crate) const fn hold(&mut self, until: u64) {
        self.shares.hold(until);
    }

    /// Gives back what was reserved for nothing.
    pub(crate) fn release(&mut self, ns: u64) {
        self.reserved_ns = self.reserved_ns.saturating_sub(ns);
        self.shares.refund(ns);
    }

    /// The launch is settled with others: not as a long one.
    pub(crate) fn forget_long(&mut self, reserved: Reserved) {
        let long_ns = if reserved.long.is_some() { reserved.ns } else { 0 };
        self.long_ns = self.long_ns.saturating_sub(long_ns);
    }

    /// Replaces the reservation of a launch by nothing.
    pub(crate) fn release_launch(&mut self, reserved: Reserved, now: u64) {
        match reserved.long {
            Some(_) => self.settle_launch(reserved, Due::default(), now),
            None => self.release(reserved.ns),
        }
    }

    /// Replaces the reservation of a launch by what is due.
    pub(crate) fn settle_launch(&mut self, reserved: Reserved, due: Due, now: u64) {
        self.forget_long(reserved);
        match reserved.long {
            Some(lent) => self.settle_at(reserved.ns, lent, due, now),
            None => self.settle(reserved.ns, due, now),
        }
    }

    /// Replaces a reservation by what is due. What was in flight when an owner came back is paid for as it was to be then.
    pub(crate) fn settle(&mut self, reserved_ns: u64, due: Due, now: u64) {
        let lent = self.lent();
        self.settle_at(reserved_ns, lent, due, now);
        let began = now.saturating_sub(due.ns);
        if let Some((_, part)) = self.came_back.filter(|(at, _)| *at >= began) {
            self.shares.repays(due, lent, part, now);
        }
    }

    fn settle_at(&mut self, reserved_ns: u64, lent: Lent, due: Due, now: u64) {
        self.reserved_ns = self.reserved_ns.saturating_sub(reserved_ns);
        if let Some(part) = lent {
            let guaranteed = self.limit.guaranteed().map_or(0, Share::parts).min(part.parts());
            let beyond = u64::from(part.parts() - guaranteed);
            let borrowed_ns = scaled(due.ns, beyond, part.parts().into());
            self.borrowed_ns = self.borrowed_ns.saturating_add(borrowed_ns);
        }
        // What is borrowed is not saved up: owners wait for it.
        let since = if self.limit.borrows() { now } else { due.since };
        self.shares.settle(reserved_ns, lent, Due { since, ..due }, now);
    }
}
