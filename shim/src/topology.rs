//! Where a device stands among the others: its place in nvidia-smi's order, and the card of a MIG instance.
//!
//! Asked only where limits go by index or do not name the device itself. NVML knows; it is loaded for the question if
//! the process has not loaded it, and initialised for as long as the question takes. Where there is no NVML, CUDA's
//! own devices in PCI order give the same answer, as long as `CUDA_VISIBLE_DEVICES` hides none of them.

use crate::container::live_limits::{InForce, Live};
use crate::container::mapped_page::Unresolved;
use crate::driver::{self, DriverCopy};
use crate::redirect;
use crate::sys;
use core::sync::atomic::Ordering;
use gpucap_abi::cuda::CUdevice;
use gpucap_abi::nvml::nvmlDevice_t;
use gpucap_core::config::Slices;
use gpucap_core::limits::{DeviceFacts, Limits};
use gpucap_core::uuid::Uuid;
use std::collections::BTreeSet;

/// A device's position; `None` for each part that is unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DevicePosition {
    /// In nvidia-smi's order; of a MIG instance, that of its card.
    pub(crate) index: Option<u32>,
    /// The card of a MIG instance.
    pub(crate) parent: Option<Uuid>,
}

/// The limits of a device, and its facts. The device's position among the others (`position`) is asked only if the
/// limits name indices, or may mean the GPU of which this device is a MIG instance; `slices` only if they have a profile.
///
/// # Errors
/// The limits cannot be resolved.
pub(crate) fn resolve(
    limits: &'static Limits,
    uuid: Uuid,
    total_bytes: u64,
    slices: impl FnOnce() -> Option<Slices>,
    position: impl Fn(&DeviceFacts) -> DevicePosition,
) -> Result<(Live, DeviceFacts), Unresolved> {
    let in_force = InForce::of(limits)?;
    let limits = in_force.limits;
    // A model that is unknown has the most slices, each of which is the smallest.
    let slices = if limits.needs_slices() { slices() } else { None }.unwrap_or_default();
    let mut facts = DeviceFacts { uuid, parent: None, index: None, total_bytes, slices };
    if limits.needs_index() || limits.needs_parent(uuid) {
        let DevicePosition { index, parent } = position(&facts);
        (facts.index, facts.parent) = (index, parent);
    }
    Ok((in_force.on(facts)?, facts))
}

/// The variables of the driver that matter here. A session reads them as it begins, which is when the driver reads them:
/// what the program makes of them later changes nothing of what the driver does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DriverVariables {
    /// Cards may be hidden.
    pub(crate) hide_devices: bool,
    /// Processes may be clients of MPS.
    pub(crate) name_mps: bool,
}

impl DriverVariables {
    /// Reads them.
    pub(crate) fn read() -> Self {
        Self {
            hide_devices: sys::env("CUDA_VISIBLE_DEVICES").is_some(),
            name_mps: sys::env("CUDA_MPS_PIPE_DIRECTORY").is_some(),
        }
    }
}

/// Where a device of CUDA stands, which has this UUID.
pub(crate) fn position(
    driver: &DriverCopy,
    device: CUdevice,
    variables: DriverVariables,
    uuid: Uuid,
) -> DevicePosition {
    let by_cuda = || {
        // Only if all cards are to be seen is the rank among those seen the index.
        let index = if variables.hide_devices { None } else { by_pci_order(driver, device) };
        DevicePosition { index, parent: None }
    };
    by_nvml(uuid).unwrap_or_else(by_cuda)
}

fn by_nvml(uuid: Uuid) -> Option<DevicePosition> {
    let nvml = nvml()?;
    let mut found = None;
    driver::nvml::each_device(nvml, &mut |device| {
        if driver::nvml::uuid(nvml, device).is_some_and(|name| name.uuid == uuid) {
            found = Some(of_handle(nvml, device));
        }
    });
    found
}

/// NVML; it is loaded if the process has not loaded it. `None`: there is none.
pub(crate) fn nvml() -> Option<&'static DriverCopy> {
    loaded_nvml().or_else(|| {
        sys::load_library(redirect::next_dlopen(), c"libnvidia-ml.so.1");
        redirect::rescan();
        loaded_nvml()
    })
}

/// Where the device behind an NVML handle stands.
pub(crate) fn of_handle(nvml: &DriverCopy, device: nvmlDevice_t) -> DevicePosition {
    match driver::nvml::parent(nvml, device) {
        Some(card) => DevicePosition {
            index: driver::nvml::index(nvml, card),
            parent: driver::nvml::uuid(nvml, card).map(|name| name.uuid),
        },
        None => DevicePosition { index: driver::nvml::index(nvml, device), parent: None },
    }
}

fn loaded_nvml() -> Option<&'static DriverCopy> {
    // One that the program may unload could be gone in the middle of a call.
    let stays = |copy: &&DriverCopy| copy.span.base() != 0 && !copy.may_go.load(Ordering::Relaxed);
    driver::copies::nvml::COPIES.iter().find(stays)
}

/// The rank of a device among those that are to be seen: nvidia-smi orders cards by PCI address.
fn by_pci_order(driver: &DriverCopy, device: CUdevice) -> Option<u32> {
    let own = driver::cuda::pci_place(driver, device)?;
    let count = driver::cuda::device_count(driver)?;
    // A set: the MIG instances of a card share its address.
    let before: BTreeSet<_> = (0..count)
        .filter_map(|ordinal| driver::cuda::device(driver, ordinal))
        .filter_map(|other| driver::cuda::pci_place(driver, other))
        .filter(|other| *other < own)
        .collect();
    u32::try_from(before.len()).ok()
}
