//! Handlers of NVML: the slice as nvidia-smi and its kin see it.
//!
//! They work in a process that uses no CUDA: the ledger is read, no slot is taken. A device that is not limited, or whose
//! limits cannot be resolved, is shown as it is, so that an administrator can diagnose.

pub(crate) mod accounting;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod utilization;

use crate::call::Call;
use crate::container::ledger_file;
use crate::driver;
use crate::sys;
use crate::topology;
use gpucap_abi::nvml::nvmlDevice_t;
use gpucap_core::ledger::{AccountView, DeviceIndex, Ledger, ProcessView};
use gpucap_core::limits::Resolved;

/// Stands for the size of a device of which NVML reports none: no limit in bytes is above it.
const UNKNOWN_BYTES: u64 = u64::MAX;

/// A limited device: what its limits are, and where the ledger has it.
struct Slice {
    /// Of memory, at most what the device has, of time, or of both.
    limits: Resolved,
    ledger: &'static Ledger,
    /// `None` until a process of the container has used it.
    device: Option<DeviceIndex>,
}

impl Slice {
    /// Returns the slice of a device handle. Dead processes are reaped first.
    fn of(call: &Call, handle: nvmlDevice_t, total_bytes: u64) -> Option<Self> {
        let _errno = sys::Errno::keep();
        let uuid = driver::nvml::uuid(call.driver, handle)?.uuid;
        let limits = call.policy.limits.as_ref()?;
        let position = |_: &_| topology::of_handle(call.driver, handle);
        let slices = || driver::nvml::slices(call.driver, handle);
        let limits = topology::resolve(limits, uuid, total_bytes, slices, position).ok()?.0.now();
        if limits.memory.is_none() && limits.core.is_none() {
            return None;
        }
        let ledger = ledger_file::ledger(call.policy).ok()?;
        ledger.reap(&ledger_file::alive);
        Some(Self { limits, ledger, device: ledger.find_device(uuid.0) })
    }

    /// As [`of`](Self::of), for what does not depend on the size of the device.
    fn of_handle(call: &Call, handle: nvmlDevice_t) -> Option<Self> {
        let total = driver::nvml::total_bytes(call.driver, handle).unwrap_or(UNKNOWN_BYTES);
        Self::of(call, handle, total)
    }

    /// The processes of this pid namespace that have to do with the device.
    fn processes(&self) -> impl Iterator<Item = (ProcessView<'_>, AccountView)> {
        let namespace = ledger_file::own_namespace();
        let ours =
            move |process: &ProcessView<'_>| namespace == Some(process.identity.pid_namespace);
        let device = self.device.into_iter();
        device.flat_map(move |device| {
            let processes = self.ledger.processes().filter(ours);
            processes.filter_map(move |process| Some((process, process.account(device)?)))
        })
    }
}
