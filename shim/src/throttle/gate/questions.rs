//! Questions about events, asked under the lock of a device's meter.
//!
//! A question in one thread can invalidate what another one captures, unless it is asked in the relaxed mode. The driver
//! may call a tool back in it, on the same thread, which finds the lock [held](crate::driver::call_guard); what it
//! launches there is kept apart, since asking again would have it launch again.

use super::super::captures;
use super::{Gate, Inside};
use crate::driver::DriverCopy;
use crate::driver::cuda::time as driver;
use core::cell::Cell;

thread_local! {
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

impl Gate {
    /// Runs the meter, with queries of events that invalidate no capture. `None` if this thread already holds such a
    /// lock: then it is a tool that was called back.
    pub(super) fn asking<T>(
        &self,
        copy: &DriverCopy,
        work: impl FnOnce(&mut Inside) -> T,
    ) -> Option<T> {
        // Checked under the lock: a thread that begins a capture waits for those that have not seen it.
        self.with(|inside| inside.ask(copy, work))
    }

    /// The same for a caller that [holds](crate::driver::call_guard) the guard already.
    pub(super) fn asking_held<T>(
        &self,
        copy: &DriverCopy,
        work: impl FnOnce(&mut Inside) -> T,
    ) -> T {
        self.think(|inside| inside.ask(copy, work))
    }

    /// Asks outside of the lock, in a thread that may hold it: a tool's.
    pub(crate) fn asking_unlocked<T>(copy: &DriverCopy, work: impl FnOnce() -> T) -> T {
        question(copy, true, work)
    }

    /// Returns whether this thread is inside a question about an event.
    pub(crate) fn is_asking() -> bool {
        IS_ASKING.try_with(Cell::get).unwrap_or(false)
    }
}

impl Inside {
    /// The thread may have no current context, as one that has just ended its own, and a question may need one.
    fn ask<T>(&mut self, copy: &DriverCopy, work: impl FnOnce(&mut Self) -> T) -> T {
        // None that can be ended while the lock is held.
        let context = self.timing.any_context();
        driver::in_some_context(copy, context, || question(copy, captures::is_any(), || work(self)))
    }
}

fn question<T>(copy: &DriverCopy, relaxed: bool, work: impl FnOnce() -> T) -> T {
    let _ = IS_ASKING.try_with(|is_asking| is_asking.set(true));
    let done = if relaxed { driver::relaxed(copy, work) } else { work() };
    let _ = IS_ASKING.try_with(|is_asking| is_asking.set(false));
    done
}
