//! What handlers ask of the CUDA driver.
//!
//! The functions are declared here for the files below, each of which has one subject; what has no file of its own is here,
//! too.

pub(crate) mod code;
pub(crate) mod graph;
pub(crate) mod needed;
pub(crate) mod stream;
pub(crate) mod time;

use super::functions::{answered, filled, functions};
use super::library::{COPIES, DriverCopy};
use super::text;
use core::ffi::{c_char, c_int, c_uint};
use core::sync::atomic::{AtomicUsize, Ordering};
use gpucap_abi::cuda::{
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_MEMORYTYPE_HOST, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_PER_THREAD,
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUcontext, CUdevice, CUdeviceptr, CUevent,
    CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUkernel, CUlibrary, CUmemoryPool, CUmodule,
    CUstream, CUuuid, CuError, CuResult,
};
use gpucap_core::config::Slices;

functions! { CuResult;
    fn ctx_get_current = cuCtxGetCurrent(context: *mut CUcontext) -> code;
    fn ctx_get_device = cuCtxGetDevice(device: *mut CUdevice) -> code;
    fn ctx_pop_current = cuCtxPopCurrent_v2(context: *mut CUcontext);
    fn ctx_push_current = cuCtxPushCurrent_v2(context: CUcontext);
    fn device_get = cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    fn device_get_attribute = cuDeviceGetAttribute(
        value: *mut c_int, attribute: c_int, device: CUdevice) -> code;
    fn device_get_count = cuDeviceGetCount(count: *mut c_int);
    fn device_get_graph_mem_attribute = cuDeviceGetGraphMemAttribute(
        device: CUdevice, attribute: c_int, value: *mut u64);
    fn device_graph_mem_trim = cuDeviceGraphMemTrim(device: CUdevice);
    fn device_get_mem_pool = cuDeviceGetMemPool(pool: *mut CUmemoryPool, device: CUdevice) -> code;
    fn device_get_name = cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    fn device_get_uuid = cuDeviceGetUuid(uuid: *mut CUuuid, device: CUdevice);
    fn device_get_uuid_v2 = cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
    fn device_primary_ctx_get_state = cuDevicePrimaryCtxGetState(
        device: CUdevice, flags: *mut c_uint, active: *mut c_int);
    fn device_primary_ctx_release = cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    fn device_primary_ctx_retain = cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    fn device_total_mem = cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    fn event_create = cuEventCreate(event: *mut CUevent, flags: c_uint);
    fn event_destroy = cuEventDestroy_v2(event: CUevent);
    fn event_elapsed_time = cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    fn event_elapsed_time_v2 = cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent);
    fn event_query = cuEventQuery(event: CUevent) -> code;
    fn event_record = cuEventRecord(event: CUevent, stream: CUstream);
    fn func_get_module = cuFuncGetModule(module: *mut CUmodule, function: CUfunction);
    fn func_get_name = cuFuncGetName(name: *mut *const c_char, function: CUfunction);
    fn graph_child_get_graph = cuGraphChildGraphNodeGetGraph(
        node: CUgraphNode, graph: *mut CUgraph) -> code;
    fn graph_exec_destroy = cuGraphExecDestroy(exec: CUgraphExec);
    fn graph_get_nodes = cuGraphGetNodes(
        graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) -> code;
    fn graph_kernel_node_get_params = cuGraphKernelNodeGetParams(
        node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS);
    fn graph_kernel_node_get_params_v2 = cuGraphKernelNodeGetParams_v2(
        node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS);
    fn graph_mem_alloc_node_get_params = cuGraphMemAllocNodeGetParams(
        node: CUgraphNode, params: *mut CUDA_MEM_ALLOC_NODE_PARAMS) -> code;
    fn graph_node_get_type = cuGraphNodeGetType(node: CUgraphNode, kind: *mut c_int) -> code;
    fn kernel_get_library = cuKernelGetLibrary(library: *mut CUlibrary, kernel: CUkernel);
    fn library_unload = cuLibraryUnload(library: CUlibrary);
    fn kernel_get_name = cuKernelGetName(name: *mut *const c_char, kernel: CUfunction);
    fn mem_free = cuMemFree_v2(pointer: CUdeviceptr);
    fn mem_get_info = cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> code;
    fn mem_pool_get_attribute = cuMemPoolGetAttribute(
        pool: CUmemoryPool, attribute: c_int, value: *mut u64) -> code;
    fn module_get_loading_mode = cuModuleGetLoadingMode(mode: *mut c_int) -> code;
    fn module_unload = cuModuleUnload(module: CUmodule);
    fn pointer_get_attribute = cuPointerGetAttribute(value: *mut c_uint, attribute: c_int, pointer: CUdeviceptr);
    fn stream_query = cuStreamQuery(stream: CUstream) -> code;
    fn stream_is_capturing = cuStreamIsCapturing(stream: CUstream, status: *mut c_int) -> code;
    fn stream_is_capturing_ptsz = cuStreamIsCapturing_ptsz(
        stream: CUstream, status: *mut c_int) -> code;
    fn stream_get_capture_info = cuStreamGetCaptureInfo(
        stream: CUstream, status: *mut c_int, id: *mut u64) -> code;
    fn stream_get_capture_info_ptsz = cuStreamGetCaptureInfo_ptsz(
        stream: CUstream, status: *mut c_int, id: *mut u64) -> code;
    fn mem_pool_trim_to = cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
    fn stream_get_ctx = cuStreamGetCtx(stream: CUstream, context: *mut CUcontext) -> code;
    fn stream_get_device = cuStreamGetDevice(stream: CUstream, device: *mut CUdevice);
    fn stream_get_flags = cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    fn thread_exchange_stream_capture_mode = cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
}

