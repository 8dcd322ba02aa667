//! What describes memory that is no array: where it lives, pools, physical memory, and what other processes name it by.

use crate::arg::by_value;
use core::ffi::{c_int, c_void};

/// `CUmemLocation`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUmemLocation {
    /// One of the `CU_MEM_LOCATION_TYPE_*` values.
    pub kind: c_int,
    /// Device ordinal or NUMA node.
    pub id: c_int,
}
by_value!(CUmemLocation);

/// `CU_MEM_LOCATION_TYPE_DEVICE`
pub const CU_MEM_LOCATION_TYPE_DEVICE: c_int = 1;
/// `CU_MEM_LOCATION_TYPE_HOST`
pub const CU_MEM_LOCATION_TYPE_HOST: c_int = 2;
/// `CU_MEM_LOCATION_TYPE_HOST_NUMA`
pub const CU_MEM_LOCATION_TYPE_HOST_NUMA: c_int = 3;
/// `CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT`
pub const CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: c_int = 4;

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUmemAllocationProp {
    /// `CUmemAllocationType`; 1 is pinned.
    pub kind: c_int,
    /// `CUmemAllocationHandleType` bits that may be exported.
    pub requestedHandleTypes: c_int,
    /// Where the memory lives.
    pub location: CUmemLocation,
    /// Windows only.
    pub win32HandleMetaData: *mut c_void,
    /// `allocFlags`, 8 bytes: compression, RDMA, usage, reserved.
    pub allocFlags: [u8; 8],
}

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`: shared as an open file.
pub const CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: c_int = 1;

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUmemPoolProps {
    /// `CUmemAllocationType`; 1 is pinned, 2 is managed.
    pub allocType: c_int,
    /// `CUmemAllocationHandleType` bits that may be exported.
    pub handleTypes: c_int,
    /// Where the pool's memory lives.
    pub location: CUmemLocation,
    /// Windows only.
    pub win32SecurityAttributes: *mut c_void,
    /// The most that the pool may hold, in bytes; 0 is the driver's choice.
    pub maxSize: usize,
    /// Intended use.
    pub usage: u16,
    /// Zero.
    pub reserved: [u8; 54],
}

const _: () = assert!(size_of::<CUmemPoolProps>() == 88);

/// `CUipcMemHandle`: linear memory, as one process names it to another.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUipcMemHandle {
    /// The driver's own.
    pub reserved: [u8; 64],
}
by_value!(CUipcMemHandle);

/// `CUmemPoolPtrExportData`: memory of a pool, as one process names it to another.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUmemPoolPtrExportData {
    /// The driver's own.
    pub reserved: [u8; 64],
}

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`: bytes that a pool keeps when it could give them back.
pub const CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: c_int = 4;
/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`: bytes that a pool holds.
pub const CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: c_int = 5;
