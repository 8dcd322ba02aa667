//! Devices: what they are called, what they can do.

use crate::arg::{In, Out};
use crate::driver::{driver, unit};
use crate::export::exports;
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{CUdevice, CUuuid, CuError, CuResult};
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::settings;
use std::ffi::c_char;

exports! {
    /// How many ordinals there are.
    fn cuDeviceGetCount(count: *mut i32) => count, driver, "cuDeviceGetCount" @ 2000;
    /// The device of an ordinal.
    fn cuDeviceGet(device: *mut CUdevice, ordinal: i32) => get, driver, "cuDeviceGet" @ 2000;
    /// Name, cut to fit.
    fn cuDeviceGetName(name: *mut c_char, length: i32, device: CUdevice)
        => name, driver, "cuDeviceGetName" @ 2000;
    /// UUID of the physical device.
    fn cuDeviceGetUuid(uuid: *mut CUuuid, device: CUdevice)
        => uuid_physical, driver, "cuDeviceGetUuid" @ 9020;
    /// UUID of the MIG slice, if the device is one.
    fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice)
        => uuid, driver, "cuDeviceGetUuid" @ 11040;
    /// An attribute; what the stub has no opinion about is 0.
    fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: CUdevice)
        => attribute, driver, "cuDeviceGetAttribute" @ 2000;
    /// Total memory in 32 bits.
    fn cuDeviceTotalMem(bytes: *mut u32, device: CUdevice)
        => total, driver, "cuDeviceTotalMem" @ 2000;
    /// Total memory.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice)
        => total, driver, "cuDeviceTotalMem" @ 3020;
    /// `domain:bus:device.function`
    fn cuDeviceGetPCIBusId(text: *mut c_char, length: i32, device: CUdevice)
        => pci_text, driver, "cuDeviceGetPCIBusId" @ 4010;
    /// The device at a PCI address.
    fn cuDeviceGetByPCIBusId(device: *mut CUdevice, text: *const c_char)
        => by_pci_text, driver, "cuDeviceGetByPCIBusId" @ 4010;
    /// 8.0.
    fn cuDeviceComputeCapability(major: *mut i32, minor: *mut i32, device: CUdevice)
        => capability, driver, "cuDeviceComputeCapability" @ 2000;
    /// The first properties structure, eight groups of integers.
    fn cuDeviceGetProperties(properties: *mut [i32; 15], device: CUdevice)
        => properties, driver, "cuDeviceGetProperties" @ 2000;
    /// Devices of one machine reach each other.
    fn cuDeviceCanAccessPeer(can: *mut i32, device: CUdevice, peer: CUdevice)
        => can_access_peer, driver, "cuDeviceCanAccessPeer" @ 4000;
}

fn count(count: Out<i32>) -> CuResult {
    count.put(i32::try_from(driver()?.units.len()).unwrap_or(i32::MAX))
}

fn get(device: Out<CUdevice>, ordinal: i32) -> CuResult {
    device.required()?;
    unit(ordinal)?;
    device.put(ordinal)
}

fn name(name: Out<c_char>, length: i32, device: CUdevice) -> CuResult {
    name.put_text(&unit(device)?.name(settings()), room(length))
}

fn uuid_physical(uuid: Out<CUuuid>, device: CUdevice) -> CuResult {
    uuid.put(CUuuid { bytes: Unit::whole(unit(device)?.device).uuid() })
}

fn uuid(uuid: Out<CUuuid>, device: CUdevice) -> CuResult {
    uuid.put(CUuuid { bytes: unit(device)?.uuid() })
}

fn total<W: Word>(bytes: Out<W>, device: CUdevice) -> CuResult {
    bytes.put_word(unit(device)?.memory(settings()))
}

/// A buffer's length; a negative one has no room.
fn room(length: i32) -> usize {
    usize::try_from(length).unwrap_or(0)
}

fn pci_text(text: Out<c_char>, length: i32, device: CUdevice) -> CuResult {
    text.put_text(&unit(device)?.pci_text(), room(length))
}

