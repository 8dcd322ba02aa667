//! The rows of [`cuda_api!`](crate::cuda_api!) that only a limit of time needs.
//!
//! `launch` is what keeps a card's multiprocessors busy: kernels, graphs, memory that is set or copied on the device, of
//! which the rows stand in [`cuda_copy_api!`](crate::cuda_copy_api!).
//! `order` tells the meter of time what it has to know besides: that work is done, that a stream is captured or gone, and,
//! by the rows of [`cuda_fence_api!`](crate::cuda_fence_api!), that something enters a stream that is no launch.
//! Without a limit of time neither is intercepted: look-ups answer with the driver's own functions. `sync` is both the
//! meter's and the pools': what is free goes back to the card when the host waits, so these are intercepted with any limit.

/// Hands the rows it is given, and these behind them, to `$consumer!`.
#[doc(hidden)]
#[macro_export]
macro_rules! cuda_time_api {
    ($consumer:path; $($memory:tt)*) => {
        $crate::cuda_copy_api! { $consumer;
            $($memory)*

            // --- launches ---
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchKernel(function: $crate::cuda::CUfunction, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32,
                block_y: u32, block_z: u32, shared_bytes: u32, stream: $crate::cuda::CUstream,
                params: *mut *mut ::core::ffi::c_void, extra: *mut *mut ::core::ffi::c_void)
                => launch::kernel, launch, "cuLaunchKernel" @ 4000;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchKernel_ptsz(function: $crate::cuda::CUfunction, grid_x: u32, grid_y: u32, grid_z: u32,
                block_x: u32, block_y: u32, block_z: u32, shared_bytes: u32, stream: $crate::cuda::CUstream,
                params: *mut *mut ::core::ffi::c_void, extra: *mut *mut ::core::ffi::c_void)
                => launch::kernel, launch, "cuLaunchKernel" @ 7000 ptsz;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchKernelEx(config: *const $crate::cuda::CUlaunchConfig, function: $crate::cuda::CUfunction,
                params: *mut *mut ::core::ffi::c_void, extra: *mut *mut ::core::ffi::c_void)
                => launch::kernel_ex, launch, "cuLaunchKernelEx" @ 11060;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchKernelEx_ptsz(config: *const $crate::cuda::CUlaunchConfig, function: $crate::cuda::CUfunction,
                params: *mut *mut ::core::ffi::c_void, extra: *mut *mut ::core::ffi::c_void)
                => launch::kernel_ex, launch, "cuLaunchKernelEx" @ 11060 ptsz;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchCooperativeKernel(function: $crate::cuda::CUfunction, grid_x: u32, grid_y: u32, grid_z: u32,
                block_x: u32, block_y: u32, block_z: u32, shared_bytes: u32, stream: $crate::cuda::CUstream,
                params: *mut *mut ::core::ffi::c_void)
                => launch::cooperative, launch, "cuLaunchCooperativeKernel" @ 9000;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchCooperativeKernel_ptsz(function: $crate::cuda::CUfunction, grid_x: u32, grid_y: u32, grid_z: u32,
                block_x: u32, block_y: u32, block_z: u32, shared_bytes: u32, stream: $crate::cuda::CUstream,
                params: *mut *mut ::core::ffi::c_void)
                => launch::cooperative, launch, "cuLaunchCooperativeKernel" @ 9000 ptsz;
            /// Pays on each device for the time that its part takes.
            fn cuLaunchCooperativeKernelMultiDevice(list: $crate::arg::List<$crate::cuda::CUDA_LAUNCH_PARAMS>,
                count: u32, flags: u32)
                => launch::cooperative_multi_device, launch, "cuLaunchCooperativeKernelMultiDevice" @ 9000;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunch(function: $crate::cuda::CUfunction) => launch::first, launch, "cuLaunch" @ 2000;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchGrid(function: $crate::cuda::CUfunction, width: ::core::ffi::c_int, height: ::core::ffi::c_int)
                => launch::grid, launch, "cuLaunchGrid" @ 2000;
            /// Pays for the time that the kernel takes; waits first while the share is used up.
            fn cuLaunchGridAsync(function: $crate::cuda::CUfunction, width: ::core::ffi::c_int,
                height: ::core::ffi::c_int, stream: $crate::cuda::CUstream)
                => launch::grid_async, launch, "cuLaunchGridAsync" @ 2000;
            /// Pays for the time that the whole graph takes; waits first while the share is used up.
            fn cuGraphLaunch(exec: $crate::cuda::CUgraphExec, stream: $crate::cuda::CUstream)
                => launch::graph, launch, "cuGraphLaunch" @ 10000;
            /// Pays for the time that the whole graph takes; waits first while the share is used up.
            fn cuGraphLaunch_ptsz(exec: $crate::cuda::CUgraphExec, stream: $crate::cuda::CUstream)
                => launch::graph, launch, "cuGraphLaunch" @ 10000 ptsz;

            // --- when work is done ---
            /// Work is done when it returns: what was paid in advance is settled, and what pools gave back is refunded.
            fn cuCtxSynchronize() => synchronize::context_synchronize, sync, "cuCtxSynchronize" @ 2000;
            /// Work is done when it returns: what was paid in advance is settled, and what pools gave back is refunded.
            fn cuCtxSynchronize_v2(context: $crate::cuda::CUcontext)
                => synchronize::context_synchronize_v2, sync, "cuCtxSynchronize" @ 13000;
            /// Work is done when it returns: what was paid in advance is settled, and what pools gave back is refunded.
            fn cuEventSynchronize(event: $crate::cuda::CUevent)
                => synchronize::event_synchronize, sync, "cuEventSynchronize" @ 2000;
            /// Work is done when it returns: what was paid in advance is settled, and what pools gave back is refunded.
            fn cuStreamSynchronize(stream: $crate::cuda::CUstream)
                => synchronize::stream_synchronize, sync, "cuStreamSynchronize" @ 2000;
            /// Work is done when it returns: what was paid in advance is settled, and what pools gave back is refunded.
            fn cuStreamSynchronize_ptsz(stream: $crate::cuda::CUstream)
                => synchronize::stream_synchronize, sync, "cuStreamSynchronize" @ 7000 ptsz;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyDtoH(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr_v1, bytes: u32)
                => synchronize::copy_to_host, order, "cuMemcpyDtoH" @ 2000;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyDtoH_v2(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => synchronize::copy_to_host, order, "cuMemcpyDtoH" @ 3020;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyDtoH_v2_ptds(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => synchronize::copy_to_host, order, "cuMemcpyDtoH" @ 7000 ptsz;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyAtoH(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: u32, bytes: u32)
                => synchronize::array_to_host, order, "cuMemcpyAtoH" @ 2000;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyAtoH_v2(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: usize, bytes: usize)
                => synchronize::array_to_host, order, "cuMemcpyAtoH" @ 3020;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyAtoH_v2_ptds(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: usize,
                bytes: usize)
                => synchronize::array_to_host, order, "cuMemcpyAtoH" @ 7000 ptsz;
            /// What is in flight stays paid for; another stream may have the handle next.
            fn cuStreamDestroy(stream: $crate::cuda::CUstream)
                => synchronize::stream_destroy, sync, "cuStreamDestroy" @ 2000;
            /// What is in flight stays paid for; another stream may have the handle next.
            fn cuStreamDestroy_v2(stream: $crate::cuda::CUstream)
                => synchronize::stream_destroy, sync, "cuStreamDestroy" @ 4000;

            // --- what is recorded instead of carried out ---
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture(stream: $crate::cuda::CUstream)
                => synchronize::begin_capture, order, "cuStreamBeginCapture" @ 10000;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture_ptsz(stream: $crate::cuda::CUstream)
                => synchronize::begin_capture, order, "cuStreamBeginCapture" @ 10000 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture_v2(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int)
                => synchronize::begin_capture_v2, order, "cuStreamBeginCapture" @ 10010;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture_v2_ptsz(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int)
                => synchronize::begin_capture_v2, order, "cuStreamBeginCapture" @ 10010 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToGraph(stream: $crate::cuda::CUstream, graph: $crate::cuda::CUgraph,
                dependencies: *const $crate::cuda::CUgraphNode, edges: *const ::core::ffi::c_void, count: usize,
                mode: ::core::ffi::c_int)
                => synchronize::begin_capture_to_graph, order, "cuStreamBeginCaptureToGraph" @ 12030;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToGraph_ptsz(stream: $crate::cuda::CUstream, graph: $crate::cuda::CUgraph,
                dependencies: *const $crate::cuda::CUgraphNode, edges: *const ::core::ffi::c_void, count: usize,
                mode: ::core::ffi::c_int)
                => synchronize::begin_capture_to_graph, order, "cuStreamBeginCaptureToGraph" @ 12030 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToCig(stream: $crate::cuda::CUstream, params: *mut ::core::ffi::c_void)
                => synchronize::begin_capture_to_cig, order, "cuStreamBeginCaptureToCig" @ 13010;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToCig_ptsz(stream: $crate::cuda::CUstream, params: *mut ::core::ffi::c_void)
                => synchronize::begin_capture_to_cig, order, "cuStreamBeginCaptureToCig" @ 13010 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginRecaptureToGraph(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int,
                graph: $crate::cuda::CUgraph, callback: *mut ::core::ffi::c_void, data: *mut ::core::ffi::c_void)
                => synchronize::begin_recapture, order, "cuStreamBeginRecaptureToGraph" @ 13030;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginRecaptureToGraph_ptsz(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int,
                graph: $crate::cuda::CUgraph, callback: *mut ::core::ffi::c_void, data: *mut ::core::ffi::c_void)
                => synchronize::begin_recapture, order, "cuStreamBeginRecaptureToGraph" @ 13030 ptsz;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCapture(stream: $crate::cuda::CUstream, graph: *mut $crate::cuda::CUgraph)
                => synchronize::end_capture, order, "cuStreamEndCapture" @ 10000;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCapture_ptsz(stream: $crate::cuda::CUstream, graph: *mut $crate::cuda::CUgraph)
                => synchronize::end_capture, order, "cuStreamEndCapture" @ 10000 ptsz;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCaptureToCig(stream: $crate::cuda::CUstream)
                => synchronize::end_capture_to_cig, order, "cuStreamEndCaptureToCig" @ 13010;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCaptureToCig_ptsz(stream: $crate::cuda::CUstream)
                => synchronize::end_capture_to_cig, order, "cuStreamEndCaptureToCig" @ 13010 ptsz;
            /// What the graph takes is measured anew.
            fn cuGraphExecUpdate(exec: $crate::cuda::CUgraphExec, graph: $crate::cuda::CUgraph,
                error: *mut $crate::cuda::CUgraphNode, result: *mut ::core::ffi::c_int)
                => graph::update, order, "cuGraphExecUpdate" @ 10020;
            /// What the graph takes is measured anew.
            fn cuGraphExecUpdate_v2(exec: $crate::cuda::CUgraphExec, graph: $crate::cuda::CUgraph,
                result: *mut ::core::ffi::c_void) => graph::update_v2, order, "cuGraphExecUpdate" @ 12000;
        }
    };
}
