//! Copies whose shape a structure describes, and copies of arrays.
//!
//! Shapes and arrays are not simulated: the call is checked for what is null, takes its place in
//! the stream, and moves nothing.

use crate::arg::{In, Out};
use crate::copy::{device_side, queue};
use crate::export::exports;
use crate::stream::PER_THREAD;
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{
    CUDA_MEMCPY2D, CUDA_MEMCPY2D_v1, CUDA_MEMCPY3D, CUDA_MEMCPY3D_v1, CUarray, CUstream, CuResult,
};
use std::ffi::c_void;

exports! {
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2D(copy: *const CUDA_MEMCPY2D_v1) => described, context, "cuMemcpy2D" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D) => described, context, "cuMemcpy2D" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2D_v2_ptds(copy: *const CUDA_MEMCPY2D) => described_own, context, "cuMemcpy2D" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2DUnaligned(copy: *const CUDA_MEMCPY2D_v1) => described, context, "cuMemcpy2DUnaligned" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D)
        => described, context, "cuMemcpy2DUnaligned" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2DUnaligned_v2_ptds(copy: *const CUDA_MEMCPY2D)
        => described_own, context, "cuMemcpy2DUnaligned" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3D(copy: *const CUDA_MEMCPY3D_v1) => described, context, "cuMemcpy3D" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D) => described, context, "cuMemcpy3D" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3D_v2_ptds(copy: *const CUDA_MEMCPY3D) => described_own, context, "cuMemcpy3D" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2DAsync(copy: *const CUDA_MEMCPY2D_v1, stream: CUstream)
        => described_async, context, "cuMemcpy2DAsync" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream)
        => described_async, context, "cuMemcpy2DAsync" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy2DAsync_v2_ptsz(copy: *const CUDA_MEMCPY2D, stream: CUstream)
        => described_async, context, "cuMemcpy2DAsync" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DAsync(copy: *const CUDA_MEMCPY3D_v1, stream: CUstream)
        => described_async, context, "cuMemcpy3DAsync" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream)
        => described_async, context, "cuMemcpy3DAsync" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DAsync_v2_ptsz(copy: *const CUDA_MEMCPY3D, stream: CUstream)
        => described_async, context, "cuMemcpy3DAsync" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DPeer(copy: *const CUDA_MEMCPY3D) => described, context, "cuMemcpy3DPeer" @ 4000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DPeer_ptds(copy: *const CUDA_MEMCPY3D)
        => described_own, context, "cuMemcpy3DPeer" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D, stream: CUstream)
        => described_async, context, "cuMemcpy3DPeerAsync" @ 4000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DPeerAsync_ptsz(copy: *const CUDA_MEMCPY3D, stream: CUstream)
        => described_async, context, "cuMemcpy3DPeerAsync" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoH(dst: *mut c_void, array: CUarray, offset: u32, bytes: u32)
        => array_to_host, context, "cuMemcpyAtoH" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoH_v2(dst: *mut c_void, array: CUarray, offset: usize, bytes: usize)
        => array_to_host, context, "cuMemcpyAtoH" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoH_v2_ptds(dst: *mut c_void, array: CUarray, offset: usize, bytes: usize)
        => array_to_host_own, context, "cuMemcpyAtoH" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoHAsync(dst: *mut c_void, array: CUarray, offset: u32, bytes: u32,
        stream: CUstream) => array_to_host_async, context, "cuMemcpyAtoHAsync" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoHAsync_v2(dst: *mut c_void, array: CUarray, offset: usize, bytes: usize,
        stream: CUstream) => array_to_host_async, context, "cuMemcpyAtoHAsync" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoHAsync_v2_ptsz(dst: *mut c_void, array: CUarray, offset: usize, bytes: usize,
        stream: CUstream) => array_to_host_async, context, "cuMemcpyAtoHAsync" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyHtoA(array: CUarray, offset: u32, src: *const c_void, bytes: u32)
        => host_to_array, context, "cuMemcpyHtoA" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyHtoA_v2(array: CUarray, offset: usize, src: *const c_void, bytes: usize)
        => host_to_array, context, "cuMemcpyHtoA" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyHtoA_v2_ptds(array: CUarray, offset: usize, src: *const c_void, bytes: usize)
        => host_to_array_own, context, "cuMemcpyHtoA" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyHtoAAsync(array: CUarray, offset: u32, src: *const c_void, bytes: u32,
        stream: CUstream) => host_to_array_async, context, "cuMemcpyHtoAAsync" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyHtoAAsync_v2(array: CUarray, offset: usize, src: *const c_void, bytes: usize,
        stream: CUstream) => host_to_array_async, context, "cuMemcpyHtoAAsync" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyHtoAAsync_v2_ptsz(array: CUarray, offset: usize, src: *const c_void, bytes: usize,
        stream: CUstream) => host_to_array_async, context, "cuMemcpyHtoAAsync" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoD(dst: u32, array: CUarray, offset: u32, bytes: u32)
        => array_to_device, context, "cuMemcpyAtoD" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoD_v2(dst: u64, array: CUarray, offset: usize, bytes: usize)
        => array_to_device, context, "cuMemcpyAtoD" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoD_v2_ptds(dst: u64, array: CUarray, offset: usize, bytes: usize)
        => array_to_device_own, context, "cuMemcpyAtoD" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyDtoA(array: CUarray, offset: u32, src: u32, bytes: u32)
        => device_to_array, context, "cuMemcpyDtoA" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyDtoA_v2(array: CUarray, offset: usize, src: u64, bytes: usize)
        => device_to_array, context, "cuMemcpyDtoA" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyDtoA_v2_ptds(array: CUarray, offset: usize, src: u64, bytes: usize)
        => device_to_array_own, context, "cuMemcpyDtoA" @ 7000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoA(dst: CUarray, at: u32, src: CUarray, from: u32, bytes: u32)
        => array_to_array, context, "cuMemcpyAtoA" @ 2000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoA_v2(dst: CUarray, at: usize, src: CUarray, from: usize, bytes: usize)
        => array_to_array, context, "cuMemcpyAtoA" @ 3020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpyAtoA_v2_ptds(dst: CUarray, at: usize, src: CUarray, from: usize, bytes: usize)
        => array_to_array_own, context, "cuMemcpyAtoA" @ 7000 ptsz;
}

