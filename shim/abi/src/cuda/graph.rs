//! What the nodes of a graph are described by.

use super::handle::{CUcontext, CUdeviceptr, CUfunction};
use super::memory::CUmemPoolProps;
use core::ffi::{c_int, c_uint, c_void};

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
