//! A thread that looks for the end of a launch of unknown length, while other processes of the container wait for that.
//!
//! The program may make no call for long, in which the end would be noticed. The thread begins with the first such launch
//! where there are other processes, and ends when there has been none for [`LINGER`]. Where none can be had, the launching
//! thread looks itself, for [`MOST_IN_PLACE_NS`] at most.
//!
//! At the end of the process the driver takes itself down, while other threads may be in its calls: so before that, the
//! thread is kept out of them.

use super::Gate;
use crate::driver::DriverCopy;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use core::time::Duration;
use std::thread::park_timeout;

/// For how long it stays without work: programs launch many new functions as they start.
const LINGER: Duration = Duration::from_secs(1);
/// A kernel may wait for the thread that has launched it.
const MOST_IN_PLACE_NS: u64 = 2_000_000_000;
/// A look takes microseconds.
const MOST_LOOK_NS: u64 = 100_000_000;

/// The process that has asked for [`leave_the_driver`], whether it has come to that, and how many threads look now.
static ASKED: AtomicU32 = AtomicU32::new(0);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
static LOOKING: AtomicU32 = AtomicU32::new(0);

impl Gate {
    /// Sees to it that the end of what was launched just now is noticed, if others wait for it.
    pub(super) fn watch(&'static self, copy: &'static DriverCopy) {
        if !self.wants_watch() {
            return;
        }
        let mut thread = self.watcher.lock();
        if let Some(thread) = &*thread {
            return thread.unpark();
        }
        ask_for_the_end();
        match sys::spawn(move || self.look_until_idle(copy)) {
            Ok(begun) => *thread = Some(begun),
            Err(_) => {
                drop(thread);
                self.look_in_place(copy);
            }
        }
    }

    fn look_until_idle(&self, copy: &DriverCopy) {
        loop {
            while let Some(again) = look(|| self.look_for_ends(copy)) {
                sys::sleep_until(again);
            }
            park_timeout(LINGER);
            let mut thread = self.watcher.lock();
            if !self.wants_watch() || IS_ENDING.load(SeqCst) {
                *thread = None;
                return;
            }
        }
    }

    fn look_in_place(&self, copy: &DriverCopy) {
        let until = sys::monotonic_ns().saturating_add(MOST_IN_PLACE_NS);
        while let Some(again) = self.look_for_ends(copy).filter(|again| *again < until) {
            sys::sleep_until(again);
        }
    }
}

/// Looks, unless the process is ending. Returns when to do so again.
fn look(look: impl FnOnce() -> Option<u64>) -> Option<u64> {
    LOOKING.fetch_add(1, SeqCst);
    let again = if IS_ENDING.load(SeqCst) { None } else { look() };
    LOOKING.fetch_sub(1, SeqCst);
    again
}

/// Has this process [leave the driver](leave_the_driver) before it ends. A child made by `fork` has none of its parent's
/// threads.
fn ask_for_the_end() {
    let (asked, own) = (ASKED.load(SeqCst), sys::pid());
    if asked != own && ASKED.compare_exchange(asked, own, SeqCst, SeqCst).is_ok() {
        LOOKING.store(0, SeqCst);
        sys::before_exit(leave_the_driver);
    }
}

/// Waits until no thread of the library is in a call of the driver, and keeps them out.
extern "C" fn leave_the_driver() {
    if ASKED.load(SeqCst) != sys::pid() {
        return;
    }
    IS_ENDING.store(true, SeqCst);
    let until = sys::monotonic_ns().saturating_add(MOST_LOOK_NS);
    while LOOKING.load(SeqCst) > 0 && sys::monotonic_ns() < until {
        sys::nap();
    }
}
