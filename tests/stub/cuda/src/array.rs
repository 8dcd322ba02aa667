//! Arrays and mipmapped arrays: opaque memory, sized by a description.
//!
//! An array costs width x height x depth x channels x bytes of the format. Sparse and deferred
//! arrays own no memory; a level of a mipmapped array is an array that owns none either and cannot
//! be destroyed. Arrays belong to a context.

use crate::arg::{In, Out};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::memory::{charge, refund};
use crate::state::Table;
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_CUBEMAP,
    CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1,
    CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_SPARSE, CUarray, CUdevice, CUmipmappedArray, CuError,
    CuResult,
};
use gpucap_stub_device::catalog::Unit;
use std::ffi::c_void;

exports! {
    /// One or two dimensions, sizes of 32 bits.
    fn cuArrayCreate(array: *mut CUarray, descriptor: *const CUDA_ARRAY_DESCRIPTOR_v1)
        => create, context, "cuArrayCreate" @ 2000;
    /// One or two dimensions.
    fn cuArrayCreate_v2(array: *mut CUarray, descriptor: *const CUDA_ARRAY_DESCRIPTOR)
        => create, context, "cuArrayCreate" @ 3020;
    /// Up to three dimensions, sizes of 32 bits.
    fn cuArray3DCreate(array: *mut CUarray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR_v1)
        => create, context, "cuArray3DCreate" @ 2000;
    /// Up to three dimensions.
    fn cuArray3DCreate_v2(array: *mut CUarray, descriptor: *const CUDA_ARRAY3D_DESCRIPTOR)
        => create, context, "cuArray3DCreate" @ 3020;
    /// A level of a mipmapped array cannot be destroyed.
    fn cuArrayDestroy(array: CUarray) => destroy, context, "cuArrayDestroy" @ 2000;
    /// What the array was made with.
    fn cuArrayGetDescriptor(descriptor: *mut CUDA_ARRAY_DESCRIPTOR_v1, array: CUarray)
        => descriptor_v1, context, "cuArrayGetDescriptor" @ 2000;
    /// What the array was made with.
    fn cuArrayGetDescriptor_v2(descriptor: *mut CUDA_ARRAY_DESCRIPTOR, array: CUarray)
        => descriptor, context, "cuArrayGetDescriptor" @ 3020;
    /// What the array was made with.
    fn cuArray3DGetDescriptor(descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR_v1, array: CUarray)
        => descriptor_3d_v1, context, "cuArray3DGetDescriptor" @ 2000;
    /// What the array was made with.
    fn cuArray3DGetDescriptor_v2(descriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, array: CUarray)
        => descriptor_3d, context, "cuArray3DGetDescriptor" @ 3020;
    /// What a deferred array would need.
    fn cuArrayGetMemoryRequirements(requirements: *mut Requirements, array: CUarray,
        device: CUdevice) => requirements, context, "cuArrayGetMemoryRequirements" @ 11060;
    /// Costs the sum of its levels.
    fn cuMipmappedArrayCreate(array: *mut CUmipmappedArray,
        descriptor: *const CUDA_ARRAY3D_DESCRIPTOR, levels: u32)
        => create_mipmapped, context, "cuMipmappedArrayCreate" @ 5000;
    /// Ends the levels too.
    fn cuMipmappedArrayDestroy(array: CUmipmappedArray)
        => destroy_mipmapped, context, "cuMipmappedArrayDestroy" @ 5000;
    /// An array that owns nothing.
    fn cuMipmappedArrayGetLevel(level: *mut CUarray, array: CUmipmappedArray, number: u32)
        => level, context, "cuMipmappedArrayGetLevel" @ 5000;
}

/// `CUDA_ARRAY_MEMORY_REQUIREMENTS`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Requirements {
    bytes: usize,
    alignment: usize,
    reserved: [u32; 4],
}

/// A description in the widest form.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    width: u64,
    height: u64,
    depth: u64,
    format: i32,
    channels: u32,
    flags: u32,
}

struct Array {
    shape: Shape,
    unit: Unit,
    context: u64,
    /// What it took from the card.
    bytes: u64,
    /// The mipmapped array whose level this is.
    parent: Option<u64>,
}

struct Mipmapped {
    shape: Shape,
    levels: u32,
    unit: Unit,
    context: u64,
    bytes: u64,
}

/// An array that went with its context.
pub(crate) struct Ended {
    pub(crate) handle: u64,
    pub(crate) unit: Unit,
    /// What it had taken.
    pub(crate) bytes: u64,
}

/// The arrays of the process.
#[derive(Default)]
pub(crate) struct Arrays {
    table: Table<Array>,
    mipmapped: Table<Mipmapped>,
}

/// Owns no memory of its own.
const UNBACKED: u32 = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

