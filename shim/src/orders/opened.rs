//! Which calls of `dlopen` a scan has seen: a look-up scans where there are others.
//!
//! A thread that finds all of them seen skips its own scan, and must see what the scan of the other thread has written:
//! the number is stored with release when the scan has ended, and read with acquire.

use super::atomic::{AtomicUsize, Ordering};

/// Calls of `dlopen` and `dlmopen`.
pub(crate) struct Opened {
    /// So far.
    pub(crate) calls: AtomicUsize,
    /// Those that a scan has seen which has ended.
    pub(crate) seen: AtomicUsize,
}

impl Opened {
    /// Notes a call that is about to be made.
    pub(crate) fn note(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many calls there are, for a scan that begins.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Says that a scan has ended which began after `calls` calls. Others see what it has written.
    pub(crate) fn saw(&self, calls: usize) {
        self.seen.store(calls, Ordering::Release);
    }

    /// Returns whether a scan has seen all calls; its writes are seen then.
    pub(crate) fn all_seen(&self) -> bool {
        self.calls() == self.seen.load(Ordering::Acquire)
    }
}
