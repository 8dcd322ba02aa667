//! Handlers of NVML: the slice as nvidia-smi and its kin see it.
//!
//! They work in a process that uses no CUDA: the book is read, no slot is taken. A device that is not capped, or whose
//! limits cannot be resolved, is shown as it is, so that an administrator can diagnose.

pub(crate) mod memory;
pub(crate) mod process;

use crate::book;
use crate::call::Call;
use crate::device;
use crate::driver;
use crate::sys;
use crate::topology;
use gpucap_abi::nvml::nvmlDevice_t;
use gpucap_core::ledger::{DeviceIndex, Ledger};

/// A capped device: what its cap is, and where the book has it.
struct Slice {
    /// The cap, at most what the device has.
    total: u64,
    ledger: &'static Ledger,
    /// `None` until a process of the container has used it.
    device: Option<DeviceIndex>,
}

impl Slice {
    /// The slice behind a handle. What is dead is taken out of the book first.
    fn of(call: &Call, handle: nvmlDevice_t, total_bytes: u64) -> Option<Self> {
        let _errno = sys::Errno::keep();
        let uuid = driver::nvml::uuid(call.driver, handle)?.uuid;
        let limits = call.policy.limits.as_ref()?;
        let place = |_: &_| topology::of_handle(call.driver, handle);
        let total = device::resolve(limits, uuid, total_bytes, place).ok()?.0.memory?;
        let ledger = book::ledger(call.policy).ok()?;
        ledger.reap(&book::alive);
        Some(Self { total, ledger, device: ledger.find_device(uuid.0) })
    }

    /// Bytes that the container's live processes hold.
    fn used(&self) -> u64 {
        self.device.map_or(0, |device| self.ledger.used(device)).min(self.total)
    }
}
