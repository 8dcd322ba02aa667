//! Copies between addresses.
//!
//! Data moves when the call is made, not when the stream reaches the copy; a correct program cannot
//! tell. The copy occupies the engine at `STUB_GPU_COPY_BYTES_PER_US`. Where there is no memory
//! behind an address ([`crate::arena`]), the copy is checked and moves nothing. The first forms
//! wait for their copy; the `Async` ones do not.

use crate::arg::{In, Out};
use crate::capture::{self, Operation};
use crate::driver::state;
use crate::export::exports;
use crate::stream::{PER_THREAD, push};
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{CUcontext, CUstream, CuError, CuResult};
use gpucap_stub_device::settings;
use std::ffi::c_void;

exports! {
    /// Addresses of either side.
    fn cuMemcpy(dst: u64, src: u64, bytes: usize) => any, context, "cuMemcpy" @ 4000;
    /// Addresses of either side.
    fn cuMemcpy_ptds(dst: u64, src: u64, bytes: usize) => any_own, context, "cuMemcpy" @ 7000 ptsz;
    /// Addresses of either side.
    fn cuMemcpyAsync(dst: u64, src: u64, bytes: usize, stream: CUstream)
        => any_async, context, "cuMemcpyAsync" @ 4000;
    /// Addresses of either side.
    fn cuMemcpyAsync_ptsz(dst: u64, src: u64, bytes: usize, stream: CUstream)
        => any_async, context, "cuMemcpyAsync" @ 7000 ptsz;
    /// Data moves before the call returns.
    fn cuMemcpyHtoD(dst: u32, src: *const c_void, bytes: u32)
        => to_device, context, "cuMemcpyHtoD" @ 2000;
    /// Data moves before the call returns.
    fn cuMemcpyHtoD_v2(dst: u64, src: *const c_void, bytes: usize)
        => to_device, context, "cuMemcpyHtoD" @ 3020;
    /// Data moves before the call returns.
    fn cuMemcpyHtoD_v2_ptds(dst: u64, src: *const c_void, bytes: usize)
        => to_device_own, context, "cuMemcpyHtoD" @ 7000 ptsz;
    /// Data moves before the call returns.
    fn cuMemcpyHtoDAsync(dst: u32, src: *const c_void, bytes: u32, stream: CUstream)
        => to_device_async, context, "cuMemcpyHtoDAsync" @ 2000;
    /// Data moves before the call returns.
    fn cuMemcpyHtoDAsync_v2(dst: u64, src: *const c_void, bytes: usize, stream: CUstream)
        => to_device_async, context, "cuMemcpyHtoDAsync" @ 3020;
    /// Data moves before the call returns.
    fn cuMemcpyHtoDAsync_v2_ptsz(dst: u64, src: *const c_void, bytes: usize, stream: CUstream)
        => to_device_async, context, "cuMemcpyHtoDAsync" @ 7000 ptsz;
    /// Data moves before the call returns.
    fn cuMemcpyDtoH(dst: *mut c_void, src: u32, bytes: u32)
        => to_host, context, "cuMemcpyDtoH" @ 2000;
    /// Data moves before the call returns.
    fn cuMemcpyDtoH_v2(dst: *mut c_void, src: u64, bytes: usize)
        => to_host, context, "cuMemcpyDtoH" @ 3020;
    /// Data moves before the call returns.
    fn cuMemcpyDtoH_v2_ptds(dst: *mut c_void, src: u64, bytes: usize)
        => to_host_own, context, "cuMemcpyDtoH" @ 7000 ptsz;
    /// Data moves before the call returns.
    fn cuMemcpyDtoHAsync(dst: *mut c_void, src: u32, bytes: u32, stream: CUstream)
        => to_host_async, context, "cuMemcpyDtoHAsync" @ 2000;
    /// Data moves before the call returns.
    fn cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: u64, bytes: usize, stream: CUstream)
        => to_host_async, context, "cuMemcpyDtoHAsync" @ 3020;
    /// Data moves before the call returns.
    fn cuMemcpyDtoHAsync_v2_ptsz(dst: *mut c_void, src: u64, bytes: usize, stream: CUstream)
        => to_host_async, context, "cuMemcpyDtoHAsync" @ 7000 ptsz;
    /// Data moves before the call returns.
    fn cuMemcpyDtoD(dst: u32, src: u32, bytes: u32) => on_device, context, "cuMemcpyDtoD" @ 2000;
    /// Data moves before the call returns.
    fn cuMemcpyDtoD_v2(dst: u64, src: u64, bytes: usize)
        => on_device, context, "cuMemcpyDtoD" @ 3020;
    /// Data moves before the call returns.
    fn cuMemcpyDtoD_v2_ptds(dst: u64, src: u64, bytes: usize)
        => on_device_own, context, "cuMemcpyDtoD" @ 7000 ptsz;
    /// Data moves before the call returns.
    fn cuMemcpyDtoDAsync(dst: u32, src: u32, bytes: u32, stream: CUstream)
        => on_device_async, context, "cuMemcpyDtoDAsync" @ 3000;
    /// Data moves before the call returns.
    fn cuMemcpyDtoDAsync_v2(dst: u64, src: u64, bytes: usize, stream: CUstream)
        => on_device_async, context, "cuMemcpyDtoDAsync" @ 3020;
    /// Data moves before the call returns.
    fn cuMemcpyDtoDAsync_v2_ptsz(dst: u64, src: u64, bytes: usize, stream: CUstream)
        => on_device_async, context, "cuMemcpyDtoDAsync" @ 7000 ptsz;
    /// Between contexts.
    fn cuMemcpyPeer(dst: u64, to: CUcontext, src: u64, from: CUcontext, bytes: usize)
        => peer, context, "cuMemcpyPeer" @ 4000;
    /// Between contexts.
    fn cuMemcpyPeer_ptds(dst: u64, to: CUcontext, src: u64, from: CUcontext, bytes: usize)
        => peer_own, context, "cuMemcpyPeer" @ 7000 ptsz;
    /// Between contexts.
    fn cuMemcpyPeerAsync(dst: u64, to: CUcontext, src: u64, from: CUcontext, bytes: usize,
        stream: CUstream) => peer_async, context, "cuMemcpyPeerAsync" @ 4000;
    /// Between contexts.
    fn cuMemcpyPeerAsync_ptsz(dst: u64, to: CUcontext, src: u64, from: CUcontext, bytes: usize,
        stream: CUstream) => peer_async, context, "cuMemcpyPeerAsync" @ 7000 ptsz;
}

