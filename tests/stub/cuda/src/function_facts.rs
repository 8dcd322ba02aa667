//! What can be asked of kernels and functions beyond their names, and how many of them fit.
//!
//! An image is not looked at, so a module has the functions that were asked for so far, and none
//! is known to have parameters. As many blocks of a function fit on a multiprocessor as it has
//! threads for.

use crate::arg::{Address, In, Out};
use crate::driver::{state, unit};
use crate::export::exports;
use crate::module::{attribute, of};
use gpucap_abi::cuda::{CUdevice, CUfunction, CUmodule, CuError, CuResult};
use std::ffi::c_void;

exports! {
    /// Those that were asked for so far.
    fn cuModuleGetFunctionCount(count: *mut u32, module: CUmodule)
        => count, driver, "cuModuleGetFunctionCount" @ 12040;
    fn cuModuleEnumerateFunctions(functions: *mut CUfunction, room: u32, module: CUmodule)
        => list, driver, "cuModuleEnumerateFunctions" @ 12040;
    /// Those that were asked for so far.
    fn cuLibraryGetKernelCount(count: *mut u32, library: CUmodule)
        => count, driver, "cuLibraryGetKernelCount" @ 12040;
    fn cuLibraryEnumerateKernels(kernels: *mut CUfunction, room: u32, library: CUmodule)
        => list, driver, "cuLibraryEnumerateKernels" @ 12040;
    /// INVALID_VALUE: a function has no parameters.
    fn cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize,
        bytes: *mut usize) => parameter, driver, "cuFuncGetParamInfo" @ 12040;
    /// INVALID_VALUE: a kernel has no parameters.
    fn cuKernelGetParamInfo(kernel: CUfunction, index: usize, offset: *mut usize,
        bytes: *mut usize) => parameter, driver, "cuKernelGetParamInfo" @ 12040;
    fn cuFuncGetParamCount(function: CUfunction, count: *mut usize)
        => parameters, driver, "cuFuncGetParamCount" @ 13020;
    fn cuKernelGetParamCount(kernel: CUfunction, count: *mut usize)
        => parameters, driver, "cuKernelGetParamCount" @ 13020;
    fn cuKernelGetAttribute(value: *mut i32, attribute: i32, kernel: CUfunction, device: CUdevice)
        => kernel_attribute, driver, "cuKernelGetAttribute" @ 12000;
    /// Accepted and not kept.
    fn cuKernelSetAttribute(attribute: i32, value: i32, kernel: CUfunction, device: CUdevice)
        => set_kernel_attribute, driver, "cuKernelSetAttribute" @ 12000;
    /// Accepted and not kept.
    fn cuKernelSetCacheConfig(kernel: CUfunction, config: i32, device: CUdevice)
        => set_kernel_cache, driver, "cuKernelSetCacheConfig" @ 12000;
    /// Accepted and not kept.
    fn cuFuncSetSharedMemConfig(function: CUfunction, config: i32)
        => set_banks, context, "cuFuncSetSharedMemConfig" @ 4020;
    /// The first API: accepted and not kept.
    fn cuParamSetf(function: CUfunction, offset: i32, value: f32)
        => set_float, context, "cuParamSetf" @ 2000;
    /// What of a block's shared memory this many blocks leave to each.
    fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: *mut usize, function: CUfunction,
        blocks: i32, threads: i32)
        => shared_memory, context, "cuOccupancyAvailableDynamicSMemPerBlock" @ 10020;
    /// Full blocks on all multiprocessors.
    fn cuOccupancyMaxPotentialBlockSize(grid: *mut i32, block: *mut i32, function: CUfunction,
        shared_of: *mut c_void, shared: usize, limit: i32)
        => best, context, "cuOccupancyMaxPotentialBlockSize" @ 6050;
    /// Full blocks on all multiprocessors.
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(grid: *mut i32, block: *mut i32,
        function: CUfunction, shared_of: *mut c_void, shared: usize, limit: i32, flags: u32)
        => best_with_flags, context, "cuOccupancyMaxPotentialBlockSizeWithFlags" @ 7000;
    /// NOT_SUPPORTED: the card is older than clusters.
    fn cuOccupancyMaxActiveClusters(clusters: *mut i32, function: CUfunction,
        config: *const c_void) => clusters, context, "cuOccupancyMaxActiveClusters" @ 11070;
    /// NOT_SUPPORTED: the card is older than clusters.
    fn cuOccupancyMaxPotentialClusterSize(size: *mut i32, function: CUfunction,
        config: *const c_void) => clusters, context, "cuOccupancyMaxPotentialClusterSize" @ 11070;
}