/// Takes `domain:bus:device.function`, `domain:bus:device` and `bus:device.function`, all
/// hexadecimal.
fn by_pci_text(device: Out<CUdevice>, text: In<c_char>) -> CuResult {
    device.required()?;
    let text = text.text()?;
    let address = text.split_once('.').map_or(text.as_str(), |(address, _)| address);
    let parts: Vec<_> = address.split(':').map(|part| u32::from_str_radix(part, 16)).collect();
    let bus = match parts.as_slice() {
        [Ok(0), Ok(bus), Ok(0)] | [Ok(bus), Ok(0)] => *bus,
        _ => return Err(CuError::INVALID_VALUE),
    };
    let found = driver()?.units.iter().position(|unit| unit.bus() == bus);
    let ordinal =
        found.and_then(|ordinal| i32::try_from(ordinal).ok()).ok_or(CuError::INVALID_DEVICE)?;
    device.put(ordinal)
}

fn capability(major: Out<i32>, minor: Out<i32>, device: CUdevice) -> CuResult {
    unit(device)?;
    major.put(8)?;
    minor.put(0)
}

fn properties(properties: Out<[i32; 15]>, device: CUdevice) -> CuResult {
    unit(device)?;
    let of = |attribute| known(attribute).unwrap_or(0);
    properties.put([
        of(1),
        of(2),
        of(3),
        of(4),
        of(5),
        of(6),
        of(7),
        of(8),
        of(9),
        of(10),
        of(11),
        of(12),
        of(13),
        of(14),
        0,
    ])
}

fn can_access_peer(can: Out<i32>, device: CUdevice, peer: CUdevice) -> CuResult {
    let (one, other) = (unit(device)?, unit(peer)?);
    can.put((one != other).into())
}

fn attribute(value: Out<i32>, attribute: i32, device: CUdevice) -> CuResult {
    value.required()?;
    let unit = unit(device)?;
    if !(1..ATTRIBUTES_END).contains(&attribute) {
        return Err(CuError::INVALID_VALUE);
    }
    let answer = match attribute {
        PCI_BUS_ID => i32::try_from(unit.bus()).unwrap_or(i32::MAX),
        PCI_DEVICE_ID | PCI_DOMAIN_ID => 0,
        MPS_ENABLED => i32::from(settings().mps),
        other => known(other).unwrap_or(0),
    };
    value.put(answer)
}

const PCI_BUS_ID: i32 = 33;
const PCI_DEVICE_ID: i32 = 34;
const PCI_DOMAIN_ID: i32 = 50;
const MPS_ENABLED: i32 = 133;
/// One past the newest attribute of CUDA 13.5, rounded up.
const ATTRIBUTES_END: i32 = 160;

fn known(attribute: i32) -> Option<i32> {
    KNOWN.iter().find(|(number, _)| *number == attribute).map(|(_, value)| *value)
}

/// A card of compute capability 8.0 with everything that the stub can do switched on.
const KNOWN: &[(i32, i32)] = &[
    (1, 1024), // threads per block
    (2, 1024), // block dimensions
    (3, 1024),
    (4, 64),
    (5, i32::MAX), // grid dimensions
    (6, 65535),
    (7, 65535),
    (8, 49152),      // shared memory per block
    (9, 65536),      // constant memory
    (10, 32),        // warp size
    (11, i32::MAX),  // pitch
    (12, 65536),     // registers per block
    (13, 1_410_000), // clock in kHz
    (14, 512),       // texture alignment
    (15, 1),         // overlaps copies
    (16, 108),       // multiprocessors
    (19, 1),         // maps host memory
    (21, 131_072),   // texture sizes
    (22, 131_072),
    (23, 65536),
    (24, 16384),
    (25, 16384),
    (26, 16384),
    (30, 512),        // surface alignment
    (31, 1),          // concurrent kernels
    (32, 1),          // ECC
    (36, 1_215_000),  // memory clock in kHz
    (37, 5120),       // bus width
    (38, 41_943_040), // L2
    (39, 2048),       // threads per multiprocessor
    (40, 3),          // copy engines
    (41, 1),          // unified addressing
    (51, 32),         // texture pitch alignment
    (75, 8),          // compute capability
    (76, 0),
    (78, 1),       // stream priorities
    (81, 167_936), // shared memory per multiprocessor
    (82, 65536),   // registers per multiprocessor
    (83, 1),       // managed memory
    (89, 1),       // concurrent managed access
    (90, 1),       // compute preemption
    (91, 1),       // host pointers of registered memory
    (95, 1),       // cooperative launch
    (97, 166_912), // opt-in shared memory
    (98, 1),       // flush of remote writes
    (99, 1),       // host register
    (102, 1),      // virtual memory management
    (103, 1),      // handles as file descriptors
    (106, 32),     // blocks per multiprocessor
    (111, 1024),   // reserved shared memory
    (115, 1),      // memory pools
    (119, 1),      // pool handles as file descriptors
];