/// Where the bytes of a side of a copy are.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    /// Memory that can be read and written.
    Real(u64),
    /// An address without memory behind it.
    Hollow,
}

/// A device address (or pinned host memory) with `bytes` bytes behind it; an error if it is none.
pub(crate) fn device_side(address: u64, bytes: u64) -> Result<Side, CuError> {
    let mut state = state()?;
    let inside = |(start, size): (u64, u64)| address - start + bytes <= size;
    if state.hosts.around(address).is_some_and(inside) {
        return Ok(Side::Real(address));
    }
    if !state.range_around(address).is_some_and(inside) {
        return Err(CuError::INVALID_VALUE);
    }
    state.memory.touch(address);
    Ok(if state.memory.arena.is_real(address) { Side::Real(address) } else { Side::Hollow })
}

/// A device address if it is one, else the host's.
fn any_side(address: u64, bytes: u64) -> Side {
    device_side(address, bytes).unwrap_or(Side::Real(address))
}

/// Moves bytes from one side to the other.
fn transfer(dst: Side, src: Side, bytes: u64) {
    let (Side::Real(dst), Side::Real(src)) = (dst, src) else { return };
    let Ok(bytes) = usize::try_from(bytes) else { return };
    // SAFETY: device sides were checked to be memory of that size; for host sides the program
    // promises it, as it must to the real driver. Overlap is allowed.
    unsafe { std::ptr::copy(src as *const u8, dst as *mut u8, bytes) };
}

/// Takes the place of a copy of `bytes` bytes in a stream; `move_data` moves them unless the stream
/// is capturing.
pub(crate) fn queue(
    stream: CUstream,
    bytes: u64,
    wait: bool,
    move_data: impl FnOnce(),
) -> CuResult {
    let duration = (bytes * 1000).checked_div(settings().copy_bytes_per_us).unwrap_or(0);
    if capture::take(stream, Operation::Work(duration))? {
        return Ok(());
    }
    let point = push(stream, duration)?;
    move_data();
    if wait {
        point.wait();
    }
    Ok(())
}

fn copy(dst: Side, src: Side, bytes: u64, stream: CUstream, wait: bool) -> CuResult {
    queue(stream, bytes, wait, || transfer(dst, src, bytes))
}

fn any(dst: u64, src: u64, bytes: usize) -> CuResult {
    let size = bytes as u64;
    copy(any_side(dst, size), any_side(src, size), size, CUstream::NULL, true)
}

