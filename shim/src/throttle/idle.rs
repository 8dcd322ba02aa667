//! Whether the device has done all that a stream had, as any thread may ask.
//!
//! Most streams have the same name in each thread. The default stream of a thread has one in that only: it records an event
//! behind each launch, and others ask about that.

use super::timing::ContextId;
use crate::driver::DriverCopy;
use crate::driver::cuda::time as driver;
use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
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

/// The streams about which something can be asked. `None`: several have the same number.
#[derive(Default)]
pub(crate) struct AskedStreams(HashMap<StreamId, Option<(Asked, ContextId)>>);

impl AskedStreams {
    /// Enters a stream of a context.
    pub(crate) fn enter(&mut self, id: StreamId, asked: Asked, context: ContextId) {
        let several = self.0.contains_key(&id);
        self.0.insert(id, (!several).then_some((asked, context)));
    }

    /// What is asked about a stream, and its context; `None` if nothing is.
    pub(crate) fn get(&self, id: StreamId) -> Option<(&Asked, ContextId)> {
        self.0.get(&id)?.as_ref().map(|(asked, context)| (asked, *context))
    }

    /// Forgets a stream. Returns the event that was behind its launches, and its context.
    pub(crate) fn leave(&mut self, id: StreamId) -> Option<(CUevent, ContextId)> {
        match self.0.remove(&id)?? {
            (Asked::Latest(latest), context) => Some((latest.event, context)),
            (Asked::Stream(_), _) => None,
        }
    }
}

impl Asked {
    /// Whether the device has done all that the stream had; `None` if the driver does not say.
    pub(crate) fn is_idle(&self, copy: &DriverCopy) -> Option<bool> {
        match self {
            Self::Stream(stream) => driver::is_idle(copy, *stream),
            Self::Latest(latest) => latest.is_idle(copy),
        }
    }
}

/// An event behind the latest launch of such a stream; only its thread records it.
pub(crate) struct LatestLaunch {
    event: CUevent,
    /// The driver is being called for a launch.
    is_launching: AtomicBool,
}

impl LatestLaunch {
    /// Takes this event, of the stream's context.
    pub(crate) fn new(event: CUevent) -> Self {
        Self { event, is_launching: AtomicBool::new(false) }
    }

    /// A launch begins.
    pub(crate) fn begins(&self) {
        self.is_launching.store(true, SeqCst);
    }

    /// The driver has returned.
    pub(crate) fn has_returned(&self, copy: &DriverCopy, stream: CUstream) {
        let _errno = sys::Errno::keep();
        let _ = driver::record(copy, self.event, stream);
        self.is_launching.store(false, SeqCst);
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
