//! A thread that looks at what is in flight, whatever calls the program makes or does not make: work that takes longer than
//! was expected is charged while it runs, and its end is seen.
//!
//! It begins with the first launch, and ends when nothing has been in flight for [`LINGER`]; from then on the next launch
//! comes to the gate. While other processes of the container wait for the end of a launch of unknown length it looks
//! more often. Where no thread can be had, the launching thread looks for that itself, for [`MOST_IN_PLACE_NS`] at most, and
//! each launch is measured by itself.
//!
//! As long as it is there it also says that the process lives: if that dies with work in flight, it owes the time until then.
//!
//! At the end of the process the driver takes itself down, while other threads may be in its calls: so before that, the
//! thread is kept out of them. The process may go on for long: it says that it lives.

use super::super::captures;
use super::super::watcher::Watcher;
use super::Gate;
use crate::driver::DriverCopy;
use crate::sys;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use core::time::Duration;
use parking_lot::Mutex;
use std::thread::{Thread, current, park_timeout};
use std::time::Instant;

/// For how long it stays without work: a thread costs as much as a hundred looks.
const LINGER: Duration = Duration::from_secs(1);
/// How often it looks in that time. Work of which nothing is known until then may be in flight for as long.
const IDLE: Duration = Duration::from_millis(10);
/// A kernel may wait for the thread that has launched it.
const MOST_IN_PLACE_NS: u64 = 2_000_000_000;
/// For how long a process that ends waits until its work in flight has ended, and how often that is looked for.
const MOST_LEAVING_NS: u64 = 100_000_000;
const LOCK_WAIT: Duration = Duration::from_millis(10);
const LEAVING_NAP_NS: u64 = 100_000;
const HURRY: Duration = Duration::from_millis(1);
/// A look takes microseconds.
const MOST_LOOK_NS: u64 = 100_000_000;

/// For how long none is asked for again, if the system allows no thread: that takes as long as a launch.
const REFUSED_NS: u64 = 1_000_000_000;

/// The process that has asked for [`leave_the_driver`], and whether it has come to that.
static ASKED: AtomicU32 = AtomicU32::new(0);
static IS_LEAVING: AtomicBool = AtomicBool::new(false);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The threads that look, and how many of them have found nothing in flight since the process has been leaving.
static THREADS: Mutex<Vec<Thread>> = Mutex::new(Vec::new());
static LEFT: AtomicU32 = AtomicU32::new(0);
/// The process, and how many of its threads look now: `process:32 threads:32`. A child made by `fork` has none of its
/// parent's threads.
static LOOKING: AtomicU64 = AtomicU64::new(0);

impl Gate {
    /// Sees to it that what was launched just now is looked at.
    pub(super) fn watch(&'static self, copy: &'static DriverCopy) {
        if !self.wants_watch.load(Relaxed) {
            return;
        }
        let is_awaited = self.is_awaited.load(Relaxed);
        if !self.has_watcher(copy, is_awaited) && is_awaited {
            self.look_in_place(copy);
        }
    }

    /// Returns whether there is a thread that looks, or one can be had. It `looks_soon`, or when it is time to.
    fn has_watcher(&'static self, copy: &'static DriverCopy, looks_soon: bool) -> bool {
        if IS_ENDING.load(SeqCst) {
            self.set_watched(false);
            return false;
        }
        let mut watcher = self.watcher.lock();
        let now = sys::monotonic_ns();
        match &*watcher {
            Watcher::Looks(thread) if looks_soon => thread.unpark(),
            Watcher::Looks(_) => {}
            Watcher::Refused { until } if now < *until => return false,
            Watcher::None | Watcher::Refused { .. } => {
                ask_for_the_end();
                let thread = sys::spawn(move || self.look_until_idle(copy));
                let is_there = thread.is_ok();
                self.set_watched(is_there);
                if !is_there {
                    self.ledger.alive_at(self.slot, self.index, None);
                }
                // It may not run before the process ends.
                THREADS.lock().extend(thread.as_ref().ok().cloned());
                let refused = |_| Watcher::Refused { until: now.saturating_add(REFUSED_NS) };
                *watcher = thread.map_or_else(refused, Watcher::Looks);
                return is_there;
            }
        }
        true
    }

    fn set_watched(&self, is_watched: bool) {
        self.with(|inside| inside.meter.set_watched(is_watched, sys::monotonic_ns()));
    }

