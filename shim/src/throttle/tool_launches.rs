//! Launches that a tool has made while its thread held a lock of the shim, and that have not been charged.
//!
//! The list's own lock is held for a push or a removal, never across a call of the driver.

use super::timing::Recorded;
use crate::driver::DriverCopy;
use gpucap_abi::cuda::{CUcontext, CUdevice, CUstream};
use gpucap_core::throttle::Signature;
use parking_lot::Mutex;

/// Those of a process.
#[derive(Default)]
pub(crate) struct ToolLaunches(Mutex<Vec<ToolLaunch>>);

/// One launch, between two events.
pub(crate) struct ToolLaunch {
    pub(crate) driver: &'static DriverCopy,
    /// The number of its thread.
    pub(crate) thread: u32,
    pub(crate) context: CUcontext,
    pub(crate) device: CUdevice,
    pub(crate) stream: CUstream,
    pub(crate) signature: Signature,
    pub(crate) before: Option<Recorded>,
    pub(crate) after: Option<Recorded>,
    /// The tool was called back in a question about an event: it may launch in each.
    pub(crate) in_question: bool,
    /// What it is expected to take.
    pub(crate) guess_ns: u64,
    /// The thread has waited for its end, for as long as it may.
    pub(crate) is_endless: bool,
}

/// Launches of one thread that have not been charged.
#[derive(Default)]
pub(crate) struct Unpaid {
    pub(crate) launches: usize,
    pub(crate) guess_ns: u64,
    /// One of them is.
    pub(crate) is_endless: bool,
}

impl ToolLaunches {
    /// Adds one.
    pub(crate) fn push(&self, noted: ToolLaunch) {
        self.0.lock().push(noted);
    }

    /// What a thread has.
    pub(crate) fn unpaid(&self, thread: u32) -> Unpaid {
        let of_it = |noted: &&ToolLaunch| noted.thread == thread;
        self.0.lock().iter().filter(of_it).fold(Unpaid::default(), |sum, noted| Unpaid {
            launches: sum.launches.saturating_add(1),
            guess_ns: sum.guess_ns.saturating_add(noted.guess_ns),
            is_endless: sum.is_endless || noted.is_endless,
        })
    }

    /// Takes those of a thread out.
    pub(crate) fn take(&self, thread: u32) -> Vec<ToolLaunch> {
        self.0.lock().extract_if(.., |noted| noted.thread == thread).collect()
    }
}
