//! CUDA driver types in the driver's spelling, as far as the rows, the stub and the demo need them.

#![allow(non_camel_case_types, reason = "these are the driver's public names")]
#![allow(non_snake_case, reason = "these are the driver's public names")]

mod array;
mod copy;
mod launch;

pub use array::*;
pub use copy::*;
pub use launch::{CU_STREAM_PER_THREAD, CUDA_LAUNCH_PARAMS, CUlaunchConfig};

use crate::arg::{by_value, pointees};
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::num::NonZeroU32;

/// A device ordinal, as `cuDeviceGet` hands it out.
pub type CUdevice = c_int;
/// A device address.
pub type CUdeviceptr = u64;
/// A device address in the first, 32-bit API.
pub type CUdeviceptr_v1 = u32;
/// A handle of physical memory made by `cuMemCreate`.
pub type CUmemGenericAllocationHandle = u64;
/// `CUdriverProcAddressQueryResult`: 0 found, 1 symbol not found, 2 version not sufficient.
pub type CUdriverProcAddressQueryResult = c_int;

/// An error of the driver: any `CUresult` but success.
///
/// A `Result<(), CuError>` has the layout of `CUresult` (guaranteed for `NonZero` newtypes), so an original's
/// answer can be used with `?` and handed on without being looked at.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CuError(NonZeroU32);

/// `CUresult`: success is 0.
pub type CuResult = Result<(), CuError>;

const _: () = assert!(size_of::<CuResult>() == size_of::<u32>());

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl CuError {
            $($(#[$doc])* pub const $name: Self = Self(NonZeroU32::new($code).unwrap());)*
        }
    };
}
errors! {
    /// `CUDA_ERROR_INVALID_VALUE`
    INVALID_VALUE = 1;
    /// `CUDA_ERROR_OUT_OF_MEMORY`
    OUT_OF_MEMORY = 2;
    /// `CUDA_ERROR_NOT_INITIALIZED`
    NOT_INITIALIZED = 3;
    /// `CUDA_ERROR_DEINITIALIZED`
    DEINITIALIZED = 4;
    /// `CUDA_ERROR_NO_DEVICE`
    NO_DEVICE = 100;
    /// `CUDA_ERROR_INVALID_DEVICE`
    INVALID_DEVICE = 101;
    /// `CUDA_ERROR_INVALID_CONTEXT`
    INVALID_CONTEXT = 201;
    /// `CUDA_ERROR_INVALID_HANDLE`
    INVALID_HANDLE = 400;
    /// `CUDA_ERROR_NOT_FOUND`
    NOT_FOUND = 500;
    /// `CUDA_ERROR_NOT_READY`: not an error but an answer, that work is not done yet
    NOT_READY = 600;
    /// `CUDA_ERROR_NOT_SUPPORTED`
    NOT_SUPPORTED = 801;
    /// `CUDA_ERROR_SYSTEM_NOT_READY`
    SYSTEM_NOT_READY = 802;
    /// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: the default stream would wait for a stream that is captured
    STREAM_CAPTURE_IMPLICIT = 906;
    /// `CUDA_ERROR_UNKNOWN`
    UNKNOWN = 999;
}

impl CuError {
    /// The error with this code; `None` for 0, which is success.
    #[must_use]
    pub const fn new(code: u32) -> Option<Self> {
        match NonZeroU32::new(code) {
            Some(code) => Some(Self(code)),
            None => None,
        }
    }

