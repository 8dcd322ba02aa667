//! What an address is, and advice about managed memory.
//!
//! Managed memory does not migrate here, so advice changes nothing, and prefetching takes the time
//! of a copy wherever the memory should be.

use crate::arg::Out;
use crate::context::as_context;
use crate::copy::queue;
use crate::driver::{driver, state};
use crate::export::exports;
use crate::memory::Kind;
use crate::state::State;
use gpucap_abi::cuda::{CUdevice, CUdeviceptr, CUmemLocation, CUstream, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// An attribute of an address that the driver knows.
    fn cuPointerGetAttribute(value: *mut c_void, attribute: i32, pointer: CUdeviceptr)
        => attribute, driver, "cuPointerGetAttribute" @ 4000;
    /// Several; an address that the driver does not know has null attributes.
    fn cuPointerGetAttributes(count: u32, attributes: *mut i32, values: *mut *mut c_void,
        pointer: CUdeviceptr) => attributes, driver, "cuPointerGetAttributes" @ 7000;
    /// Accepted.
    fn cuPointerSetAttribute(value: *const c_void, attribute: i32, pointer: CUdeviceptr)
        => set_attribute, driver, "cuPointerSetAttribute" @ 6000;
    /// Accepted for managed memory.
    fn cuMemAdvise(pointer: CUdeviceptr, bytes: usize, advice: i32, device: CUdevice)
        => advise, driver, "cuMemAdvise" @ 8000;
    /// Accepted for managed memory.
    fn cuMemAdvise_v2(pointer: CUdeviceptr, bytes: usize, advice: i32, location: CUmemLocation)
        => advise_at, driver, "cuMemAdvise" @ 12020;
    /// Takes the time of a copy.
    fn cuMemPrefetchAsync(pointer: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream)
        => prefetch, context, "cuMemPrefetchAsync" @ 8000;
    /// Takes the time of a copy.
    fn cuMemPrefetchAsync_ptsz(pointer: CUdeviceptr, bytes: usize, device: CUdevice,
        stream: CUstream) => prefetch, context, "cuMemPrefetchAsync" @ 8000 ptsz;
    /// Takes the time of a copy.
    fn cuMemPrefetchAsync_v2(pointer: CUdeviceptr, bytes: usize, location: CUmemLocation,
        flags: u32, stream: CUstream) => prefetch_to, context, "cuMemPrefetchAsync" @ 12020;
    /// Takes the time of a copy.
    fn cuMemPrefetchAsync_v2_ptsz(pointer: CUdeviceptr, bytes: usize, location: CUmemLocation,
        flags: u32, stream: CUstream) => prefetch_to, context, "cuMemPrefetchAsync" @ 12020 ptsz;
    /// Takes the time of a copy of all of it.
    fn cuMemPrefetchBatchAsync(pointers: *mut CUdeviceptr, sizes: *mut usize, count: usize,
        locations: *mut CUmemLocation, indices: *mut usize, location_count: usize, flags: u64,
        stream: CUstream) => prefetch_batch, context, "cuMemPrefetchBatchAsync" @ 13000;
    /// Takes the time of a copy of all of it.
    fn cuMemPrefetchBatchAsync_ptsz(pointers: *mut CUdeviceptr, sizes: *mut usize, count: usize,
        locations: *mut CUmemLocation, indices: *mut usize, location_count: usize, flags: u64,
        stream: CUstream) => prefetch_batch, context, "cuMemPrefetchBatchAsync" @ 13000 ptsz;
    /// Takes the time of a copy of all of it.
    fn cuMemDiscardAndPrefetchBatchAsync(pointers: *mut CUdeviceptr, sizes: *mut usize, count: usize,
        locations: *mut CUmemLocation, indices: *mut usize, location_count: usize, flags: u64,
        stream: CUstream) => prefetch_batch, context, "cuMemDiscardAndPrefetchBatchAsync" @ 13000;
    /// Takes the time of a copy of all of it.
    fn cuMemDiscardAndPrefetchBatchAsync_ptsz(pointers: *mut CUdeviceptr, sizes: *mut usize, count: usize,
        locations: *mut CUmemLocation, indices: *mut usize, location_count: usize, flags: u64,
        stream: CUstream) => prefetch_batch, context, "cuMemDiscardAndPrefetchBatchAsync" @ 13000 ptsz;
}

/// What the driver knows about an address.
struct Known {
    start: u64,
    bytes: u64,
    /// 1 host, 2 device.
    memory_type: u32,
    context: u64,
    ordinal: i32,
    managed: bool,
    pool: u64,
    id: u64,
}

