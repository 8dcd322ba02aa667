//! What describes arrays (texture memory), in the driver's spelling.

use super::handle::CUmemGenericAllocationHandle;
use core::ffi::c_int;

/// `CUDA_ARRAY_DESCRIPTOR` (`_v2`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_ARRAY_DESCRIPTOR {
    /// Width in elements.
    pub Width: usize,
    /// Height in elements; 0 means one-dimensional.
    pub Height: usize,
    /// `CUarray_format`.
    pub Format: c_int,
    /// Channels per element.
    pub NumChannels: u32,
}

/// `CUDA_ARRAY_DESCRIPTOR_v1`, the 32-bit form.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_ARRAY_DESCRIPTOR_v1 {
    /// Width in elements.
    pub Width: u32,
    /// Height in elements; 0 means one-dimensional.
    pub Height: u32,
    /// `CUarray_format`.
    pub Format: c_int,
    /// Channels per element.
    pub NumChannels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR` (`_v2`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_ARRAY3D_DESCRIPTOR {
    /// Width in elements.
    pub Width: usize,
    /// Height in elements; 0 means one-dimensional.
    pub Height: usize,
    /// Depth in elements, or layers; 0 means two-dimensional.
    pub Depth: usize,
    /// `CUarray_format`.
    pub Format: c_int,
    /// Channels per element.
    pub NumChannels: u32,
    /// `CUDA_ARRAY3D_*` bits.
    pub Flags: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR_v1`, the 32-bit form.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
    /// Width in elements.
    pub Width: u32,
    /// Height in elements; 0 means one-dimensional.
    pub Height: u32,
    /// Depth in elements, or layers; 0 means two-dimensional.
    pub Depth: u32,
    /// `CUarray_format`.
    pub Format: c_int,
    /// Channels per element.
    pub NumChannels: u32,
    /// `CUDA_ARRAY3D_*` bits.
    pub Flags: u32,
}

/// `CUDA_ARRAY3D_LAYERED`
pub const CUDA_ARRAY3D_LAYERED: u32 = 0x01;
/// `CUDA_ARRAY3D_CUBEMAP`
pub const CUDA_ARRAY3D_CUBEMAP: u32 = 0x04;
/// `CUDA_ARRAY3D_SPARSE`: owns no memory of its own.
pub const CUDA_ARRAY3D_SPARSE: u32 = 0x40;
/// `CUDA_ARRAY3D_DEFERRED_MAPPING`: owns no memory of its own.
pub const CUDA_ARRAY3D_DEFERRED_MAPPING: u32 = 0x80;

/// `CUarrayMapInfo`: the memory that is mapped into tiles of a sparse array, or removed from them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CUarrayMapInfo {
    /// `CUresourcetype`; 0 is an array, 1 a mipmapped array.
    pub resourceType: c_int,
    /// The array.
    pub resource: u64,
    /// `CUarraySparseSubresourceType`; 0 is a level, 1 the tail of small levels.
    pub subresourceType: c_int,
    /// Of a level, in 32 bits each: level, layer, three offsets, three extents. Of a tail: layer, offset, size.
    pub subresource: [u64; 4],
    /// `CUmemOperationType`; 1 maps, 2 unmaps.
    pub memOperationType: c_int,
    /// `CUmemHandleType`; 0 is a handle of `cuMemCreate`.
    pub memHandleType: c_int,
    /// The memory.
    pub memHandle: CUmemGenericAllocationHandle,
    /// Where in the memory.
    pub offset: u64,
    /// For which devices.
    pub deviceBitMask: u32,
    /// Zero.
    pub flags: u32,
    /// Zero.
    pub reserved: [u32; 2],
}

const _: () = assert!(size_of::<CUarrayMapInfo>() == 96);
const _: () = assert!(core::mem::offset_of!(CUarrayMapInfo, subresource) == 24);
