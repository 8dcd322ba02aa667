//! What NVML says of how busy a device was, with the work of all processes.

use super::*;
use gpucap_abi::nvml::{NVML_GPU_UTILIZATION_SAMPLES, NvmlError};
use gpucap_core::throttle::unreported::Busy;

/// The driver keeps a hundred, and says how many there are.
const MOST: u32 = 1024;
const US: u64 = 1_000;

/// How busy the device with this UUID was since `since_ns` (since 1970), as far as there are samples; `None` if NVML does not
/// report it, as of MIG instances. NVML is initialised for the duration.
pub(crate) fn since(copy: &DriverCopy, uuid: [u8; 16], since_ns: u64) -> Option<Busy> {
    let mut found = None;
    each_device(copy, &mut |device| {
        if super::uuid(copy, device).is_some_and(|name| name.uuid.0 == uuid) {
            found = samples(copy, device, since_ns / US);
        }
    });
    found
}

fn samples(copy: &DriverCopy, device: nvmlDevice_t, since_us: u64) -> Option<Busy> {
    let (kind, mut value_type, mut count) = (NVML_GPU_UTILIZATION_SAMPLES, 0, 0);
    let none = core::ptr::null_mut();
    device_get_samples(copy, device, kind, 0, &raw mut value_type, &raw mut count, none)?.ok()?;
    count = count.clamp(1, MOST);
    let mut samples = vec![nvmlSample_t::default(); count as usize];
    let room = samples.as_mut_ptr();
    let (value_type, written) = (&raw mut value_type, &raw mut count);
    match device_get_samples(copy, device, kind, since_us, value_type, written, room)? {
        Ok(()) => samples.truncate(count as usize),
        Err(NvmlError::NOT_FOUND) => samples.clear(),
        Err(_) => return None,
    }
    let mut busy = Busy { of_ns: 0, ns: 0 };
    // Each but the first is of the time since the one before it. Earlier ones may be gone: the driver keeps a number of them.
    for pair in samples.windows(2) {
        let [before, sample] = pair else { continue };
        let ns = sample.timeStamp.saturating_sub(before.timeStamp).saturating_mul(US);
        let percent = sample.sampleValue & u64::from(u32::MAX);
        busy.of_ns = busy.of_ns.saturating_add(ns);
        busy.ns = busy.ns.saturating_add((ns / 100).saturating_mul(percent.min(100)));
    }
    Some(busy)
}
