//! Locks on what handles stand for: that does not change while a call depends on it.
//!
//! A pool that is destroyed leaves its handle to the next one, and another pool can become a device's current one at
//! any time. An allocation is charged to a pool before the driver is called, so it must be that pool which the driver
//! takes from; and the allocations of a graph are counted before and after it is made executable. Such calls share the
//! lock; making, ending and choosing a pool, ending a stream or a graph, setting a limit of a context, and adding or
//! taking off its users have it alone. It is held across the driver's call. A tool that the driver calls back on the
//! same thread passes: waiting there would be waiting for itself. Under [another lock](crate::driver::call_guard) it is
//! taken only if it is free, since its holder may wait for that.

use crate::driver::call_guard::DriverCallGuard;
use core::cell::Cell;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// One of the locks of a session: of pools, of graphs, of who uses a context, and of its limits.
#[derive(Default)]
pub(crate) struct Handles(RwLock<()>);

/// Holds the lock until it is dropped.
pub(crate) struct HandlesGuard<Guard> {
    _guard: Guard,
    /// The thread held one of these locks before.
    before: bool,
}

impl Handles {
    /// No handle changes its meaning until this is dropped. `None` if the thread holds one of these locks already,
    /// and this one is not free.
    pub(crate) fn keep(&self) -> Option<HandlesGuard<RwLockReadGuard<'_, ()>>> {
        enter(|| self.0.read(), || self.0.try_read())
    }

    /// No call depends on a handle until this is dropped. `None` as above.
    pub(crate) fn change(&self) -> Option<HandlesGuard<RwLockWriteGuard<'_, ()>>> {
        enter(|| self.0.write(), || self.0.try_write())
    }
}

/// A thread whose locals are gone has not entered before.
fn enter<Guard>(
    wait: impl FnOnce() -> Guard,
    attempt: impl FnOnce() -> Option<Guard>,
) -> Option<HandlesGuard<Guard>> {
    let before = HELD.try_with(Cell::get).unwrap_or(false);
    let guard = if before || DriverCallGuard::is_entered() { attempt()? } else { wait() };
    let _ = HELD.try_with(|held| held.set(true));
    Some(HandlesGuard { _guard: guard, before })
}

impl<Guard> Drop for HandlesGuard<Guard> {
    fn drop(&mut self) {
        // Locals without a destructor outlive everything in the thread: there is nothing to lose here.
        let _ = HELD.try_with(|held| held.set(self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_the_lock_once() {
        let (handles, others) = (Handles::default(), Handles::default());
        let kept = handles.keep();
        assert!(kept.is_some());
        // A tool within the call waits for nothing, and has what is free.
        assert!(handles.keep().is_some() && handles.change().is_none());
        assert!(others.change().is_some());
        assert!(HELD.get(), "the outer one is held still");
        assert!(handles.0.try_write().is_none());
        drop(kept);
        let changing = handles.change();
        assert!(changing.is_some() && handles.keep().is_none());
        drop(changing);
        assert!(handles.0.try_write().is_some() && !HELD.get());
    }
}
