//! Launches: kernels and graphs pay from the share of time.
//!
//! A handler passes what is launched and into which stream; its cost, and whether it has to wait, are decided by
//! [`crate::launch`]. Cooperative and cluster launches are kernels as far as time is concerned.

use crate::call::Call;
use crate::driver::Next;
use crate::launch::{self, StreamRef, Work};
use core::ffi::{c_int, c_void};
use gpucap_abi::arg::{Entries, In, Out};
use gpucap_abi::cuda::{
    CUDA_LAUNCH_PARAMS, CUfunction, CUgraphExec, CUlaunchConfig, CUstream, CuError, CuResult,
};

/// `cuLaunchKernel`.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn kernel(
    call: &Call,
    next: impl Next<CuError>,
    function: CUfunction,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    _shared_bytes: u32,
    stream: CUstream,
    _params: Out<*mut c_void>,
    _extra: Out<*mut c_void>,
) -> CuResult {
    let work = kernel_of(function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    launch::launch(call, work, StreamRef::named(call, stream), next)
}

/// `cuLaunchKernelEx`. Without a configuration the driver answers.
pub(crate) fn kernel_ex(
    call: &Call,
    next: impl Next<CuError>,
    config: In<CUlaunchConfig>,
    function: CUfunction,
    _params: Out<*mut c_void>,
    _extra: Out<*mut c_void>,
) -> CuResult {
    let Some(config) = config.get() else { return next().map(drop) };
    let work = kernel_of(function, config.grid, config.block);
    launch::launch(call, work, StreamRef::named(call, config.hStream), next)
}

/// `cuLaunchCooperativeKernel`.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn cooperative(
    call: &Call,
    next: impl Next<CuError>,
    function: CUfunction,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    _shared_bytes: u32,
    stream: CUstream,
    _params: Out<*mut c_void>,
) -> CuResult {
    let work = kernel_of(function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    launch::launch(call, work, StreamRef::named(call, stream), next)
}

/// No machine has more cards.
const MOST_PARTS: u32 = 64;

/// `cuLaunchCooperativeKernelMultiDevice`.
pub(crate) fn cooperative_multi_device(
    call: &Call,
    next: impl Next<CuError>,
    list: Entries<CUDA_LAUNCH_PARAMS>,
    count: u32,
    _flags: u32,
) -> CuResult {
    if count > MOST_PARTS {
        return next().map(drop); // more than there are cards is the driver's to refuse
    }
    let list = list.read(count as usize).ok_or(CuError::OUT_OF_MEMORY)?;
    let parts = list.iter().map(|part| {
        let work = kernel_of(part.function, part.grid, part.block);
        (work, StreamRef::named(call, part.hStream))
    });
    launch::launch_together(call, parts, next)
}

/// `cuLaunch`, of the first API: one block.
pub(crate) fn first(call: &Call, next: impl Next<CuError>, function: CUfunction) -> CuResult {
    grid(call, next, function, 1, 1)
}

/// `cuLaunchGrid`, of the first API.
pub(crate) fn grid(
    call: &Call,
    next: impl Next<CuError>,
    function: CUfunction,
    width: c_int,
    height: c_int,
) -> CuResult {
    grid_async(call, next, function, width, height, CUstream::NULL)
}

/// `cuLaunchGridAsync`, of the first API.
pub(crate) fn grid_async(
    call: &Call,
    next: impl Next<CuError>,
    function: CUfunction,
    width: c_int,
    height: c_int,
    stream: CUstream,
) -> CuResult {
    let blocks = [width.unsigned_abs(), height.unsigned_abs(), 1];
    let work = kernel_of(function, blocks, [1; 3]);
    launch::launch(call, work, StreamRef::named(call, stream), next)
}

/// `cuGraphLaunch`.
pub(crate) fn graph(
    call: &Call,
    next: impl Next<CuError>,
    exec: CUgraphExec,
    stream: CUstream,
) -> CuResult {
    launch::launch(call, Work::Graph { exec }, StreamRef::named(call, stream), next)
}

/// The number of threads only distinguishes launches; a product beyond 64 bits is of a size that no device has.
fn kernel_of(function: CUfunction, [x, y, z]: [u32; 3], [u, v, w]: [u32; 3]) -> Work {
    let area = |one: u32, two: u32| u64::from(one).wrapping_mul(two.into());
    let threads = area(x, y).wrapping_mul(area(u, v)).wrapping_mul(area(z, w));
    Work::Kernel { function, threads }
}
