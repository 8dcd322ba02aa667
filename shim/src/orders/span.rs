//! Where a copy of a driver library is, and between which addresses its functions are.
//!
//! The redirect says so once, under the loader's lock; look-ups in other threads ask without a lock. The base is stored
//! last, with release, and read first, with acquire: who finds it finds the range, and what was stored before.

use super::atomic::{AtomicU64, Ordering};

/// The span of one copy.
pub(crate) struct Span {
    /// Its load address; 0 while the copy is free.
    pub(crate) base: AtomicU64,
    /// The lowest and the highest original, so that most slots of a sweep are passed over by two comparisons.
    pub(crate) range: [AtomicU64; 2],
}

impl Span {
    /// Returns the load address; 0 while the copy is free.
    pub(crate) fn base(&self) -> u64 {
        self.base.load(Ordering::Acquire)
    }

    /// Says where the copy is. What its caller has stored before is seen by all who find it.
    pub(crate) fn publish(&self, base: u64, range: [u64; 2]) {
        for (bound, value) in self.range.iter().zip(range) {
            bound.store(value, Ordering::Relaxed);
        }
        self.base.store(base, Ordering::Release);
    }

    /// Returns whether an original may be at this address; `None` while the copy is free.
    pub(crate) fn holds(&self, address: u64) -> Option<bool> {
        // First: the range was stored before it.
        if self.base() == 0 {
            return None;
        }
        let [low, high] = self.range.each_ref().map(|bound| bound.load(Ordering::Relaxed));
        Some(low != 0 && (low..=high).contains(&address))
    }
}
