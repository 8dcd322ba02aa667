//! What handlers ask of NVML.

pub(crate) mod busy;
pub(crate) mod process;

use super::functions::{filled, functions};
use super::library::{COPIES, DriverCopy};
use super::text;
use core::ffi::{c_char, c_uint};
use core::sync::atomic::{AtomicUsize, Ordering};
use gpucap_abi::nvml::{
    NvmlResult, nvmlDevice_t, nvmlMemory_t, nvmlProcessInfo_v1_t, nvmlSample_t,
};
use gpucap_core::config::Slices;
use gpucap_core::uuid::DeviceName;

functions! { NvmlResult;
    fn device_get_compute_instance = nvmlDeviceGetComputeInstanceId(device: nvmlDevice_t, id: *mut c_uint);
    fn device_get_compute_processes = nvmlDeviceGetComputeRunningProcesses(
        device: nvmlDevice_t, count: *mut c_uint, processes: *mut nvmlProcessInfo_v1_t);
    fn device_get_count = nvmlDeviceGetCount_v2(count: *mut c_uint);
    fn device_get_gpu_instance = nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, id: *mut c_uint);
    fn device_get_handle_by_index = nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t);
    fn device_get_index = nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint);
    fn device_get_max_mig_device_count = nvmlDeviceGetMaxMigDeviceCount(
        device: nvmlDevice_t, count: *mut c_uint);
    fn device_get_memory_info = nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t);
    fn device_get_mig_device_handle_by_index = nvmlDeviceGetMigDeviceHandleByIndex(
        device: nvmlDevice_t, index: c_uint, instance: *mut nvmlDevice_t);
    fn device_get_name = nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint);
    fn device_get_parent = nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
        instance: nvmlDevice_t, device: *mut nvmlDevice_t);
    fn device_get_samples = nvmlDeviceGetSamples(
        device: nvmlDevice_t, kind: c_uint, since: u64, value_type: *mut c_uint, count: *mut c_uint,
        samples: *mut nvmlSample_t) -> code;
    fn device_get_uuid = nvmlDeviceGetUUID(device: nvmlDevice_t, text: *mut c_char, bytes: c_uint);
    fn init = nvmlInit_v2();
    fn shutdown = nvmlShutdown();
    fn system_get_driver_version = nvmlSystemGetDriverVersion(text: *mut c_char, bytes: c_uint);
}

/// The UUID of a device or MIG instance.
pub(crate) fn uuid(copy: &DriverCopy, device: nvmlDevice_t) -> Option<DeviceName> {
    text::of(|text, length| device_get_uuid(copy, device, text, length))?.parse().ok()
}

/// Into how many slices MIG divides a device, by the name of its model.
pub(crate) fn slices(copy: &DriverCopy, device: nvmlDevice_t) -> Option<Slices> {
    let name = text::of(|text, length| device_get_name(copy, device, text, length));
    name.map(|name| Slices::of_model(&name))
}

/// All of a device's memory, in bytes.
pub(crate) fn total_bytes(copy: &DriverCopy, device: nvmlDevice_t) -> Option<u64> {
    filled(|memory| device_get_memory_info(copy, device, memory))
        .map(|memory: nvmlMemory_t| memory.total)
}

/// The driver's version: the first two numbers of it.
pub(crate) fn driver_version(copy: &DriverCopy) -> Option<(u32, u32)> {
    let text = text::of(|text, length| system_get_driver_version(copy, text, length))?;
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The place of a device in nvidia-smi's order. MIG instances have none.
pub(crate) fn index(copy: &DriverCopy, device: nvmlDevice_t) -> Option<u32> {
    filled(|index| device_get_index(copy, device, index))
}

/// The card of a MIG instance; `None` for a card.
pub(crate) fn parent(copy: &DriverCopy, device: nvmlDevice_t) -> Option<nvmlDevice_t> {
    filled(|parent| device_get_parent(copy, device, parent))
}

/// The numbers of a MIG instance, of the GPU's and of the one that computes in it; `None` for a card.
pub(crate) fn instance(copy: &DriverCopy, device: nvmlDevice_t) -> Option<(u32, u32)> {
    let gpu = filled(|id| device_get_gpu_instance(copy, device, id))?;
    Some((gpu, filled(|id| device_get_compute_instance(copy, device, id))?))
}

/// All cards, in nvidia-smi's order, each followed by its MIG instances. NVML is initialised for the duration.
pub(crate) fn each_device(copy: &DriverCopy, visit: &mut dyn FnMut(nvmlDevice_t)) -> Option<()> {
    init(copy)?;
    for index in 0..filled(|count| device_get_count(copy, count)).unwrap_or(0) {
        let Some(device) = filled(|device| device_get_handle_by_index(copy, index, device)) else {
            continue;
        };
        visit(device);
        let instances = filled(|count| device_get_max_mig_device_count(copy, device, count));
        for instance in 0..instances.unwrap_or(0) {
            let handle = filled(|handle| {
                device_get_mig_device_handle_by_index(copy, device, instance, handle)
            });
            handle.into_iter().for_each(&mut *visit);
        }
    }
    shutdown(copy)
}
