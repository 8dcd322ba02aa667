//! What clients ask of devices, contexts, pools and ranges that changes nothing.
//!
//! Devices of one machine reach each other and order nothing; a context has all multiprocessors;
//! managed memory does not migrate, so a range was advised nothing. Profilers are told when to
//! start and stop, and there is none.

use crate::arg::{Address, Out};
use crate::driver::{state, unit};
use crate::export::exports;
use gpucap_abi::cuda::CUgraph;
use gpucap_abi::cuda::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUcontext, CUdevice, CUdeviceptr, CUevent, CUmemLocation,
    CUmemoryPool, CUstream, CuError, CuResult,
};
use std::ffi::{c_char, c_void};

exports! {
    /// 1 performance, 2 access, 3 atomics, 4 arrays; INVALID_DEVICE for a device and itself.
    fn cuDeviceGetP2PAttribute(value: *mut i32, attribute: i32, from: CUdevice, to: CUdevice)
        => peer, driver, "cuDeviceGetP2PAttribute" @ 8000;
    /// No context has a part of the multiprocessors.
    fn cuDeviceGetExecAffinitySupport(supported: *mut i32, kind: i32, device: CUdevice)
        => affinity_support, driver, "cuDeviceGetExecAffinitySupport" @ 11040;
    /// `CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY`
    fn cuCtxGetExecAffinity(affinity: *mut [u32; 2], kind: i32)
        => affinity, context, "cuCtxGetExecAffinity" @ 11040;
    /// Nothing persists.
    fn cuCtxResetPersistingL2Cache()
        => reset_cache, context, "cuCtxResetPersistingL2Cache" @ 11000;
    /// No process writes from afar.
    fn cuFlushGPUDirectRDMAWrites(target: i32, scope: i32)
        => flush, context, "cuFlushGPUDirectRDMAWrites" @ 11030;
    /// Stands for the end of what is queued in the context now.
    fn cuCtxRecordEvent(context: CUcontext, event: CUevent)
        => record_event, driver, "cuCtxRecordEvent" @ 12050;
    /// What is queued in the context from now on waits for the event.
    fn cuCtxWaitEvent(context: CUcontext, event: CUevent)
        => wait_event, driver, "cuCtxWaitEvent" @ 12050;
    /// All, for the device of the pool; none, for others.
    fn cuMemPoolGetAccess(flags: *mut i32, pool: CUmemoryPool, location: *mut CUmemLocation)
        => pool_access, driver, "cuMemPoolGetAccess" @ 11020;
    /// Only of managed memory.
    fn cuMemRangeGetAttribute(data: *mut c_void, bytes: usize, attribute: i32,
        pointer: CUdeviceptr, count: usize)
        => range_attribute, driver, "cuMemRangeGetAttribute" @ 8000;
    /// Only of managed memory.
    fn cuMemRangeGetAttributes(data: *mut *mut c_void, bytes: *mut usize, attributes: *mut i32,
        number: usize, pointer: CUdeviceptr, count: usize)
        => range_attributes, driver, "cuMemRangeGetAttributes" @ 8000;
    /// NOT_SUPPORTED: no profiler is there.
    fn cuProfilerInitialize(file: *const c_char, output: *const c_char, mode: i32)
        => profiler_initialize, context, "cuProfilerInitialize" @ 4000;
    fn cuProfilerStart() => nothing, context, "cuProfilerStart" @ 4000;
    fn cuProfilerStop() => nothing, context, "cuProfilerStop" @ 4000;
    /// The default value of a handle is not kept: there are no conditional nodes to read it.
    fn cuGraphConditionalHandleCreate(handle: *mut u64, graph: CUgraph, context: CUcontext,
        value: u32, flags: u32)
        => condition, driver, "cuGraphConditionalHandleCreate" @ 12030;
}

const UNSUPPORTED_AFFINITY: CuError = CuError::new(224).unwrap();
/// `CU_DEVICE_CPU` and `CU_DEVICE_INVALID`: nowhere.
const INVALID_DEVICE: i32 = -2;

