//! CUDA driver types in the driver's spelling, as far as the rows, the stub and the demo need them.

#![allow(non_camel_case_types, reason = "these are the driver's public names")]
#![allow(non_snake_case, reason = "these are the driver's public names")]

mod array;
mod copy;
mod error;
mod graph;
mod handle;
mod launch;
mod memory;

pub use array::*;
pub use copy::*;
pub use error::*;
pub use graph::*;
pub use handle::*;
pub use launch::{CU_STREAM_PER_THREAD, CUDA_LAUNCH_PARAMS, CUlaunchConfig};
pub use memory::*;

use crate::arg::pointees;
use core::ffi::{c_char, c_int};

/// `CUdriverProcAddressQueryResult`: 0 found, 1 symbol not found, 2 version not sufficient.
pub type CUdriverProcAddressQueryResult = c_int;

/// A C string that the driver only reads.
pub type CString = *const c_char;

/// `CU_STREAM_CAPTURE_STATUS_NONE`: calls on the stream are carried out, not recorded.
pub const CU_STREAM_CAPTURE_STATUS_NONE: c_int = 0;

/// `CU_MODULE_LAZY_LOADING`: functions are loaded when they are first needed.
pub const CU_MODULE_LAZY_LOADING: c_int = 2;

pointees! {
    input true, output true: CUmemLocation;
    input true, output false: CUmemAllocationProp, CUmemPoolProps, CUlaunchConfig,
        CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR,
        CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_MEMCPY2D, CUDA_MEMCPY2D_v1, CUDA_MEMCPY3D,
        CUDA_MEMCPY3D_v1, CUDA_MEMCPY3D_BATCH_OP;
    // Of the exporting process: what only the driver reads.
    input false, output false: CUmemPoolPtrExportData;
}
