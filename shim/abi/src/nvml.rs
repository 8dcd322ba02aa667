//! NVML types in NVML's spelling; versioned structs carry their version in their name.

#![allow(non_camel_case_types, reason = "these are NVML's public names")]
#![allow(non_snake_case, reason = "these are NVML's public names")]

use crate::arg::{by_value, pointees};
use core::ffi::{c_char, c_void};
use core::num::NonZeroU32;

/// An error of NVML: any `nvmlReturn_t` but success.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmlError(NonZeroU32);

/// `nvmlReturn_t`: success is 0.
pub type NvmlResult = Result<(), NvmlError>;

const _: () = assert!(size_of::<NvmlResult>() == size_of::<u32>());

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl NvmlError {
            $($(#[$doc])* pub const $name: Self = Self(NonZeroU32::new($code).unwrap());)*
        }
    };
}
errors! {
    /// `NVML_ERROR_UNINITIALIZED`
    UNINITIALIZED = 1;
    /// `NVML_ERROR_INVALID_ARGUMENT`
    INVALID_ARGUMENT = 2;
    /// `NVML_ERROR_NOT_SUPPORTED`
    NOT_SUPPORTED = 3;
    /// `NVML_ERROR_NO_PERMISSION`
    NO_PERMISSION = 4;
    /// `NVML_ERROR_NOT_FOUND`
    NOT_FOUND = 6;
    /// `NVML_ERROR_INSUFFICIENT_SIZE`
    INSUFFICIENT_SIZE = 7;
    /// `NVML_ERROR_FUNCTION_NOT_FOUND`: the library is older than the function.
    FUNCTION_NOT_FOUND = 13;
    /// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`
    ARGUMENT_VERSION_MISMATCH = 25;
    /// `NVML_ERROR_UNKNOWN`
    UNKNOWN = 999;
}

impl NvmlError {
    /// The error with this code; `None` for 0, which is success.
    #[must_use]
    pub const fn new(code: u32) -> Option<Self> {
        match NonZeroU32::new(code) {
            Some(code) => Some(Self(code)),
            None => None,
        }
    }

    /// NVML's number.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0.get()
    }
}

/// A device handle.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct nvmlDevice_t(pub *mut c_void);
by_value!(nvmlDevice_t);
pointees! {
    // Figures for people: nothing is charged by them.
    input false, output false: nvmlMemory_t, nvmlMemory_v2_t, nvmlUtilization_t,
        nvmlDeviceAttributes_t, nvmlAccountingStats_t, nvmlAccountingStats_v2_t;
}

/// `nvmlMemory_t`: bytes of device memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlMemory_t {
    /// All of it.
    pub total: u64,
    /// Not in use.
    pub free: u64,
    /// In use; reserved memory counts as used here.
    pub used: u64,
}

/// `nvmlMemory_v2_t`: as [`nvmlMemory_t`], with what the driver reserves listed separately.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlMemory_v2_t {
    /// [`nvmlMemory_v2_t::VERSION`], set by the caller.
    pub version: u32,
    /// All of it.
    pub total: u64,
    /// Kept by the driver for itself.
    pub reserved: u64,
    /// Not in use.
    pub free: u64,
    /// In use.
    pub used: u64,
}

impl nvmlMemory_v2_t {
    /// Size and version 2, as `NVML_STRUCT_VERSION` packs them.
    pub const VERSION: u32 = 0x0200_0028;
}

/// `nvmlSetMemoryLimits_v1_t` (NVML 13.4): bytes of a device that a cgroup may hold.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct nvmlSetMemoryLimits_v1_t {
    /// The whole path of the cgroup's directory.
    pub nameSpace: *const c_char,
    /// Bytes that are kept for it.
    pub softLimit: u64,
    /// Bytes that it gets at most; [`NO_MEMORY_LIMIT`]: all there are.
    pub hardLimit: u64,
}

/// `nvmlGetMemoryLimits_v1_t` (NVML 13.4).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct nvmlGetMemoryLimits_v1_t {
    /// The whole path of the cgroup's directory.
    pub nameSpace: *const c_char,
    /// Bytes that are kept for it.
    pub softLimit: u64,
    /// Bytes that it gets at most.
    pub hardLimit: u64,
    /// Bytes that it holds.
    pub currentUsed: u64,
}

// Neither has a version field; the length is part of the name's promise.
const _: () = assert!(size_of::<nvmlSetMemoryLimits_v1_t>() == 24);
const _: () = assert!(size_of::<nvmlGetMemoryLimits_v1_t>() == 32);

/// `NVML_DEVICE_MEMORY_LIMIT_MAX`
pub const NO_MEMORY_LIMIT: u64 = u64::MAX;

/// `nvmlProcessInfo_v1_t`: a process and what it holds.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlProcessInfo_v1_t {
    /// Its number.
    pub pid: u32,
    /// Bytes of device memory.
    pub usedGpuMemory: u64,
}

/// `nvmlProcessInfo_v2_t`, which the functions of version 3 use too.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlProcessInfo_v2_t {
    /// Its number.
    pub pid: u32,
    /// Bytes of device memory.
    pub usedGpuMemory: u64,
    /// On a MIG instance, its number; [`NO_INSTANCE`] otherwise.
    pub gpuInstanceId: u32,
    /// Likewise for the compute instance.
    pub computeInstanceId: u32,
}

/// `nvmlProcessDetail_v1_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlProcessDetail_v1_t {
    /// Its number.
    pub pid: u32,
    /// Bytes of device memory.
    pub usedGpuMemory: u64,
    /// On a MIG instance, its number; [`NO_INSTANCE`] otherwise.
    pub gpuInstanceId: u32,
    /// Likewise for the compute instance.
    pub computeInstanceId: u32,
    /// Bytes of protected memory.
    pub usedGpuCcProtectedMemory: u64,
}

