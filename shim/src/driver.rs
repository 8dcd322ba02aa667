//! What handlers ask of the driver: safe wrappers over its own functions, found when its table was redirected.
//!
//! A wrapper answers `None` where the driver lacks the function or refuses the call; it never invents an answer. Where a
//! charge depends on the answer, the wrapper tells the two apart: what the driver refuses to say is an error. None of
//! these is a hook: the addresses are the originals.

use core::ffi::{c_char, c_int, c_uint};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};
use gpucap_core::config::Slices;
pub(crate) use library::{COPIES, DriverCopy, Next};

pub(crate) mod call_guard;
pub(crate) mod library;
mod text;

/// Declares the functions of one library: their names, a place for each address in each copy, and a typed call. It answers
/// whether the driver did it; with `-> code`, what the driver said.
macro_rules! functions {
    ($result:path; $(
        fn $function:ident = $symbol:ident($($argument:ident: $type:ty),* $(,)?) $(-> $code:ident)?;
    )*) => {
        /// Exported names, in the order of [`EXTRAS`].
        pub(crate) const NAMES: &[&[u8]] = &[$(stringify!($symbol).as_bytes()),*];
        /// Their addresses, per copy of the library.
        pub(crate) static EXTRAS: [[AtomicUsize; NAMES.len()]; COPIES] =
            [const { [const { AtomicUsize::new(0) }; NAMES.len()] }; COPIES];

        #[expect(non_camel_case_types, reason = "one variant per function of the driver")]
        enum Place { $($function),* }

        $(
            fn $function(copy: &DriverCopy, $($argument: $type),*) -> functions!(@type $result $(, $code)?) {
                let address = copy.extras.get(Place::$function as usize)?.load(Ordering::Acquire);
                if address == 0 {
                    return None;
                }
                // SAFETY: the address was read from the driver's symbol table under this name; the signature is that
                // of the public API reference.
                let function = unsafe {
                    core::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> $result>(address)
                };
                // SAFETY: every pointer is a writable place of the caller, a frame of this file or a part of it.
                let answer = unsafe { function($($argument),*) };
                functions!(@answer answer $(, $code)?)
            }
        )*
    };
    (@type $result:path) => { Option<()> };
    (@type $result:path, code) => { Option<$result> };
    (@answer $answer:ident) => { $answer.ok() };
    (@answer $answer:ident, code) => { Some($answer) };
}

/// Calls `fill` with a place for a `T` and returns what it wrote.
fn filled<T: Copy>(fill: impl FnOnce(*mut T) -> Option<()>) -> Option<T> {
    let mut place = MaybeUninit::<T>::zeroed();
    fill(place.as_mut_ptr())?;
    // SAFETY: only used for numbers, handles, byte arrays and structs of these, for which zeros are valid; the driver
    // has filled it besides.
    Some(unsafe { place.assume_init() })
}

/// The same of a function that says why it refuses; `None` if the driver lacks it.
fn answered<T: Copy, E>(
    fill: impl FnOnce(*mut T) -> Option<Result<(), E>>,
) -> Result<Option<T>, E> {
    let mut refusal = None;
    let answer = filled(|place| match fill(place)? {
        Ok(()) => Some(()),
        Err(error) => {
            refusal = Some(error);
            None
        }
    });
    refusal.map_or(Ok(answer), Err)
}

/// The CUDA driver.
pub(crate) mod cuda {
    pub(crate) mod code;
    pub(crate) mod graph;
    pub(crate) mod needed;
    pub(crate) mod time;

    use super::*;
    use gpucap_abi::cuda::{
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_MEMORYTYPE_HOST,
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_PER_THREAD, CUDA_KERNEL_NODE_PARAMS,
        CUDA_MEM_ALLOC_NODE_PARAMS, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph,
        CUgraphExec, CUgraphNode, CUkernel, CUlibrary, CUmemoryPool, CUmodule, CUstream, CUuuid,
        CuError, CuResult,
    };

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
        fn mem_pool_trim_to = cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
        fn stream_get_ctx = cuStreamGetCtx(stream: CUstream, context: *mut CUcontext) -> code;
        fn stream_get_device = cuStreamGetDevice(stream: CUstream, device: *mut CUdevice);
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
        let name =
            text::of(|text, length| device_get_name(copy, text, length.cast_signed(), device));
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

