//! Arrays (texture memory).

use super::{current_context, current_device};
use crate::call::Call;
use crate::driver::Next;
use crate::session::Session;
use gpucap_abi::arg::{In, Out, Word};
use gpucap_abi::cuda::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_CUBEMAP,
    CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1,
    CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_SPARSE, CUarray, CUmipmappedArray, CuError, CuResult,
};
use gpucap_core::extent::Extent;
use gpucap_core::ledger::Kind;

/// `cuArrayCreate`, `cuArray3DCreate`: ends with the current context.
pub(crate) fn create<D: Descriptor>(
    call: &Call,
    next: impl Next<CuError>,
    array: Out<CUarray>,
    descriptor: In<D>,
) -> CuResult {
    charged(call, next, array, descriptor.get().map_or(0, Descriptor::owned_bytes))
}

/// `cuMipmappedArrayCreate`: each level is half as large as the one before, in every direction but that of its layers.
pub(crate) fn create_mipmapped(
    call: &Call,
    next: impl Next<CuError>,
    array: Out<CUmipmappedArray>,
    descriptor: In<CUDA_ARRAY3D_DESCRIPTOR>,
    levels: u32,
) -> CuResult {
    let bytes =
        descriptor.get().filter(|descriptor| !descriptor.is_lent()).map_or(0, |descriptor| {
            let layered = descriptor.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) != 0;
            descriptor.extent().mipmapped_bytes(levels, layered)
        });
    charged(call, next, array, bytes)
}

/// `cuArrayDestroy`: with a sparse array end the mappings of its tiles.
pub(crate) fn destroy(_call: &Call, next: impl Next<CuError>, array: CUarray) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    let behind = session.with_physical(|physical| physical.take_array(array.address()));
    let ended =
        session.arrays.end_one(array.address(), next, |record| session.budget.refund(record));
    let gone = session.with_physical(|physical| match (behind, ended) {
        (Some(behind), Ok(())) => physical.array_ended(behind),
        (Some(behind), Err(_)) => {
            physical.put_back(behind);
            Vec::new()
        }
        (None, _) => Vec::new(),
    });
    session.refund_physical(gone.unwrap_or_default());
    ended
}

/// `cuMipmappedArrayDestroy`.
pub(crate) fn destroy_mipmapped(
    call: &Call,
    next: impl Next<CuError>,
    array: CUmipmappedArray,
) -> CuResult {
    destroy(call, next, CUarray::from_address(array.address()))
}

fn charged<H: Handle>(
    call: &Call,
    next: impl Next<CuError>,
    array: Out<H>,
    bytes: u64,
) -> CuResult {
    let Some((session, device)) = current_device(call)? else { return next().map(drop) };
    let context = current_context(call)?;
    let charge = call.charge(session, device, Kind::Array, bytes)?;
    let written = next()?;
    if let Some(array) = array.get(&written) {
        let record = charge.at_home_in(context).commit();
        if let Some(stale) = session.arrays.insert(array.number(), record) {
            session.budget.refund(stale);
        }
    }
    Ok(())
}

/// Arrays and mipmapped arrays: both are objects of the driver in host memory, so no two have the same handle.
trait Handle: Copy {
    fn number(self) -> u64;
}

impl Handle for CUarray {
    fn number(self) -> u64 {
        self.address()
    }
}

impl Handle for CUmipmappedArray {
    fn number(self) -> u64 {
        self.address()
    }
}

/// The four forms of an array descriptor.
pub(crate) trait Descriptor: Copy {
    /// What it asks for.
    fn extent(self) -> Extent;

    /// Its memory is created and mapped by the application.
    fn is_lent(self) -> bool;

    /// Bytes that the array will own.
    fn owned_bytes(self) -> u64 {
        if self.is_lent() { 0 } else { self.extent().bytes() }
    }
}

macro_rules! flat {
    ($($type:ty),*) => {$(
        impl Descriptor for $type {
            fn extent(self) -> Extent {
                let Self { Width, Height, Format, NumChannels } = self;
                extent(Width, Height, 0u64, Format, NumChannels)
            }

            fn is_lent(self) -> bool {
                false
            }
        }
    )*};
}
flat!(CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1);

macro_rules! deep {
    ($($type:ty),*) => {$(
        impl Descriptor for $type {
            fn extent(self) -> Extent {
                let Self { Width, Height, Depth, Format, NumChannels, .. } = self;
                extent(Width, Height, Depth, Format, NumChannels)
            }

            fn is_lent(self) -> bool {
                self.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING) != 0
            }
        }
    )*};
}
deep!(CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1);

fn extent<W: Word, D: Word>(width: W, height: W, depth: D, format: i32, channels: u32) -> Extent {
    Extent {
        width: width.to_u64(),
        height: height.to_u64(),
        depth: depth.to_u64(),
        format: format.unsigned_abs(),
        channels,
    }
}