fn any_own(dst: u64, src: u64, bytes: usize) -> CuResult {
    let size = bytes as u64;
    copy(any_side(dst, size), any_side(src, size), size, PER_THREAD, true)
}

fn any_async(dst: u64, src: u64, bytes: usize, stream: CUstream) -> CuResult {
    let size = bytes as u64;
    copy(any_side(dst, size), any_side(src, size), size, stream, false)
}

fn host_in(src: In<c_void>, bytes: u64) -> Result<Side, CuError> {
    if src.is_null() && bytes != 0 {
        Err(CuError::INVALID_VALUE)
    } else {
        Ok(Side::Real(src.address()))
    }
}

fn host_out(dst: Out<c_void>, bytes: u64) -> Result<Side, CuError> {
    if dst.is_null() && bytes != 0 {
        Err(CuError::INVALID_VALUE)
    } else {
        Ok(Side::Real(dst.address()))
    }
}

fn to_device_in<A: Word, S: Word>(
    dst: A,
    src: In<c_void>,
    bytes: S,
    stream: CUstream,
    wait: bool,
) -> CuResult {
    let size = bytes.to_u64();
    copy(device_side(dst.to_u64(), size)?, host_in(src, size)?, size, stream, wait)
}

fn to_device<A: Word, S: Word>(dst: A, src: In<c_void>, bytes: S) -> CuResult {
    to_device_in(dst, src, bytes, CUstream::NULL, true)
}

fn to_device_own<A: Word, S: Word>(dst: A, src: In<c_void>, bytes: S) -> CuResult {
    to_device_in(dst, src, bytes, PER_THREAD, true)
}

fn to_device_async<A: Word, S: Word>(
    dst: A,
    src: In<c_void>,
    bytes: S,
    stream: CUstream,
) -> CuResult {
    to_device_in(dst, src, bytes, stream, false)
}

fn to_host_in<A: Word, S: Word>(
    dst: Out<c_void>,
    src: A,
    bytes: S,
    stream: CUstream,
    wait: bool,
) -> CuResult {
    let size = bytes.to_u64();
    copy(host_out(dst, size)?, device_side(src.to_u64(), size)?, size, stream, wait)
}

fn to_host<A: Word, S: Word>(dst: Out<c_void>, src: A, bytes: S) -> CuResult {
    to_host_in(dst, src, bytes, CUstream::NULL, true)
}

fn to_host_own<A: Word, S: Word>(dst: Out<c_void>, src: A, bytes: S) -> CuResult {
    to_host_in(dst, src, bytes, PER_THREAD, true)
}

fn to_host_async<A: Word, S: Word>(
    dst: Out<c_void>,
    src: A,
    bytes: S,
    stream: CUstream,
) -> CuResult {
    to_host_in(dst, src, bytes, stream, false)
}

fn on_device_in(dst: u64, src: u64, size: u64, stream: CUstream) -> CuResult {
    // Copies on the device do not make the host wait.
    copy(device_side(dst, size)?, device_side(src, size)?, size, stream, false)
}

fn on_device<A: Word, S: Word>(dst: A, src: A, bytes: S) -> CuResult {
    on_device_in(dst.to_u64(), src.to_u64(), bytes.to_u64(), CUstream::NULL)
}

fn on_device_own<A: Word, S: Word>(dst: A, src: A, bytes: S) -> CuResult {
    on_device_in(dst.to_u64(), src.to_u64(), bytes.to_u64(), PER_THREAD)
}

fn on_device_async<A: Word, S: Word>(dst: A, src: A, bytes: S, stream: CUstream) -> CuResult {
    on_device_in(dst.to_u64(), src.to_u64(), bytes.to_u64(), stream)
}

fn peer(dst: u64, _to: CUcontext, src: u64, _from: CUcontext, bytes: usize) -> CuResult {
    on_device_in(dst, src, bytes as u64, CUstream::NULL)
}

fn peer_own(dst: u64, _to: CUcontext, src: u64, _from: CUcontext, bytes: usize) -> CuResult {
    on_device_in(dst, src, bytes as u64, PER_THREAD)
}

fn peer_async(
    dst: u64,
    _to: CUcontext,
    src: u64,
    _from: CUcontext,
    bytes: usize,
    stream: CUstream,
) -> CuResult {
    on_device_in(dst, src, bytes as u64, stream)
}

/// Moves one entry of a batch.
pub(crate) fn move_one(dst: u64, src: u64, bytes: u64, stream: CUstream) -> CuResult {
    copy(any_side(dst, bytes), any_side(src, bytes), bytes, stream, false)
}
