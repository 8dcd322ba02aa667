//! Libraries: code that belongs to no context.
//!
//! A library is loaded once and costs what a module costs, in the context where it is first used.

use crate::arg::{In, Out};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::memory::charge;
use crate::module::{Module, exists, get_function, of, unload};
use gpucap_abi::cuda::{CUfunction, CUmodule, CuError, CuResult};
use gpucap_stub_device::settings;
use std::ffi::{c_char, c_void};

exports! {
    /// The image and the options are not looked at.
    fn cuLibraryLoadData(library: *mut CUmodule, image: *const c_void, jit: *mut i32,
        jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void,
        count: u32) => library_load, driver, "cuLibraryLoadData" @ 12000;
    /// The file must exist.
    fn cuLibraryLoadFromFile(library: *mut CUmodule, path: *const c_char, jit: *mut i32,
        jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void,
        count: u32) => library_load_file, driver, "cuLibraryLoadFromFile" @ 12000;
    /// Ends its kernels too.
    fn cuLibraryUnload(library: CUmodule) => library_unload, driver, "cuLibraryUnload" @ 12000;
    /// Every name is known that does not start with `missing`.
    fn cuLibraryGetKernel(kernel: *mut CUfunction, library: CUmodule, name: *const c_char)
        => get_kernel, driver, "cuLibraryGetKernel" @ 12000;
    /// The library's module in the current context.
    fn cuLibraryGetModule(module: *mut CUmodule, library: CUmodule)
        => library_module, context, "cuLibraryGetModule" @ 12000;
    /// The kernel's function in the current context: the same handle.
    fn cuKernelGetFunction(function: *mut CUfunction, kernel: CUfunction)
        => kernel_function, context, "cuKernelGetFunction" @ 12000;
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn library_load(
    library: Out<CUmodule>,
    image: In<c_void>,
    _jit: Out<i32>,
    _jit_values: Out<*mut c_void>,
    _jit_count: u32,
    _options: Out<i32>,
    _values: Out<*mut c_void>,
    _count: u32,
) -> CuResult {
    if image.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    add_library(library)
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn library_load_file(
    library: Out<CUmodule>,
    path: In<c_char>,
    _jit: Out<i32>,
    _jit_values: Out<*mut c_void>,
    _jit_count: u32,
    _options: Out<i32>,
    _values: Out<*mut c_void>,
    _count: u32,
) -> CuResult {
    exists(path)?;
    add_library(library)
}

fn add_library(library: Out<CUmodule>) -> CuResult {
    library.required()?;
    let made = Module { context: None, unit: None, globals: Vec::new() };
    library.put(CUmodule(state()?.code.modules.add(made) as *mut c_void))
}

fn library_unload(library: CUmodule) -> CuResult {
    unload(library)
}

fn get_kernel(kernel: Out<CUfunction>, library: CUmodule, name: In<c_char>) -> CuResult {
    get_function(kernel, library, name)
}

/// The first use of a library in a context pays for it.
fn pay(library: u64) -> CuResult {
    let (_, unit) = current()?;
    let mut state = state()?;
    let found = state.code.modules.get_mut(library).ok_or(CuError::INVALID_HANDLE)?;
    if found.unit.is_none() {
        charge(unit, settings().module_memory)?;
        found.unit = Some(unit);
    }
    Ok(())
}

fn library_module(module: Out<CUmodule>, library: CUmodule) -> CuResult {
    module.required()?;
    pay(library.address())?;
    module.put(library)
}

fn kernel_function(function: Out<CUfunction>, kernel: CUfunction) -> CuResult {
    function.required()?;
    pay(of(kernel, |function| function.module)?)?;
    function.put(kernel)
}