    /// Whether calls on a stream are recorded instead of carried out. `per_thread` says what a null stream means.
    pub(crate) fn is_capturing(copy: &DriverCopy, stream: CUstream, per_thread: bool) -> bool {
        let status = filled(|status| match per_thread {
            true => stream_is_capturing_ptsz(copy, stream, status)?.ok(),
            false => stream_is_capturing(copy, stream, status)?.ok(),
        });
        status.is_some_and(|status: c_int| status != CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// The context of a stream; of the default streams, the current one.
    pub(crate) fn context_of(copy: &DriverCopy, stream: CUstream) -> Option<CUcontext> {
        let is_default = stream.address() <= CU_STREAM_PER_THREAD.address();
        let own = (!is_default).then(|| time::context_of(copy, stream)).flatten();
        own.or_else(|| current_context(copy))
    }

    /// Whether all work of a stream is known to be done. Not while it may be captured: asking would spoil that.
    pub(crate) fn is_idle(copy: &DriverCopy, context: CUcontext, stream: CUstream) -> bool {
        let ask = || {
            let answer = || stream_query(copy, stream).is_some_and(|answer| answer.is_ok());
            time::relaxed(copy, || time::carries_out(copy, stream) && answer())
        };
        time::in_context(copy, context, ask).unwrap_or(false)
    }

    /// Frees memory that the application has never seen.
    pub(crate) fn free(copy: &DriverCopy, pointer: CUdeviceptr) -> Option<()> {
        mem_free(copy, pointer)
    }
}

/// NVML.
pub(crate) mod nvml {
    pub(crate) mod process;

    use super::*;
    use gpucap_abi::nvml::{NvmlResult, nvmlDevice_t, nvmlMemory_t, nvmlProcessInfo_v1_t};
    use gpucap_core::uuid::DeviceName;

    functions! { NvmlResult;
        fn device_get_compute_instance = nvmlDeviceGetComputeInstanceId(device: nvmlDevice_t, id: *mut c_uint);
        fn device_get_compute_processes = nvmlDeviceGetComputeRunningProcesses(
            device: nvmlDevice_t, count: *mut c_uint, processes: *mut nvmlProcessInfo_v1_t);
        fn device_get_count = nvmlDeviceGetCount_v2(count: *mut c_uint);
        fn device_get_gpu_instance = nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, id: *mut c_uint);
        fn device_get_handle_by_index = nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t);
        fn device_get_index = nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint);
        fn device_get_max_mig_device_count = nvmlDeviceGetMaxMigDeviceCount(
            device: nvmlDevice_t, count: *mut c_uint);
        fn device_get_memory_info = nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t);
        fn device_get_mig_device_handle_by_index = nvmlDeviceGetMigDeviceHandleByIndex(
            device: nvmlDevice_t, index: c_uint, instance: *mut nvmlDevice_t);
        fn device_get_name = nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint);
        fn device_get_parent = nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
            instance: nvmlDevice_t, device: *mut nvmlDevice_t);
        fn device_get_uuid = nvmlDeviceGetUUID(device: nvmlDevice_t, text: *mut c_char, bytes: c_uint);
        fn init = nvmlInit_v2();
        fn shutdown = nvmlShutdown();
        fn system_get_driver_version = nvmlSystemGetDriverVersion(text: *mut c_char, bytes: c_uint);
    }

    /// The UUID of a device or MIG instance.
    pub(crate) fn uuid(copy: &DriverCopy, device: nvmlDevice_t) -> Option<DeviceName> {
        text::of(|text, length| device_get_uuid(copy, device, text, length))?.parse().ok()
    }

    /// Into how many slices MIG divides a device, by the name of its model.
    pub(crate) fn slices(copy: &DriverCopy, device: nvmlDevice_t) -> Option<Slices> {
        let name = text::of(|text, length| device_get_name(copy, device, text, length));
        name.map(|name| Slices::of_model(&name))
    }

    /// All of a device's memory, in bytes.
    pub(crate) fn total_bytes(copy: &DriverCopy, device: nvmlDevice_t) -> Option<u64> {
        filled(|memory| device_get_memory_info(copy, device, memory))
            .map(|memory: nvmlMemory_t| memory.total)
    }

    /// The driver's version: the first two numbers of it.
    pub(crate) fn driver_version(copy: &DriverCopy) -> Option<(u32, u32)> {
        let text = text::of(|text, length| system_get_driver_version(copy, text, length))?;
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    }

    /// The place of a device in nvidia-smi's order. MIG instances have none.
    pub(crate) fn index(copy: &DriverCopy, device: nvmlDevice_t) -> Option<u32> {
        filled(|index| device_get_index(copy, device, index))
    }

    /// The card of a MIG instance; `None` for a card.
    pub(crate) fn parent(copy: &DriverCopy, device: nvmlDevice_t) -> Option<nvmlDevice_t> {
        filled(|parent| device_get_parent(copy, device, parent))
    }

    /// The numbers of a MIG instance, of the GPU's and of the one that computes in it; `None` for a card.
    pub(crate) fn instance(copy: &DriverCopy, device: nvmlDevice_t) -> Option<(u32, u32)> {
        let gpu = filled(|id| device_get_gpu_instance(copy, device, id))?;
        Some((gpu, filled(|id| device_get_compute_instance(copy, device, id))?))
    }

    /// All cards, in nvidia-smi's order, each followed by its MIG instances. NVML is initialised for the duration.
    pub(crate) fn each_device(
        copy: &DriverCopy,
        visit: &mut dyn FnMut(nvmlDevice_t),
    ) -> Option<()> {
        init(copy)?;
        for index in 0..filled(|count| device_get_count(copy, count)).unwrap_or(0) {
            let Some(device) = filled(|device| device_get_handle_by_index(copy, index, device))
            else {
                continue;
            };
            visit(device);
            let instances = filled(|count| device_get_max_mig_device_count(copy, device, count));
            for instance in 0..instances.unwrap_or(0) {
                let handle = filled(|handle| {
                    device_get_mig_device_handle_by_index(copy, device, instance, handle)
                });
                handle.into_iter().for_each(&mut *visit);
            }
        }
        shutdown(copy)
    }
}
