//! Prepaid room of one thread in one stream, from which its launches take without a lock, a clock, an event, or a
//! locked instruction.
//!
//! ```text
//! granted, taken, seen    nanoseconds:56   launches:8      sums since ever, around the end of the range
//! granted - taken         the room; below zero: taken out of a grant that was called back at that moment
//! taken - seen            what is not accounted for yet
//! ```
//!
//! Each word has one writer: `taken` the thread whose batch it is, the others the meter, under its lock. So nothing is
//! exchanged, and nothing is lost: a launch that takes its cost while the meter calls the rest back is found at the next
//! look, since sums only grow. A thread never takes more than was granted to it, whenever it notices that a grant is over.
//!
//! A batch may go to another thread once the one before it has ended, and to another stream of the device at any time.

use crate::sync::{Counter, Word};

/// The batch of a thread in a stream.
// Two lines of the cache: processors fetch them in pairs, and other threads write what lies next to it.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Batch {
    taken: Word,
    granted: Word,
    seen: Counter,
    /// What is reserved for the launches that the grant is good for.
    reserved_ns: Counter,
}

/// What launches took since the latest look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) ns: u64,
    /// How much of that nobody had reserved any more: it raced with the end of its grant.
    pub(super) unreserved_ns: u64,
    pub(super) launches: u64,
}

const LAUNCHES_BITS: u32 = 8;
const LAUNCHES: u64 = (1 << LAUNCHES_BITS) - 1;

impl Batch {
    /// Takes the cost of one launch; false if it does not fit: then the launch is the meter's. For the batch's thread
    /// alone.
    #[inline]
    #[must_use]
    pub fn spend(&self, cost_ns: u32) -> bool {
        let after = self.after(cost_ns);
        after.into_iter().for_each(|taken| self.take(taken));
        after.is_some()
    }

    /// What will have been taken after one launch more; `None` if it does not fit.
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

    /// Puts back what a launch took that the driver refused; it keeps its place. For the batch's thread alone.
    pub fn put_back(&self, cost_ns: u32) {
        // If that has been accounted for already, the next launches are free up to it.
        self.taken.store(self.taken.load().wrapping_sub(u64::from(cost_ns) << LAUNCHES_BITS));
    }

    /// Lets launches in: so much room for so many. The batch is closed.
    pub(super) fn open(&self, room_ns: u64, launches: u8) {
        let room = room_ns << LAUNCHES_BITS | u64::from(launches);
        self.reserved_ns.store(room_ns);
        self.granted.store(self.taken.load().wrapping_add(room));
    }

    /// What launches took since the latest look.
    pub(super) fn look(&self) -> Taken {
        let taken = self.taken.load();
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

    /// Lets nothing more in; what launches took since the latest look, and what is reserved for no launch any more.
    pub(super) fn close(&self) -> (Taken, u64) {
        self.granted.store(self.taken.load());
        let taken = self.look();
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
