//! The time of the simulated machine: the host's monotonic clock, or one that tests move.
//!
//! The virtual clock lies in the card file, so that all processes of a test share it. It moves only
//! by [`Clock::advance`] and [`Clock::reach`]; a host wait in the stub moves it to the awaited
//! moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Below this a wait spins, as the real driver does by default: a sleep would overshoot.
const SPIN_NS: u64 = 60_000;

/// A clock in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub enum Clock<'a> {
    /// `CLOCK_MONOTONIC`: the same for all processes of a machine.
    Real,
    /// A number in the card file.
    Virtual(&'a AtomicU64),
}

impl Clock<'_> {
    /// The time now.
    #[must_use]
    pub fn now(self) -> u64 {
        match self {
            Self::Real => monotonic(),
            Self::Virtual(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Moves a virtual clock by `ns`; on the real one the time passes for the caller.
    pub fn advance(self, ns: u64) {
        match self {
            Self::Real => self.reach(monotonic().saturating_add(ns)),
            Self::Virtual(now) => {
                now.fetch_add(ns, Ordering::SeqCst);
            }
        }
    }

    /// Waits until `then`, or moves a virtual clock there.
    pub fn reach(self, then: u64) {
        match self {
            Self::Real => wait_until(then),
            Self::Virtual(now) => {
                now.fetch_max(then, Ordering::SeqCst);
            }
        }
    }
}

fn wait_until(then: u64) {
    loop {
        let left = then.saturating_sub(monotonic());
        if left == 0 {
            return;
        }
        if left > SPIN_NS {
            std::thread::sleep(Duration::from_nanos(left - SPIN_NS));
        } else {
            std::hint::spin_loop();
        }
    }
}

fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable, and the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_clock_moves_only_when_told_and_never_back() {
        let cell = AtomicU64::new(5);
        let clock = Clock::Virtual(&cell);
        assert_eq!(clock.now(), 5);
        clock.advance(10);
        clock.reach(7);
        assert_eq!(clock.now(), 15);
        clock.reach(20);
        assert_eq!(clock.now(), 20);
    }

    #[test]
    fn the_real_clock_does_not_end_a_wait_early() {
        let then = Clock::Real.now() + 200_000;
        Clock::Real.reach(then);
        assert!(Clock::Real.now() >= then);
    }
}