/// `nvmlProcessDetailList_v1_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct nvmlProcessDetailList_v1_t {
    /// [`nvmlProcessDetailList_v1_t::VERSION`], set by the caller.
    pub version: u32,
    /// 0 compute, 1 graphics, 2 MPS.
    pub mode: u32,
    /// Room in the array on entry, processes on return.
    pub numProcArrayEntries: u32,
    /// Unused, and left as the caller had it.
    pub padding: u32,
    /// The array; null asks for the number only.
    pub procArray: *mut nvmlProcessDetail_v1_t,
}

impl nvmlProcessDetailList_v1_t {
    /// Size and version 1, as `NVML_STRUCT_VERSION` packs them.
    pub const VERSION: u32 = 0x0100_0018;
    /// Mode 0: processes that compute.
    pub const COMPUTE: u32 = 0;
}

/// `nvmlUtilization_t`: percent of the time of the last sample.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlUtilization_t {
    /// Something computed.
    pub gpu: u32,
    /// Memory was read or written.
    pub memory: u32,
}

/// `nvmlProcessUtilizationSample_t`: percent of the time, by engine.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlProcessUtilizationSample_t {
    /// Its number.
    pub pid: u32,
    /// Microseconds since 1970.
    pub timeStamp: u64,
    /// It computed.
    pub smUtil: u32,
    /// Memory was read or written for it.
    pub memUtil: u32,
    /// It encoded video.
    pub encUtil: u32,
    /// It decoded video.
    pub decUtil: u32,
}

/// `nvmlProcessUtilizationInfo_v1_t`: as [`nvmlProcessUtilizationSample_t`], with two more engines.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlProcessUtilizationInfo_v1_t {
    /// Microseconds since 1970.
    pub timeStamp: u64,
    /// Its number.
    pub pid: u32,
    /// It computed.
    pub smUtil: u32,
    /// Memory was read or written for it.
    pub memUtil: u32,
    /// It encoded video.
    pub encUtil: u32,
    /// It decoded video.
    pub decUtil: u32,
    /// It worked on JPEG images.
    pub jpgUtil: u32,
    /// It computed optical flow.
    pub ofaUtil: u32,
}

/// `nvmlProcessesUtilizationInfo_v1_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct nvmlProcessesUtilizationInfo_v1_t {
    /// [`nvmlProcessesUtilizationInfo_v1_t::VERSION`], set by the caller.
    pub version: u32,
    /// Room in the array on entry, processes on return.
    pub processSamplesCount: u32,
    /// Only what is newer than this is asked for.
    pub lastSeenTimeStamp: u64,
    /// The array; null asks for the number only.
    pub procUtilArray: *mut nvmlProcessUtilizationInfo_v1_t,
}

impl nvmlProcessesUtilizationInfo_v1_t {
    /// Size and version 1, as `NVML_STRUCT_VERSION` packs them.
    pub const VERSION: u32 = 0x0100_0018;
}

/// `nvmlSample_t`: a value at a time.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlSample_t {
    /// Microseconds since 1970.
    pub timeStamp: u64,
    /// `nvmlValue_t`, a union of 8 bytes; of the kinds below an unsigned int.
    pub sampleValue: u64,
}

/// `NVML_GPU_UTILIZATION_SAMPLES`: how busy the card is, in percent.
pub const NVML_GPU_UTILIZATION_SAMPLES: u32 = 1;
/// `NVML_MEMORY_UTILIZATION_SAMPLES`: how busy its memory is, in percent.
pub const NVML_MEMORY_UTILIZATION_SAMPLES: u32 = 2;

/// `nvmlDeviceAttributes_t`: what a MIG instance has.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct nvmlDeviceAttributes_t {
    /// Counts: multiprocessors, copy engines, decoders, encoders, JPEG, OFA, slices of either kind.
    pub engines: [u32; 8],
    /// Memory in MiB.
    pub memorySizeMB: u64,
}

/// `nvmlAccountingStats_t`, of which nothing is read: what one process did to a device.
pub type nvmlAccountingStats_t = [u64; 7];
/// `nvmlAccountingStats_v2_t`, likewise; the process asked for stands in it.
pub type nvmlAccountingStats_v2_t = [u64; 8];

/// `NVML_VALUE_NOT_AVAILABLE`, for bytes.
pub const NVML_VALUE_NOT_AVAILABLE: u64 = u64::MAX;

/// What the instance numbers of a process say outside MIG.
pub const NO_INSTANCE: u32 = u32::MAX;

const _: () = assert!(size_of::<nvmlProcessInfo_v1_t>() == 16);
const _: () = assert!(size_of::<nvmlProcessInfo_v2_t>() == 24);
const _: () = assert!(size_of::<nvmlProcessDetail_v1_t>() == 32);
const _: () = assert!(size_of::<nvmlProcessDetailList_v1_t>() == 24);
const _: () = assert!(size_of::<nvmlProcessUtilizationSample_t>() == 32);
const _: () = assert!(size_of::<nvmlProcessUtilizationInfo_v1_t>() == 40);
const _: () = assert!(size_of::<nvmlProcessesUtilizationInfo_v1_t>() == 24);
const _: () = assert!(size_of::<nvmlSample_t>() == 16);
const _: () = assert!(size_of::<nvmlDeviceAttributes_t>() == 40);
const _: () = assert!(size_of::<nvmlMemory_t>() == 24);
const _: () = assert!(size_of::<nvmlMemory_v2_t>() == 40);
