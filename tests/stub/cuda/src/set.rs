//! Memory filled with a value.
//!
//! Data is there when the call returns; the host does not wait for the stream, as on the real
//! driver.

use crate::copy::{Side, device_side, queue};
use crate::driver::state;
use crate::export::exports;
use crate::stream::PER_THREAD;
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{CUstream, CuError, CuResult};

exports! {
    /// Sets `count` elements.
    fn cuMemsetD8(dst: u32, value: u8, count: u32) => set, context, "cuMemsetD8" @ 2000;
    /// Sets `count` elements.
    fn cuMemsetD8_v2(dst: u64, value: u8, count: usize) => set, context, "cuMemsetD8" @ 3020;
    /// Sets `count` elements.
    fn cuMemsetD8_v2_ptds(dst: u64, value: u8, count: usize)
        => set_own, context, "cuMemsetD8" @ 7000 ptsz;
    /// Sets `count` elements.
    fn cuMemsetD8Async(dst: u64, value: u8, count: usize, stream: CUstream)
        => set_async, context, "cuMemsetD8Async" @ 3020;
    /// Sets `count` elements.
    fn cuMemsetD8Async_ptsz(dst: u64, value: u8, count: usize, stream: CUstream)
        => set_async, context, "cuMemsetD8Async" @ 7000 ptsz;
    /// Sets rows.
    fn cuMemsetD2D8(dst: u32, pitch: u32, value: u8, width: u32, height: u32)
        => set_rows, context, "cuMemsetD2D8" @ 2000;
    /// Sets rows.
    fn cuMemsetD2D8_v2(dst: u64, pitch: usize, value: u8, width: usize, height: usize)
        => set_rows, context, "cuMemsetD2D8" @ 3020;
    /// Sets rows.
    fn cuMemsetD2D8_v2_ptds(dst: u64, pitch: usize, value: u8, width: usize, height: usize)
        => set_rows_own, context, "cuMemsetD2D8" @ 7000 ptsz;
    /// Sets rows.
    fn cuMemsetD2D8Async(dst: u64, pitch: usize, value: u8, width: usize, height: usize,
        stream: CUstream) => set_rows_async, context, "cuMemsetD2D8Async" @ 3020;
    /// Sets rows.
    fn cuMemsetD2D8Async_ptsz(dst: u64, pitch: usize, value: u8, width: usize, height: usize,
        stream: CUstream) => set_rows_async, context, "cuMemsetD2D8Async" @ 7000 ptsz;
    /// Sets `count` elements.
    fn cuMemsetD16(dst: u32, value: u16, count: u32) => set, context, "cuMemsetD16" @ 2000;
    /// Sets `count` elements.
    fn cuMemsetD16_v2(dst: u64, value: u16, count: usize) => set, context, "cuMemsetD16" @ 3020;
    /// Sets `count` elements.
    fn cuMemsetD16_v2_ptds(dst: u64, value: u16, count: usize)
        => set_own, context, "cuMemsetD16" @ 7000 ptsz;
    /// Sets `count` elements.
    fn cuMemsetD16Async(dst: u64, value: u16, count: usize, stream: CUstream)
        => set_async, context, "cuMemsetD16Async" @ 3020;
    /// Sets `count` elements.
    fn cuMemsetD16Async_ptsz(dst: u64, value: u16, count: usize, stream: CUstream)
        => set_async, context, "cuMemsetD16Async" @ 7000 ptsz;
    /// Sets rows.
    fn cuMemsetD2D16(dst: u32, pitch: u32, value: u16, width: u32, height: u32)
        => set_rows, context, "cuMemsetD2D16" @ 2000;
    /// Sets rows.
    fn cuMemsetD2D16_v2(dst: u64, pitch: usize, value: u16, width: usize, height: usize)
        => set_rows, context, "cuMemsetD2D16" @ 3020;
    /// Sets rows.
    fn cuMemsetD2D16_v2_ptds(dst: u64, pitch: usize, value: u16, width: usize, height: usize)
        => set_rows_own, context, "cuMemsetD2D16" @ 7000 ptsz;
    /// Sets rows.
    fn cuMemsetD2D16Async(dst: u64, pitch: usize, value: u16, width: usize, height: usize,
        stream: CUstream) => set_rows_async, context, "cuMemsetD2D16Async" @ 3020;
    /// Sets rows.
    fn cuMemsetD2D16Async_ptsz(dst: u64, pitch: usize, value: u16, width: usize, height: usize,
        stream: CUstream) => set_rows_async, context, "cuMemsetD2D16Async" @ 7000 ptsz;
    /// Sets `count` elements.
    fn cuMemsetD32(dst: u32, value: u32, count: u32) => set, context, "cuMemsetD32" @ 2000;
    /// Sets `count` elements.
    fn cuMemsetD32_v2(dst: u64, value: u32, count: usize) => set, context, "cuMemsetD32" @ 3020;
    /// Sets `count` elements.
    fn cuMemsetD32_v2_ptds(dst: u64, value: u32, count: usize)
        => set_own, context, "cuMemsetD32" @ 7000 ptsz;
    /// Sets `count` elements.
    fn cuMemsetD32Async(dst: u64, value: u32, count: usize, stream: CUstream)
        => set_async, context, "cuMemsetD32Async" @ 3020;
    /// Sets `count` elements.
    fn cuMemsetD32Async_ptsz(dst: u64, value: u32, count: usize, stream: CUstream)
        => set_async, context, "cuMemsetD32Async" @ 7000 ptsz;
    /// Sets rows.
    fn cuMemsetD2D32(dst: u32, pitch: u32, value: u32, width: u32, height: u32)
        => set_rows, context, "cuMemsetD2D32" @ 2000;
    /// Sets rows.
    fn cuMemsetD2D32_v2(dst: u64, pitch: usize, value: u32, width: usize, height: usize)
        => set_rows, context, "cuMemsetD2D32" @ 3020;
    /// Sets rows.
    fn cuMemsetD2D32_v2_ptds(dst: u64, pitch: usize, value: u32, width: usize, height: usize)
        => set_rows_own, context, "cuMemsetD2D32" @ 7000 ptsz;
    /// Sets rows.
    fn cuMemsetD2D32Async(dst: u64, pitch: usize, value: u32, width: usize, height: usize,
        stream: CUstream) => set_rows_async, context, "cuMemsetD2D32Async" @ 3020;
    /// Sets rows.
    fn cuMemsetD2D32Async_ptsz(dst: u64, pitch: usize, value: u32, width: usize, height: usize,
        stream: CUstream) => set_rows_async, context, "cuMemsetD2D32Async" @ 7000 ptsz;
}