    fn look_until_idle(&self, copy: &DriverCopy) {
        let (mut idle_since, mut has_left) = (Instant::now(), false);
        loop {
            // It lives on while the end of a context has the lock.
            while self.inside.try_lock_for(LOCK_WAIT).is_none() {
                self.ledger.alive_at(self.slot, self.index, Some(sys::monotonic_ns()));
            }
            let is_leaving = IS_LEAVING.load(SeqCst);
            let again = look(|| self.look_in_flight(copy, is_leaving, || !IS_ENDING.load(SeqCst)));
            if is_leaving && again.is_none() && !has_left {
                has_left = true;
                LEFT.fetch_add(1, SeqCst);
            }
            let now = sys::monotonic_ns();
            self.ledger.alive_at(self.slot, self.index, Some(now));
            let ns = again.map(|again| Duration::from_nanos(again.saturating_sub(now)));
            if ns.is_some() {
                idle_since = Instant::now();
            }
            if IS_ENDING.load(SeqCst) {
                self.set_watched(false);
            }
            if idle_since.elapsed() >= LINGER {
                let mut watcher = self.watcher.lock();
                if self.with(|inside| inside.meter.rest(now)) != Some(true) {
                    self.ledger.alive_at(self.slot, self.index, None);
                    *watcher = Watcher::None;
                    let mut threads = THREADS.lock();
                    threads.retain(|thread| thread.id() != current().id());
                    LEFT.fetch_sub(u32::from(has_left), SeqCst);
                    return;
                }
            }
            let rests = ns.unwrap_or(IDLE);
            park_timeout(if is_leaving && !has_left { rests.min(HURRY) } else { rests });
        }
    }

    fn look_in_place(&self, copy: &DriverCopy) {
        let until = sys::monotonic_ns().saturating_add(MOST_IN_PLACE_NS);
        while self.is_awaited.load(Relaxed)
            && let Some(again) =
                self.look_in_flight(copy, false, || true).filter(|again| *again < until)
        {
            sys::sleep_until(again);
        }
    }
}

/// Looks, unless the process is ending. Returns when to do so again.
fn look(look: impl FnOnce() -> Option<u64>) -> Option<u64> {
    count(|threads| threads.saturating_add(1));
    let again = if IS_ENDING.load(SeqCst) { None } else { look() };
    count(|threads| threads.saturating_sub(1));
    again
}

/// Changes how many threads of this process look. Returns how many did.
fn count(change: impl Fn(u64) -> u64) -> u64 {
    let own = u64::from(sys::pid()) << 32;
    let threads =
        |word: u64| if word & !u64::from(u32::MAX) == own { word & u64::from(u32::MAX) } else { 0 };
    let changed = |word| Some(own | change(threads(word)));
    LOOKING.fetch_update(SeqCst, SeqCst, changed).map_or(0, threads)
}

/// Has this process [leave the driver](leave_the_driver) before it ends.
fn ask_for_the_end() {
    let (asked, own) = (ASKED.load(SeqCst), sys::pid());
    if asked != own && ASKED.compare_exchange(asked, own, SeqCst, SeqCst).is_ok() {
        sys::before_exit(leave_the_driver);
    }
}

/// Waits until no thread of the library is in a call of the driver, and keeps them out. Before that it waits for a moment
/// until they have seen the end of what is in flight: later nothing shows that, and the process would owe the time until its
/// own end.
extern "C" fn leave_the_driver() {
    if ASKED.load(SeqCst) != sys::pid() {
        return;
    }
    IS_LEAVING.store(true, SeqCst);
    THREADS.lock().iter().for_each(Thread::unpark);
    let until = sys::monotonic_ns().saturating_add(MOST_LEAVING_NS);
    let is_left = || LEFT.load(SeqCst) as usize >= THREADS.lock().len();
    while !is_left() && sys::monotonic_ns() < until {
        sys::sleep_until(sys::monotonic_ns().saturating_add(LEAVING_NAP_NS));
    }
    IS_ENDING.store(true, SeqCst);
    captures::end_prepaid();
    let until = sys::monotonic_ns().saturating_add(MOST_LOOK_NS);
    while count(|threads| threads) > 0 && sys::monotonic_ns() < until {
        sys::nap();
    }
}
