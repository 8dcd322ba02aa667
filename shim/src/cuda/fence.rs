//! What enters a stream and is no launch: waits, functions of the host, moves of managed memory, copies from and to the
//! host.
//!
//! The meter is notified of each before the driver is: the time that it takes in the stream does not belong to the
//! launches before it. None of these is ever held up or refused by the shim, and the driver's answer is returned as
//! it is. Copies that may be either are in [`copy`](super::copy).

use crate::call::Call;
use crate::driver::Next;
use crate::launch::{self, StreamRef};
use core::ffi::c_void;
use gpucap_abi::arg::{Entries, In, Out, Word};
use gpucap_abi::cuda::{
    CUarray, CUcontext, CUdevice, CUdeviceptr, CUevent, CUexternalSemaphore, CUmemLocation,
    CUstream, CuError, CuResult,
};

/// `cuStreamWaitEvent`.
pub(crate) fn wait_event(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _event: CUevent,
    _flags: u32,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuCtxWaitEvent`, `cuGreenCtxWaitEvent`. Which streams a green context has is not known: those of all contexts are marked.
pub(crate) fn context_waits(
    call: &Call,
    next: impl Next<CuError>,
    _context: CUcontext,
    _event: CUevent,
) -> CuResult {
    launch::fence_all(call);
    next().map(drop)
}

/// `cuStreamWaitValue32`, `cuStreamWaitValue64`.
pub(crate) fn wait_value(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _address: CUdeviceptr,
    _value: impl Word,
    _flags: u32,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuStreamBatchMemOp`: nearly all of them wait.
pub(crate) fn batch_operations(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _count: u32,
    _operations: Out<c_void>,
    _flags: u32,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuWaitExternalSemaphoresAsync`.
pub(crate) fn wait_semaphores(
    call: &Call,
    next: impl Next<CuError>,
    _semaphores: In<CUexternalSemaphore>,
    _values: In<c_void>,
    _count: u32,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuLaunchHostFunc`, first form.
pub(crate) fn host_function(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _function: Out<c_void>,
    _data: Out<c_void>,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuLaunchHostFunc`, second form.
pub(crate) fn host_function_with_mode(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _function: Out<c_void>,
    _data: Out<c_void>,
    _mode: u32,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuStreamAddCallback`.
pub(crate) fn callback(
    call: &Call,
    next: impl Next<CuError>,
    stream: CUstream,
    _callback: Out<c_void>,
    _data: Out<c_void>,
    _flags: u32,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuMemPrefetchAsync`, first form.
pub(crate) fn prefetch(
    call: &Call,
    next: impl Next<CuError>,
    _pointer: CUdeviceptr,
    _bytes: usize,
    _device: CUdevice,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuMemPrefetchAsync`, second form.
pub(crate) fn prefetch_to(
    call: &Call,
    next: impl Next<CuError>,
    _pointer: CUdeviceptr,
    _bytes: usize,
    _location: CUmemLocation,
    _flags: u32,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuMemPrefetchBatchAsync`, `cuMemDiscardAndPrefetchBatchAsync`.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn prefetch_batch(
    call: &Call,
    next: impl Next<CuError>,
    _pointers: Entries<CUdeviceptr>,
    _sizes: Entries<usize>,
    _count: usize,
    _locations: Entries<CUmemLocation>,
    _indices: Entries<usize>,
    _location_count: usize,
    _flags: u64,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuMemcpyHtoD`: the default stream has done all before it when it begins, and need not have done it when it returns.
pub(crate) fn copy_to_device(
    call: &Call,
    next: impl Next<CuError>,
    to: impl Word,
    from: In<c_void>,
    bytes: impl Word,
) -> CuResult {
    copy_to_device_async(call, next, to, from, bytes, CUstream::NULL)
}

/// `cuMemcpyHtoDAsync`.
pub(crate) fn copy_to_device_async(
    call: &Call,
    next: impl Next<CuError>,
    _to: impl Word,
    _from: In<c_void>,
    _bytes: impl Word,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuMemcpyDtoHAsync`.
pub(crate) fn copy_to_host_async(
    call: &Call,
    next: impl Next<CuError>,
    _to: Out<c_void>,
    _from: impl Word,
    _bytes: impl Word,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuMemcpyHtoA`, as `cuMemcpyHtoD`.
pub(crate) fn copy_to_array<S: Word>(
    call: &Call,
    next: impl Next<CuError>,
    to: CUarray,
    offset: S,
    from: In<c_void>,
    bytes: S,
) -> CuResult {
    copy_to_array_async(call, next, to, offset, from, bytes, CUstream::NULL)
}

/// `cuMemcpyHtoAAsync`.
pub(crate) fn copy_to_array_async<S: Word>(
    call: &Call,
    next: impl Next<CuError>,
    _to: CUarray,
    _offset: S,
    _from: In<c_void>,
    _bytes: S,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

/// `cuMemcpyAtoHAsync`.
pub(crate) fn copy_from_array_async<S: Word>(
    call: &Call,
    next: impl Next<CuError>,
    _to: Out<c_void>,
    _from: CUarray,
    _offset: S,
    _bytes: S,
    stream: CUstream,
) -> CuResult {
    enters(call, next, stream)
}

fn enters(call: &Call, next: impl Next<CuError>, stream: CUstream) -> CuResult {
    launch::fence(call, StreamRef::named(call, stream));
    next().map(drop)
}
