//! The rows of [`cuda_time_api!`](crate::cuda_time_api!) by which something enters a stream that is no launch.
//!
//! All are of class `order`: copies from and to the host, waits, functions of the host, moves of managed memory. Each takes
//! time in its stream that is not the multiprocessors', and none of it may be charged to the launches before it. Copies of
//! which a call may be either have their rows in [`cuda_copy_api!`](crate::cuda_copy_api!).
//! Ordered by what the stream does: waits, calls the host, moves, copies.

/// Hands the rows it is given, and these behind them, to `$consumer!`.
#[doc(hidden)]
#[macro_export]
macro_rules! cuda_fence_api {
    ($consumer:path; $($before:tt)*) => {
        $consumer! {
            $($before)*

            // --- what is no launch and takes time in a stream ---
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitEvent(stream: $crate::cuda::CUstream, event: $crate::cuda::CUevent, flags: u32)
                => fence::wait_event, order, "cuStreamWaitEvent" @ 3020;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitEvent_ptsz(stream: $crate::cuda::CUstream, event: $crate::cuda::CUevent, flags: u32)
                => fence::wait_event, order, "cuStreamWaitEvent" @ 7000 ptsz;
            /// Launches before it end here, in each stream of the context.
            fn cuCtxWaitEvent(context: $crate::cuda::CUcontext, event: $crate::cuda::CUevent)
                => fence::context_waits, order, "cuCtxWaitEvent" @ 12050;
            /// Launches before it end here, in each stream of the context.
            fn cuGreenCtxWaitEvent(green: $crate::cuda::CUcontext, event: $crate::cuda::CUevent)
                => fence::context_waits, order, "cuGreenCtxWaitEvent" @ 12040;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue32(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr, value: u32,
                flags: u32) => fence::wait_value, order, "cuStreamWaitValue32" @ 8000;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue32_ptsz(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr, value: u32,
                flags: u32) => fence::wait_value, order, "cuStreamWaitValue32" @ 8000 ptsz;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue32_v2(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr, value: u32,
                flags: u32) => fence::wait_value, order, "cuStreamWaitValue32" @ 11070;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue32_v2_ptsz(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr,
                value: u32, flags: u32) => fence::wait_value, order, "cuStreamWaitValue32" @ 11070 ptsz;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue64(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr, value: u64,
                flags: u32) => fence::wait_value, order, "cuStreamWaitValue64" @ 9000;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue64_ptsz(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr, value: u64,
                flags: u32) => fence::wait_value, order, "cuStreamWaitValue64" @ 9000 ptsz;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue64_v2(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr, value: u64,
                flags: u32) => fence::wait_value, order, "cuStreamWaitValue64" @ 11070;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamWaitValue64_v2_ptsz(stream: $crate::cuda::CUstream, address: $crate::cuda::CUdeviceptr,
                value: u64, flags: u32) => fence::wait_value, order, "cuStreamWaitValue64" @ 11070 ptsz;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamBatchMemOp(stream: $crate::cuda::CUstream, count: u32, operations: *mut ::core::ffi::c_void,
                flags: u32) => fence::batch_operations, order, "cuStreamBatchMemOp" @ 8000;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamBatchMemOp_ptsz(stream: $crate::cuda::CUstream, count: u32, operations: *mut ::core::ffi::c_void,
                flags: u32) => fence::batch_operations, order, "cuStreamBatchMemOp" @ 8000 ptsz;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamBatchMemOp_v2(stream: $crate::cuda::CUstream, count: u32, operations: *mut ::core::ffi::c_void,
                flags: u32) => fence::batch_operations, order, "cuStreamBatchMemOp" @ 11070;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuStreamBatchMemOp_v2_ptsz(stream: $crate::cuda::CUstream, count: u32,
                operations: *mut ::core::ffi::c_void, flags: u32)
                => fence::batch_operations, order, "cuStreamBatchMemOp" @ 11070 ptsz;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuWaitExternalSemaphoresAsync(semaphores: *const $crate::cuda::CUexternalSemaphore,
                values: *const ::core::ffi::c_void, count: u32, stream: $crate::cuda::CUstream)
                => fence::wait_semaphores, order, "cuWaitExternalSemaphoresAsync" @ 10000;
            /// Launches before it end here: the time of the wait is not theirs.
            fn cuWaitExternalSemaphoresAsync_ptsz(semaphores: *const $crate::cuda::CUexternalSemaphore,
                values: *const ::core::ffi::c_void, count: u32, stream: $crate::cuda::CUstream)
                => fence::wait_semaphores, order, "cuWaitExternalSemaphoresAsync" @ 10000 ptsz;
            /// Launches before it end here: the time of the host's function is not theirs.
            fn cuLaunchHostFunc(stream: $crate::cuda::CUstream, function: *mut ::core::ffi::c_void,
                data: *mut ::core::ffi::c_void) => fence::host_function, order, "cuLaunchHostFunc" @ 10000;
            /// Launches before it end here: the time of the host's function is not theirs.
            fn cuLaunchHostFunc_ptsz(stream: $crate::cuda::CUstream, function: *mut ::core::ffi::c_void,
                data: *mut ::core::ffi::c_void) => fence::host_function, order, "cuLaunchHostFunc" @ 10000 ptsz;
            /// Launches before it end here: the time of the host's function is not theirs.
            fn cuLaunchHostFunc_v2(stream: $crate::cuda::CUstream, function: *mut ::core::ffi::c_void,
                data: *mut ::core::ffi::c_void, mode: u32)
                => fence::host_function_with_mode, order, "cuLaunchHostFunc" @ 13010;
            /// Launches before it end here: the time of the host's function is not theirs.
            fn cuLaunchHostFunc_v2_ptsz(stream: $crate::cuda::CUstream, function: *mut ::core::ffi::c_void,
                data: *mut ::core::ffi::c_void, mode: u32)
                => fence::host_function_with_mode, order, "cuLaunchHostFunc" @ 13010 ptsz;
            /// Launches before it end here: the time of the host's function is not theirs.
            fn cuStreamAddCallback(stream: $crate::cuda::CUstream, callback: *mut ::core::ffi::c_void,
                data: *mut ::core::ffi::c_void, flags: u32) => fence::callback, order, "cuStreamAddCallback" @ 5000;
            /// Launches before it end here: the time of the host's function is not theirs.
            fn cuStreamAddCallback_ptsz(stream: $crate::cuda::CUstream, callback: *mut ::core::ffi::c_void,
                data: *mut ::core::ffi::c_void, flags: u32)
                => fence::callback, order, "cuStreamAddCallback" @ 7000 ptsz;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemPrefetchAsync(pointer: $crate::cuda::CUdeviceptr, bytes: usize, device: $crate::cuda::CUdevice,
                stream: $crate::cuda::CUstream) => fence::prefetch, order, "cuMemPrefetchAsync" @ 8000;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemPrefetchAsync_ptsz(pointer: $crate::cuda::CUdeviceptr, bytes: usize, device: $crate::cuda::CUdevice,
                stream: $crate::cuda::CUstream) => fence::prefetch, order, "cuMemPrefetchAsync" @ 8000 ptsz;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemPrefetchAsync_v2(pointer: $crate::cuda::CUdeviceptr, bytes: usize,
                location: $crate::cuda::CUmemLocation, flags: u32, stream: $crate::cuda::CUstream)
                => fence::prefetch_to, order, "cuMemPrefetchAsync" @ 12020;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemPrefetchAsync_v2_ptsz(pointer: $crate::cuda::CUdeviceptr, bytes: usize,
                location: $crate::cuda::CUmemLocation, flags: u32, stream: $crate::cuda::CUstream)
                => fence::prefetch_to, order, "cuMemPrefetchAsync" @ 12020 ptsz;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemPrefetchBatchAsync(pointers: $crate::arg::List<$crate::cuda::CUdeviceptr>, sizes: $crate::arg::List<usize>, count: usize,
                locations: $crate::arg::List<$crate::cuda::CUmemLocation>, indices: $crate::arg::List<usize>, location_count: usize, flags: u64,
                stream: $crate::cuda::CUstream) => fence::prefetch_batch, order, "cuMemPrefetchBatchAsync" @ 13000;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemPrefetchBatchAsync_ptsz(pointers: $crate::arg::List<$crate::cuda::CUdeviceptr>, sizes: $crate::arg::List<usize>, count: usize,
                locations: $crate::arg::List<$crate::cuda::CUmemLocation>, indices: $crate::arg::List<usize>, location_count: usize, flags: u64,
                stream: $crate::cuda::CUstream) => fence::prefetch_batch, order, "cuMemPrefetchBatchAsync" @ 13000 ptsz;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemDiscardAndPrefetchBatchAsync(pointers: $crate::arg::List<$crate::cuda::CUdeviceptr>, sizes: $crate::arg::List<usize>,
                count: usize, locations: $crate::arg::List<$crate::cuda::CUmemLocation>, indices: $crate::arg::List<usize>, location_count: usize,
                flags: u64, stream: $crate::cuda::CUstream)
                => fence::prefetch_batch, order, "cuMemDiscardAndPrefetchBatchAsync" @ 13000;
            /// Launches before it end here: the time of the move is not theirs.
            fn cuMemDiscardAndPrefetchBatchAsync_ptsz(pointers: $crate::arg::List<$crate::cuda::CUdeviceptr>, sizes: $crate::arg::List<usize>,
                count: usize, locations: $crate::arg::List<$crate::cuda::CUmemLocation>, indices: $crate::arg::List<usize>, location_count: usize,
                flags: u64, stream: $crate::cuda::CUstream)
                => fence::prefetch_batch, order, "cuMemDiscardAndPrefetchBatchAsync" @ 13000 ptsz;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoD(to: $crate::cuda::CUdeviceptr_v1, from: *const ::core::ffi::c_void, bytes: u32)
                => fence::copy_to_device, order, "cuMemcpyHtoD" @ 2000;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoD_v2(to: $crate::cuda::CUdeviceptr, from: *const ::core::ffi::c_void, bytes: usize)
                => fence::copy_to_device, order, "cuMemcpyHtoD" @ 3020;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoD_v2_ptds(to: $crate::cuda::CUdeviceptr, from: *const ::core::ffi::c_void, bytes: usize)
                => fence::copy_to_device, order, "cuMemcpyHtoD" @ 7000 ptsz;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoA(to: $crate::cuda::CUarray, offset: u32, from: *const ::core::ffi::c_void, bytes: u32)
                => fence::copy_to_array, order, "cuMemcpyHtoA" @ 2000;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoA_v2(to: $crate::cuda::CUarray, offset: usize, from: *const ::core::ffi::c_void, bytes: usize)
                => fence::copy_to_array, order, "cuMemcpyHtoA" @ 3020;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoA_v2_ptds(to: $crate::cuda::CUarray, offset: usize, from: *const ::core::ffi::c_void,
                bytes: usize) => fence::copy_to_array, order, "cuMemcpyHtoA" @ 7000 ptsz;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoDAsync(to: $crate::cuda::CUdeviceptr_v1, from: *const ::core::ffi::c_void, bytes: u32,
                stream: $crate::cuda::CUstream) => fence::copy_to_device_async, order, "cuMemcpyHtoDAsync" @ 2000;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoDAsync_v2(to: $crate::cuda::CUdeviceptr, from: *const ::core::ffi::c_void, bytes: usize,
                stream: $crate::cuda::CUstream) => fence::copy_to_device_async, order, "cuMemcpyHtoDAsync" @ 3020;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoDAsync_v2_ptsz(to: $crate::cuda::CUdeviceptr, from: *const ::core::ffi::c_void, bytes: usize,
                stream: $crate::cuda::CUstream) => fence::copy_to_device_async, order, "cuMemcpyHtoDAsync" @ 7000 ptsz;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyDtoHAsync(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr_v1, bytes: u32,
                stream: $crate::cuda::CUstream) => fence::copy_to_host_async, order, "cuMemcpyDtoHAsync" @ 2000;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyDtoHAsync_v2(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr, bytes: usize,
                stream: $crate::cuda::CUstream) => fence::copy_to_host_async, order, "cuMemcpyDtoHAsync" @ 3020;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyDtoHAsync_v2_ptsz(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr, bytes: usize,
                stream: $crate::cuda::CUstream) => fence::copy_to_host_async, order, "cuMemcpyDtoHAsync" @ 7000 ptsz;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoAAsync(to: $crate::cuda::CUarray, offset: u32, from: *const ::core::ffi::c_void, bytes: u32,
                stream: $crate::cuda::CUstream) => fence::copy_to_array_async, order, "cuMemcpyHtoAAsync" @ 2000;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoAAsync_v2(to: $crate::cuda::CUarray, offset: usize, from: *const ::core::ffi::c_void,
                bytes: usize, stream: $crate::cuda::CUstream)
                => fence::copy_to_array_async, order, "cuMemcpyHtoAAsync" @ 3020;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyHtoAAsync_v2_ptsz(to: $crate::cuda::CUarray, offset: usize, from: *const ::core::ffi::c_void,
                bytes: usize, stream: $crate::cuda::CUstream)
                => fence::copy_to_array_async, order, "cuMemcpyHtoAAsync" @ 7000 ptsz;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyAtoHAsync(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: u32, bytes: u32,
                stream: $crate::cuda::CUstream) => fence::copy_from_array_async, order, "cuMemcpyAtoHAsync" @ 2000;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyAtoHAsync_v2(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: usize,
                bytes: usize, stream: $crate::cuda::CUstream)
                => fence::copy_from_array_async, order, "cuMemcpyAtoHAsync" @ 3020;
            /// Launches before it end here: the time of the copy is not theirs.
            fn cuMemcpyAtoHAsync_v2_ptsz(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: usize,
                bytes: usize, stream: $crate::cuda::CUstream)
                => fence::copy_from_array_async, order, "cuMemcpyAtoHAsync" @ 7000 ptsz;
        }
    };
}
