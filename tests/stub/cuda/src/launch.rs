//! Launches: a kernel occupies the engine for its duration.
//!
//! The grid does not matter to the duration. Cooperative and cluster launches are launches. The
//! call itself takes
//! `STUB_GPU_LAUNCH_NS` of host time.

use crate::arg::{In, Out};
use crate::capture::{self, Operation};
use crate::driver::state;
use crate::export::exports;
use crate::module::Duration;
use crate::stream::push;
use gpucap_abi::cuda::{CUfunction, CUstream, CuError, CuResult};
use gpucap_stub_device::{card, settings};
use std::ffi::c_void;

exports! {
    /// No dimension may be 0; a block has at most 1024 threads.
    fn cuLaunchKernel(f: CUfunction, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32,
        shared: u32, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void)
        => kernel, context, "cuLaunchKernel" @ 4000;
    /// No dimension may be 0; a block has at most 1024 threads.
    fn cuLaunchKernel_ptsz(f: CUfunction, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32,
        shared: u32, stream: CUstream, params: *mut *mut c_void, extra: *mut *mut c_void)
        => kernel, context, "cuLaunchKernel" @ 7000 ptsz;
    /// Attributes are not looked at.
    fn cuLaunchKernelEx(config: *const Config, f: CUfunction, params: *mut *mut c_void,
        extra: *mut *mut c_void) => kernel_ex, context, "cuLaunchKernelEx" @ 11060;
    /// Attributes are not looked at.
    fn cuLaunchKernelEx_ptsz(config: *const Config, f: CUfunction, params: *mut *mut c_void,
        extra: *mut *mut c_void) => kernel_ex_per_thread, context, "cuLaunchKernelEx" @ 11060 ptsz;
    /// A launch.
    fn cuLaunchCooperativeKernel(f: CUfunction, gx: u32, gy: u32, gz: u32, bx: u32, by: u32,
        bz: u32, shared: u32, stream: CUstream, params: *mut *mut c_void)
        => cooperative, context, "cuLaunchCooperativeKernel" @ 9000;
    /// A launch.
    fn cuLaunchCooperativeKernel_ptsz(f: CUfunction, gx: u32, gy: u32, gz: u32, bx: u32, by: u32,
        bz: u32, shared: u32, stream: CUstream, params: *mut *mut c_void)
        => cooperative, context, "cuLaunchCooperativeKernel" @ 9000 ptsz;
    /// A launch for each entry.
    fn cuLaunchCooperativeKernelMultiDevice(list: *mut LaunchParams, count: u32, flags: u32)
        => cooperative_multi, context, "cuLaunchCooperativeKernelMultiDevice" @ 9000;
    /// The first API: one block.
    fn cuLaunch(f: CUfunction) => launch, context, "cuLaunch" @ 2000;
    /// The first API.
    fn cuLaunchGrid(f: CUfunction, width: i32, height: i32) => grid, context, "cuLaunchGrid" @ 2000;
    /// The first API.
    fn cuLaunchGridAsync(f: CUfunction, width: i32, height: i32, stream: CUstream)
        => grid_async, context, "cuLaunchGridAsync" @ 2000;
    /// The first API.
    fn cuFuncSetBlockShape(f: CUfunction, x: i32, y: i32, z: i32)
        => block_shape, context, "cuFuncSetBlockShape" @ 2000;
    /// The first API: accepted and not kept.
    fn cuFuncSetSharedSize(f: CUfunction, bytes: u32)
        => shared_size, context, "cuFuncSetSharedSize" @ 2000;
    /// The first API: accepted and not kept.
    fn cuParamSetSize(f: CUfunction, bytes: u32) => shared_size, context, "cuParamSetSize" @ 2000;
    /// The first API: accepted and not kept.
    fn cuParamSeti(f: CUfunction, offset: i32, value: u32) => set_i, context, "cuParamSeti" @ 2000;
    /// The first API: accepted and not kept.
    fn cuParamSetv(f: CUfunction, offset: i32, value: *mut c_void, bytes: u32)
        => set_v, context, "cuParamSetv" @ 2000;
}

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: CUstream,
    attributes: *mut c_void,
    count: u32,
}
const _: () = assert!(size_of::<Config>() == 56);

/// `CUDA_LAUNCH_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchParams {
    function: CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: CUstream,
    params: *mut *mut c_void,
}
const _: () = assert!(size_of::<LaunchParams>() == 56);

const MAX_THREADS: u64 = 1024;

/// Nanoseconds for which a function runs without parameters.
pub(crate) fn duration_of(function: u64) -> Result<u64, CuError> {
    match state()?.code.functions.get(function).ok_or(CuError::INVALID_HANDLE)?.duration {
        Duration::Fixed(ns) => Ok(ns),
        Duration::Parameter => Ok(settings().kernel_ns),
    }
}

