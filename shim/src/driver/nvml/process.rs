//! What NVML says that a process holds.

use super::*;
use gpucap_abi::nvml::nvmlProcessInfo_v1_t;

/// How often a list of processes is asked for that grows in the mean time, and for how many more than there were.
const TRIES: usize = 3;
const MORE: u32 = 16;

/// Bytes that a process holds of the device with this UUID, by the number that the host knows it by. NVML is
/// initialised for the duration.
pub(crate) fn bytes(copy: &DriverCopy, uuid: [u8; 16], pid: u32) -> Option<u64> {
    let mut found = None;
    each_device(copy, &mut |device| {
        if super::uuid(copy, device).is_some_and(|name| name.uuid.0 == uuid) {
            let all = computing(copy, device).unwrap_or_default();
            found = all.into_iter().find(|process| process.pid == pid);
        }
    });
    // NVML_VALUE_NOT_AVAILABLE, as on systems where the driver does not manage the memory
    found.map(|process| process.usedGpuMemory).filter(|bytes| *bytes != u64::MAX)
}

/// How many processes compute on the device with this UUID, of any container; `None` if NVML does not report it.
pub(crate) fn count(copy: &DriverCopy, uuid: [u8; 16]) -> Option<usize> {
    let mut found = None;
    each_device(copy, &mut |device| {
        if super::uuid(copy, device).is_some_and(|name| name.uuid.0 == uuid) {
            found = computing(copy, device).map(|all| all.len());
        }
    });
    found
}

fn computing(copy: &DriverCopy, device: nvmlDevice_t) -> Option<Vec<nvmlProcessInfo_v1_t>> {
    let mut count = 0;
    // Refused for lack of room, unless the list is empty: then the number is returned.
    let _ = device_get_compute_processes(copy, device, &raw mut count, core::ptr::null_mut());
    let mut found = None;
    // The list may grow in between.
    for _ in 0..TRIES {
        let room = count.saturating_add(MORE);
        let mut processes = vec![nvmlProcessInfo_v1_t::default(); room as usize];
        count = room;
        if device_get_compute_processes(copy, device, &raw mut count, processes.as_mut_ptr())
            .is_some()
        {
            processes.truncate(count as usize);
            found = Some(processes);
            break;
        }
    }
    found
}
