//! An interval between repeated actions, shared by the threads of a process.
//!
//! The gate uses it to charge the unfinished work of dead processes. A program that launches a long kernel and is killed
//! has paid only what was reserved. So the slot of each process in the ledger keeps the time up to which its work is paid
//! for, and the processes that are left look for such slots of dead processes, at most ten times a second.

use core::sync::atomic::{AtomicU64, Ordering};

/// When the action is next due. Zero: at once, as when a process comes to a device for the first time.
pub(super) struct Interval {
    due: AtomicU64,
    every_ns: u64,
}

impl Interval {
    /// Makes an interval of this length.
    pub(super) const fn each(every_ns: u64) -> Self {
        Self { due: AtomicU64::new(0), every_ns }
    }

    /// Returns whether the action is due and the calling thread is the one to perform it.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        let next = now.saturating_add(self.every_ns);
        now >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
