//! The price of a context on a device: as configured, else assumed until it is corrected once.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The price of a context where none is configured, in bytes.
const ASSUMED: u64 = 256 << 20;

/// The price of a context on a device.
pub(crate) struct Price {
    bytes: AtomicU64,
    assumed: AtomicBool,
}

impl Price {
    /// Makes the configured price; without one, an assumption.
    pub(crate) fn new(said: Option<u64>) -> Self {
        Self {
            bytes: AtomicU64::new(said.unwrap_or(ASSUMED)),
            assumed: AtomicBool::new(said.is_none()),
        }
    }

    /// In bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Takes the right to correct an assumed price. False if the price was configured, or another thread has it.
    pub(crate) fn may_be_corrected(&self) -> bool {
        self.assumed.swap(false, Ordering::AcqRel)
    }

    /// Corrects it.
    pub(crate) fn correct(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Release);
    }
}
