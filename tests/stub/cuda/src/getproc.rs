//! `cuGetProcAddress`: answers from the rows of all files, by the rules measured on real drivers.
//!
//! A name means the form with the highest version that neither the request nor the driver is too
//! old for. Where a name has per-thread forms, flag 2 sees only those. A suffixed name is an
//! unknown name. What is missing is no error for the second form, which has a status; it is
//! NOT_FOUND for the first, which leaves the pointer alone.

use crate::arg::{In, Out};
use crate::export::{Row, exports};
use gpucap_abi::cuda::{CuError, CuResult};
use std::ffi::{c_char, c_void};

exports! {
    /// Missing: NOT_FOUND, and the pointer is left alone.
    fn cuGetProcAddress(symbol: *const c_char, pfn: *mut *mut c_void, version: i32, flags: u64)
        => first, nothing, "cuGetProcAddress" @ 11030;
    /// Missing: success, a null pointer and a status.
    fn cuGetProcAddress_v2(symbol: *const c_char, pfn: *mut *mut c_void, version: i32, flags: u64,
        status: *mut i32) => second, nothing, "cuGetProcAddress" @ 12000;
}

/// What the status says.
#[derive(Clone, Copy)]
enum Missing {
    Symbol = 1,
    Version = 2,
}

const PER_THREAD_DEFAULT_STREAM: u64 = 2;

fn first(symbol: In<c_char>, pfn: Out<*mut c_void>, version: i32, flags: u64) -> CuResult {
    let name = arguments(symbol, pfn, flags)?;
    match look_up(&name, version, flags) {
        Ok(address) => pfn.put(address as *mut c_void),
        Err(_) => Err(CuError::NOT_FOUND),
    }
}

fn second(
    symbol: In<c_char>,
    pfn: Out<*mut c_void>,
    version: i32,
    flags: u64,
    status: Out<i32>,
) -> CuResult {
    let name = arguments(symbol, pfn, flags)?;
    let (address, answer) = match look_up(&name, version, flags) {
        Ok(address) => (address, 0),
        Err(missing) => (0, missing as i32),
    };
    status.put_if_asked(answer);
    pfn.put(address as *mut c_void)
}

fn arguments(symbol: In<c_char>, pfn: Out<*mut c_void>, flags: u64) -> Result<String, CuError> {
    pfn.required()?;
    if flags > PER_THREAD_DEFAULT_STREAM {
        return Err(CuError::INVALID_VALUE);
    }
    symbol.text()
}

fn look_up(name: &str, version: i32, flags: u64) -> Result<usize, Missing> {
    let newest = gpucap_stub_device::settings().cuda_version;
    let named = || rows().filter(|row| row.base == name && row.since <= newest);
    let per_thread = flags == PER_THREAD_DEFAULT_STREAM && named().any(|row| row.per_thread);
    let forms = || named().filter(|row| row.per_thread == per_thread);
    let found = forms().filter(|row| row.since <= version).max_by_key(|row| row.since);
    match found {
        Some(row) => Ok((row.address)()),
        None if forms().next().is_some() => Err(Missing::Version),
        None => Err(Missing::Symbol),
    }
}

fn rows() -> impl Iterator<Item = &'static Row> {
    crate::ALL_ROWS.iter().copied().flatten()
}
