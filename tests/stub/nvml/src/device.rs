//! Devices: handles, names, numbers, MIG.
//!
//! NVML shows every device in PCI order, whatever CUDA's variables say. A handle stands for a unit:
//! a device or a MIG slice of one.

use crate::export::{In, Out, exports};
use crate::init::put_text;
use crate::own;
use gpucap_abi::nvml::{NvmlError, NvmlResult, nvmlDevice_t};
use gpucap_stub_device::catalog::{MAX_UNITS, Unit, slices_of};
use gpucap_stub_device::settings;
use gpucap_stub_device::settings::MAX_SLICES;
use std::ffi::{c_char, c_void};

exports! {
    /// The first form calls the second through its exported name.
    fn nvmlDeviceGetCount(count: *mut u32) => count, library;
    /// Physical devices.
    fn nvmlDeviceGetCount_v2(count: *mut u32) => count_v2, library;
    /// The first form calls the second through its exported name.
    fn nvmlDeviceGetHandleByIndex(index: u32, device: *mut nvmlDevice_t) => by_index, library;
    /// In PCI order.
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: *mut nvmlDevice_t) => by_index_v2, library;
    /// Devices and MIG slices by UUID.
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut nvmlDevice_t)
        => by_uuid, library;
    /// The first form calls the second through its exported name.
    fn nvmlDeviceGetHandleByPciBusId(text: *const c_char, device: *mut nvmlDevice_t)
        => by_pci, library;
    /// A PCI address.
    fn nvmlDeviceGetHandleByPciBusId_v2(text: *const c_char, device: *mut nvmlDevice_t)
        => by_pci_v2, library;
    /// Name.
    fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: u32) => name, library;
    /// `GPU-...` or `MIG-...`.
    fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: u32) => uuid, library;
    /// Index among the devices, or among the slices of one.
    fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut u32) => index, library;
    /// Number of the device file.
    fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minor: *mut u32) => minor, library;
    /// PCI address, the older structure.
    fn nvmlDeviceGetPciInfo(device: nvmlDevice_t, pci: *mut PciBasis) => pci_basis, library;
    /// PCI address, the older structure.
    fn nvmlDeviceGetPciInfo_v2(device: nvmlDevice_t, pci: *mut PciBasis) => pci_basis, library;
    /// PCI address.
    fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, pci: *mut PciInfo) => pci, library;
    /// 8.0.
    fn nvmlDeviceGetCudaComputeCapability(device: nvmlDevice_t, major: *mut i32, minor: *mut i32)
        => capability, library;
    /// Whether the device has slices.
    fn nvmlDeviceGetMigMode(device: nvmlDevice_t, current: *mut u32, pending: *mut u32)
        => mig_mode, library;
    /// Seven.
    fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: *mut u32) => max_slices, library;
    /// A slice.
    fn nvmlDeviceGetMigDeviceHandleByIndex(device: nvmlDevice_t, index: u32,
        slice: *mut nvmlDevice_t) => slice, library;
    /// Whether a handle is a slice.
    fn nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, is_slice: *mut u32) => is_slice, library;
    /// The device of a slice.
    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slice: nvmlDevice_t, device: *mut nvmlDevice_t)
        => device_of_slice, library;
    /// Instance number of a slice.
    fn nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, id: *mut u32) => gpu_instance, library;
    /// Zero: one compute instance in each.
    fn nvmlDeviceGetComputeInstanceId(device: nvmlDevice_t, id: *mut u32)
        => compute_instance, library;
    /// Size of a slice, from the memory that the library itself reports.
    fn nvmlDeviceGetAttributes(device: nvmlDevice_t, attributes: *mut Attributes)
        => attributes, library;
    /// Size of a slice, from the memory that the library itself reports.
    fn nvmlDeviceGetAttributes_v2(device: nvmlDevice_t, attributes: *mut Attributes)
        => attributes, library;
    /// Accepted; nothing ever happens.
    fn nvmlDeviceRegisterEvents(device: nvmlDevice_t, kinds: u64, set: *mut c_void)
        => register, library;
}

/// The first fields of `nvmlPciInfo_t`, in all its forms.
#[repr(C)]
#[derive(Clone, Copy)]
struct PciBasis {
    bus_id_legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
    subsystem_id: u32,
}

