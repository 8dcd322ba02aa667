//! A lock for a few instructions: it is released by a plain store.
//!
//! Each operation on a table of holdings, and on this process's line of the ledger, takes one. A lock on which threads
//! can be parked is released by an atomic exchange, which takes as long as the operation itself. A thread that holds this
//! one calls neither the driver nor the program, so that another thread finds it taken only if the holder runs at this
//! moment, or was preempted, or makes a table larger, or looks for dead processes before a charge for a pool is refused.
//! It spins in the first case and sleeps in the others: a sleeping thread lets one of a lower priority run. Not for a lock
//! that is held across a call of the driver.

use super::errno::Errno;
use super::time;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::lock_api::{GuardNoSend, RawMutex};

/// The lock by itself.
pub(crate) struct ShortLock(AtomicBool);

/// What is protected by one.
pub(crate) type Short<T> = parking_lot::lock_api::Mutex<ShortLock, T>;

/// How often a thread looks before it sleeps, after two pauses of the processor and then each time twice as many: 30 in
/// all, 0.3 to 1.4 us, and a holder that runs needs less. Each look takes the word from the holder's cache, and a
/// thread that sleeps leaves the processor to a holder that was preempted: with 200 looks, one pause apart, a pair of
/// calls kept a processor 1.4 (4 threads) to 1.9 (16 threads) times as long.
const LOOKS: u32 = 4;

impl ShortLock {
    fn take(&self) -> bool {
        self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let _errno = Errno::keep();
        loop {
            for look in 1..=LOOKS {
                (0..1_u32 << look).for_each(|_| spin_loop());
                if !self.0.load(Ordering::Relaxed) && self.take() {
                    return;
                }
            }
            time::nap_briefly();
        }
    }
}

// SAFETY: the exchange makes one thread at a time the owner, and the owner alone stores the release.
unsafe impl RawMutex for ShortLock {
    const INIT: Self = Self(AtomicBool::new(false));
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.wait();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.take()
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn one_thread_at_a_time_is_inside() {
        let sum = Short::new((0_u64, 0_u64));
        let add = || {
            for _ in 0..20_000 {
                let mut inside = sum.lock();
                inside.0 += 1;
                inside.1 += 1;
                assert_eq!(inside.0, inside.1);
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(add);
            }
        });
        assert_eq!(*sum.lock(), (80_000, 80_000));
    }

    #[test]
    fn a_taken_lock_is_not_taken_again_and_a_released_one_is() {
        let lock = Short::new(());
        let held = lock.try_lock();
        assert!(held.is_some() && lock.try_lock().is_none());
        drop(held);
        assert!(lock.try_lock().is_some());
    }
}