    /// The driver's number.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0.get()
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub *mut c_void);
        by_value!($name);
        // A list of them stands behind a `*const`.
        pointees! { input false, output true: $name; }
        impl $name {
            /// The null handle.
            pub const NULL: Self = Self(core::ptr::null_mut());
            /// The handle as a number, for tables.
            #[must_use]
            pub fn address(self) -> u64 {
                self.0 as u64
            }
            /// The handle that was this number.
            #[must_use]
            pub fn from_address(address: u64) -> Self {
                Self(address as *mut c_void)
            }
        }
    )*};
}
handles! {
    /// A context.
    CUcontext;
    /// A stream; null, 1 and 2 name the default, legacy and per-thread streams.
    CUstream;
    /// An event.
    CUevent;
    /// A semaphore of another interface.
    CUexternalSemaphore;
    /// A kernel.
    CUfunction;
    /// A module.
    CUmodule;
    /// A library: code that belongs to no context.
    CUlibrary;
    /// A kernel of a library.
    CUkernel;
    /// An array (texture memory).
    CUarray;
    /// A mipmapped array.
    CUmipmappedArray;
    /// A stream-ordered memory pool.
    CUmemoryPool;
    /// A graph.
    CUgraph;
    /// A node of a graph.
    CUgraphNode;
    /// An executable graph.
    CUgraphExec;
    /// A green context: part of a card's multiprocessors.
    CUgreenCtx;
    /// A description of part of a card's resources.
    CUdevResourceDesc;
}

/// `CUuuid`: 16 raw bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CUuuid {
    /// The bytes in the order in which they are printed.
    pub bytes: [u8; 16],
}

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
pointees! {
    input true, output true: CUmemLocation;
    input true, output false: CUmemAllocationProp, CUmemPoolProps, CUlaunchConfig,
        CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR,
        CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_MEMCPY2D, CUDA_MEMCPY2D_v1, CUDA_MEMCPY3D,
        CUDA_MEMCPY3D_v1, CUDA_MEMCPY3D_BATCH_OP;
    // Of the exporting process: what only the driver reads.
    input false, output false: CUmemPoolPtrExportData;
}

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

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS {
    /// Where the memory lives, among others.
    pub poolProps: CUmemPoolProps,
    /// Who else may reach it.
    pub accessDescs: *const c_void,
    /// How many of these.
    pub accessDescCount: usize,
    /// Size in bytes.
    pub bytesize: usize,
    /// The address, chosen when the node is added.
    pub dptr: CUdeviceptr,
}

const _: () = assert!(size_of::<CUDA_MEM_ALLOC_NODE_PARAMS>() == 120);

/// `CUDA_KERNEL_NODE_PARAMS`, second form; the first one ends before the kernel.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_KERNEL_NODE_PARAMS {
    /// What is launched; null if it is a kernel of a library.
    pub func: CUfunction,
    /// Blocks in the grid.
    pub gridDim: [c_uint; 3],
    /// Threads in a block.
    pub blockDim: [c_uint; 3],
    /// Bytes of shared memory.
    pub sharedMemBytes: c_uint,
    /// Its arguments, which the node owns.
    pub kernelParams: *const c_void,
    /// Its arguments in another form.
    pub extra: *const c_void,
    /// The kernel, whose handle can be launched as a function's can.
    pub kern: CUfunction,
    /// Where it runs.
    pub ctx: CUcontext,
}

const _: () = assert!(size_of::<CUDA_KERNEL_NODE_PARAMS>() == 72);

/// `CU_GRAPH_NODE_TYPE_KERNEL`: a node that launches.
pub const CU_GRAPH_NODE_TYPE_KERNEL: c_int = 0;
/// `CU_GRAPH_NODE_TYPE_GRAPH`: a node that is a graph itself.
pub const CU_GRAPH_NODE_TYPE_GRAPH: c_int = 4;
/// `CU_GRAPH_NODE_TYPE_MEM_ALLOC`: a node that allocates.
pub const CU_GRAPH_NODE_TYPE_MEM_ALLOC: c_int = 10;
/// `CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT`: bytes that graphs hold of a device, in use or not.
pub const CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: c_int = 2;
/// `CU_STREAM_CAPTURE_STATUS_NONE`: calls on the stream are carried out, not recorded.
pub const CU_STREAM_CAPTURE_STATUS_NONE: c_int = 0;

/// `CU_MODULE_LAZY_LOADING`: functions are loaded when they are first needed.
pub const CU_MODULE_LAZY_LOADING: c_int = 2;

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`: bytes that a pool keeps when it could give them back.
pub const CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: c_int = 4;
/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`: bytes that a pool holds.
pub const CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: c_int = 5;

/// A C string that the driver only reads.
pub type CString = *const c_char;
