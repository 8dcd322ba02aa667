//! Whether the device has done all that a stream had, as any thread may ask.
//!
//! Most streams have the same name in each thread. The default stream of a thread has one in that only: it records an event
//! behind each launch, and others ask about that.

use super::captures;
use crate::driver::DriverCopy;
use crate::driver::cuda::time as driver;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use gpucap_abi::cuda::{CUevent, CUstream};
use gpucap_core::throttle::StreamId;
use std::collections::HashMap;
use std::sync::Arc;

/// What is asked about a stream.
#[derive(Clone)]
pub(crate) enum Asked {
    /// The stream itself.
    Stream(CUstream),
    /// The event behind its latest launch.
    Latest(Arc<LatestLaunch>),
}

/// The streams about which something can be asked, and their contexts. `None`: several have the same number.
pub(crate) struct AskedStreams<C>(HashMap<StreamId, Option<(Asked, C)>>);

impl<C> Default for AskedStreams<C> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<C: Copy> AskedStreams<C> {
    /// Enters a stream of a context.
    pub(crate) fn enter(&mut self, id: StreamId, asked: Asked, context: C) {
        let several = self.0.contains_key(&id);
        self.0.insert(id, (!several).then_some((asked, context)));
    }

    /// What is asked about a stream, and its context; `None` if nothing is.
    pub(crate) fn get(&self, id: StreamId) -> Option<(&Asked, C)> {
        self.0.get(&id)?.as_ref().map(|(asked, context)| (asked, *context))
    }

    /// Forgets a stream. Returns what was behind its launches, and its context.
    pub(crate) fn leave(&mut self, id: StreamId) -> Option<(Arc<LatestLaunch>, C)> {
        match self.0.remove(&id)?? {
            (Asked::Latest(latest), context) => Some((latest, context)),
            (Asked::Stream(_), _) => None,
        }
    }
}

impl Asked {
    /// Whether the device has done all that the stream had; `None` if the driver does not say, and if a question about the
    /// stream would invalidate what is captured. It can become part of a capture later only by a call that has its launches
    /// marked first, under the lock of the device: then nothing is asked about it.
    pub(crate) fn is_idle(&self, copy: &DriverCopy) -> Option<bool> {
        match self {
            Self::Stream(stream) => {
                let may_ask = !captures::is_any() || driver::carries_out(copy, *stream);
                may_ask.then(|| driver::is_idle(copy, *stream)).flatten()
            }
            Self::Latest(latest) => latest.is_idle(copy),
        }
    }
}

/// An event behind the latest launch of such a stream; only its thread records it.
pub(crate) struct LatestLaunch {
    event: CUevent,
    /// When the driver was asked to record it the latest time, and how long that took.
    asked: AtomicU64,
    took: AtomicU64,
    /// The driver is being called for a launch.
    is_launching: AtomicBool,
}

impl LatestLaunch {
    /// Takes this event, of the stream's context.
    pub(crate) fn new(event: CUevent) -> Self {
        let (asked, took) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { event, asked, took, is_launching: AtomicBool::new(false) }
    }

    /// A launch begins.
    pub(crate) fn begins(&self) {
        self.is_launching.store(true, SeqCst);
    }

    /// The driver has returned.
    pub(crate) fn has_returned(&self, copy: &DriverCopy, stream: CUstream) {
        let _errno = sys::Errno::keep();
        let asked = sys::monotonic_ns();
        if driver::record(copy, self.event, stream).is_some() {
            self.asked.store(asked, SeqCst);
            self.took.store(sys::monotonic_ns().saturating_sub(asked), SeqCst);
        }
        self.is_launching.store(false, SeqCst);
    }

    /// The event, when it was recorded, and how long that took.
    pub(crate) fn recorded(&self) -> (CUevent, u64, u64) {
        (self.event, self.asked.load(SeqCst), self.took.load(SeqCst))
    }

    /// Whether the device has done that launch; `None` if the driver does not say.
    fn is_idle(&self, copy: &DriverCopy) -> Option<bool> {
        // A call that takes long waits for the device.
        if self.is_launching.load(SeqCst) {
            return Some(false);
        }
        match driver::ask(copy, self.event) {
            driver::Event::Reached => Some(true),
            driver::Event::Pending => Some(false),
            driver::Event::Lost => None,
        }
    }
}