fn peer(value: Out<i32>, attribute: i32, from: CUdevice, to: CUdevice) -> CuResult {
    let (from, to) = (unit(from)?, unit(to)?);
    if from == to {
        return Err(CuError::INVALID_DEVICE);
    }
    value.put(match attribute {
        1 | 3 => 0,
        2 | 4 => 1,
        _ => return Err(CuError::INVALID_VALUE),
    })
}

fn affinity_support(supported: Out<i32>, kind: i32, device: CUdevice) -> CuResult {
    unit(device)?;
    if kind == 0 { supported.put(0) } else { Err(CuError::INVALID_VALUE) }
}

fn affinity(affinity: Out<[u32; 2]>, _kind: i32) -> CuResult {
    affinity.required()?;
    Err(UNSUPPORTED_AFFINITY)
}

fn reset_cache() -> CuResult {
    nothing()
}

#[expect(clippy::unnecessary_wraps, reason = "a function of the driver")]
const fn nothing() -> CuResult {
    Ok(())
}

fn flush(target: i32, scope: i32) -> CuResult {
    // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, ..._TO_OWNER, ..._TO_ALL_DEVICES
    if target == 0 && matches!(scope, 100 | 200) { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

/// The streams of a context; null is the current one.
fn streams_of(context: CUcontext) -> Result<Vec<CUstream>, CuError> {
    let (handle, _) = crate::context::or_current(context)?;
    let mut state = state()?;
    crate::capture::forbid_in_context(&mut state, handle)?;
    Ok(state.streams.of_context(handle))
}

fn record_event(context: CUcontext, event: CUevent) -> CuResult {
    let (handle, unit) = crate::context::or_current(context)?;
    streams_of(context)?;
    crate::event::record_context(event, handle, unit)
}

pub(crate) fn wait_event(context: CUcontext, event: CUevent) -> CuResult {
    streams_of(context)?.into_iter().try_for_each(|stream| crate::event::wait_in(stream, event))
}

fn pool_access(flags: Out<i32>, pool: CUmemoryPool, location: Out<CUmemLocation>) -> CuResult {
    let location = location.get()?;
    let owner = state()?.pools.alive(pool)?.unit;
    let same = location.kind == CU_MEM_LOCATION_TYPE_DEVICE && owner == Some(unit(location.id)?);
    flags.put(if same { 3 } else { 0 })
}

fn range_attribute(
    data: Out<c_void>,
    bytes: usize,
    attribute: i32,
    pointer: CUdeviceptr,
    count: usize,
) -> CuResult {
    let managed = crate::pointer::is_managed(&*state()?, pointer);
    if !managed || count == 0 || data.is_null() || bytes == 0 || !bytes.is_multiple_of(4) {
        return Err(CuError::INVALID_VALUE);
    }
    let answer = match attribute {
        1 | 6 | 8 => 0,
        2..=4 => INVALID_DEVICE,
        // CU_MEM_LOCATION_TYPE_INVALID
        5 | 7 => 0,
        _ => return Err(CuError::INVALID_VALUE),
    };
    let words: Out<i32> = data.cast();
    (0..bytes / 4).try_for_each(|index| words.at(index).put(answer))
}

fn range_attributes(
    data: Out<Address>,
    bytes: Out<usize>,
    attributes: Out<i32>,
    number: usize,
    pointer: CUdeviceptr,
    count: usize,
) -> CuResult {
    for index in 0..number {
        // SAFETY: the array came from the caller of the export, who promises that its entries are
        // outputs.
        let one = unsafe { Out::new(data.at(index).get()?) };
        let (bytes, attribute) = (bytes.at(index).get()?, attributes.at(index).get()?);
        range_attribute(one, bytes, attribute, pointer, count)?;
    }
    Ok(())
}

fn profiler_initialize(
    _file: crate::arg::In<c_char>,
    _output: crate::arg::In<c_char>,
    _mode: i32,
) -> CuResult {
    Err(CuError::NOT_SUPPORTED)
}

fn condition(
    handle: Out<u64>,
    graph: CUgraph,
    _context: CUcontext,
    _value: u32,
    flags: u32,
) -> CuResult {
    state()?.graphs.nodes(graph.address())?;
    if flags > 1 {
        return Err(CuError::INVALID_VALUE);
    }
    handle.put(crate::state::fresh_handle())
}
