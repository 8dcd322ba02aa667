//! The stream captures in progress in this process. While there are any, a query of an event could invalidate them.
//!
//! A capture ends when its stream is asked to end it, even if it was invalidated before, and when its context ends. So
//! captures are listed by stream; launches look at a counter beside the list. What becomes of the capture of a stream that is
//! destroyed is documented nowhere: it is taken to go on until its context ends.

use super::key::Key;
use core::sync::atomic::{AtomicUsize, Ordering};
use gpucap_abi::cuda::{CUcontext, CUdevice};
use parking_lot::Mutex;

/// The captures in progress.
pub(crate) struct Captures(Mutex<Vec<Capture>>);

/// Their number, and [`ENDING`]: one process has one session.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The process is ending: no launch is out of an allowance.
const ENDING: usize = 1 << (usize::BITS - 1);

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
    COUNT.load(Ordering::Relaxed) & !ENDING != 0
}

/// Returns whether launches may be out of an allowance.
#[inline]
pub(crate) fn allow_prepaid() -> bool {
    COUNT.load(Ordering::Relaxed) == 0
}

/// From here on none is.
pub(crate) fn end_prepaid() {
    COUNT.fetch_or(ENDING, Ordering::SeqCst);
}

fn set(count: usize) {
    let change = |word: usize| Some(word & ENDING | count);
    let _ = COUNT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
}

impl Captures {
    /// Makes an empty list. A child made by `fork` has none of its parent's captures.
    pub(crate) fn new() -> Self {
        COUNT.store(0, Ordering::SeqCst); // nor does it end because its parent does
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

    /// The streams of those for which `is_of_it` is true are destroyed: their handles may be those of others.
    pub(crate) fn outlive(&self, is_of_it: impl Fn(&Capture) -> bool) {
        self.change(|all| {
            let own = all.iter_mut().filter(|capture| is_of_it(capture));
            own.for_each(|capture| capture.stream = Key::NONE);
        });
    }

    fn change<T>(&self, work: impl FnOnce(&mut Vec<Capture>) -> T) -> T {
        let mut all = self.0.lock();
        let done = work(&mut all);
        set(all.len());
        done
    }
}
