//! When a launch may go, and what is reserved for it.

use std::sync::Arc;

use super::{Meter, PENDING, Permit};
use crate::{
    throttle::{
        Batch, Launch,
        batch::Taken,
        signature::Meeting,
        stream::{Lease, Reserved, StreamId},
    },
    units::Share,
};

/// A batch is worth this much, or less with a small share.
const BATCH_NS: u64 = 250_000;
/// Launches of a batch, less a few by chance, so that a program's period and ours do not fall into step.
const BATCH_LAUNCHES: u8 = 64;
/// While work is out, what it turns out to be worth can open the bucket before its time.
const RECHECK_NS: u64 = 1_000_000;
/// So can the first measurement of a function, and much sooner.
const RECHECK_UNMEASURED_NS: u64 = 200_000;
/// A collective of another device can come at any moment, and spins until it is noticed.
const RECHECK_PARTY_NS: u64 = 200_000;
/// Other processes' work can do so too.
const RECHECK_IDLE_NS: u64 = 10_000_000;
/// Work that is out this long without an event reached may be waiting for the launch that waits for it.
const STALL_NS: u64 = 2_000_000_000;
const STALL_ESTIMATES: u64 = 8;
/// Each time nothing moves for as long again, until the gate opens by itself: a launch that others wait for is not far, and
/// a queue of long kernels is not to grow for ever.
const MOST_DOUBLINGS: u32 = 10;
/// A stream whose queue has not moved for so long waits for something else than the turns of a card.
const STUCK_NS: u64 = 100_000_000;
/// A collective pays later what takes this long to come in: more than a step of a program with other kernels ever owes
/// for its collectives. Beyond it there are no others, and nobody would ever pay.
const CREDIT_NS: u64 = 10_000_000_000;
/// Where no other device of the container meets this one nobody here waits for it, as far as one sees, and what is called
/// a collective may be anything: so much of the device's time is lent, which is two hundredths of ten seconds.
const CREDIT_ALONE_NS: u64 = 200_000_000;

