//! THE table of intercepted CUDA driver functions.

/// Hands every row to `$consumer!`.
///
/// A row reads
///
/// ```text
/// fn SYMBOL(argument: type, ...) => module::handler, class, "base name" @ since [ptsz];
/// ```
///
/// * `SYMBOL` is the exported name, with the exact C types of its arguments; it returns `CUresult`.
/// * `module::handler` is the function below `shim/src/cuda` that gives the row its meaning.
/// * `class` says what the function does to a limit: `init`, `resolve`, `alloc`, `free`, `map`, `context`, `graph`,
///   `code`, `report`; `sync`, and `launch` and `order`, which only a limit of time needs, stand in
///   [`cuda_time_api!`](crate::cuda_time_api!).
/// * `cuGetProcAddress("base name", version >= since)` answers with this symbol, until a later row of the same base
///   name; `ptsz` marks the answer to callers that ask for per-thread default streams. Versions: measured on driver
///   555, from header types above it.
///
/// The row's documentation says what happens to the limit. One row is one intercepted function: hook, original,
/// redirected symbol, stub entry, conformance case and manual page all come from it. Ordered by CUDA noun, then name.
#[macro_export]
macro_rules! cuda_api {
    ($consumer:path) => {
        $crate::cuda_time_api! { $consumer;
            // --- initialisation and look-up ---
            /// Refused with `CUDA_ERROR_SYSTEM_NOT_READY` when the limits cannot be used.
            fn cuInit(flags: u32) => init::init, init, "cuInit" @ 2000;
            /// The driver answers; a returned address that a row intercepts is replaced by that row's hook.
            fn cuGetProcAddress(symbol: *const ::core::ffi::c_char, pfn: *mut *mut ::core::ffi::c_void,
                version: ::core::ffi::c_int, flags: u64)
                => resolve::proc_address, resolve, "cuGetProcAddress" @ 11030;
            /// As `cuGetProcAddress`, with a status.
            fn cuGetProcAddress_v2(symbol: *const ::core::ffi::c_char, pfn: *mut *mut ::core::ffi::c_void,
                version: ::core::ffi::c_int, flags: u64, status: *mut $crate::cuda::CUdriverProcAddressQueryResult)
                => resolve::proc_address_v2, resolve, "cuGetProcAddress" @ 12000;

            // --- devices ---
            /// Answers the smaller of the limit and the card, in 32 bits.
            fn cuDeviceTotalMem(bytes: *mut u32, device: $crate::cuda::CUdevice)
                => report::total, report, "cuDeviceTotalMem" @ 2000;
            /// Answers the smaller of the limit and the card.
            fn cuDeviceTotalMem_v2(bytes: *mut usize, device: $crate::cuda::CUdevice)
                => report::total, report, "cuDeviceTotalMem" @ 3020;

            // --- primary contexts ---
            /// The first one charges the price of a context; refused if that does not fit.
            fn cuDevicePrimaryCtxRetain(context: *mut $crate::cuda::CUcontext, device: $crate::cuda::CUdevice)
                => context::primary_retain, context, "cuDevicePrimaryCtxRetain" @ 7000;
            /// The last one refunds the context and what it held.
            fn cuDevicePrimaryCtxRelease(device: $crate::cuda::CUdevice)
                => context::primary_release, context, "cuDevicePrimaryCtxRelease" @ 7000;
            /// The last one refunds the context and what it held.
            fn cuDevicePrimaryCtxRelease_v2(device: $crate::cuda::CUdevice)
                => context::primary_release, context, "cuDevicePrimaryCtxRelease" @ 11000;
            /// Refunds what the context held.
            fn cuDevicePrimaryCtxReset(device: $crate::cuda::CUdevice)
                => context::primary_reset, context, "cuDevicePrimaryCtxReset" @ 7000;
            /// Refunds what the context held.
            fn cuDevicePrimaryCtxReset_v2(device: $crate::cuda::CUdevice)
                => context::primary_reset, context, "cuDevicePrimaryCtxReset" @ 11000;

            // --- contexts ---
            /// One more user of the current context.
            fn cuCtxAttach(context: *mut $crate::cuda::CUcontext, flags: u32)
                => context::attach, context, "cuCtxAttach" @ 2000;
            /// Charges the price of a context; refused if that does not fit.
            fn cuCtxCreate(context: *mut $crate::cuda::CUcontext, flags: u32, device: $crate::cuda::CUdevice)
                => context::create, context, "cuCtxCreate" @ 2000;
            /// Charges the price of a context; refused if that does not fit.
            fn cuCtxCreate_v2(context: *mut $crate::cuda::CUcontext, flags: u32, device: $crate::cuda::CUdevice)
                => context::create, context, "cuCtxCreate" @ 3020;
            /// Charges the price of a context; refused if that does not fit.
            fn cuCtxCreate_v3(context: *mut $crate::cuda::CUcontext, params: *mut ::core::ffi::c_void,
                count: ::core::ffi::c_int, flags: u32, device: $crate::cuda::CUdevice)
                => context::create_with_affinity, context, "cuCtxCreate" @ 11040;
            /// Charges the price of a context; refused if that does not fit.
            fn cuCtxCreate_v4(context: *mut $crate::cuda::CUcontext, params: *mut ::core::ffi::c_void, flags: u32,
                device: $crate::cuda::CUdevice)
                => context::create_with_params, context, "cuCtxCreate" @ 12050;
            /// Refunds the context and what ends with it: not pools, not virtual memory management.
            fn cuCtxDestroy(context: $crate::cuda::CUcontext) => context::destroy, free, "cuCtxDestroy" @ 2000;
            /// Refunds the context and what ends with it: not pools, not virtual memory management.
            fn cuCtxDestroy_v2(context: $crate::cuda::CUcontext) => context::destroy, free, "cuCtxDestroy" @ 4000;
            /// One user less; the last one refunds.
            fn cuCtxDetach(context: $crate::cuda::CUcontext) => context::detach, free, "cuCtxDetach" @ 2000;
            /// Charges by how much stacks, print buffer or heap grow beyond what a context starts with.
            fn cuCtxSetLimit(limit: ::core::ffi::c_int, value: usize)
                => context_limit::set, alloc, "cuCtxSetLimit" @ 3010;
            /// Memory allocated in it ends with the primary context.
            fn cuCtxFromGreenCtx(context: *mut $crate::cuda::CUcontext, green: $crate::cuda::CUgreenCtx)
                => context::from_green, context, "cuCtxFromGreenCtx" @ 12040;
            /// Charges the price of a context; refused if that does not fit.
            fn cuGLCtxCreate(context: *mut $crate::cuda::CUcontext, flags: u32, device: $crate::cuda::CUdevice)
                => context::create, context, "cuGLCtxCreate" @ 2000;
            /// Charges the price of a context; refused if that does not fit.
            fn cuGLCtxCreate_v2(context: *mut $crate::cuda::CUcontext, flags: u32, device: $crate::cuda::CUdevice)
                => context::create, context, "cuGLCtxCreate" @ 3020;
            /// Retains the primary context, which the first one charges.
            fn cuGreenCtxCreate(green: *mut $crate::cuda::CUgreenCtx, resources: $crate::cuda::CUdevResourceDesc,
                device: $crate::cuda::CUdevice, flags: u32)
                => context::create_green, context, "cuGreenCtxCreate" @ 12040;
            /// Releases the primary context.
            fn cuGreenCtxDestroy(green: $crate::cuda::CUgreenCtx)
                => context::destroy_green, free, "cuGreenCtxDestroy" @ 12040;
            /// Charges the price of a context; refused if that does not fit.
            fn cuVDPAUCtxCreate(context: *mut $crate::cuda::CUcontext, flags: u32, device: $crate::cuda::CUdevice,
                vdp_device: u32, vdp_proc_address: *mut ::core::ffi::c_void)
                => context::create_vdpau, context, "cuVDPAUCtxCreate" @ 3010;
            /// Charges the price of a context; refused if that does not fit.
            fn cuVDPAUCtxCreate_v2(context: *mut $crate::cuda::CUcontext, flags: u32, device: $crate::cuda::CUdevice,
                vdp_device: u32, vdp_proc_address: *mut ::core::ffi::c_void)
                => context::create_vdpau, context, "cuVDPAUCtxCreate" @ 3020;

            // --- code ---
            /// Charged by what it takes, as measured; if that does not fit, it is unloaded again.
            fn cuModuleLoad(module: *mut $crate::cuda::CUmodule, path: *const ::core::ffi::c_char)
                => code::load_file, code, "cuModuleLoad" @ 2000;
            /// Charged by what it takes, as measured; if that does not fit, it is unloaded again.
            fn cuModuleLoadData(module: *mut $crate::cuda::CUmodule, image: *const ::core::ffi::c_void)
                => code::load_image, code, "cuModuleLoadData" @ 2000;
            /// Charged by what it takes, as measured; if that does not fit, it is unloaded again.
            fn cuModuleLoadDataEx(module: *mut $crate::cuda::CUmodule, image: *const ::core::ffi::c_void, count: u32,
                options: *mut ::core::ffi::c_int, values: *mut *mut ::core::ffi::c_void)
                => code::load_image_with_options, code, "cuModuleLoadDataEx" @ 2010;
            /// Charged by what it takes, as measured; if that does not fit, it is unloaded again.
            fn cuModuleLoadFatBinary(module: *mut $crate::cuda::CUmodule, image: *const ::core::ffi::c_void)
                => code::load_image, code, "cuModuleLoadFatBinary" @ 2000;
            /// Refunds what was charged for the module.
            fn cuModuleUnload(module: $crate::cuda::CUmodule) => code::unload, free, "cuModuleUnload" @ 2000;
            /// Charged by what it takes, as measured, where functions are loaded lazily.
            fn cuModuleGetFunction(function: *mut $crate::cuda::CUfunction, module: $crate::cuda::CUmodule,
                name: *const ::core::ffi::c_char)
                => code::function_of_module, code, "cuModuleGetFunction" @ 2000;
            /// Charged by what it takes, as measured, where functions are loaded lazily.
            fn cuFuncLoad(function: $crate::cuda::CUfunction) => code::load_function, code, "cuFuncLoad" @ 12040;
            /// Charged by what it takes in the current context, as measured; if that does not fit, it is unloaded again.
            fn cuLibraryLoadData(library: *mut $crate::cuda::CUlibrary, image: *const ::core::ffi::c_void,
                jit_options: *mut ::core::ffi::c_int, jit_values: *mut *mut ::core::ffi::c_void, jit_count: u32,
                options: *mut ::core::ffi::c_int, values: *mut *mut ::core::ffi::c_void, count: u32)
                => code::load_library, code, "cuLibraryLoadData" @ 12000;
            /// Charged by what it takes in the current context, as measured; if that does not fit, it is unloaded again.
            fn cuLibraryLoadFromFile(library: *mut $crate::cuda::CUlibrary, path: *const ::core::ffi::c_char,
                jit_options: *mut ::core::ffi::c_int, jit_values: *mut *mut ::core::ffi::c_void, jit_count: u32,
                options: *mut ::core::ffi::c_int, values: *mut *mut ::core::ffi::c_void, count: u32)
                => code::load_library_file, code, "cuLibraryLoadFromFile" @ 12000;
            /// Refunds what was charged for the library, in all contexts.
            fn cuLibraryUnload(library: $crate::cuda::CUlibrary)
                => code::unload_library, free, "cuLibraryUnload" @ 12000;
            /// Charged by what it takes, as measured: the first use in a context loads the library there.
            fn cuLibraryGetGlobal(pointer: *mut $crate::cuda::CUdeviceptr, bytes: *mut usize,
                library: $crate::cuda::CUlibrary, name: *const ::core::ffi::c_char)
                => code::variable_of_library, code, "cuLibraryGetGlobal" @ 12000;
            /// Charged by what it takes, as measured: the first use in a context loads the library there.
            fn cuLibraryGetManaged(pointer: *mut $crate::cuda::CUdeviceptr, bytes: *mut usize,
                library: $crate::cuda::CUlibrary, name: *const ::core::ffi::c_char)
                => code::variable_of_library, code, "cuLibraryGetManaged" @ 12000;
            /// Charged by what it takes, as measured: the first use in a context loads the library there.
            fn cuLibraryGetModule(module: *mut $crate::cuda::CUmodule, library: $crate::cuda::CUlibrary)
                => code::module_of_library, code, "cuLibraryGetModule" @ 12000;
            /// Charged by what it takes, as measured: the first use in a context loads the library there.
            fn cuKernelGetFunction(function: *mut $crate::cuda::CUfunction, kernel: $crate::cuda::CUkernel)
                => code::function_of_kernel, code, "cuKernelGetFunction" @ 12000;

            // --- memory: linear ---
            /// Charged; refunded by `cuMemFree`.
            fn cuMemAlloc(pointer: *mut $crate::cuda::CUdeviceptr_v1, bytes: u32)
                => memory::alloc, alloc, "cuMemAlloc" @ 2000;
            /// Charged; refunded by `cuMemFree`.
            fn cuMemAlloc_v2(pointer: *mut $crate::cuda::CUdeviceptr, bytes: usize)
                => memory::alloc, alloc, "cuMemAlloc" @ 3020;
            /// Charged in full, wherever its pages live at the moment.
            fn cuMemAllocManaged(pointer: *mut $crate::cuda::CUdeviceptr, bytes: usize, flags: u32)
                => memory::alloc_managed, alloc, "cuMemAllocManaged" @ 6000;
            /// Charged as pitch x height, with the pitch that the driver chose.
            fn cuMemAllocPitch(pointer: *mut $crate::cuda::CUdeviceptr_v1, pitch: *mut u32, width_bytes: u32,
                height: u32, element_bytes: u32)
                => memory::alloc_pitch, alloc, "cuMemAllocPitch" @ 2000;
            /// Charged as pitch x height, with the pitch that the driver chose.
            fn cuMemAllocPitch_v2(pointer: *mut $crate::cuda::CUdeviceptr, pitch: *mut usize, width_bytes: usize,
                height: usize, element_bytes: u32)
                => memory::alloc_pitch, alloc, "cuMemAllocPitch" @ 3020;
            /// Refunds the allocation at this address; an address we do not know is the driver's business.
            fn cuMemFree(pointer: $crate::cuda::CUdeviceptr_v1) => memory::free, free, "cuMemFree" @ 2000;
            /// Refunds the allocation at this address; an address we do not know is the driver's business.
            fn cuMemFree_v2(pointer: $crate::cuda::CUdeviceptr) => memory::free, free, "cuMemFree" @ 3020;

            // --- memory: stream-ordered ---
            /// Charged when called, unless the stream is captured: then the graph is. Refunded by `cuMemFreeAsync` or
            /// `cuMemFree`.
            fn cuMemAllocAsync(pointer: *mut $crate::cuda::CUdeviceptr, bytes: usize, stream: $crate::cuda::CUstream)
                => pool::alloc, alloc, "cuMemAllocAsync" @ 11020;
            /// Charged when called, unless the stream is captured: then the graph is. Refunded by `cuMemFreeAsync` or
            /// `cuMemFree`.
            fn cuMemAllocAsync_ptsz(pointer: *mut $crate::cuda::CUdeviceptr, bytes: usize,
                stream: $crate::cuda::CUstream)
                => pool::alloc, alloc, "cuMemAllocAsync" @ 11020 ptsz;
            /// Charged to the device of the pool; pools of host memory are free of charge.
            fn cuMemAllocFromPoolAsync(pointer: *mut $crate::cuda::CUdeviceptr, bytes: usize,
                pool: $crate::cuda::CUmemoryPool, stream: $crate::cuda::CUstream)
                => pool::alloc_from, alloc, "cuMemAllocFromPoolAsync" @ 11020;
            /// Charged to the device of the pool; pools of host memory are free of charge.
            fn cuMemAllocFromPoolAsync_ptsz(pointer: *mut $crate::cuda::CUdeviceptr, bytes: usize,
                pool: $crate::cuda::CUmemoryPool, stream: $crate::cuda::CUstream)
                => pool::alloc_from, alloc, "cuMemAllocFromPoolAsync" @ 11020 ptsz;
            /// Refunded when called: from here on the bytes serve only this container's pool.
            fn cuMemFreeAsync(pointer: $crate::cuda::CUdeviceptr, stream: $crate::cuda::CUstream)
                => pool::free, free, "cuMemFreeAsync" @ 11020;
            /// Refunded when called: from here on the bytes serve only this container's pool.
            fn cuMemFreeAsync_ptsz(pointer: $crate::cuda::CUdeviceptr, stream: $crate::cuda::CUstream)
                => pool::free, free, "cuMemFreeAsync" @ 11020 ptsz;

            // --- memory: pools ---
            /// Returns the device that the default pool belongs to.
            fn cuDeviceGetDefaultMemPool(pool: *mut $crate::cuda::CUmemoryPool, device: $crate::cuda::CUdevice)
                => pool::of_device, map, "cuDeviceGetDefaultMemPool" @ 11020;
            /// Returns the device that the current pool belongs to, unless it is known.
            fn cuDeviceGetMemPool(pool: *mut $crate::cuda::CUmemoryPool, device: $crate::cuda::CUdevice)
                => pool::of_device, map, "cuDeviceGetMemPool" @ 11020;
            /// Returns where the pool's memory is.
            fn cuMemGetDefaultMemPool(pool: *mut $crate::cuda::CUmemoryPool, location: *mut $crate::cuda::CUmemLocation,
                kind: ::core::ffi::c_int) => pool::of_location, map, "cuMemGetDefaultMemPool" @ 13000;
            /// Returns where the pool's memory is.
            fn cuMemGetMemPool(pool: *mut $crate::cuda::CUmemoryPool, location: *mut $crate::cuda::CUmemLocation,
                kind: ::core::ffi::c_int) => pool::of_location, map, "cuMemGetMemPool" @ 13000;
            /// From here on `cuMemAllocAsync` takes from this pool.
            fn cuDeviceSetMemPool(device: $crate::cuda::CUdevice, pool: $crate::cuda::CUmemoryPool)
                => pool::set_current, map, "cuDeviceSetMemPool" @ 11020;
            /// From here on `cuMemAllocAsync` takes from this pool.
            fn cuMemSetMemPool(location: *mut $crate::cuda::CUmemLocation, kind: ::core::ffi::c_int,
                pool: $crate::cuda::CUmemoryPool)
                => pool::set_current_at, map, "cuMemSetMemPool" @ 13000;
            /// Returns where the pool's memory is. Nothing is charged: the driver reserves when it is used.
            fn cuMemPoolCreate(pool: *mut $crate::cuda::CUmemoryPool, props: *const $crate::cuda::CUmemPoolProps)
                => pool::create, map, "cuMemPoolCreate" @ 11020;
            /// Refunds what the pool kept.
            fn cuMemPoolDestroy(pool: $crate::cuda::CUmemoryPool) => pool::destroy, free, "cuMemPoolDestroy" @ 11020;
            /// The memory is another's, and so is its charge.
            fn cuMemPoolImportFromShareableHandle(pool: *mut $crate::cuda::CUmemoryPool,
                handle: *mut ::core::ffi::c_void, kind: ::core::ffi::c_int, flags: u64)
                => pool::import, map, "cuMemPoolImportFromShareableHandle" @ 11020;
            /// No size that it answers is beyond the limit: the driver reserves in large pieces.
            fn cuMemPoolGetAttribute(pool: $crate::cuda::CUmemoryPool, attribute: ::core::ffi::c_int,
                value: *mut ::core::ffi::c_void)
                => report::pool_attribute, report, "cuMemPoolGetAttribute" @ 11020;
            /// A release threshold makes the pool keep what is freed: charged while it does.
            fn cuMemPoolSetAttribute(pool: $crate::cuda::CUmemoryPool, attribute: ::core::ffi::c_int,
                value: *mut ::core::ffi::c_void)
                => pool::set_attribute, map, "cuMemPoolSetAttribute" @ 11020;
            /// Refunds what the pool gives back.
            fn cuMemPoolTrimTo(pool: $crate::cuda::CUmemoryPool, keep: usize)
                => pool::trim, free, "cuMemPoolTrimTo" @ 11020;

            /// Memory of another process, which is charged for it.
            fn cuMemPoolImportPointer(pointer: *mut $crate::cuda::CUdeviceptr, pool: $crate::cuda::CUmemoryPool,
                data: *mut $crate::cuda::CUmemPoolPtrExportData)
                => import::pool_pointer, map, "cuMemPoolImportPointer" @ 11020;

            // --- memory: of others ---
            /// Memory of another process, which is charged for it.
            fn cuIpcOpenMemHandle(pointer: *mut $crate::cuda::CUdeviceptr, handle: $crate::cuda::CUipcMemHandle,
                flags: u32) => import::ipc, map, "cuIpcOpenMemHandle" @ 4010;
            /// Memory of another process, which is charged for it.
            fn cuIpcOpenMemHandle_v2(pointer: *mut $crate::cuda::CUdeviceptr, handle: $crate::cuda::CUipcMemHandle,
                flags: u32) => import::ipc, map, "cuIpcOpenMemHandle" @ 11000;
            /// Refunds nothing: what was opened is charged to the process that made it.
            fn cuIpcCloseMemHandle(pointer: $crate::cuda::CUdeviceptr)
                => import::close_ipc, map, "cuIpcCloseMemHandle" @ 4010;

            // --- memory: graphs ---
            /// No size that it answers is beyond the limit.
            fn cuDeviceGetGraphMemAttribute(device: $crate::cuda::CUdevice, attribute: ::core::ffi::c_int,
                value: *mut ::core::ffi::c_void)
                => report::graph_attribute, report, "cuDeviceGetGraphMemAttribute" @ 11040;
            /// Refunds what graphs give back.
            fn cuDeviceGraphMemTrim(device: $crate::cuda::CUdevice)
                => graph::trim, free, "cuDeviceGraphMemTrim" @ 11040;
            /// Waits while another thread makes the graph executable: its allocations are counted until then.
            fn cuGraphDestroy(graph: $crate::cuda::CUgraph) => graph::end, free, "cuGraphDestroy" @ 10000;
            /// Refunds the graph's allocations as far as graphs do not keep the memory.
            fn cuGraphExecDestroy(exec: $crate::cuda::CUgraphExec)
                => graph::destroy, free, "cuGraphExecDestroy" @ 10000;
            /// Charged by the sum of the graph's allocations, which its launches will need.
            fn cuGraphInstantiate(exec: *mut $crate::cuda::CUgraphExec, graph: $crate::cuda::CUgraph,
                error: *mut $crate::cuda::CUgraphNode, log: *mut ::core::ffi::c_char, bytes: usize)
                => graph::instantiate_logged, graph, "cuGraphInstantiate" @ 10000;
            /// Charged by the sum of the graph's allocations, which its launches will need.
            fn cuGraphInstantiate_v2(exec: *mut $crate::cuda::CUgraphExec, graph: $crate::cuda::CUgraph,
                error: *mut $crate::cuda::CUgraphNode, log: *mut ::core::ffi::c_char, bytes: usize)
                => graph::instantiate_logged, graph, "cuGraphInstantiate" @ 11000;
            /// Charged by the sum of the graph's allocations, which its launches will need.
            fn cuGraphInstantiateWithFlags(exec: *mut $crate::cuda::CUgraphExec, graph: $crate::cuda::CUgraph,
                flags: u64)
                => graph::instantiate_with_flags, graph, "cuGraphInstantiateWithFlags" @ 11040;
            /// Charged by the sum of the graph's allocations, which its launches will need.
            fn cuGraphInstantiateWithParams(exec: *mut $crate::cuda::CUgraphExec, graph: $crate::cuda::CUgraph,
                params: *mut ::core::ffi::c_void)
                => graph::instantiate_with_params, graph, "cuGraphInstantiateWithParams" @ 12000;
            /// Charged by the sum of the graph's allocations, which its launches will need.
            fn cuGraphInstantiateWithParams_ptsz(exec: *mut $crate::cuda::CUgraphExec, graph: $crate::cuda::CUgraph,
                params: *mut ::core::ffi::c_void)
                => graph::instantiate_with_params, graph, "cuGraphInstantiateWithParams" @ 12000 ptsz;

            // --- memory: virtual memory management ---
            /// Charged if the location is a device; host locations are free.
            fn cuMemCreate(handle: *mut $crate::cuda::CUmemGenericAllocationHandle, bytes: usize,
                prop: *const $crate::cuda::CUmemAllocationProp, flags: u64)
                => vmm::create, alloc, "cuMemCreate" @ 10020;
            /// Drops one reference; the last reference and the last mapping together refund.
            fn cuMemRelease(handle: $crate::cuda::CUmemGenericAllocationHandle)
                => vmm::release, free, "cuMemRelease" @ 10020;
            /// Adds a reference.
            fn cuMemRetainAllocationHandle(handle: *mut $crate::cuda::CUmemGenericAllocationHandle,
                address: *mut ::core::ffi::c_void)
                => vmm::retain, map, "cuMemRetainAllocationHandle" @ 11000;
            /// As long as it is open, a file keeps the memory as a handle does.
            fn cuMemExportToShareableHandle(shareable: *mut ::core::ffi::c_void,
                handle: $crate::cuda::CUmemGenericAllocationHandle, kind: ::core::ffi::c_int, flags: u64)
                => vmm::export, map, "cuMemExportToShareableHandle" @ 10020;
            /// Memory of another process is that one's to pay for; memory of this one gets one more handle.
            fn cuMemImportFromShareableHandle(handle: *mut $crate::cuda::CUmemGenericAllocationHandle,
                shareable: *mut ::core::ffi::c_void, kind: ::core::ffi::c_int)
                => vmm::import, map, "cuMemImportFromShareableHandle" @ 10020;
            /// A mapping keeps the memory alive.
            fn cuMemMap(address: $crate::cuda::CUdeviceptr, bytes: usize, offset: usize,
                handle: $crate::cuda::CUmemGenericAllocationHandle, flags: u64)
                => vmm::map, map, "cuMemMap" @ 10020;
            /// Memory behind tiles of a sparse array stays alive until they are mapped again or unmapped, or the array
            /// ends.
            fn cuMemMapArrayAsync(maps: $crate::arg::ConstList<$crate::cuda::CUarrayMapInfo>, count: u32,
                stream: $crate::cuda::CUstream)
                => vmm::map_array, map, "cuMemMapArrayAsync" @ 11010;
            /// Memory behind tiles of a sparse array stays alive until they are mapped again or unmapped, or the array
            /// ends.
            fn cuMemMapArrayAsync_ptsz(maps: $crate::arg::ConstList<$crate::cuda::CUarrayMapInfo>, count: u32,
                stream: $crate::cuda::CUstream)
                => vmm::map_array, map, "cuMemMapArrayAsync" @ 11010 ptsz;
            /// Ends the mappings inside the range.
            fn cuMemUnmap(address: $crate::cuda::CUdeviceptr, bytes: usize)
                => vmm::unmap, map, "cuMemUnmap" @ 10020;

            // --- memory: arrays ---
            /// Charged as width x height x depth x channels x format.
            fn cuArrayCreate(array: *mut $crate::cuda::CUarray, descriptor: *const $crate::cuda::CUDA_ARRAY_DESCRIPTOR_v1)
                => array::create, alloc, "cuArrayCreate" @ 2000;
            /// Charged as width x height x depth x channels x format.
            fn cuArrayCreate_v2(array: *mut $crate::cuda::CUarray, descriptor: *const $crate::cuda::CUDA_ARRAY_DESCRIPTOR)
                => array::create, alloc, "cuArrayCreate" @ 3020;
            /// Charged as width x height x depth x channels x format; sparse and deferred arrays own nothing.
            fn cuArray3DCreate(array: *mut $crate::cuda::CUarray,
                descriptor: *const $crate::cuda::CUDA_ARRAY3D_DESCRIPTOR_v1)
                => array::create, alloc, "cuArray3DCreate" @ 2000;
            /// Charged as width x height x depth x channels x format; sparse and deferred arrays own nothing.
            fn cuArray3DCreate_v2(array: *mut $crate::cuda::CUarray,
                descriptor: *const $crate::cuda::CUDA_ARRAY3D_DESCRIPTOR)
                => array::create, alloc, "cuArray3DCreate" @ 3020;
            /// Charged as the sum of its levels; sparse and deferred arrays own nothing.
            fn cuMipmappedArrayCreate(array: *mut $crate::cuda::CUmipmappedArray,
                descriptor: *const $crate::cuda::CUDA_ARRAY3D_DESCRIPTOR, levels: u32)
                => array::create_mipmapped, alloc, "cuMipmappedArrayCreate" @ 5000;
            /// Refunds the array.
            fn cuMipmappedArrayDestroy(array: $crate::cuda::CUmipmappedArray)
                => array::destroy_mipmapped, free, "cuMipmappedArrayDestroy" @ 5000;
            /// Refunds the array.
            fn cuArrayDestroy(array: $crate::cuda::CUarray) => array::destroy, free, "cuArrayDestroy" @ 2000;

            // --- memory: reports ---
            /// Answers the slice: total = min(limit, GPU's memory), free = min(total - used, the driver's free), in 32 bits.
            fn cuMemGetInfo(free: *mut u32, total: *mut u32) => report::info, report, "cuMemGetInfo" @ 2000;
            /// Answers the slice: total = min(limit, GPU's memory), free = min(total - used, the driver's free).
            fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) => report::info, report, "cuMemGetInfo" @ 3020;
        }
    };
}
