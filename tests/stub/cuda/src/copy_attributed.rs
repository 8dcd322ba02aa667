//! Copies with attributes: batches of them, and single ones.
//!
//! A batch takes its place in the stream as a whole. Flat copies move their data; of shapes only the
//! place is simulated. Attributes are checked as documented, and make no difference.

use crate::arg::Out;
use crate::copy::{move_one, queue};
use crate::export::exports;
use gpucap_abi::cuda::{CUstream, CuError, CuResult};

exports! {
    /// Moves the data of each.
    fn cuMemcpyBatchAsync(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize,
        attrs: *mut Attributes, indices: *mut usize, attr_count: usize, failed: *mut usize,
        stream: CUstream) => flat_first, context, "cuMemcpyBatchAsync" @ 12080;
    /// Moves the data of each.
    fn cuMemcpyBatchAsync_ptsz(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize,
        attrs: *mut Attributes, indices: *mut usize, attr_count: usize, failed: *mut usize,
        stream: CUstream) => flat_first, context, "cuMemcpyBatchAsync" @ 12080 ptsz;
    /// Moves the data of each.
    fn cuMemcpyBatchAsync_v2(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize,
        attrs: *mut Attributes, indices: *mut usize, attr_count: usize, stream: CUstream)
        => flat, context, "cuMemcpyBatchAsync" @ 13000;
    /// Moves the data of each.
    fn cuMemcpyBatchAsync_v2_ptsz(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize,
        attrs: *mut Attributes, indices: *mut usize, attr_count: usize, stream: CUstream)
        => flat, context, "cuMemcpyBatchAsync" @ 13000 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DBatchAsync(count: usize, list: *mut Copy3D, failed: *mut usize, flags: u64,
        stream: CUstream) => shaped_first, context, "cuMemcpy3DBatchAsync" @ 12080;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DBatchAsync_ptsz(count: usize, list: *mut Copy3D, failed: *mut usize, flags: u64,
        stream: CUstream) => shaped_first, context, "cuMemcpy3DBatchAsync" @ 12080 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DBatchAsync_v2(count: usize, list: *mut Copy3D, flags: u64, stream: CUstream)
        => shaped, context, "cuMemcpy3DBatchAsync" @ 13000;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DBatchAsync_v2_ptsz(count: usize, list: *mut Copy3D, flags: u64, stream: CUstream)
        => shaped, context, "cuMemcpy3DBatchAsync" @ 13000 ptsz;
    /// Addresses of either side.
    fn cuMemcpyWithAttributesAsync(dst: u64, src: u64, bytes: usize, attr: *mut Attributes,
        stream: CUstream) => one, context, "cuMemcpyWithAttributesAsync" @ 13020;
    /// Addresses of either side.
    fn cuMemcpyWithAttributesAsync_ptsz(dst: u64, src: u64, bytes: usize, attr: *mut Attributes,
        stream: CUstream) => one, context, "cuMemcpyWithAttributesAsync" @ 13020 ptsz;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DWithAttributesAsync(copy: *mut Copy3D, flags: u64, stream: CUstream)
        => one_shaped, context, "cuMemcpy3DWithAttributesAsync" @ 13020;
    /// Nothing moves: takes its place in the stream.
    fn cuMemcpy3DWithAttributesAsync_ptsz(copy: *mut Copy3D, flags: u64, stream: CUstream)
        => one_shaped, context, "cuMemcpy3DWithAttributesAsync" @ 13020 ptsz;
}

/// `CUmemcpyAttributes`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    /// When the source may be read.
    order: u32,
    /// Two hints, each a kind of place and its number.
    hints: [u32; 4],
    flags: u32,
}

/// `CUmemcpy3DOperand`: an address or an array, and what says where in it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    kind: u32,
    place: u64,
    inside: [u64; 3],
}

