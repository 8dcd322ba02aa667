//! An event that was recorded where the device's meter could not be locked: in a callback of the driver to a tool.
//!
//! It becomes a [`Mark`] once the meter is free and the number of its context can be looked up. Until then only its owner
//! knows of it, who gives it back to the driver if nothing comes of it. Its context is the one that was current when it
//! was made.

use super::{ContextId, Mark};
use crate::driver::cuda::time as driver;
use crate::redirect::DriverCopy;
use crate::sys;
use gpucap_abi::cuda::{CUevent, CUstream};

/// A recorded event of a context whose number is not known.
#[derive(Debug)]
pub(in crate::throttle) struct Recorded {
    event: CUevent,
    asked: u64,
    took: u64,
}

impl Recorded {
    /// Makes an event in the current context and records it in a stream of that.
    pub(in crate::throttle) fn new(copy: &DriverCopy, stream: CUstream) -> Option<Self> {
        let event = driver::create_event(copy)?;
        let asked = sys::monotonic_ns();
        if driver::record(copy, event, stream).is_none() {
            let _ = driver::destroy_event(copy, event);
            return None;
        }
        Some(Self { event, asked, took: sys::monotonic_ns().saturating_sub(asked) })
    }

    /// Returns when the driver was asked to record it.
    pub(in crate::throttle) fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns it as one of this context.
    pub(in crate::throttle) fn mark(self, context: ContextId) -> Mark {
        let Self { event, asked, took } = self;
        Mark { event, context, asked, took }
    }

    /// Gives it back to the driver.
    pub(in crate::throttle) fn destroy(self, copy: &DriverCopy) {
        let _ = driver::destroy_event(copy, self.event);
    }
}