/// Lets the host time of a launch pass.
pub(crate) fn host_cost() {
    if settings().launch_ns > 0 {
        card().clock().advance(settings().launch_ns);
    }
}

fn run(
    function: CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    stream: CUstream,
    params: Out<*mut c_void>,
) -> CuResult {
    let threads: u64 = block.iter().map(|size| u64::from(*size)).product();
    if grid.contains(&0) || threads == 0 || threads > MAX_THREADS {
        return Err(CuError::INVALID_VALUE);
    }
    let duration =
        state()?.code.functions.get(function.address()).map(|function| function.duration);
    let duration = match duration.ok_or(CuError::INVALID_HANDLE)? {
        Duration::Fixed(ns) => ns,
        Duration::Parameter => {
            // SAFETY: a program that launches this kernel passes the address of its one parameter,
            // by the contract of launches.
            let first = unsafe { Out::<u64>::new(params.get()?.cast()) };
            first.get()?
        }
    };
    crate::module::load_now(function.address())?;
    host_cost();
    if capture::take(stream, Operation::Kernel(function, duration))? {
        return Ok(());
    }
    queued(stream, duration)
}

/// Queues the work of a launch; the host waits for it with `CUDA_LAUNCH_BLOCKING`.
pub(crate) fn queued(stream: CUstream, duration: u64) -> CuResult {
    let point = push(stream, duration)?;
    if settings().launch_blocking {
        point.wait();
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn kernel(
    f: CUfunction,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    _shared: u32,
    stream: CUstream,
    params: Out<*mut c_void>,
    _extra: Out<*mut c_void>,
) -> CuResult {
    run(f, [gx, gy, gz], [bx, by, bz], stream, params)
}

fn kernel_ex(
    config: In<Config>,
    f: CUfunction,
    params: Out<*mut c_void>,
    _extra: Out<*mut c_void>,
) -> CuResult {
    let config = config.get()?;
    run(f, config.grid, config.block, config.stream, params)
}

fn kernel_ex_per_thread(
    config: In<Config>,
    f: CUfunction,
    params: Out<*mut c_void>,
    _extra: Out<*mut c_void>,
) -> CuResult {
    let config = config.get()?;
    let own = config.stream == CUstream::NULL;
    let stream = if own { crate::stream::PER_THREAD } else { config.stream };
    run(f, config.grid, config.block, stream, params)
}

#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
fn cooperative(
    f: CUfunction,
    gx: u32,
    gy: u32,
    gz: u32,
    bx: u32,
    by: u32,
    bz: u32,
    _shared: u32,
    stream: CUstream,
    params: Out<*mut c_void>,
) -> CuResult {
    run(f, [gx, gy, gz], [bx, by, bz], stream, params)
}

fn cooperative_multi(list: Out<LaunchParams>, count: u32, _flags: u32) -> CuResult {
    for index in 0..usize::try_from(count).map_err(|_| CuError::INVALID_VALUE)? {
        let one = list.at(index).get()?;
        // SAFETY: the array came from the caller of the export, who promises that its pointers are
        // valid.
        let params = unsafe { Out::new(one.params) };
        run(one.function, one.grid, one.block, one.stream, params)?;
    }
    Ok(())
}

fn launch(f: CUfunction) -> CuResult {
    grid(f, 1, 1)
}

fn grid(f: CUfunction, width: i32, height: i32) -> CuResult {
    grid_async(f, width, height, CUstream::NULL)
}

fn grid_async(f: CUfunction, width: i32, height: i32, stream: CUstream) -> CuResult {
    let size = |size: i32| u32::try_from(size).map_err(|_| CuError::INVALID_VALUE);
    let block = state()?.code.functions.get(f.address()).ok_or(CuError::INVALID_HANDLE)?.block;
    // SAFETY: null is allowed.
    let none = unsafe { Out::new(std::ptr::null_mut()) };
    run(f, [size(width)?, size(height)?, 1], [block, 1, 1], stream, none)
}

fn block_shape(f: CUfunction, x: i32, y: i32, z: i32) -> CuResult {
    let size = |size: i32| u32::try_from(size).map_err(|_| CuError::INVALID_VALUE);
    let threads =
        size(x)?.checked_mul(size(y)?).and_then(|xy| xy.checked_mul(u32::try_from(z).ok()?));
    let threads = threads.ok_or(CuError::INVALID_VALUE)?;
    let mut state = state()?;
    state.code.functions.get_mut(f.address()).ok_or(CuError::INVALID_HANDLE)?.block = threads;
    Ok(())
}

fn shared_size(f: CUfunction, _bytes: u32) -> CuResult {
    duration_of(f.address()).map(drop)
}

fn set_i(f: CUfunction, _offset: i32, _value: u32) -> CuResult {
    duration_of(f.address()).map(drop)
}

fn set_v(f: CUfunction, _offset: i32, _value: Out<c_void>, _bytes: u32) -> CuResult {
    duration_of(f.address()).map(drop)
}
