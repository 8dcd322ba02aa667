//! Memory that is set or copied on the device: it takes the multiprocessors' time, as a kernel does.
//!
//! Copies to and from the host are free: they have engines of their own. Where a call does not show what its sides
//! are, the driver is asked for the owner of an address, which it knows for all its memory and for no other.

mod described;

use crate::call::Call;
use crate::driver::{self, Next};
use crate::launch::{self, Scope, StreamRef, Work};
use core::ffi::c_void;
use described::{CopyOperand, Described};
use gpucap_abi::arg::{Entries, In, Out, Word};
use gpucap_abi::cuda::{
    CUDA_MEMCPY3D_BATCH_OP, CUarray, CUcontext, CUdeviceptr, CUstream, CuError, CuResult,
};

/// `cuMemsetD8`, `cuMemsetD16`, `cuMemsetD32`.
pub(crate) fn set<V>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: impl Word,
    value: V,
    count: impl Word,
) -> CuResult {
    set_async(call, next, pointer, value, count, CUstream::NULL)
}

/// `cuMemsetD8Async`, `cuMemsetD16Async`, `cuMemsetD32Async`.
pub(crate) fn set_async<V>(
    call: &Call,
    next: impl Next<CuError>,
    _pointer: impl Word,
    _value: V,
    count: impl Word,
    stream: CUstream,
) -> CuResult {
    let bytes = count.to_u64().saturating_mul(size_of::<V>() as u64);
    launch::launch(call, Work::Memset { bytes }, StreamRef::named(call, stream), next)
}

/// `cuMemsetD2D8`, `cuMemsetD2D16`, `cuMemsetD2D32`.
pub(crate) fn set_rows<S: Word, V>(
    call: &Call,
    next: impl Next<CuError>,
    pointer: impl Word,
    pitch: S,
    value: V,
    width: S,
    height: S,
) -> CuResult {
    set_rows_async(call, next, pointer, pitch, value, width, height, CUstream::NULL)
}

/// `cuMemsetD2D8Async`, `cuMemsetD2D16Async`, `cuMemsetD2D32Async`.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn set_rows_async<S: Word, V>(
    call: &Call,
    next: impl Next<CuError>,
    _pointer: impl Word,
    _pitch: S,
    _value: V,
    width: S,
    height: S,
    stream: CUstream,
) -> CuResult {
    let elements = width.to_u64().saturating_mul(height.to_u64());
    let bytes = elements.saturating_mul(size_of::<V>() as u64);
    launch::launch(call, Work::Memset { bytes }, StreamRef::named(call, stream), next)
}

/// `cuMemcpyDtoD`.
pub(crate) fn on_device<A: Word>(
    call: &Call,
    next: impl Next<CuError>,
    to: A,
    from: A,
    bytes: impl Word,
) -> CuResult {
    on_device_async(call, next, to, from, bytes, CUstream::NULL)
}

/// `cuMemcpyDtoDAsync`.
pub(crate) fn on_device_async<A: Word>(
    call: &Call,
    next: impl Next<CuError>,
    _to: A,
    _from: A,
    bytes: impl Word,
    stream: CUstream,
) -> CuResult {
    moved(call, next, bytes.to_u64(), stream)
}

/// `cuMemcpyPeer`.
pub(crate) fn peer(
    call: &Call,
    next: impl Next<CuError>,
    to: CUdeviceptr,
    to_context: CUcontext,
    from: CUdeviceptr,
    from_context: CUcontext,
    bytes: usize,
) -> CuResult {
    peer_async(call, next, to, to_context, from, from_context, bytes, CUstream::NULL)
}

/// `cuMemcpyPeerAsync`.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn peer_async(
    call: &Call,
    next: impl Next<CuError>,
    to: CUdeviceptr,
    _to_context: CUcontext,
    from: CUdeviceptr,
    _from_context: CUcontext,
    bytes: usize,
    stream: CUstream,
) -> CuResult {
    on_device_async(call, next, to, from, bytes, stream)
}

