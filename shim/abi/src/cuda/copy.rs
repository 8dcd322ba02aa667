//! What a copy is described by.

use super::handle::{CUarray, CUdeviceptr, CUdeviceptr_v1};
use core::ffi::c_void;

/// `CU_MEMORYTYPE_HOST`.
pub const CU_MEMORYTYPE_HOST: u32 = 1;
/// `CU_MEMORYTYPE_DEVICE`.
pub const CU_MEMORYTYPE_DEVICE: u32 = 2;
/// `CU_MEMORYTYPE_ARRAY`.
pub const CU_MEMORYTYPE_ARRAY: u32 = 3;
/// `CU_MEMORYTYPE_UNIFIED`: determined by the address.
pub const CU_MEMORYTYPE_UNIFIED: u32 = 4;

/// One side of a [`CUDA_MEMCPY2D`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Side2D {
    /// Where it begins, in bytes.
    pub xInBytes: usize,
    /// The row in which it begins.
    pub y: usize,
    /// Which of the next three it is.
    pub memoryType: u32,
    /// Memory of the host.
    pub host: *const c_void,
    /// An address of the device, or one of which the driver knows whose it is.
    pub device: CUdeviceptr,
    /// An array.
    pub array: CUarray,
    /// Bytes from row to row.
    pub pitch: usize,
}

/// `CUDA_MEMCPY2D_v2`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_MEMCPY2D {
    /// From where.
    pub src: Side2D,
    /// To where.
    pub dst: Side2D,
    /// How wide it is.
    pub WidthInBytes: usize,
    /// How many rows.
    pub Height: usize,
}

const _: () = assert!(size_of::<CUDA_MEMCPY2D>() == 128);

/// `CUDA_MEMCPY2D_v1`, of the first API.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_MEMCPY2D_v1 {
    /// Where it begins, in bytes and rows.
    pub srcPlace: [u32; 2],
    /// Which of the next three it is.
    pub srcMemoryType: u32,
    /// Memory of the host.
    pub srcHost: *const c_void,
    /// An address of the device.
    pub srcDevice: CUdeviceptr_v1,
    /// An array.
    pub srcArray: CUarray,
    /// Bytes from row to row.
    pub srcPitch: u32,
    /// As of the source.
    pub dstPlace: [u32; 2],
    /// As of the source.
    pub dstMemoryType: u32,
    /// As of the source.
    pub dstHost: *mut c_void,
    /// As of the source.
    pub dstDevice: CUdeviceptr_v1,
    /// As of the source.
    pub dstArray: CUarray,
    /// As of the source.
    pub dstPitch: u32,
    /// How wide it is.
    pub WidthInBytes: u32,
    /// How many rows.
    pub Height: u32,
}

const _: () = assert!(size_of::<CUDA_MEMCPY2D_v1>() == 96);

/// One side of a [`CUDA_MEMCPY3D`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Side3D {
    /// Where it begins: bytes, row, layer, level of detail.
    pub place: [usize; 4],
    /// Which of the next three it is.
    pub memoryType: u32,
    /// Memory of the host.
    pub host: *const c_void,
    /// An address of the device, or one of which the driver knows whose it is.
    pub device: CUdeviceptr,
    /// An array.
    pub array: CUarray,
    /// Between contexts, whose it is; else nothing.
    pub context: *const c_void,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Rows from layer to layer.
    pub height: usize,
}

/// `CUDA_MEMCPY3D_v2`, and `CUDA_MEMCPY3D_PEER`, which differ by a context of each side.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_MEMCPY3D {
    /// From where.
    pub src: Side3D,
    /// To where.
    pub dst: Side3D,
    /// How wide it is.
    pub WidthInBytes: usize,
    /// How many rows.
    pub Height: usize,
    /// How many layers.
    pub Depth: usize,
}

const _: () = assert!(size_of::<CUDA_MEMCPY3D>() == 200);

/// One side of a [`CUDA_MEMCPY3D_v1`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Side3D_v1 {
    /// Where it begins: bytes, row, layer, level of detail.
    pub place: [u32; 4],
    /// Which of the next three it is.
    pub memoryType: u32,
    /// Memory of the host.
    pub host: *const c_void,
    /// An address of the device.
    pub device: CUdeviceptr_v1,
    /// An array.
    pub array: CUarray,
    /// Nothing.
    pub reserved: *const c_void,
    /// Bytes from row to row.
    pub pitch: u32,
    /// Rows from layer to layer.
    pub height: u32,
}

/// `CUDA_MEMCPY3D_v1`, of the first API.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_MEMCPY3D_v1 {
    /// From where.
    pub src: Side3D_v1,
    /// To where.
    pub dst: Side3D_v1,
    /// How wide it is.
    pub WidthInBytes: u32,
    /// How many rows.
    pub Height: u32,
    /// How many layers.
    pub Depth: u32,
}

const _: () = assert!(size_of::<CUDA_MEMCPY3D_v1>() == 144);

/// `CU_MEMCPY_OPERAND_TYPE_POINTER`: the driver knows whose an address is.
pub const CU_MEMCPY_OPERAND_TYPE_POINTER: u32 = 1;
/// `CU_MEMCPY_OPERAND_TYPE_ARRAY`.
pub const CU_MEMCPY_OPERAND_TYPE_ARRAY: u32 = 2;

/// `CUmemcpy3DOperand`, whose two forms both begin with what they are of.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUmemcpy3DOperand {
    /// Which of the two it is.
    pub operandType: u32,
    /// The address, or the array.
    pub place: CUdeviceptr,
    /// Length of a row, height of a layer and a hint; or where in the array it begins.
    pub inside: [u64; 3],
}

/// `CUDA_MEMCPY3D_BATCH_OP`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_MEMCPY3D_BATCH_OP {
    /// From where.
    pub src: CUmemcpy3DOperand,
    /// To where.
    pub dst: CUmemcpy3DOperand,
    /// Width, height and depth: in bytes between two addresses, in elements of an array else.
    pub extent: [usize; 3],
    /// When the source may be read.
    pub srcAccessOrder: u32,
    /// Whether it may overlap with computation.
    pub flags: u32,
}

const _: () = assert!(size_of::<CUDA_MEMCPY3D_BATCH_OP>() == 112);