/// `nvmlPciInfo_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct PciInfo {
    basis: PciBasis,
    bus_id: [u8; 32],
}
const _: () = assert!(size_of::<PciInfo>() == 68);

/// `nvmlDeviceAttributes_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    multiprocessors: u32,
    copy_engines: u32,
    decoders: u32,
    encoders: u32,
    jpeg: u32,
    ofa: u32,
    gpu_instance_slices: u32,
    compute_instance_slices: u32,
    memory_mb: u64,
}
const _: () = assert!(size_of::<Attributes>() == 40);

const HANDLES: u64 = 0x6e76_6d6c_0000;
const HANDLE_STEP: u64 = 64;
const NO_INSTANCE: u32 = u32::MAX;

/// The unit of a handle.
pub(crate) fn unit(device: nvmlDevice_t) -> Result<Unit, NvmlError> {
    let number = (device.0 as u64).wrapping_sub(HANDLES) / HANDLE_STEP;
    let all = units().into_iter();
    all.filter(|unit| unit.index() < MAX_UNITS)
        .find(|unit| unit.index() as u64 == number && handle(*unit) == device)
        .ok_or(NvmlError::INVALID_ARGUMENT)
}

/// The handle of a unit.
pub(crate) fn handle(unit: Unit) -> nvmlDevice_t {
    nvmlDevice_t((HANDLES + unit.index() as u64 * HANDLE_STEP) as *mut c_void)
}

/// GPU instance and compute instance of a unit, or the numbers that say there is none.
pub(crate) fn instances(unit: Unit) -> (u32, u32) {
    let gpu = unit.slice.and_then(|slice| u32::try_from(slice + 1).ok());
    gpu.map_or((NO_INSTANCE, NO_INSTANCE), |gpu| (gpu, 0))
}

fn devices() -> impl Iterator<Item = Unit> {
    (0..settings().memory.len()).map(Unit::whole)
}

fn units() -> Vec<Unit> {
    devices().chain(devices().flat_map(|unit| slices_of(settings(), unit.device))).collect()
}

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn count(count: Out<u32>) -> NvmlResult {
    own::count_v2(count.address())
}

fn count_v2(count: Out<u32>) -> NvmlResult {
    count.put(number(devices().count()))
}

fn by_index(index: u32, device: Out<nvmlDevice_t>) -> NvmlResult {
    own::handle_by_index_v2(index, device.address())
}

fn by_index_v2(index: u32, device: Out<nvmlDevice_t>) -> NvmlResult {
    let found = usize::try_from(index).ok().and_then(|index| devices().nth(index));
    device.put(handle(found.ok_or(NvmlError::INVALID_ARGUMENT)?))
}

fn by_uuid(uuid: In<c_char>, device: Out<nvmlDevice_t>) -> NvmlResult {
    device.required()?;
    let uuid = uuid.text()?;
    let found = units().into_iter().find(|unit| unit.uuid_text().eq_ignore_ascii_case(&uuid));
    device.put(handle(found.ok_or(NvmlError::NOT_FOUND)?))
}

fn by_pci(text: In<c_char>, device: Out<nvmlDevice_t>) -> NvmlResult {
    own::handle_by_pci_v2(text.address(), device.address())
}

/// Takes `domain:bus:device.function` with a domain of any length.
fn by_pci_v2(text: In<c_char>, device: Out<nvmlDevice_t>) -> NvmlResult {
    device.required()?;
    let text = text.text()?.to_ascii_uppercase();
    let address = text.trim_start_matches('0').trim_start_matches(':');
    let own = |unit: &Unit| format!("{:02X}:00.0", unit.bus());
    let found = devices().find(|unit| own(unit) == address);
    device.put(handle(found.ok_or(NvmlError::NOT_FOUND)?))
}

fn name(device: nvmlDevice_t, name: Out<c_char>, length: u32) -> NvmlResult {
    put_text(name, length, &unit(device)?.name(settings()))
}

fn uuid(device: nvmlDevice_t, uuid: Out<c_char>, length: u32) -> NvmlResult {
    put_text(uuid, length, &unit(device)?.uuid_text())
}

fn index(device: nvmlDevice_t, index: Out<u32>) -> NvmlResult {
    let unit = unit(device)?;
    index.put(number(unit.slice.unwrap_or(unit.device)))
}

