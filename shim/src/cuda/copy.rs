//! Memory that is set or copied on the device: it takes the multiprocessors' time, as a kernel does.
//!
//! Copies to and from the host are not here: they have engines of their own.

use crate::call::Call;
use crate::hooks::Next;
use crate::throttle::{self, StreamRef, Work};
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{CUstream, CuError, CuResult};

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
    throttle::launch(call, Work::Memset { bytes }, StreamRef::named(call, stream), next)
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
    throttle::launch(call, Work::Memset { bytes }, StreamRef::named(call, stream), next)
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
    let work = Work::DeviceCopy { bytes: bytes.to_u64() };
    throttle::launch(call, work, StreamRef::named(call, stream), next)
}