/// `cuMemcpyAtoD`.
pub(crate) fn array_to_device(
    call: &Call,
    next: impl Next<CuError>,
    _to: impl Word,
    _from: CUarray,
    _offset: impl Word,
    bytes: impl Word,
) -> CuResult {
    moved(call, next, bytes.to_u64(), CUstream::NULL)
}

/// `cuMemcpyDtoA`.
pub(crate) fn device_to_array(
    call: &Call,
    next: impl Next<CuError>,
    _to: CUarray,
    _offset: impl Word,
    _from: impl Word,
    bytes: impl Word,
) -> CuResult {
    moved(call, next, bytes.to_u64(), CUstream::NULL)
}

/// `cuMemcpyAtoA`.
pub(crate) fn array_to_array<S: Word>(
    call: &Call,
    next: impl Next<CuError>,
    _to: CUarray,
    _at: S,
    _from: CUarray,
    _offset: S,
    bytes: S,
) -> CuResult {
    moved(call, next, bytes.to_u64(), CUstream::NULL)
}

/// `cuMemcpy`: waits where the host is one of the sides.
pub(crate) fn any(
    call: &Call,
    next: impl Next<CuError>,
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
) -> CuResult {
    let both = [CopyOperand::Address(to), CopyOperand::Address(from)];
    if both.into_iter().all(|operand| is_on_device(call, operand)) {
        moved(call, next, bytes.to_u64(), CUstream::NULL)
    } else {
        waited_for(call, next)
    }
}

/// `cuMemcpyAsync`.
pub(crate) fn any_async(
    call: &Call,
    next: impl Next<CuError>,
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> CuResult {
    let both = [CopyOperand::Address(to), CopyOperand::Address(from)];
    if both.into_iter().all(|operand| is_on_device(call, operand)) {
        moved(call, next, bytes.to_u64(), stream)
    } else {
        passes(call, next, stream)
    }
}

/// `cuMemcpy2D`, `cuMemcpy2DUnaligned`, `cuMemcpy3D`, `cuMemcpy3DPeer`: wait where the host is one of the sides.
pub(crate) fn described<T: Described>(
    call: &Call,
    next: impl Next<CuError>,
    copy: In<T>,
) -> CuResult {
    match bytes_on_device(call, copy) {
        Some(bytes) => moved(call, next, bytes, CUstream::NULL),
        None => waited_for(call, next),
    }
}

/// `cuMemcpy2DAsync`, `cuMemcpy3DAsync`, `cuMemcpy3DPeerAsync`.
pub(crate) fn described_async<T: Described>(
    call: &Call,
    next: impl Next<CuError>,
    copy: In<T>,
    stream: CUstream,
) -> CuResult {
    match bytes_on_device(call, copy) {
        Some(bytes) => moved(call, next, bytes, stream),
        None => passes(call, next, stream),
    }
}

/// `cuMemcpyWithAttributesAsync`.
pub(crate) fn attributed_async(
    call: &Call,
    next: impl Next<CuError>,
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
    _attributes: Out<c_void>,
    stream: CUstream,
) -> CuResult {
    any_async(call, next, to, from, bytes, stream)
}

/// `cuMemcpy3DWithAttributesAsync`.
pub(crate) fn described_attributed_async(
    call: &Call,
    next: impl Next<CuError>,
    copy: In<CUDA_MEMCPY3D_BATCH_OP>,
    _flags: u64,
    stream: CUstream,
) -> CuResult {
    described_async(call, next, copy, stream)
}

/// `cuMemcpyBatchAsync`, first form.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn batch_first(
    call: &Call,
    next: impl Next<CuError>,
    to: Entries<CUdeviceptr>,
    from: Entries<CUdeviceptr>,
    sizes: Entries<usize>,
    count: usize,
    attributes: Out<c_void>,
    indices: Entries<usize>,
    attribute_count: usize,
    _failed: Out<usize>,
    stream: CUstream,
) -> CuResult {
    batch(call, next, to, from, sizes, count, attributes, indices, attribute_count, stream)
}