fn minor(device: nvmlDevice_t, minor: Out<u32>) -> NvmlResult {
    minor.put(number(unit(device)?.device))
}

fn basis(unit: Unit) -> PciBasis {
    let mut bus_id_legacy = [0; 16];
    let text = unit.pci_text();
    bus_id_legacy[..text.len()].copy_from_slice(text.as_bytes());
    PciBasis {
        bus_id_legacy,
        domain: 0,
        bus: unit.bus(),
        device: 0,
        device_id: 0x20b0_10de,
        subsystem_id: 0x134f_10de,
    }
}

fn pci_basis(device: nvmlDevice_t, pci: Out<PciBasis>) -> NvmlResult {
    pci.put(basis(unit(device)?))
}

fn pci(device: nvmlDevice_t, pci: Out<PciInfo>) -> NvmlResult {
    let unit = unit(device)?;
    let text = format!("0000{}", unit.pci_text());
    let mut bus_id = [0; 32];
    bus_id[..text.len()].copy_from_slice(text.as_bytes());
    pci.put(PciInfo { basis: basis(unit), bus_id })
}

fn capability(device: nvmlDevice_t, major: Out<i32>, minor: Out<i32>) -> NvmlResult {
    unit(device)?;
    major.put(8)?;
    minor.put(0)
}

fn mig_mode(device: nvmlDevice_t, current: Out<u32>, pending: Out<u32>) -> NvmlResult {
    let unit = unit(device)?;
    if unit.slice.is_some() {
        return Err(NvmlError::NOT_SUPPORTED);
    }
    let mode = u32::from(slices_of(settings(), unit.device).next().is_some());
    current.put(mode)?;
    pending.put(mode)
}

fn max_slices(device: nvmlDevice_t, count: Out<u32>) -> NvmlResult {
    unit(device)?;
    count.put(number(MAX_SLICES))
}

fn slice(device: nvmlDevice_t, index: u32, slice: Out<nvmlDevice_t>) -> NvmlResult {
    let unit = unit(device)?;
    let nth = usize::try_from(index).unwrap_or(usize::MAX);
    let found = slices_of(settings(), unit.device).nth(nth).ok_or(NvmlError::NOT_FOUND)?;
    slice.put(handle(found))
}

fn is_slice(device: nvmlDevice_t, is_slice: Out<u32>) -> NvmlResult {
    is_slice.put(unit(device)?.slice.is_some().into())
}

fn device_of_slice(slice: nvmlDevice_t, device: Out<nvmlDevice_t>) -> NvmlResult {
    let unit = unit(slice)?;
    unit.slice.ok_or(NvmlError::INVALID_ARGUMENT)?;
    device.put(handle(Unit::whole(unit.device)))
}

fn gpu_instance(device: nvmlDevice_t, id: Out<u32>) -> NvmlResult {
    let unit = unit(device)?;
    unit.slice.ok_or(NvmlError::NOT_SUPPORTED)?;
    id.put(instances(unit).0)
}

fn compute_instance(device: nvmlDevice_t, id: Out<u32>) -> NvmlResult {
    let unit = unit(device)?;
    unit.slice.ok_or(NvmlError::NOT_SUPPORTED)?;
    id.put(instances(unit).1)
}

/// Engines by the ratio of the slice's memory to its device's.
fn attributes(device: nvmlDevice_t, attributes: Out<Attributes>) -> NvmlResult {
    let unit = unit(device)?;
    unit.slice.ok_or(NvmlError::NOT_SUPPORTED)?;
    let slice = own::memory_info_v2(device, false)?.total;
    let whole = own::memory_info_v2(handle(Unit::whole(unit.device)), true)?.total.max(1);
    let share = |of: u64| {
        u32::try_from((of * (slice >> 20)).div_ceil((whole >> 20).max(1))).unwrap_or(u32::MAX)
    };
    attributes.put(Attributes {
        multiprocessors: share(108),
        copy_engines: share(7),
        decoders: 0,
        encoders: 0,
        jpeg: 0,
        ofa: 0,
        gpu_instance_slices: share(7),
        compute_instance_slices: share(7),
        memory_mb: slice >> 20,
    })
}

fn register(device: nvmlDevice_t, _kinds: u64, set: Out<c_void>) -> NvmlResult {
    unit(device)?;
    set.required().map(drop)
}
