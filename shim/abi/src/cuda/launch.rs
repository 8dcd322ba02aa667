//! What a launch is described by.

use super::handle::{CUfunction, CUstream};
use core::ffi::c_void;

/// `CU_STREAM_PER_THREAD`: the default stream of the calling thread, by name.
pub const CU_STREAM_PER_THREAD: CUstream = CUstream(2 as *mut c_void);

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUlaunchConfig {
    /// Blocks in each direction.
    pub grid: [u32; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// On-chip memory of a block, in bytes.
    pub sharedMemBytes: u32,
    /// The stream.
    pub hStream: CUstream,
    /// Attributes: clusters, priorities, and so on.
    pub attrs: *mut c_void,
    /// How many of these.
    pub numAttrs: u32,
}

const _: () = assert!(size_of::<CUlaunchConfig>() == 56);

/// `CUDA_LAUNCH_PARAMS`: one device's part of a cooperative launch on several.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_LAUNCH_PARAMS {
    /// The kernel.
    pub function: CUfunction,
    /// Blocks in each direction.
    pub grid: [u32; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// On-chip memory of a block, in bytes.
    pub sharedMemBytes: u32,
    /// The stream, which determines the device.
    pub hStream: CUstream,
    /// Addresses of the kernel's arguments.
    pub kernelParams: *mut *mut c_void,
}

const _: () = assert!(size_of::<CUDA_LAUNCH_PARAMS>() == 56);
