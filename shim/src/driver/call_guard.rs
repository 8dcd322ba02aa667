//! Whether this thread is inside a driver call under a lock of the shim.
//!
//! Few locks are held across a call of the driver: those of primary contexts, of physical memory, of what handles stand
//! for (`Handles`, which has a flag of its own) and, while an event is asked for, of a device's meter. The driver
//! itself does not call back, but tools do (CUPTI, NVBit, Nsight, compute-sanitizer): their callbacks run inside such a
//! call, on the same thread, and may use the driver. Waiting for the lock there would be waiting for oneself. So inside
//! such a call a lock is taken only if it is free; where it is not, what a tool does is charged all the same, and what
//! cannot be entered stays charged. Its launches are paid for as soon as the thread is outside again.

use core::cell::Cell;
use core::ops::{Deref, DerefMut};
use parking_lot::{Mutex, MutexGuard};

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
    /// What is to be done once this thread is outside of the call.
    static AFTERWARDS: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Has this thread do this once it is outside of the call, and holds none of the locks.
pub(crate) fn afterwards(work: fn()) {
    let _ = AFTERWARDS.try_with(|afterwards| afterwards.set(Some(work)));
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

/// A lock that is held across a call of the driver. It is released before the guard.
pub(crate) struct LockAcrossCall<'a, T> {
    inside: MutexGuard<'a, T>,
    _call: Option<DriverCallGuard>,
}

/// Takes a lock for a call of the driver. `None` if this thread is inside such a call and the lock is not free.
pub(crate) fn lock<T>(lock: &Mutex<T>) -> Option<LockAcrossCall<'_, T>> {
    match DriverCallGuard::enter() {
        None => Some(LockAcrossCall { inside: lock.try_lock()?, _call: None }),
        call => Some(LockAcrossCall { inside: lock.lock(), _call: call }),
    }
}

impl<T> Deref for LockAcrossCall<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inside
    }
}

impl<T> DerefMut for LockAcrossCall<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inside
    }
}

impl Drop for DriverCallGuard {
    fn drop(&mut self) {
        // Locals without a destructor outlive everything in the thread: there is nothing to lose here.
        let _ = HELD.try_with(|held| held.set(false));
        if let Ok(Some(work)) = AFTERWARDS.try_with(Cell::take) {
            work();
        }
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

    #[test]
    fn inside_a_call_only_a_free_lock_is_taken() {
        let (one, other) = (Mutex::new(()), Mutex::new(()));
        let outer = lock(&one);
        assert!(outer.is_some());
        assert!(lock(&one).is_none(), "this thread has it");
        drop(lock(&other));
        assert!(DriverCallGuard::is_entered(), "that of the outer call");
        drop(outer);
        assert!(lock(&one).is_some());
        assert!(!DriverCallGuard::is_entered());
    }
}