/// A value of 1, 2 or 4 bytes.
trait Element: Copy {
    /// Its bytes.
    fn bytes(self) -> Vec<u8>;
}

macro_rules! elements {
    ($($type:ty),*) => {$(
        impl Element for $type {
            fn bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
        }
    )*};
}
elements!(u8, u16, u32);

/// Fills `height` rows of `width` elements, `pitch` bytes apart.
fn fill(
    dst: u64,
    pitch: u64,
    value: impl Element,
    (width, height): (u64, u64),
    stream: CUstream,
) -> CuResult {
    let value = value.bytes();
    let row = width.checked_mul(value.len() as u64).ok_or(CuError::INVALID_VALUE)?;
    let before_last = pitch.checked_mul(height.saturating_sub(1)).ok_or(CuError::INVALID_VALUE)?;
    let all = before_last.checked_add(row).ok_or(CuError::INVALID_VALUE)?;
    let side = device_side(dst, all)?;
    queue(stream, row * height, false, || {
        let Side::Real(start) = side else { return };
        for line in 0..height {
            write(start + line * pitch, row, &value);
        }
    })
}

/// Zeros of this many bytes are what a range without memory behind it reads as.
const MANY: u64 = 1 << 20;

/// Writes a value over and over; all of the range was checked to lie in memory of the driver.
fn write(start: u64, bytes: u64, value: &[u8]) {
    let (mut start, mut bytes) = (start, bytes);
    if bytes >= MANY
        && value.iter().all(|byte| *byte == 0)
        && let Ok(mut state) = state()
        && let Some(pages) = state.memory.arena.wipe(start, bytes)
    {
        drop(state);
        repeat(start, pages.start - start, value);
        (start, bytes) = (pages.end, start + bytes - pages.end);
    }
    repeat(start, bytes, value);
}

fn repeat(start: u64, bytes: u64, value: &[u8]) {
    let Ok(length) = usize::try_from(bytes) else { return };
    // SAFETY: the range was checked to lie in memory of the driver.
    let range = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, length) };
    if let [first, rest @ ..] = value
        && rest.iter().all(|byte| byte == first)
    {
        range.fill(*first);
    } else {
        range.chunks_exact_mut(value.len()).for_each(|each| each.copy_from_slice(value));
    }
}

fn set<A: Word, S: Word>(dst: A, value: impl Element, count: S) -> CuResult {
    fill(dst.to_u64(), 0, value, (count.to_u64(), 1), CUstream::NULL)
}

fn set_own<A: Word, S: Word>(dst: A, value: impl Element, count: S) -> CuResult {
    fill(dst.to_u64(), 0, value, (count.to_u64(), 1), PER_THREAD)
}

fn set_async(dst: u64, value: impl Element, count: usize, stream: CUstream) -> CuResult {
    fill(dst, 0, value, (count as u64, 1), stream)
}

fn set_rows<A: Word, S: Word>(
    dst: A,
    pitch: S,
    value: impl Element,
    width: S,
    height: S,
) -> CuResult {
    fill(dst.to_u64(), pitch.to_u64(), value, (width.to_u64(), height.to_u64()), CUstream::NULL)
}

fn set_rows_own<A: Word, S: Word>(
    dst: A,
    pitch: S,
    value: impl Element,
    width: S,
    height: S,
) -> CuResult {
    fill(dst.to_u64(), pitch.to_u64(), value, (width.to_u64(), height.to_u64()), PER_THREAD)
}

fn set_rows_async(
    dst: u64,
    pitch: usize,
    value: impl Element,
    width: usize,
    height: usize,
    stream: CUstream,
) -> CuResult {
    fill(dst, pitch as u64, value, (width as u64, height as u64), stream)
}