fn place(stream: CUstream, bytes: u64, wait: bool) -> CuResult {
    queue(stream, bytes, wait, || ())
}

/// A structure that says how much it moves.
trait Described: Copy {
    fn bytes(&self) -> u64;
}

macro_rules! described {
    ($($type:ty: $($side:ident)*;)*) => {
        $(impl Described for $type {
            fn bytes(&self) -> u64 {
                [$(self.$side as u64),*].into_iter().product()
            }
        })*
    };
}

described! {
    CUDA_MEMCPY2D: WidthInBytes Height;
    CUDA_MEMCPY2D_v1: WidthInBytes Height;
    CUDA_MEMCPY3D: WidthInBytes Height Depth;
    CUDA_MEMCPY3D_v1: WidthInBytes Height Depth;
}

fn described_in(copy: In<impl Described>, stream: CUstream, wait: bool) -> CuResult {
    place(stream, copy.get()?.bytes(), wait)
}

fn described(copy: In<impl Described>) -> CuResult {
    described_in(copy, CUstream::NULL, true)
}

fn described_own(copy: In<impl Described>) -> CuResult {
    described_in(copy, PER_THREAD, true)
}

fn described_async(copy: In<impl Described>, stream: CUstream) -> CuResult {
    described_in(copy, stream, false)
}

fn of_array(array: CUarray, bytes: impl Word, stream: CUstream, wait: bool) -> CuResult {
    crate::array::exists(array)?;
    place(stream, bytes.to_u64(), wait)
}

fn array_to_host<S: Word>(dst: Out<c_void>, array: CUarray, _offset: S, bytes: S) -> CuResult {
    dst.required()?;
    of_array(array, bytes, CUstream::NULL, true)
}

fn array_to_host_own<S: Word>(dst: Out<c_void>, array: CUarray, _offset: S, bytes: S) -> CuResult {
    dst.required()?;
    of_array(array, bytes, PER_THREAD, true)
}

fn array_to_host_async<S: Word>(
    dst: Out<c_void>,
    array: CUarray,
    _offset: S,
    bytes: S,
    stream: CUstream,
) -> CuResult {
    dst.required()?;
    of_array(array, bytes, stream, false)
}

fn host_to_array<S: Word>(array: CUarray, _offset: S, _src: In<c_void>, bytes: S) -> CuResult {
    of_array(array, bytes, CUstream::NULL, true)
}

fn host_to_array_own<S: Word>(array: CUarray, _offset: S, _src: In<c_void>, bytes: S) -> CuResult {
    of_array(array, bytes, PER_THREAD, true)
}

fn host_to_array_async<S: Word>(
    array: CUarray,
    _offset: S,
    _src: In<c_void>,
    bytes: S,
    stream: CUstream,
) -> CuResult {
    of_array(array, bytes, stream, false)
}

fn array_to_device<A: Word, S: Word>(dst: A, array: CUarray, _offset: S, bytes: S) -> CuResult {
    device_side(dst.to_u64(), bytes.to_u64())?;
    of_array(array, bytes, CUstream::NULL, false)
}

fn array_to_device_own<A: Word, S: Word>(dst: A, array: CUarray, _offset: S, bytes: S) -> CuResult {
    device_side(dst.to_u64(), bytes.to_u64())?;
    of_array(array, bytes, PER_THREAD, false)
}

fn device_to_array<A: Word, S: Word>(array: CUarray, _offset: S, src: A, bytes: S) -> CuResult {
    device_side(src.to_u64(), bytes.to_u64())?;
    of_array(array, bytes, CUstream::NULL, false)
}

fn device_to_array_own<A: Word, S: Word>(array: CUarray, _offset: S, src: A, bytes: S) -> CuResult {
    device_side(src.to_u64(), bytes.to_u64())?;
    of_array(array, bytes, PER_THREAD, false)
}

fn array_to_array<S: Word>(dst: CUarray, _at: S, src: CUarray, _from: S, bytes: S) -> CuResult {
    crate::array::exists(src)?;
    of_array(dst, bytes, CUstream::NULL, false)
}

fn array_to_array_own<S: Word>(dst: CUarray, _at: S, src: CUarray, _from: S, bytes: S) -> CuResult {
    crate::array::exists(src)?;
    of_array(dst, bytes, PER_THREAD, false)
}