/// Threads of a block, threads and shared memory of a multiprocessor, and their number.
const BLOCK: i32 = 1024;
const THREADS: i32 = 2048;
const SHARED: usize = 167_936;
const MULTIPROCESSORS: i32 = 108;

/// The functions of a module or library.
fn functions(module: CUmodule) -> Result<Vec<u64>, CuError> {
    let state = state()?;
    state.code.modules.get(module.address()).ok_or(CuError::INVALID_HANDLE)?;
    let mut found: Vec<_> = state.code.functions.iter().collect();
    found.retain(|(_, function)| function.module == module.address());
    let mut handles: Vec<_> = found.into_iter().map(|(handle, _)| handle).collect();
    handles.sort_unstable();
    Ok(handles)
}

fn count(count: Out<u32>, module: CUmodule) -> CuResult {
    count.put(u32::try_from(functions(module)?.len()).unwrap_or(u32::MAX))
}

fn list(list: Out<CUfunction>, room: u32, module: CUmodule) -> CuResult {
    list.required()?;
    let room = usize::try_from(room).map_err(|_| CuError::INVALID_VALUE)?;
    for (index, handle) in functions(module)?.into_iter().take(room).enumerate() {
        list.at(index).put(CUfunction(handle as Address))?;
    }
    Ok(())
}

fn parameter(
    function: CUfunction,
    _index: usize,
    _offset: Out<usize>,
    _bytes: Out<usize>,
) -> CuResult {
    of(function, |_| ())?;
    Err(CuError::INVALID_VALUE)
}

fn parameters(function: CUfunction, count: Out<usize>) -> CuResult {
    of(function, |_| ())?;
    count.put(0)
}

fn kernel_attribute(
    value: Out<i32>,
    number: i32,
    kernel: CUfunction,
    device: CUdevice,
) -> CuResult {
    unit(device)?;
    attribute(value, number, kernel)
}

fn set_kernel_attribute(
    _number: i32,
    _value: i32,
    kernel: CUfunction,
    device: CUdevice,
) -> CuResult {
    unit(device)?;
    of(kernel, |_| ())
}

fn set_kernel_cache(kernel: CUfunction, _config: i32, device: CUdevice) -> CuResult {
    unit(device)?;
    of(kernel, |_| ())
}

fn set_banks(function: CUfunction, _config: i32) -> CuResult {
    of(function, |_| ())
}

fn set_float(function: CUfunction, _offset: i32, _value: f32) -> CuResult {
    of(function, |_| ())
}

fn shared_memory(bytes: Out<usize>, function: CUfunction, blocks: i32, threads: i32) -> CuResult {
    of(function, |_| ())?;
    let count = usize::try_from(blocks).ok().filter(|blocks| *blocks > 0);
    if !(1..=BLOCK).contains(&threads) {
        return Err(CuError::INVALID_VALUE);
    }
    bytes.put(SHARED / count.ok_or(CuError::INVALID_VALUE)?)
}

fn best(
    grid: Out<i32>,
    block: Out<i32>,
    function: CUfunction,
    _shared_of: Out<c_void>,
    _shared: usize,
    limit: i32,
) -> CuResult {
    of(function, |_| ())?;
    if limit < 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let threads = if limit == 0 { BLOCK } else { limit.min(BLOCK) };
    block.put(threads)?;
    grid.put(MULTIPROCESSORS * (THREADS / threads))
}

fn best_with_flags(
    grid: Out<i32>,
    block: Out<i32>,
    function: CUfunction,
    shared_of: Out<c_void>,
    shared: usize,
    limit: i32,
    _flags: u32,
) -> CuResult {
    best(grid, block, function, shared_of, shared, limit)
}

fn clusters(_answer: Out<i32>, function: CUfunction, config: In<c_void>) -> CuResult {
    of(function, |_| ())?;
    if config.is_null() { Err(CuError::INVALID_VALUE) } else { Err(CuError::NOT_SUPPORTED) }
}