/// `cuMemcpyBatchAsync`, second form.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn batch(
    call: &Call,
    next: impl Next<CuError>,
    to: Entries<CUdeviceptr>,
    from: Entries<CUdeviceptr>,
    sizes: Entries<usize>,
    count: usize,
    _attributes: Out<c_void>,
    _indices: Entries<usize>,
    _attribute_count: usize,
    stream: CUstream,
) -> CuResult {
    let (Some(to), Some(from), Some(sizes)) = (to.read(count), from.read(count), sizes.read(count))
    else {
        return Err(CuError::OUT_OF_MEMORY);
    };
    let operands =
        to.iter().zip(from.iter()).map(|(to, from)| [*to, *from].map(CopyOperand::Address));
    batched(call, next, operands, sizes.iter().map(|bytes| bytes.to_u64()), stream)
}

/// `cuMemcpy3DBatchAsync`, first form.
pub(crate) fn described_batch_first(
    call: &Call,
    next: impl Next<CuError>,
    count: usize,
    copies: Entries<CUDA_MEMCPY3D_BATCH_OP>,
    _failed: Out<usize>,
    flags: u64,
    stream: CUstream,
) -> CuResult {
    described_batch(call, next, count, copies, flags, stream)
}

/// `cuMemcpy3DBatchAsync`, second form.
pub(crate) fn described_batch(
    call: &Call,
    next: impl Next<CuError>,
    count: usize,
    copies: Entries<CUDA_MEMCPY3D_BATCH_OP>,
    _flags: u64,
    stream: CUstream,
) -> CuResult {
    let copies = copies.read(count).ok_or(CuError::OUT_OF_MEMORY)?;
    let operands = copies.iter().map(Described::operands);
    batched(call, next, operands, copies.iter().map(Described::bytes), stream)
}

/// Charged as a whole if one of its copies is within the device: no event shows which of them the engine for copies
/// takes beside the others.
fn batched(
    call: &Call,
    next: impl Next<CuError>,
    mut operands: impl Iterator<Item = [CopyOperand; 2]>,
    sizes: impl Iterator<Item = u64>,
    stream: CUstream,
) -> CuResult {
    let within =
        |sides: [CopyOperand; 2]| sides.into_iter().all(|operand| is_on_device(call, operand));
    if operands.any(within) {
        moved(call, next, sizes.fold(0, u64::saturating_add), stream)
    } else {
        passes(call, next, stream)
    }
}

/// What a described copy moves within the device; `None` if a side of it is the host.
fn bytes_on_device<T: Described>(call: &Call, copy: In<T>) -> Option<u64> {
    let copy = copy.get()?;
    let both = copy.operands().into_iter().all(|operand| is_on_device(call, operand));
    both.then(|| copy.bytes())
}

fn is_on_device(call: &Call, operand: CopyOperand) -> bool {
    match operand {
        CopyOperand::Device => true,
        CopyOperand::Host => false,
        CopyOperand::Address(address) => driver::cuda::is_on_device(call.driver, address),
    }
}

fn moved(call: &Call, next: impl Next<CuError>, bytes: u64, stream: CUstream) -> CuResult {
    launch::launch(call, Work::DeviceCopy { bytes }, StreamRef::named(call, stream), next)
}

/// One side is the host: free, but no time of the launches before it.
fn passes(call: &Call, next: impl Next<CuError>, stream: CUstream) -> CuResult {
    launch::fence(call, StreamRef::named(call, stream));
    next().map(drop)
}

/// The host has what it asked for, or the device what the host gave: what ended before can be seen.
fn waited_for(call: &Call, next: impl Next<CuError>) -> CuResult {
    launch::waiting(call, Scope::Something, || passes(call, next, CUstream::NULL))?;
    launch::synced(call, Scope::Something, launch::clock());
    Ok(())
}