fn known(state: &State, address: u64) -> Option<Known> {
    if let Some((start, block)) = state.memory.around(address) {
        let units = driver().map(|driver| driver.units.as_slice()).unwrap_or_default();
        let ordinal = units.iter().position(|unit| *unit == block.unit);
        return Some(Known {
            start,
            bytes: block.bytes,
            memory_type: 2,
            context: block.context,
            ordinal: ordinal.and_then(|ordinal| i32::try_from(ordinal).ok()).unwrap_or(0),
            managed: block.kind == Kind::Managed,
            pool: if let Kind::Pool(pool) = block.kind { pool } else { 0 },
            id: block.id,
        });
    }
    let host = state.hosts.around(address).map(|range| (range, 1));
    let ((start, bytes), memory_type) =
        host.or_else(|| Some((state.vmm.mapping_around(address)?, 2)))?;
    Some(Known {
        start,
        bytes,
        memory_type,
        context: 0,
        ordinal: 0,
        managed: false,
        pool: 0,
        id: start,
    })
}

fn attribute(value: Out<c_void>, attribute: i32, pointer: CUdeviceptr) -> CuResult {
    let state = state()?;
    let known = known(&state, pointer).ok_or(CuError::INVALID_VALUE)?;
    answer(value, attribute, pointer, &known)
}

fn answer(value: Out<c_void>, attribute: i32, pointer: CUdeviceptr, known: &Known) -> CuResult {
    match attribute {
        1 => value.cast().put(as_context(known.context)),
        2 => value.cast().put(known.memory_type),
        3 => value.cast().put(pointer),
        // Only host memory has a host address, and managed memory.
        4 if known.memory_type == 1 || known.managed => value.cast().put(pointer),
        6 | 10 | 15 => value.cast().put(0u32),
        7 => value.cast().put(known.id),
        8 => value.cast().put(u32::from(known.managed)),
        9 => value.cast().put(known.ordinal),
        11 => value.cast().put(known.start),
        12 => value.cast().put(known.bytes),
        13 => value.cast().put(1u32),
        14 => value.cast().put(0u64),
        16 => value.cast().put(3u32),
        17 => value.cast().put(known.pool),
        _ => Err(CuError::INVALID_VALUE),
    }
}

fn attributes(
    count: u32,
    attributes: Out<i32>,
    values: Out<*mut c_void>,
    pointer: CUdeviceptr,
) -> CuResult {
    let state = state()?;
    let found = known(&state, pointer);
    for index in 0..usize::try_from(count).map_err(|_| CuError::INVALID_VALUE)? {
        let asked = attributes.at(index).get()?;
        // SAFETY: the array came from the caller of the export, who promises that its entries are
        // outputs.
        let value = unsafe { Out::<c_void>::new(values.at(index).get()?) };
        match &found {
            Some(known) => answer(value, asked, pointer, known)?,
            None if matches!(asked, 2 | 6 | 8 | 9 | 10 | 13 | 15 | 16) => value.cast().put(0u32)?,
            None => value.cast().put(0u64)?,
        }
    }
    Ok(())
}

fn set_attribute(
    _value: crate::arg::In<c_void>,
    _attribute: i32,
    pointer: CUdeviceptr,
) -> CuResult {
    known(&*state()?, pointer).map(drop).ok_or(CuError::INVALID_VALUE)
}

/// Whether an address is of managed memory.
pub(crate) fn is_managed(state: &State, pointer: CUdeviceptr) -> bool {
    known(state, pointer).is_some_and(|known| known.managed)
}

fn advise(pointer: CUdeviceptr, _bytes: usize, _advice: i32, _device: CUdevice) -> CuResult {
    let managed = is_managed(&*state()?, pointer);
    if managed { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

fn advise_at(pointer: CUdeviceptr, bytes: usize, advice: i32, location: CUmemLocation) -> CuResult {
    advise(pointer, bytes, advice, location.id)
}

fn prefetch(pointer: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream) -> CuResult {
    advise(pointer, bytes, 0, device)?;
    queue(stream, bytes as u64, false, || {})
}

fn prefetch_to(
    pointer: CUdeviceptr,
    bytes: usize,
    location: CUmemLocation,
    _flags: u32,
    stream: CUstream,
) -> CuResult {
    prefetch(pointer, bytes, location.id, stream)
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn prefetch_batch(
    pointers: Out<CUdeviceptr>,
    sizes: Out<usize>,
    count: usize,
    locations: Out<CUmemLocation>,
    indices: Out<usize>,
    location_count: usize,
    flags: u64,
    stream: CUstream,
) -> CuResult {
    if count == 0 || location_count == 0 || location_count > count || flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let mut bytes = 0;
    for index in 0..count {
        let size = sizes.at(index).get()?;
        advise(pointers.at(index).get()?, size, 0, 0)?;
        bytes += size as u64;
    }
    for index in 0..location_count {
        locations.at(index).get()?;
        indices.at(index).get()?;
    }
    queue(stream, bytes, false, || {})
}
