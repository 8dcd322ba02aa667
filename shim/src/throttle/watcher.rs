//! The library's own thread of a device, as far as there is one. [`Gate`](super::gate::Gate) has it look.

use std::thread::Thread;

/// The thread that looks at what is in flight on a device.
#[derive(Default)]
pub(crate) enum Watcher {
    /// None.
    #[default]
    None,
    /// It looks, or is about to.
    Looks(Thread),
    /// The system allowed none.
    Refused {
        /// Until when that is taken to be so.
        until: u64,
    },
}
