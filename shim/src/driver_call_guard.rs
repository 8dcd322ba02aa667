//! Whether this thread is inside a driver call under a lock of the shim.
//!
//! Few locks are held across a call of the driver: those of primary contexts, of physical memory, of the handles of pools
//! (which has a flag of its own) and, while an event is asked for, of a device's meter. The driver itself does not call back, but tools do (CUPTI, NVBit, Nsight,
//! compute-sanitizer): their callbacks run inside such a call, on the same thread, and may use the driver. Waiting for the
//! lock there would be waiting for oneself. What a tool makes in such a moment goes past the ledger.

use core::cell::Cell;

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// This thread may take one of the locks, until this is dropped.
pub(crate) struct DriverCallGuard(());

impl DriverCallGuard {
    /// `None` if the thread holds one already. A thread whose locals are gone has none.
    pub(crate) fn enter() -> Option<Self> {
        let before = HELD.try_with(|held| held.replace(true)).unwrap_or(false);
        // Made only where it is returned: dropped, it would clear the flag of the outer guard.
        (!before).then(|| Self(()))
    }

    /// Returns whether this thread holds one: then it is inside a driver call, and optional work is skipped.
    pub(crate) fn is_entered() -> bool {
        HELD.try_with(Cell::get).unwrap_or(false)
    }
}

impl Drop for DriverCallGuard {
    fn drop(&mut self) {
        // Locals without a destructor outlive everything in the thread: there is nothing to lose here.
        let _ = HELD.try_with(|held| held.set(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_held_until_its_owner_releases_it_however_often_others_ask() {
        let held = DriverCallGuard::enter();
        assert!(held.is_some());
        for _ in 0..3 {
            assert!(DriverCallGuard::enter().is_none());
            assert!(DriverCallGuard::is_entered());
        }
        drop(held);
        assert!(!DriverCallGuard::is_entered());
        assert!(DriverCallGuard::enter().is_some());
    }
}
