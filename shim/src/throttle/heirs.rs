//! What a process owes that died with work on the card: those that are left pay for it.
//!
//! A program that launches a long kernel and is killed has paid what was reserved, and nobody settles the rest. So its
//! place in the ledger tells up to when its work is paid for, and who comes to the gate of the device looks, at most ten
//! times a second, for such words of processes that are gone.

use core::sync::atomic::{AtomicU64, Ordering};

/// When the dead are looked for again. Zero: at once, as when a process comes to a device for the first time.
#[derive(Default)]
pub(super) struct Look(AtomicU64);

/// How long a death may go unnoticed while the container uses the device. What is charged for it may be too much by this.
const EVERY_NS: u64 = 100_000_000;

impl Look {
    /// Whether it is time, and this thread's to do it.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let due = self.0.load(Ordering::Relaxed);
        let next = now.saturating_add(EVERY_NS);
        now >= due
            && self.0.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
