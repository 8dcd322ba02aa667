//! What a process owes that died with work on the card: those that are left pay for it.
//!
//! A program that launches a long kernel and is killed has paid what was reserved, and nobody settles the rest. So its
//! place in the ledger tells up to when its work is paid for, and who comes to the gate of the device looks, at most ten
//! times a second, for such words of processes that are gone.

use core::sync::atomic::{AtomicU64, Ordering};

/// When something is looked for again. Zero: at once, as when a process comes to a device for the first time.
pub(super) struct Look {
    due: AtomicU64,
    every_ns: u64,
}

impl Look {
    /// So often at most.
    pub(super) const fn each(every_ns: u64) -> Self {
        Self { due: AtomicU64::new(0), every_ns }
    }

    /// Whether it is time, and this thread's to do it.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        let next = now.saturating_add(self.every_ns);
        now >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
