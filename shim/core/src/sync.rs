//! Shared memory words: the only import of atomics in this crate.
//!
//! Two kinds. A [`Word`] takes part in a protocol: its orderings are decided here, once, and under
//! `--cfg loom` it is a word that the model checker watches. A [`Counter`] informs people: no
//! decision about memory rests on it, it is relaxed and the model checker never sees it.
//! Both have the size and the alignment of a `u64`, and zero is a valid value of both.
//!
//! In test builds each access to a `Word` burns one step of the thread's fuse, if it has one; at the end of the fuse
//! the thread unwinds at once, which is how a test kills a process between any two instructions. Builds that ship
//! contain none of this.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

#[cfg(loom)]
use loom::sync::atomic::AtomicU64 as Watched;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64 as Watched;

/// A word of a protocol: loads acquire, stores release, exchanges do both.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(Watched);

impl Word {
    /// The present value.
    #[inline]
    pub fn load(&self) -> u64 {
        step();
        #[cfg(loom)]
        if explore::is_in_every_order() {
            return self.0.fetch_or(0, AcqRel);
        }
        self.0.load(Acquire)
    }

    /// Replaces the value, whatever it is. For words that only their owner writes.
    #[inline]
    pub fn store(&self, value: u64) {
        step();
        #[cfg(not(loom))]
        self.0.store(value, Release);
        // A store comes after every exchange of the same thread's earlier store. The checker knows
        // that of exchanges only, and would let a later load find the value exchanged.
        #[cfg(loom)]
        self.0.swap(value, Release);
    }

    /// Replaces `old` by `new`.
    ///
    /// # Errors
    /// The value found, if it was not `old`.
    #[inline]
    pub fn replace(&self, old: u64, new: u64) -> Result<(), u64> {
        step();
        self.0.compare_exchange(old, new, AcqRel, Acquire).map(drop)
    }

    /// Sets bits.
    #[inline]
    pub fn set(&self, bits: u64) {
        step();
        self.0.fetch_or(bits, AcqRel);
    }

    /// Adds, around the end of the range.
    #[inline]
    pub fn add(&self, value: u64) {
        step();
        self.0.fetch_add(value, AcqRel);
    }

    /// Raises the value to at least `floor`.
    #[inline]
    pub fn raise(&self, floor: u64) {
        step();
        self.0.fetch_max(floor, AcqRel);
    }
}

/// A word for people to read: exact when one thread at a time writes it, as with a process's own.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The present value.
    #[inline]
    pub fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Replaces the value.
    #[inline]
    pub fn store(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds, for words with many writers.
    #[inline]
    pub fn add(&self, value: u64) {
        self.0.fetch_add(value, Relaxed);
    }

    /// Raises the value to at least `floor`; a plain load where it is high enough already.
    #[inline]
    pub fn raise(&self, floor: u64) {
        if self.load() < floor {
            self.0.fetch_max(floor, Relaxed);
        }
    }
}

#[cfg(loom)]
pub(crate) mod explore;

#[cfg(not(any(test, loom)))]
#[inline]
fn step() {}

#[cfg(any(test, loom))]
use fuse::step;

#[cfg(any(test, loom))]
pub(crate) mod fuse {
    //! Death on demand.

    use std::{cell::Cell, panic};

    #[cfg(loom)]
    use loom::thread_local;

    thread_local! {
        static STEPS_LEFT: Cell<Option<u32>> = Cell::default();
    }

    /// The payload of a thread that died of its fuse.
    struct Burnt;

    /// Runs `life`; it dies before its access number `steps`, counted from 0.
    /// `None` says that it died, having done exactly `steps` accesses.
    pub(crate) fn burn<T>(steps: u32, life: impl FnOnce() -> T) -> Option<T> {
        STEPS_LEFT.with(|left| left.set(Some(steps)));
        let end = panic::catch_unwind(panic::AssertUnwindSafe(life));
        STEPS_LEFT.with(|left| left.set(None));
        match end {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Burnt>() => None,
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    pub(super) fn step() {
        STEPS_LEFT.with(|left| match left.get() {
            None => {}
            // Unwinds without the panic hook: a death is not a failure of the test.
            Some(0) => panic::resume_unwind(Box::new(Burnt)),
            Some(steps) => left.set(Some(steps - 1)),
        });
    }
}
