//! Arrays (texture memory).

use super::{current_context, current_device};
use crate::call::Call;
use crate::hooks::Next;
use crate::session::Session;
use gpucap_abi::arg::{In, Out};
use gpucap_abi::cuda::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY3D_DEFERRED_MAPPING,
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_ARRAY3D_SPARSE, CUarray, CuError,
    CuResult,
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
    let bytes = descriptor.get().map_or(0, |descriptor| descriptor.owned_bytes());
    let Some((session, device)) = current_device(call)? else { return next().map(drop) };
    let charge = session.charge(device, Kind::Array, bytes)?;
    let written = next()?;
    if let Some(array) = array.get(&written) {
        let record = charge.ends_with(current_context(call)).commit();
        if let Some(stale) = session.arrays.insert(array.address(), record) {
            session.refund(stale);
        }
    }
    Ok(())
}

/// `cuArrayDestroy`.
pub(crate) fn destroy(_call: &Call, next: impl Next<CuError>, array: CUarray) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    session.arrays.end_one(array.address(), next, |record| session.refund(record))
}

/// The four forms of an array descriptor.
pub(crate) trait Descriptor: Copy {
    /// Bytes that the array will own.
    fn owned_bytes(self) -> u64;
}

macro_rules! flat {
    ($($type:ty),*) => {$(
        impl Descriptor for $type {
            fn owned_bytes(self) -> u64 {
                let Self { Width, Height, Format, NumChannels } = self;
                bytes(Width as u64, Height as u64, 0, Format, NumChannels)
            }
        }
    )*};
}
flat!(CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1);

macro_rules! deep {
    ($($type:ty),*) => {$(
        impl Descriptor for $type {
            fn owned_bytes(self) -> u64 {
                let Self { Width, Height, Depth, Format, NumChannels, Flags } = self;
                if Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING) != 0 {
                    return 0; // its memory is created and mapped by the application
                }
                bytes(Width as u64, Height as u64, Depth as u64, Format, NumChannels)
            }
        }
    )*};
}
deep!(CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1);

fn bytes(width: u64, height: u64, depth: u64, format: i32, channels: u32) -> u64 {
    Extent { width, height, depth, format: format.unsigned_abs(), channels }.bytes()
}