impl Arrays {
    /// Forgets what lives in a context; returns it.
    pub(crate) fn end_context(&mut self, context: u64) -> Vec<Ended> {
        let arrays = self.table.iter().filter(|(_, array)| array.context == context);
        let ended =
            |(handle, array): (u64, &Array)| Ended { handle, unit: array.unit, bytes: array.bytes };
        let mut gone: Vec<_> = arrays.map(ended).collect();
        let mipmapped = self.mipmapped.iter().filter(|(_, array)| array.context == context);
        let ended = |(handle, array): (u64, &Mipmapped)| Ended {
            handle,
            unit: array.unit,
            bytes: array.bytes,
        };
        gone.extend(mipmapped.map(ended));
        self.table.drain_if(|array| array.context == context);
        self.mipmapped.drain_if(|array| array.context == context);
        gone
    }

    /// Whether there is such an array, of either sort, whose memory is mapped into its tiles.
    pub(crate) fn is_sparse(&self, handle: u64, mipmapped: bool) -> bool {
        let shape = if mipmapped {
            self.mipmapped.get(handle).map(|array| array.shape)
        } else {
            self.table.get(handle).map(|array| array.shape)
        };
        shape.is_some_and(|shape| shape.flags & CUDA_ARRAY3D_SPARSE != 0)
    }
}

impl Shape {
    fn check(self) -> Result<Self, CuError> {
        let known = element_bytes(self.format).is_some() && matches!(self.channels, 1 | 2 | 4);
        // A depth needs a height, unless it counts layers.
        let solid = self.depth == 0 || self.height != 0 || self.flags & CUDA_ARRAY3D_LAYERED != 0;
        let cubes = self.flags & CUDA_ARRAY3D_CUBEMAP == 0
            || (self.width == self.height && self.depth != 0 && self.depth.is_multiple_of(6));
        if known && solid && cubes && self.width != 0 {
            Ok(self)
        } else {
            Err(CuError::INVALID_VALUE)
        }
    }

    fn bytes(self) -> Option<u64> {
        let elements =
            self.width.checked_mul(self.height.max(1))?.checked_mul(self.depth.max(1))?;
        elements.checked_mul(element_bytes(self.format)?)?.checked_mul(self.channels.into())
    }

    /// Each level halves the dimensions; layers and faces stay.
    fn level(self, number: u32) -> Self {
        let half = |size: u64| if size == 0 { 0 } else { (size >> number).max(1) };
        let layered = self.flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) != 0;
        let depth = if layered { self.depth } else { half(self.depth) };
        Self { width: half(self.width), height: half(self.height), depth, ..self }
    }

    fn costs(self) -> Option<u64> {
        if self.flags & UNBACKED != 0 { Some(0) } else { self.bytes() }
    }
}

/// Bytes per channel of a `CUarray_format`.
fn element_bytes(format: i32) -> Option<u64> {
    match format {
        0x01 | 0x08 => Some(1),
        0x02 | 0x09 | 0x10 => Some(2),
        0x03 | 0x0a | 0x20 => Some(4),
        _ => None,
    }
}

fn create<D: Copy + Into<ShapeOf>>(array: Out<CUarray>, descriptor: In<D>) -> CuResult {
    array.required()?;
    let ShapeOf(shape) = descriptor.get()?.into();
    let shape = shape.check()?;
    let (context, unit) = current()?;
    let bytes = shape.costs().ok_or(CuError::INVALID_VALUE)?;
    charge(unit, bytes)?;
    let made = Array { shape, unit, context, bytes, parent: None };
    array.put(CUarray(state()?.arrays.table.add(made) as *mut c_void))
}

fn destroy(array: CUarray) -> CuResult {
    let mut state = state()?;
    let handle = array.address();
    let found = state.arrays.table.get(handle).ok_or(CuError::INVALID_HANDLE)?;
    if found.parent.is_some() {
        return Err(CuError::INVALID_HANDLE);
    }
    if let Some(gone) = state.arrays.table.remove(handle) {
        refund(gone.unit, gone.bytes);
    }
    state.end_tiles(handle);
    Ok(())
}

fn create_mipmapped(
    array: Out<CUmipmappedArray>,
    descriptor: In<CUDA_ARRAY3D_DESCRIPTOR>,
    levels: u32,
) -> CuResult {
    array.required()?;
    let ShapeOf(shape) = descriptor.get()?.into();
    let shape = shape.check()?;
    let largest = shape.width.max(shape.height).max(shape.depth);
    let levels = levels.clamp(1, largest.ilog2() + 1);
    let bytes =
        (0..levels).try_fold(0u64, |sum, number| sum.checked_add(shape.level(number).costs()?));
    let bytes = bytes.ok_or(CuError::INVALID_VALUE)?;
    let (context, unit) = current()?;
    charge(unit, bytes)?;
    let made = Mipmapped { shape, levels, unit, context, bytes };
    array.put(CUmipmappedArray(state()?.arrays.mipmapped.add(made) as *mut c_void))
}

