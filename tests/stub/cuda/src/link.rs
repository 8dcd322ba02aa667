//! The linker of code: pieces go in, an image comes out.
//!
//! Pieces are not looked at but for null, and an image is an ELF header with nothing behind it:
//! the stub's loader does not look at images either. What a client reads back, its logs, is
//! empty. The image belongs to the linker and goes with it.

use crate::arg::{Address, In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::module::exists;
use gpucap_abi::cuda::{CuError, CuResult};
use std::ffi::{c_char, c_void};

exports! {
    /// A linker without pieces.
    fn cuLinkCreate(count: u32, options: *mut i32, values: *mut *mut c_void, link: *mut u64)
        => create, context, "cuLinkCreate" @ 5050;
    /// A linker without pieces.
    fn cuLinkCreate_v2(count: u32, options: *mut i32, values: *mut *mut c_void, link: *mut u64)
        => create, context, "cuLinkCreate" @ 6050;
    /// The piece is not looked at.
    fn cuLinkAddData(link: u64, kind: i32, data: *mut c_void, bytes: usize, name: *const c_char,
        count: u32, options: *mut i32, values: *mut *mut c_void)
        => add_data, driver, "cuLinkAddData" @ 5050;
    /// The piece is not looked at.
    fn cuLinkAddData_v2(link: u64, kind: i32, data: *mut c_void, bytes: usize,
        name: *const c_char, count: u32, options: *mut i32, values: *mut *mut c_void)
        => add_data, driver, "cuLinkAddData" @ 6050;
    /// The file must exist.
    fn cuLinkAddFile(link: u64, kind: i32, path: *const c_char, count: u32, options: *mut i32,
        values: *mut *mut c_void) => add_file, driver, "cuLinkAddFile" @ 5050;
    /// The file must exist.
    fn cuLinkAddFile_v2(link: u64, kind: i32, path: *const c_char, count: u32, options: *mut i32,
        values: *mut *mut c_void) => add_file, driver, "cuLinkAddFile" @ 6050;
    /// Something that every load function takes.
    fn cuLinkComplete(link: u64, image: *mut *mut c_void, bytes: *mut usize)
        => complete, driver, "cuLinkComplete" @ 5050;
    /// Its image goes with it.
    fn cuLinkDestroy(link: u64) => destroy, driver, "cuLinkDestroy" @ 5050;
}

/// A linker: how many pieces it has.
pub(crate) struct Link {
    pieces: u32,
}

/// `CU_JIT_NUM_INPUT_TYPES`
const KINDS: i32 = 6;
/// The header of a 64-bit ELF file for CUDA, which has no sections.
static IMAGE: [u8; 64] = {
    let mut image = [0; 64];
    let begin = [0x7f, b'E', b'L', b'F', 2, 1, 1, 0x33, 7];
    let mut at = 0;
    while at < begin.len() {
        image[at] = begin[at];
        at += 1;
    }
    image[16] = 2;
    image[18] = 190;
    image[52] = 64;
    image
};

fn create(_count: u32, _options: Out<i32>, _values: Out<*mut c_void>, link: Out<u64>) -> CuResult {
    link.required()?;
    link.put(state()?.links.add(Link { pieces: 0 }))
}

fn add(link: u64, kind: i32) -> CuResult {
    let mut state = state()?;
    let found = state.links.get_mut(link).ok_or(CuError::INVALID_HANDLE)?;
    if !(0..KINDS).contains(&kind) {
        return Err(CuError::INVALID_VALUE);
    }
    found.pieces += 1;
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn add_data(
    link: u64,
    kind: i32,
    data: Out<c_void>,
    bytes: usize,
    _name: In<c_char>,
    _count: u32,
    _options: Out<i32>,
    _values: Out<*mut c_void>,
) -> CuResult {
    if data.is_null() || bytes == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    add(link, kind)
}

fn add_file(
    link: u64,
    kind: i32,
    path: In<c_char>,
    _count: u32,
    _options: Out<i32>,
    _values: Out<*mut c_void>,
) -> CuResult {
    exists(path)?;
    add(link, kind)
}

fn complete(link: u64, image: Out<Address>, bytes: Out<usize>) -> CuResult {
    image.required()?;
    let pieces = state()?.links.get(link).ok_or(CuError::INVALID_HANDLE)?.pieces;
    if pieces == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    bytes.put_if_asked(IMAGE.len());
    image.put(IMAGE.as_ptr().cast_mut().cast())
}

fn destroy(link: u64) -> CuResult {
    state()?.links.remove(link).map(drop).ok_or(CuError::INVALID_HANDLE)
}
