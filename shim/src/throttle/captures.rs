//! The stream captures in progress in this process. While there are any, a query of an event could invalidate them.
//!
//! A capture ends when its stream is asked to end it, even if it was invalidated before, and when its stream or
//! context ends. So captures are listed by stream; launches look at a counter beside the list.

use super::key::Key;
use core::sync::atomic::{AtomicUsize, Ordering};
use gpucap_abi::cuda::{CUcontext, CUdevice};
use parking_lot::Mutex;

/// The captures in progress.
pub(crate) struct Captures(Mutex<Vec<Capture>>);

/// Their number: one process has one session.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The capture of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capture {
    pub(crate) stream: Key,
    pub(crate) context: CUcontext,
    pub(crate) device: Option<CUdevice>,
}

/// Returns whether any stream of this process may be capturing.
#[inline]
pub(crate) fn is_any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

impl Captures {
    /// Makes an empty list. A child made by `fork` has none of its parent's captures.
    pub(crate) fn new() -> Self {
        COUNT.store(0, Ordering::SeqCst);
        Self(Mutex::default())
    }

    /// Adds one.
    pub(crate) fn begin(&self, capture: Capture) {
        self.change(|all| all.push(capture));
    }

    /// Removes one that has not begun after all. Another one of the same stream may be the reason.
    pub(crate) fn undo(&self, capture: Capture) {
        self.change(|all| {
            if let Some(place) = all.iter().rposition(|other| *other == capture) {
                all.swap_remove(place);
            }
        });
    }

    /// Removes those for which `over` is true, and returns them.
    pub(crate) fn end(&self, mut over: impl FnMut(&Capture) -> bool) -> Vec<Capture> {
        self.change(|all| all.extract_if(.., |capture| over(capture)).collect())
    }

    fn change<T>(&self, work: impl FnOnce(&mut Vec<Capture>) -> T) -> T {
        let mut all = self.0.lock();
        let done = work(&mut all);
        COUNT.store(all.len(), Ordering::SeqCst);
        done
    }
}
