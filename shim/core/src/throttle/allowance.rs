//! The prepaid allowance of one thread in one stream. Launches take their cost out of it without a lock, a clock, an
//! event, or a locked instruction.
//!
//! ```text
//! granted, taken, seen    nanoseconds:56   launches:8      sums over all time, modulo the range
//! granted - taken         what is left; below zero: taken out of a grant that was revoked at that moment
//! taken - seen            what the meter has not accounted for yet
//! taken - returned        what the driver is being called for
//! ```
//!
//! Each word has one writer: the owning thread writes `taken` and `returned`, the meter writes the others, under its lock. So no
//! word needs an atomic exchange and no update is lost: a launch that takes its cost while the meter revokes the rest, or
//! that the driver has not taken yet, is found at a later look, since sums only grow. A thread never takes more than it was granted, even if it notices
//! late that a grant has been revoked.
//!
//! An allowance may be reused by another thread once its thread has ended, and for another stream of the device at
//! any time.

use crate::sync::{Counter, Word};

/// The allowance of one thread in one stream.
// Two cache lines: processors fetch them in pairs, and other threads write the adjacent data.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Allowance {
    taken: Word,
    /// What of that the launches took from which the driver has returned.
    returned: Word,
    granted: Word,
    seen: Counter,
    /// What is reserved for the launches that the grant covers.
    reserved_ns: Counter,
}

/// What launches have taken since the latest look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) ns: u64,
    /// The part of `ns` that was no longer reserved: it was taken while its grant was being revoked.
    pub(super) unreserved_ns: u64,
    pub(super) launches: u64,
}

const LAUNCHES_BITS: u32 = 8;
const LAUNCHES: u64 = (1 << LAUNCHES_BITS) - 1;

impl Allowance {
    /// Takes the cost of one launch. Returns false if it does not fit: then the launch goes to the meter. Only the
    /// owning thread may call this.
    #[inline]
    #[must_use]
    pub fn spend(&self, cost_ns: u32) -> bool {
        let after = self.after(cost_ns);
        after.into_iter().for_each(|taken| self.take(taken));
        after.is_some()
    }

    /// The same, and the driver returns.
    #[cfg(test)]
    pub(super) fn launch(&self, cost_ns: u32) -> bool {
        let spends = self.spend(cost_ns);
        if spends {
            self.returned(cost_ns);
        }
        spends
    }

    /// Returns the new value of `taken` after one more launch; `None` if the launch does not fit.
    #[inline]
    pub(super) fn after(&self, cost_ns: u32) -> Option<u64> {
        let taken = self.taken.load();
        let room = self.granted.load().wrapping_sub(taken);
        let fits =
            room & LAUNCHES != 0 && room.cast_signed() >> LAUNCHES_BITS >= i64::from(cost_ns);
        fits.then(|| taken.wrapping_add(u64::from(cost_ns) << LAUNCHES_BITS | 1))
    }

    #[inline]
    pub(super) fn take(&self, taken: u64) {
        self.taken.store(taken);
    }

    /// Records that the driver has taken a launch of this cost, and has returned. Only the owning thread may call this.
    #[inline]
    pub fn returned(&self, cost_ns: u32) {
        // Not all that was taken: a tool may have launched within the call.
        let more = u64::from(cost_ns) << LAUNCHES_BITS | 1;
        self.returned.store(self.returned.load().wrapping_add(more));
    }

    /// Begins to belong to another thread: the one before ended, perhaps within a launch.
    pub fn adopt(&self) {
        self.returned.store(self.taken.load());
    }

    /// Gives back the cost of a launch that the driver refused; its launch count is kept. Only the owning thread may
    /// call this.
    pub fn refused(&self, cost_ns: u32) {
        let back = self.taken.load().wrapping_sub(u64::from(cost_ns) << LAUNCHES_BITS);
        // What has been accounted for already stays charged: else the next launches would be free up to that amount.
        if back.wrapping_sub(self.seen.load()).cast_signed() >= 0 {
            self.taken.store(back);
            self.returned(0);
        } else {
            self.returned(cost_ns);
        }
    }

    /// Returns whether the driver has returned from all launches so far.
    pub(super) fn has_returned(&self) -> bool {
        self.taken.load() == self.returned.load()
    }

    /// Grants `granted_ns` nanoseconds for at most `launches` launches. The allowance must be closed.
    pub(super) fn open(&self, granted_ns: u64, launches: u8) {
        let room = granted_ns << LAUNCHES_BITS | u64::from(launches);
        self.reserved_ns.store(granted_ns);
        self.granted.store(self.taken.load().wrapping_add(room));
    }

    /// Returns what launches from which the driver has returned have taken since the latest look. A launch that the driver has
    /// not taken yet comes behind a mark or a wait of another thread: of one that takes 3 s, 10 us would be charged.
    pub(super) fn newly_taken(&self) -> Taken {
        self.taken_up_to(self.returned.load())
    }

    /// Returns what all launches have taken since the latest look: none is looked at later.
    pub(super) fn all_taken(&self) -> Taken {
        self.taken_up_to(self.taken.load())
    }

    fn taken_up_to(&self, taken: u64) -> Taken {
        let fresh = taken.wrapping_sub(self.seen.load());
        if fresh.cast_signed() <= 0 {
            return Taken::default();
        }
        self.seen.store(taken);
        let ns = fresh >> LAUNCHES_BITS;
        let reserved_ns = self.reserved_ns.load();
        self.reserved_ns.store(reserved_ns.saturating_sub(ns));
        let unreserved_ns = ns.saturating_sub(reserved_ns);
        Taken { ns, unreserved_ns, launches: fresh & LAUNCHES }
    }

    /// Returns a number that changes with each launch which the driver does not refuse.
    pub(super) fn sum(&self) -> u64 {
        self.taken.load() >> LAUNCHES_BITS
    }

    /// Returns whether launches have taken anything since the latest look.
    pub(super) fn has_new(&self) -> bool {
        self.taken.load() != self.seen.load()
    }

    /// Revokes the grant. Returns what launches have taken since the latest look, and the reservation that no launch
    /// has used.
    pub(super) fn close(&self) -> (Taken, u64) {
        self.granted.store(self.taken.load());
        let taken = self.newly_taken();
        let unused_ns = self.reserved_ns.load();
        self.reserved_ns.store(0);
        (taken, unused_ns)
    }
}

impl Taken {
    pub(super) fn and(self, more: Self) -> Self {
        Self {
            ns: self.ns.saturating_add(more.ns),
            unreserved_ns: self.unreserved_ns.saturating_add(more.unreserved_ns),
            launches: self.launches.saturating_add(more.launches),
        }
    }
}
