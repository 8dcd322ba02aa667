//! Captures that are under way in this process. While there are any, a question about an event would spoil them.
//!
//! A capture is over when its stream is asked to end it, also if it was spoilt before, and when its stream or context
//! ends. So they are listed by stream; launches look at a number beside the list.

use super::lanes::Key;
use core::sync::atomic::{AtomicUsize, Ordering};
use gpucap_abi::cuda::{CUcontext, CUdevice};
use parking_lot::Mutex;

/// Those under way.
pub(crate) struct Captures(Mutex<Vec<Capture>>);

/// How many there are: one process has one session.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The capture of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capture {
    pub(super) stream: Key,
    pub(super) context: CUcontext,
    pub(super) device: Option<CUdevice>,
}

/// Whether any stream of this process may be captured.
#[inline]
pub(super) fn is_any() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

impl Captures {
    /// None yet. A child made by `fork` has none of its parent's.
    pub(crate) fn new() -> Self {
        COUNT.store(0, Ordering::SeqCst);
        Self(Mutex::default())
    }

    /// One begins.
    pub(super) fn begin(&self, capture: Capture) {
        self.change(|all| all.push(capture));
    }

    /// One has not begun after all. Another one of the same stream may be why.
    pub(super) fn undo(&self, capture: Capture) {
        self.change(|all| {
            if let Some(place) = all.iter().rposition(|other| *other == capture) {
                all.swap_remove(place);
            }
        });
    }

    /// Those are over of which `over` says so; what they were.
    pub(super) fn end(&self, mut over: impl FnMut(&Capture) -> bool) -> Vec<Capture> {
        self.change(|all| all.extract_if(.., |capture| over(capture)).collect())
    }

    fn change<T>(&self, work: impl FnOnce(&mut Vec<Capture>) -> T) -> T {
        let mut all = self.0.lock();
        let done = work(&mut all);
        COUNT.store(all.len(), Ordering::SeqCst);
        done
    }
}