impl<E> Meter<'_, E> {
    /// The gate closes at an empty bucket and opens at a quantum, so that one wake-up is good for many launches. Who
    /// slept until the bucket should have held one opens it with less: another process may have been faster.
    ///
    /// Of operations that run side by side the sum is reserved, and most of it comes back: without counting that in, a
    /// few short streams would close the gate long before the device has work for a turn.
    ///
    /// While a device that this one meets is in debt it is closed too.
    pub(super) fn is_open(&mut self, now: u64) -> bool {
        let back = self.settlement.overlap_of(self.out_ns);
        let level = self.shares.level(now).saturating_add(signed(back));
        // The device may give less than the share: what piles up meanwhile would run all at once.
        // A queue that waits for the host piles nothing up by being slow: it is filled at the share's rate.
        let moving_ns = self.out_ns.saturating_sub(self.stuck_ns(now)).saturating_sub(back);
        let room = signed(self.shares.cap_ns()) - signed(moving_ns);
        let level = level.min(room);
        let quantum = signed(self.shares.quantum_ns());
        let others_at = self.party.level_at(now);
        if !self.open && now < self.reopens_at && others_at > 0 {
            self.reopens_at = self.reopening(others_at, now);
        }
        let enough = if self.open || now >= self.reopens_at { level > 0 } else { level >= quantum };
        let open = enough && others_at <= now || self.shares.share() == Share::FULL;
        if self.open && !open {
            self.close_batches(now);
            self.reopens_at = self.reopening(others_at, now);
        }
        if open {
            self.let_through = 0;
        }
        self.open = open;
        open
    }

    /// What is reserved for streams in which nothing has moved for a while.
    fn stuck_ns(&self, now: u64) -> u64 {
        let since = now.saturating_sub(STUCK_NS);
        self.streams.iter().map(|stream| stream.stuck_ns(since)).fold(0, u64::saturating_add)
    }

    /// When a gate that is closed opens: its device holds a quantum then, and no other one that it meets is in debt.
    fn reopening(&self, others_at: u64, now: u64) -> u64 {
        self.shares.holds_at(self.shares.quantum_ns(), now).max(others_at)
    }

    /// Whether it goes through a closed gate. Peers spin until a collective comes, and are charged for it, which may hold
    /// them back in turn: so none waits longer than what is taken for a stall, nor does what lies before it in the streams
    /// of a device that others wait for.
    pub(super) fn is_urgent(&mut self, launch: Launch, now: u64) -> bool {
        let (is_exempt, is_stalled) = match launch.meeting {
            Meeting::Since(since) => (true, now.saturating_sub(since) >= self.patience(STALL_NS)),
            // A program may launch nothing but such graphs: if they went through, nobody would pay for them.
            Meeting::Part | Meeting::None => (false, false),
        };
        if !is_exempt && !self.party.is_waited_for(now) {
            return false;
        }
        let owed_ns = self.shares.holds_at(0, now).saturating_sub(now);
        if !self.party.meets(now) {
            return owed_ns <= self.shares.takes_up(CREDIT_ALONE_NS);
        }
        if owed_ns > CREDIT_NS && is_stalled {
            self.let_through = self.let_through.saturating_add(1);
        }
        owed_ns <= CREDIT_NS || is_stalled
    }

    /// So long, twice as long after the first launch that went through the closed gate, and so on.
    fn patience(&self, ns: u64) -> u64 {
        ns.saturating_mul(1 << self.let_through.min(MOST_DOUBLINGS))
    }

    /// What was admitted is over since `end`, or nobody will see its end.
    pub(super) fn is_over(&mut self, reserved: Reserved, end: u64, now: u64) {
        self.unmeasured = self.unmeasured.saturating_sub(u64::from(reserved.unmeasured));
        if reserved.is_collective && self.shares.share() != Share::FULL {
            self.party.ends(end, now);
        }
    }

    /// A wait begins: what launches took so far was launched before it.
    pub(super) fn close_batches(&mut self, now: u64) {
        for place in 0..self.streams.len() {
            let taken_ns = self.close_batches_of(place, now);
            if let Some(stream) = self.streams.get_mut(place) {
                stream.unmarked_ns = stream.unmarked_ns.saturating_add(taken_ns);
            }
        }
    }

    /// Closes the batches of a stream; what launches took of them that is not settled.
    pub(super) fn close_batches_of(&mut self, place: usize, now: u64) -> u64 {
        let closed = self.streams.get_mut(place).map(|stream| stream.close());
        let (taken, unused_ns) = closed.unwrap_or_default();
        self.release(unused_ns);
        self.account(taken, now)
    }

    /// Takes account of what launches took out of batches; how much it was.
    pub(super) fn account(&mut self, taken: Taken, now: u64) -> u64 {
        self.totals.launches += taken.launches;
        if taken.unreserved_ns > 0 {
            self.reserve(taken.unreserved_ns, now);
        }
        taken.ns
    }

    /// A launch may be what the work that is out waits for: one at a time is let through.
    pub(super) fn is_stalled(&mut self, now: u64) -> bool {
        if self.pending == 0 {
            return false;
        }
        let fronts = self.streams.iter().filter_map(|stream| stream.pending.front());
        let reserved = fronts.filter_map(|front| front.operation.as_ref()).map(|it| it.cost.ns);
        let longest = reserved.max().unwrap_or(0);
        let patience = self.patience(longest.saturating_mul(STALL_ESTIMATES).max(STALL_NS));
        let stalled = now.saturating_sub(self.progress_at) >= patience;
        if stalled {
            self.progress_at = now;
            self.let_through = self.let_through.saturating_add(1);
            self.totals.stalls += 1;
        }
        stalled
    }

    pub(super) fn recheck_at(&self, now: u64) -> u64 {
        let recheck = match (self.party.meets(now), self.pending) {
            (true, _) => RECHECK_PARTY_NS,
            (false, 0) => RECHECK_IDLE_NS,
            (false, _) if self.unmeasured > 0 => RECHECK_UNMEASURED_NS,
            (false, _) => RECHECK_NS,
        };
        let enough = if now < self.reopens_at { self.shares.quantum_ns() } else { 1 };
        let level_at = self.shares.holds_at(enough, now).max(self.party.level_at(now));
        level_at.clamp(now + 1, now.saturating_add(recheck))
    }

    /// Closes the thread's batch, reserves for the operation and, if its cost is known, for a new batch after it. The
    /// batches that other threads have in the stream go on: what they took so far is what lies before the operation.
    pub(super) fn admit(
        &mut self,
        id: StreamId,
        batch: &Arc<Batch>,
        launch: Launch,
        now: u64,
    ) -> Permit {
        let reserved = self.reservation(launch);
        if reserved.is_collective && self.shares.share() != Share::FULL {
            self.party.begins(now);
        }
        // What goes through a closed gate takes nobody along; where estimates are doubted, everybody comes here.
        let known = self.costs.small(launch.signature).is_some();
        let lets_in =
            (known || reserved.is_collective) && self.open && !self.settlement.is_doubtful(now);
        let (grant, launches) =
            if lets_in { (self.batch_size(), self.batch_launches()) } else { (0, 0) };
        let mut waited = false;
        let (taken, before, unused) = match self.streams.get_mut(usize::from(id.0)) {
            Some(stream) => {
                let (own, unused) = stream.lease(batch).map(Lease::close).unwrap_or_default();
                let taken = stream.look().and(own);
                stream.lease(batch).into_iter().for_each(|lease| lease.open(grant, launches));
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

    /// What to reserve, and whether it is a guess. Each guess is larger by one than that of the latest launch that is out
    /// and of which nothing is measured: a deep queue of unknown work closes the gate after a few launches, however long
    /// they are and whatever functions they are of.
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

    pub(super) fn batch_size(&self) -> u64 {
        let leases = self.streams.iter().flat_map(|stream| &stream.leases);
        let open = leases.filter(|lease| lease.open).count().max(2);
        BATCH_NS.min(self.shares.quantum_ns() / (4 * open as u64))
    }

    pub(super) fn batch_launches(&mut self) -> u8 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        BATCH_LAUNCHES - (self.random >> 32 & 15) as u8
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