/// `CUDA_MEMCPY3D_BATCH_OP`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Copy3D {
    src: Operand,
    dst: Operand,
    /// In elements: bytes, unless a side is an array.
    extent: [u64; 3],
    order: u32,
    flags: u32,
}

const _: () = assert!(size_of::<Attributes>() == 24 && size_of::<Copy3D>() == 112);

/// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM`, `..._DURING_API_CALL`, `..._ANY`
const ORDERS: std::ops::RangeInclusive<u32> = 1..=3;
/// `CU_MEMCPY_OPERAND_TYPE_POINTER`, `..._ARRAY`
const OPERANDS: std::ops::RangeInclusive<u32> = 1..=2;

/// The legacy default stream takes no batch.
fn has_stream(stream: CUstream) -> CuResult {
    if stream.address() <= 1 { Err(CuError::INVALID_VALUE) } else { Ok(()) }
}

/// Each copy has attributes: those of the last entry whose index is not above its own.
fn attributes(
    attrs: Out<Attributes>,
    indices: Out<usize>,
    number: usize,
    copies: usize,
) -> CuResult {
    if !(1..=copies).contains(&number) || indices.get()? != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    for entry in 0..number {
        let rises = entry == 0 || indices.at(entry - 1).get()? < indices.at(entry).get()?;
        if !rises || !ORDERS.contains(&attrs.at(entry).get()?.order) {
            return Err(CuError::INVALID_VALUE);
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn flat(
    dsts: Out<u64>,
    srcs: Out<u64>,
    sizes: Out<usize>,
    count: usize,
    attrs: Out<Attributes>,
    indices: Out<usize>,
    attr_count: usize,
    stream: CUstream,
) -> CuResult {
    has_stream(stream)?;
    attributes(attrs, indices, attr_count, count)?;
    for index in 0..count {
        let bytes = sizes.at(index).get()? as u64;
        move_one(dsts.at(index).get()?, srcs.at(index).get()?, bytes, stream)?;
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn flat_first(
    dsts: Out<u64>,
    srcs: Out<u64>,
    sizes: Out<usize>,
    count: usize,
    attrs: Out<Attributes>,
    indices: Out<usize>,
    attr_count: usize,
    failed: Out<usize>,
    stream: CUstream,
) -> CuResult {
    let done = flat(dsts, srcs, sizes, count, attrs, indices, attr_count, stream);
    if done.is_err() {
        // It is not one of the copies.
        failed.put_if_asked(usize::MAX);
    }
    done
}

/// How much a shape moves.
fn moved(copy: Copy3D) -> Result<u64, CuError> {
    let known = [copy.src, copy.dst].iter().all(|side| OPERANDS.contains(&side.kind));
    let elements = copy.extent.into_iter().fold(1, u64::saturating_mul);
    if !known || !ORDERS.contains(&copy.order) || elements == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    Ok(elements)
}

fn shaped(count: usize, list: Out<Copy3D>, flags: u64, stream: CUstream) -> CuResult {
    has_stream(stream)?;
    if flags != 0 || count == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let sizes = (0..count).map(|index| moved(list.at(index).get()?));
    let bytes: u64 = sizes.sum::<Result<_, _>>()?;
    queue(stream, bytes, false, || ())
}

fn shaped_first(
    count: usize,
    list: Out<Copy3D>,
    failed: Out<usize>,
    flags: u64,
    stream: CUstream,
) -> CuResult {
    let done = shaped(count, list, flags, stream);
    if done.is_err() {
        failed.put_if_asked(usize::MAX);
    }
    done
}

fn one(dst: u64, src: u64, bytes: usize, attr: Out<Attributes>, stream: CUstream) -> CuResult {
    if !ORDERS.contains(&attr.get()?.order) {
        return Err(CuError::INVALID_VALUE);
    }
    move_one(dst, src, bytes as u64, stream)
}

fn one_shaped(copy: Out<Copy3D>, flags: u64, stream: CUstream) -> CuResult {
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    queue(stream, moved(copy.get()?)?, false, || ())
}
