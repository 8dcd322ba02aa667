//! Tensor maps: descriptions of tensors in memory that kernels copy by.
//!
//! A map is 128 bytes of the client's memory at a multiple of 64, and only the card knows what
//! they mean; here they hold the address and nothing else. What the driver refuses is refused: a
//! rank, an address or a null that cannot be.

use crate::arg::{In, Out};
use crate::export::exports;
use gpucap_abi::cuda::{CuError, CuResult};
use std::ffi::c_void;

exports! {
    fn cuTensorMapEncodeTiled(map: *mut Map, kind: i32, rank: u32, address: *mut c_void,
        sizes: *const u64, strides: *const u64, box_sizes: *const u32, steps: *const u32,
        interleave: i32, swizzle: i32, promotion: i32, fill: i32)
        => tiled, driver, "cuTensorMapEncodeTiled" @ 12000;
    fn cuTensorMapEncodeIm2col(map: *mut Map, kind: i32, rank: u32, address: *mut c_void,
        sizes: *const u64, strides: *const u64, lower: *const i32, upper: *const i32,
        channels: u32, pixels: u32, steps: *const u32, interleave: i32, swizzle: i32,
        promotion: i32, fill: i32) => columns, driver, "cuTensorMapEncodeIm2col" @ 12000;
    fn cuTensorMapEncodeIm2colWide(map: *mut Map, kind: i32, rank: u32, address: *mut c_void,
        sizes: *const u64, strides: *const u64, lower: i32, upper: i32, channels: u32,
        pixels: u32, steps: *const u32, interleave: i32, mode: i32, swizzle: i32, promotion: i32,
        fill: i32) => wide_columns, driver, "cuTensorMapEncodeIm2colWide" @ 12080;
    fn cuTensorMapReplaceAddress(map: *mut Map, address: *mut c_void)
        => replace, driver, "cuTensorMapReplaceAddress" @ 12000;
}

/// `CUtensorMap`
type Map = [u64; 16];

/// `CUtensorMapDataType` has this many.
const KINDS: i32 = 16;

fn encode(
    map: Out<Map>,
    kind: i32,
    ranks: std::ops::RangeInclusive<u32>,
    rank: u32,
    address: Out<c_void>,
    required: [bool; 3],
) -> CuResult {
    let aligned = map.address().is_multiple_of(64) && address.address().is_multiple_of(16);
    let there = !address.is_null() && required.iter().all(|null| !null);
    if !aligned || !there || !ranks.contains(&rank) || !(0..KINDS).contains(&kind) {
        return Err(CuError::INVALID_VALUE);
    }
    let mut made = [0; 16];
    made[0] = address.address();
    map.put(made)
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn tiled(
    map: Out<Map>,
    kind: i32,
    rank: u32,
    address: Out<c_void>,
    sizes: In<u64>,
    strides: In<u64>,
    box_sizes: In<u32>,
    steps: In<u32>,
    _interleave: i32,
    _swizzle: i32,
    _promotion: i32,
    _fill: i32,
) -> CuResult {
    // A tensor of one dimension has no strides.
    let without_strides = rank > 1 && strides.is_null();
    let nulls = [sizes.is_null() || without_strides, box_sizes.is_null(), steps.is_null()];
    encode(map, kind, 1..=5, rank, address, nulls)
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn columns(
    map: Out<Map>,
    kind: i32,
    rank: u32,
    address: Out<c_void>,
    sizes: In<u64>,
    strides: In<u64>,
    lower: In<i32>,
    upper: In<i32>,
    _channels: u32,
    _pixels: u32,
    steps: In<u32>,
    _interleave: i32,
    _swizzle: i32,
    _promotion: i32,
    _fill: i32,
) -> CuResult {
    let nulls =
        [sizes.is_null() || strides.is_null(), lower.is_null() || upper.is_null(), steps.is_null()];
    encode(map, kind, 3..=5, rank, address, nulls)
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn wide_columns(
    map: Out<Map>,
    kind: i32,
    rank: u32,
    address: Out<c_void>,
    sizes: In<u64>,
    strides: In<u64>,
    _lower: i32,
    _upper: i32,
    _channels: u32,
    _pixels: u32,
    steps: In<u32>,
    _interleave: i32,
    _mode: i32,
    _swizzle: i32,
    _promotion: i32,
    _fill: i32,
) -> CuResult {
    let nulls = [sizes.is_null(), strides.is_null(), steps.is_null()];
    encode(map, kind, 3..=5, rank, address, nulls)
}

fn replace(map: Out<Map>, address: Out<c_void>) -> CuResult {
    let mut made = map.get()?;
    if address.is_null() || !address.address().is_multiple_of(16) {
        return Err(CuError::INVALID_VALUE);
    }
    made[0] = address.address();
    map.put(made)
}