/// The device of the calling thread's current context.
pub(crate) fn current_device(copy: &DriverCopy) -> Option<CUdevice> {
    filled(|device| ctx_get_device(copy, device)?.ok())
}

/// The calling thread's current context; null if there is none.
pub(crate) fn current_context(copy: &DriverCopy) -> Option<CUcontext> {
    filled(|context| ctx_get_current(copy, context)?.ok())
}

/// The 16 bytes that identify a device; of a MIG instance, those of the instance.
pub(crate) fn uuid(copy: &DriverCopy, device: CUdevice) -> Option<[u8; 16]> {
    filled(|uuid| device_get_uuid_v2(copy, uuid, device))
        .or_else(|| filled(|uuid| device_get_uuid(copy, uuid, device)))
        .map(|uuid: CUuuid| uuid.bytes)
}

/// Into how many slices MIG divides a device, by the name of its model.
pub(crate) fn slices(copy: &DriverCopy, device: CUdevice) -> Option<Slices> {
    let name = text::of(|text, length| device_get_name(copy, text, length.cast_signed(), device));
    name.map(|name| Slices::of_model(&name))
}

/// The memory of a device, in bytes.
pub(crate) fn total_bytes(copy: &DriverCopy, device: CUdevice) -> Option<u64> {
    filled(|bytes| device_total_mem(copy, bytes, device)).map(|bytes: usize| bytes as u64)
}

/// How many devices CUDA shows.
pub(crate) fn device_count(copy: &DriverCopy) -> Option<c_int> {
    filled(|count| device_get_count(copy, count))
}

/// The device with this ordinal.
pub(crate) fn device(copy: &DriverCopy, ordinal: c_int) -> Option<CUdevice> {
    filled(|device| device_get(copy, device, ordinal))
}

/// Where the device sits: PCI domain, bus, device.
pub(crate) fn pci_place(copy: &DriverCopy, device: CUdevice) -> Option<[c_int; 3]> {
    let attribute = |number| attribute(copy, device, number);
    // CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, _PCI_BUS_ID, _PCI_DEVICE_ID
    Some([attribute(50)?, attribute(33)?, attribute(34)?])
}

/// Whether an address is memory of a device; not if the driver does not know it: then it is the host's.
pub(crate) fn is_on_device(copy: &DriverCopy, pointer: CUdeviceptr) -> bool {
    const MEMORY_TYPE: c_int = 2;
    let found = filled(|value| pointer_get_attribute(copy, value, MEMORY_TYPE, pointer));
    found.is_some_and(|found| found != CU_MEMORYTYPE_HOST)
}

/// What the current device aligns the rows of textures to; rows of memory are aligned to a multiple of it.
pub(crate) fn pitch_alignment(copy: &DriverCopy) -> Option<u64> {
    const TEXTURE_PITCH_ALIGNMENT: c_int = 51;
    let bytes = attribute(copy, current_device(copy)?, TEXTURE_PITCH_ALIGNMENT);
    bytes.map(|bytes| bytes.unsigned_abs().into())
}

/// Whether contexts on the device are clients of MPS; `None` for a driver that does not report it.
pub(crate) fn is_under_mps(copy: &DriverCopy, device: CUdevice) -> Option<bool> {
    const MPS_ENABLED: c_int = 133;
    attribute(copy, device, MPS_ENABLED).map(|enabled| enabled != 0)
}

fn attribute(copy: &DriverCopy, device: CUdevice, number: c_int) -> Option<c_int> {
    filled(|value| device_get_attribute(copy, value, number, device)?.ok())
}

/// Whether the device's primary context exists.
pub(crate) fn primary_context_active(copy: &DriverCopy, device: CUdevice) -> Option<bool> {
    let mut flags = 0;
    filled(|active| device_primary_ctx_get_state(copy, device, &raw mut flags, active))
        .map(|active: c_int| active != 0)
}

/// The primary context of a device, which the caller keeps alive.
pub(crate) fn primary_context(copy: &DriverCopy, device: CUdevice) -> Option<CUcontext> {
    let context = filled(|context| device_primary_ctx_retain(copy, context, device))?;
    device_primary_ctx_release(copy, device)?;
    Some(context)
}

/// Bytes that a pool holds of the card, in use or not; an error if the driver does not say.
pub(crate) fn pool_reserved(copy: &DriverCopy, pool: CUmemoryPool) -> Result<u64, CuError> {
    let attribute = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    let answer = answered(|value| mem_pool_get_attribute(copy, pool, attribute, value))?;
    answer.ok_or(CuError::INVALID_VALUE) // as of a driver that does not know the attribute
}

/// Bytes that a pool keeps when it could give them back.
pub(crate) fn pool_threshold(copy: &DriverCopy, pool: CUmemoryPool) -> Option<u64> {
    let attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    filled(|value| mem_pool_get_attribute(copy, pool, attribute, value)?.ok())
}

/// Makes a pool give back what is not in use.
pub(crate) fn trim_pool(copy: &DriverCopy, pool: CUmemoryPool) -> Option<()> {
    mem_pool_trim_to(copy, pool, 0)
}

/// Bytes that graphs hold of a device, in use or not.
pub(crate) fn graphs_reserved(copy: &DriverCopy, device: CUdevice) -> Option<u64> {
    let attribute = CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;
    filled(|value| device_get_graph_mem_attribute(copy, device, attribute, value))
}

/// Makes graphs give back what they do not use.
pub(crate) fn trim_graphs(copy: &DriverCopy, device: CUdevice) -> Option<()> {
    device_graph_mem_trim(copy, device)
}

/// Frees memory that the application has never seen.
pub(crate) fn free(copy: &DriverCopy, pointer: CUdeviceptr) -> Option<()> {
    mem_free(copy, pointer)
}
