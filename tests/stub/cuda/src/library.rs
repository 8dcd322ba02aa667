//! Libraries: code that belongs to no context.
//!
//! A library costs what a module costs in each context, where it is first used; with
//! `CUDA_MODULE_LOADING=EAGER` in the contexts that there are when it is loaded.

use crate::arg::{In, Out};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::module::{Module, exists, global, load_now, of, unload};
use gpucap_abi::cuda::{CUdeviceptr, CUfunction, CUmodule, CuError, CuResult};
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
    /// The library of a kernel.
    fn cuKernelGetLibrary(library: *mut CUmodule, kernel: CUfunction)
        => kernel_library, driver, "cuKernelGetLibrary" @ 12050;
    /// A variable of 4 KiB, part of the library's memory.
    fn cuLibraryGetGlobal(pointer: *mut CUdeviceptr, bytes: *mut usize, library: CUmodule,
        name: *const c_char) => variable, context, "cuLibraryGetGlobal" @ 12000;
    /// A managed variable of 4 KiB, part of the library's memory.
    fn cuLibraryGetManaged(pointer: *mut CUdeviceptr, bytes: *mut usize, library: CUmodule,
        name: *const c_char) => variable, driver, "cuLibraryGetManaged" @ 12000;
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
    let mut state = state()?;
    let handle = state.code.modules.add(Module { context: None, globals: Vec::new() });
    if settings().eager {
        for context in state.contexts.all_alive() {
            if let Err(error) = state.pay(handle, None, context) {
                state.unload(handle);
                return Err(error);
            }
        }
    }
    library.put(CUmodule(handle as *mut c_void))
}

fn library_unload(library: CUmodule) -> CuResult {
    unload(library)
}

fn get_kernel(kernel: Out<CUfunction>, library: CUmodule, name: In<c_char>) -> CuResult {
    kernel.required()?;
    let name = name.text()?;
    kernel.put(CUfunction(state()?.function(library.address(), &name)? as *mut c_void))
}

/// The first use of a library in a context pays for it.
fn pay(library: u64) -> CuResult {
    let here = current()?;
    let mut state = state()?;
    state.code.modules.get(library).ok_or(CuError::INVALID_HANDLE)?;
    state.pay(library, None, here)
}

fn kernel_library(library: Out<CUmodule>, kernel: CUfunction) -> CuResult {
    library.required()?;
    library.put(CUmodule(of(kernel, |function| function.module)? as *mut c_void))
}

fn variable(
    pointer: Out<CUdeviceptr>,
    bytes: Out<usize>,
    library: CUmodule,
    name: In<c_char>,
) -> CuResult {
    pay(library.address())?;
    pointer.put_if_asked(global(library, name, false)?);
    bytes.put_if_asked(4096);
    Ok(())
}

fn library_module(module: Out<CUmodule>, library: CUmodule) -> CuResult {
    module.required()?;
    pay(library.address())?;
    module.put(library)
}

fn kernel_function(function: Out<CUfunction>, kernel: CUfunction) -> CuResult {
    function.required()?;
    load_now(kernel.address())?;
    function.put(kernel)
}