fn destroy_mipmapped(array: CUmipmappedArray) -> CuResult {
    let mut state = state()?;
    let handle = array.address();
    let gone = state.arrays.mipmapped.remove(handle).ok_or(CuError::INVALID_HANDLE)?;
    state.arrays.table.drain_if(|level| level.parent == Some(handle));
    refund(gone.unit, gone.bytes);
    state.end_tiles(handle);
    Ok(())
}

fn level(level: Out<CUarray>, array: CUmipmappedArray, number: u32) -> CuResult {
    level.required()?;
    let mut state = state()?;
    let handle = array.address();
    let found = state.arrays.mipmapped.get(handle).ok_or(CuError::INVALID_HANDLE)?;
    if number >= found.levels {
        return Err(CuError::INVALID_VALUE);
    }
    let made = Array {
        shape: found.shape.level(number),
        unit: found.unit,
        context: found.context,
        bytes: 0,
        parent: Some(handle),
    };
    level.put(CUarray(state.arrays.table.add(made) as *mut c_void))
}

/// Whether an array is one.
pub(crate) fn exists(array: CUarray) -> CuResult {
    shape_of(array).map(drop)
}

fn shape_of(array: CUarray) -> Result<Shape, CuError> {
    let state = state()?;
    state.arrays.table.get(array.address()).map(|array| array.shape).ok_or(CuError::INVALID_HANDLE)
}

fn descriptor_v1(descriptor: Out<CUDA_ARRAY_DESCRIPTOR_v1>, array: CUarray) -> CuResult {
    let shape = shape_of(array)?;
    descriptor.put(CUDA_ARRAY_DESCRIPTOR_v1 {
        Width: Word::saturating_from(shape.width),
        Height: Word::saturating_from(shape.height),
        Format: shape.format,
        NumChannels: shape.channels,
    })
}

fn descriptor(descriptor: Out<CUDA_ARRAY_DESCRIPTOR>, array: CUarray) -> CuResult {
    let shape = shape_of(array)?;
    descriptor.put(CUDA_ARRAY_DESCRIPTOR {
        Width: Word::saturating_from(shape.width),
        Height: Word::saturating_from(shape.height),
        Format: shape.format,
        NumChannels: shape.channels,
    })
}

fn descriptor_3d_v1(descriptor: Out<CUDA_ARRAY3D_DESCRIPTOR_v1>, array: CUarray) -> CuResult {
    let shape = shape_of(array)?;
    descriptor.put(CUDA_ARRAY3D_DESCRIPTOR_v1 {
        Width: Word::saturating_from(shape.width),
        Height: Word::saturating_from(shape.height),
        Depth: Word::saturating_from(shape.depth),
        Format: shape.format,
        NumChannels: shape.channels,
        Flags: shape.flags,
    })
}

fn descriptor_3d(descriptor: Out<CUDA_ARRAY3D_DESCRIPTOR>, array: CUarray) -> CuResult {
    let shape = shape_of(array)?;
    descriptor.put(CUDA_ARRAY3D_DESCRIPTOR {
        Width: Word::saturating_from(shape.width),
        Height: Word::saturating_from(shape.height),
        Depth: Word::saturating_from(shape.depth),
        Format: shape.format,
        NumChannels: shape.channels,
        Flags: shape.flags,
    })
}

fn requirements(requirements: Out<Requirements>, array: CUarray, device: CUdevice) -> CuResult {
    crate::driver::unit(device)?;
    let shape = shape_of(array)?;
    if shape.flags & UNBACKED == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let bytes = shape.bytes().ok_or(CuError::INVALID_VALUE)?;
    requirements.put(Requirements {
        bytes: Word::saturating_from(bytes),
        alignment: 2 << 20,
        reserved: [0; 4],
    })
}

/// A shape made from any of the four descriptors.
struct ShapeOf(Shape);

macro_rules! shape_of_flat {
    ($($descriptor:ty),*) => {$(
        impl From<$descriptor> for ShapeOf {
            fn from(from: $descriptor) -> Self {
                Self(Shape {
                    width: from.Width.to_u64(),
                    height: from.Height.to_u64(),
                    depth: 0,
                    format: from.Format,
                    channels: from.NumChannels,
                    flags: 0,
                })
            }
        }
    )*};
}
shape_of_flat!(CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY_DESCRIPTOR);

macro_rules! shape_of_solid {
    ($($descriptor:ty),*) => {$(
        impl From<$descriptor> for ShapeOf {
            fn from(from: $descriptor) -> Self {
                Self(Shape {
                    width: from.Width.to_u64(),
                    height: from.Height.to_u64(),
                    depth: from.Depth.to_u64(),
                    format: from.Format,
                    channels: from.NumChannels,
                    flags: from.Flags,
                })
            }
        }
    )*};
}
shape_of_solid!(CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR);
