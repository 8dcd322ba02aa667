//! `cuGetProcAddress`: the driver answers, we replace the address.
//!
//! Name, version and flags are the driver's business: it is asked with the caller's own arguments, and code and status
//! stay its own. What it returns is an exported function (measured on 470 to 555); if that function is intercepted, the
//! caller gets the hook of exactly that one.

use crate::call::Call;
use crate::driver::Next;
use core::ffi::{c_char, c_int, c_void};
use gpucap_abi::arg::{In, Out};
use gpucap_abi::cuda::{CUdriverProcAddressQueryResult, CuError, CuResult};

/// `cuGetProcAddress`, four arguments. A missing name is an error, and the pointer stays untouched.
pub(crate) fn proc_address(
    call: &Call,
    next: impl Next<CuError>,
    _symbol: In<c_char>,
    function: Out<*mut c_void>,
    _version: c_int,
    _flags: u64,
) -> CuResult {
    let written = next()?;
    let found = function.get(&written).filter(|address| !address.is_null());
    if let Some(hook) = found.and_then(|address| call.hook_of(address)) {
        function.set(&written, hook);
    }
    Ok(())
}

/// `cuGetProcAddress_v2`, five arguments. A missing name is a success with a null pointer and a status.
pub(crate) fn proc_address_v2(
    call: &Call,
    next: impl Next<CuError>,
    symbol: In<c_char>,
    function: Out<*mut c_void>,
    version: c_int,
    flags: u64,
    _status: Out<CUdriverProcAddressQueryResult>,
) -> CuResult {
    proc_address(call, next, symbol, function, version, flags)
}
