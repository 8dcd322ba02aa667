//! The rows of [`cuda_api!`](crate::cuda_api!) that only a limit of time needs.
//!
//! `launch` is what keeps a card's multiprocessors busy: kernels, graphs, memory that is set or copied on the device.
//! `order` tells the meter of time what it has to know besides: that work is done, that a stream is captured or gone.
//! Without a limit of time none of these is intercepted: look-ups answer with the driver's own functions.

/// Hands the rows it is given, and these behind them, to `$consumer!`.
#[doc(hidden)]
#[macro_export]
macro_rules! cuda_time_api {
    ($consumer:path; $($memory:tt)*) => {
        $consumer! {
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

            // --- memory set or copied on the device ---
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD8(pointer: $crate::cuda::CUdeviceptr_v1, value: u8, count: u32)
                => copy::set, launch, "cuMemsetD8" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD8_v2(pointer: $crate::cuda::CUdeviceptr, value: u8, count: usize)
                => copy::set, launch, "cuMemsetD8" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD8_v2_ptds(pointer: $crate::cuda::CUdeviceptr, value: u8, count: usize)
                => copy::set, launch, "cuMemsetD8" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD8Async(pointer: $crate::cuda::CUdeviceptr, value: u8, count: usize,
                stream: $crate::cuda::CUstream) => copy::set_async, launch, "cuMemsetD8Async" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD8Async_ptsz(pointer: $crate::cuda::CUdeviceptr, value: u8, count: usize,
                stream: $crate::cuda::CUstream) => copy::set_async, launch, "cuMemsetD8Async" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D8(pointer: $crate::cuda::CUdeviceptr_v1, pitch: u32, value: u8, width: u32, height: u32)
                => copy::set_rows, launch, "cuMemsetD2D8" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D8_v2(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize)
                => copy::set_rows, launch, "cuMemsetD2D8" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D8_v2_ptds(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u8, width: usize,
                height: usize) => copy::set_rows, launch, "cuMemsetD2D8" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D8Async(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u8, width: usize,
                height: usize, stream: $crate::cuda::CUstream)
                => copy::set_rows_async, launch, "cuMemsetD2D8Async" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D8Async_ptsz(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u8, width: usize,
                height: usize, stream: $crate::cuda::CUstream)
                => copy::set_rows_async, launch, "cuMemsetD2D8Async" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD16(pointer: $crate::cuda::CUdeviceptr_v1, value: u16, count: u32)
                => copy::set, launch, "cuMemsetD16" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD16_v2(pointer: $crate::cuda::CUdeviceptr, value: u16, count: usize)
                => copy::set, launch, "cuMemsetD16" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD16_v2_ptds(pointer: $crate::cuda::CUdeviceptr, value: u16, count: usize)
                => copy::set, launch, "cuMemsetD16" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD16Async(pointer: $crate::cuda::CUdeviceptr, value: u16, count: usize,
                stream: $crate::cuda::CUstream) => copy::set_async, launch, "cuMemsetD16Async" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD16Async_ptsz(pointer: $crate::cuda::CUdeviceptr, value: u16, count: usize,
                stream: $crate::cuda::CUstream) => copy::set_async, launch, "cuMemsetD16Async" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D16(pointer: $crate::cuda::CUdeviceptr_v1, pitch: u32, value: u16, width: u32, height: u32)
                => copy::set_rows, launch, "cuMemsetD2D16" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D16_v2(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u16, width: usize,
                height: usize) => copy::set_rows, launch, "cuMemsetD2D16" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D16_v2_ptds(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u16, width: usize,
                height: usize) => copy::set_rows, launch, "cuMemsetD2D16" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D16Async(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u16, width: usize,
                height: usize, stream: $crate::cuda::CUstream)
                => copy::set_rows_async, launch, "cuMemsetD2D16Async" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D16Async_ptsz(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u16, width: usize,
                height: usize, stream: $crate::cuda::CUstream)
                => copy::set_rows_async, launch, "cuMemsetD2D16Async" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD32(pointer: $crate::cuda::CUdeviceptr_v1, value: u32, count: u32)
                => copy::set, launch, "cuMemsetD32" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD32_v2(pointer: $crate::cuda::CUdeviceptr, value: u32, count: usize)
                => copy::set, launch, "cuMemsetD32" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD32_v2_ptds(pointer: $crate::cuda::CUdeviceptr, value: u32, count: usize)
                => copy::set, launch, "cuMemsetD32" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD32Async(pointer: $crate::cuda::CUdeviceptr, value: u32, count: usize,
                stream: $crate::cuda::CUstream) => copy::set_async, launch, "cuMemsetD32Async" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD32Async_ptsz(pointer: $crate::cuda::CUdeviceptr, value: u32, count: usize,
                stream: $crate::cuda::CUstream) => copy::set_async, launch, "cuMemsetD32Async" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D32(pointer: $crate::cuda::CUdeviceptr_v1, pitch: u32, value: u32, width: u32, height: u32)
                => copy::set_rows, launch, "cuMemsetD2D32" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D32_v2(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u32, width: usize,
                height: usize) => copy::set_rows, launch, "cuMemsetD2D32" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D32_v2_ptds(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u32, width: usize,
                height: usize) => copy::set_rows, launch, "cuMemsetD2D32" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D32Async(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u32, width: usize,
                height: usize, stream: $crate::cuda::CUstream)
                => copy::set_rows_async, launch, "cuMemsetD2D32Async" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemsetD2D32Async_ptsz(pointer: $crate::cuda::CUdeviceptr, pitch: usize, value: u32, width: usize,
                height: usize, stream: $crate::cuda::CUstream)
                => copy::set_rows_async, launch, "cuMemsetD2D32Async" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoD(to: $crate::cuda::CUdeviceptr_v1, from: $crate::cuda::CUdeviceptr_v1, bytes: u32)
                => copy::on_device, launch, "cuMemcpyDtoD" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoD_v2(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => copy::on_device, launch, "cuMemcpyDtoD" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoD_v2_ptds(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => copy::on_device, launch, "cuMemcpyDtoD" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoDAsync(to: $crate::cuda::CUdeviceptr_v1, from: $crate::cuda::CUdeviceptr_v1, bytes: u32,
                stream: $crate::cuda::CUstream) => copy::on_device_async, launch, "cuMemcpyDtoDAsync" @ 3000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoDAsync_v2(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize,
                stream: $crate::cuda::CUstream) => copy::on_device_async, launch, "cuMemcpyDtoDAsync" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoDAsync_v2_ptsz(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize,
                stream: $crate::cuda::CUstream) => copy::on_device_async, launch, "cuMemcpyDtoDAsync" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => copy::any, launch, "cuMemcpy" @ 4000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy_ptds(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => copy::any, launch, "cuMemcpy" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpyAsync(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize,
                stream: $crate::cuda::CUstream) => copy::any_async, launch, "cuMemcpyAsync" @ 4000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpyAsync_ptsz(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize,
                stream: $crate::cuda::CUstream) => copy::any_async, launch, "cuMemcpyAsync" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyPeer(to: $crate::cuda::CUdeviceptr, to_context: $crate::cuda::CUcontext,
                from: $crate::cuda::CUdeviceptr, from_context: $crate::cuda::CUcontext, bytes: usize)
                => copy::peer, launch, "cuMemcpyPeer" @ 4000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyPeer_ptds(to: $crate::cuda::CUdeviceptr, to_context: $crate::cuda::CUcontext,
                from: $crate::cuda::CUdeviceptr, from_context: $crate::cuda::CUcontext, bytes: usize)
                => copy::peer, launch, "cuMemcpyPeer" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyPeerAsync(to: $crate::cuda::CUdeviceptr, to_context: $crate::cuda::CUcontext,
                from: $crate::cuda::CUdeviceptr, from_context: $crate::cuda::CUcontext, bytes: usize,
                stream: $crate::cuda::CUstream) => copy::peer_async, launch, "cuMemcpyPeerAsync" @ 4000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyPeerAsync_ptsz(to: $crate::cuda::CUdeviceptr, to_context: $crate::cuda::CUcontext,
                from: $crate::cuda::CUdeviceptr, from_context: $crate::cuda::CUcontext, bytes: usize,
                stream: $crate::cuda::CUstream) => copy::peer_async, launch, "cuMemcpyPeerAsync" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2D(copy: *const $crate::cuda::CUDA_MEMCPY2D_v1) => copy::described, launch, "cuMemcpy2D" @ 2000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2D_v2(copy: *const $crate::cuda::CUDA_MEMCPY2D) => copy::described, launch, "cuMemcpy2D" @ 3020;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2D_v2_ptds(copy: *const $crate::cuda::CUDA_MEMCPY2D)
                => copy::described, launch, "cuMemcpy2D" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2DUnaligned(copy: *const $crate::cuda::CUDA_MEMCPY2D_v1)
                => copy::described, launch, "cuMemcpy2DUnaligned" @ 2000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2DUnaligned_v2(copy: *const $crate::cuda::CUDA_MEMCPY2D)
                => copy::described, launch, "cuMemcpy2DUnaligned" @ 3020;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2DUnaligned_v2_ptds(copy: *const $crate::cuda::CUDA_MEMCPY2D)
                => copy::described, launch, "cuMemcpy2DUnaligned" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3D(copy: *const $crate::cuda::CUDA_MEMCPY3D_v1) => copy::described, launch, "cuMemcpy3D" @ 2000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3D_v2(copy: *const $crate::cuda::CUDA_MEMCPY3D) => copy::described, launch, "cuMemcpy3D" @ 3020;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3D_v2_ptds(copy: *const $crate::cuda::CUDA_MEMCPY3D)
                => copy::described, launch, "cuMemcpy3D" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2DAsync(copy: *const $crate::cuda::CUDA_MEMCPY2D_v1, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy2DAsync" @ 2000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2DAsync_v2(copy: *const $crate::cuda::CUDA_MEMCPY2D, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy2DAsync" @ 3020;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy2DAsync_v2_ptsz(copy: *const $crate::cuda::CUDA_MEMCPY2D, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy2DAsync" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DAsync(copy: *const $crate::cuda::CUDA_MEMCPY3D_v1, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy3DAsync" @ 2000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DAsync_v2(copy: *const $crate::cuda::CUDA_MEMCPY3D, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy3DAsync" @ 3020;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DAsync_v2_ptsz(copy: *const $crate::cuda::CUDA_MEMCPY3D, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy3DAsync" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DPeer(copy: *const $crate::cuda::CUDA_MEMCPY3D)
                => copy::described, launch, "cuMemcpy3DPeer" @ 4000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DPeer_ptds(copy: *const $crate::cuda::CUDA_MEMCPY3D)
                => copy::described, launch, "cuMemcpy3DPeer" @ 7000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DPeerAsync(copy: *const $crate::cuda::CUDA_MEMCPY3D, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy3DPeerAsync" @ 4000;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DPeerAsync_ptsz(copy: *const $crate::cuda::CUDA_MEMCPY3D, stream: $crate::cuda::CUstream)
                => copy::described_async, launch, "cuMemcpy3DPeerAsync" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyAtoD(to: $crate::cuda::CUdeviceptr_v1, from: $crate::cuda::CUarray, offset: u32, bytes: u32)
                => copy::array_to_device, launch, "cuMemcpyAtoD" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyAtoD_v2(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUarray, offset: usize, bytes: usize)
                => copy::array_to_device, launch, "cuMemcpyAtoD" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyAtoD_v2_ptds(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUarray, offset: usize,
                bytes: usize) => copy::array_to_device, launch, "cuMemcpyAtoD" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoA(to: $crate::cuda::CUarray, offset: u32, from: $crate::cuda::CUdeviceptr_v1, bytes: u32)
                => copy::device_to_array, launch, "cuMemcpyDtoA" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoA_v2(to: $crate::cuda::CUarray, offset: usize, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => copy::device_to_array, launch, "cuMemcpyDtoA" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyDtoA_v2_ptds(to: $crate::cuda::CUarray, offset: usize, from: $crate::cuda::CUdeviceptr,
                bytes: usize) => copy::device_to_array, launch, "cuMemcpyDtoA" @ 7000 ptsz;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyAtoA(to: $crate::cuda::CUarray, at: u32, from: $crate::cuda::CUarray, offset: u32, bytes: u32)
                => copy::array_to_array, launch, "cuMemcpyAtoA" @ 2000;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyAtoA_v2(to: $crate::cuda::CUarray, at: usize, from: $crate::cuda::CUarray, offset: usize,
                bytes: usize) => copy::array_to_array, launch, "cuMemcpyAtoA" @ 3020;
            /// Pays for the time that it takes, as a kernel does.
            fn cuMemcpyAtoA_v2_ptds(to: $crate::cuda::CUarray, at: usize, from: $crate::cuda::CUarray, offset: usize,
                bytes: usize) => copy::array_to_array, launch, "cuMemcpyAtoA" @ 7000 ptsz;

            // --- when work is done ---
            /// Work is done when it returns: what was paid in advance is settled.
            fn cuCtxSynchronize() => order::context_synchronize, order, "cuCtxSynchronize" @ 2000;
            /// Work is done when it returns: what was paid in advance is settled.
            fn cuCtxSynchronize_v2(context: $crate::cuda::CUcontext)
                => order::context_synchronize_v2, order, "cuCtxSynchronize" @ 13000;
            /// Work is done when it returns: what was paid in advance is settled.
            fn cuEventSynchronize(event: $crate::cuda::CUevent)
                => order::event_synchronize, order, "cuEventSynchronize" @ 2000;
            /// Work is done when it returns: what was paid in advance is settled.
            fn cuStreamSynchronize(stream: $crate::cuda::CUstream)
                => order::stream_synchronize, order, "cuStreamSynchronize" @ 2000;
            /// Work is done when it returns: what was paid in advance is settled.
            fn cuStreamSynchronize_ptsz(stream: $crate::cuda::CUstream)
                => order::stream_synchronize, order, "cuStreamSynchronize" @ 7000 ptsz;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyDtoH(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr_v1, bytes: u32)
                => order::copy_to_host, order, "cuMemcpyDtoH" @ 2000;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyDtoH_v2(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => order::copy_to_host, order, "cuMemcpyDtoH" @ 3020;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyDtoH_v2_ptds(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUdeviceptr, bytes: usize)
                => order::copy_to_host, order, "cuMemcpyDtoH" @ 7000 ptsz;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyAtoH(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: u32, bytes: u32)
                => order::array_to_host, order, "cuMemcpyAtoH" @ 2000;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyAtoH_v2(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: usize, bytes: usize)
                => order::array_to_host, order, "cuMemcpyAtoH" @ 3020;
            /// Where it waits, work is done when it returns: what was paid in advance is settled.
            fn cuMemcpyAtoH_v2_ptds(to: *mut ::core::ffi::c_void, from: $crate::cuda::CUarray, offset: usize,
                bytes: usize)
                => order::array_to_host, order, "cuMemcpyAtoH" @ 7000 ptsz;
            /// What is in flight stays paid for; another stream may have the handle next.
            fn cuStreamDestroy(stream: $crate::cuda::CUstream)
                => order::stream_destroy, order, "cuStreamDestroy" @ 2000;
            /// What is in flight stays paid for; another stream may have the handle next.
            fn cuStreamDestroy_v2(stream: $crate::cuda::CUstream)
                => order::stream_destroy, order, "cuStreamDestroy" @ 4000;

            // --- what is recorded instead of carried out ---
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture(stream: $crate::cuda::CUstream)
                => order::begin_capture, order, "cuStreamBeginCapture" @ 10000;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture_ptsz(stream: $crate::cuda::CUstream)
                => order::begin_capture, order, "cuStreamBeginCapture" @ 10000 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture_v2(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int)
                => order::begin_capture_v2, order, "cuStreamBeginCapture" @ 10010;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCapture_v2_ptsz(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int)
                => order::begin_capture_v2, order, "cuStreamBeginCapture" @ 10010 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToGraph(stream: $crate::cuda::CUstream, graph: $crate::cuda::CUgraph,
                dependencies: *const $crate::cuda::CUgraphNode, edges: *const ::core::ffi::c_void, count: usize,
                mode: ::core::ffi::c_int)
                => order::begin_capture_to_graph, order, "cuStreamBeginCaptureToGraph" @ 12030;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToGraph_ptsz(stream: $crate::cuda::CUstream, graph: $crate::cuda::CUgraph,
                dependencies: *const $crate::cuda::CUgraphNode, edges: *const ::core::ffi::c_void, count: usize,
                mode: ::core::ffi::c_int)
                => order::begin_capture_to_graph, order, "cuStreamBeginCaptureToGraph" @ 12030 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToCig(stream: $crate::cuda::CUstream, params: *mut ::core::ffi::c_void)
                => order::begin_capture_to_cig, order, "cuStreamBeginCaptureToCig" @ 13010;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginCaptureToCig_ptsz(stream: $crate::cuda::CUstream, params: *mut ::core::ffi::c_void)
                => order::begin_capture_to_cig, order, "cuStreamBeginCaptureToCig" @ 13010 ptsz;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginRecaptureToGraph(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int,
                graph: $crate::cuda::CUgraph, callback: *mut ::core::ffi::c_void, data: *mut ::core::ffi::c_void)
                => order::begin_recapture, order, "cuStreamBeginRecaptureToGraph" @ 13030;
            /// Until its end, launches into the stream are recorded: they pay nothing and never wait.
            fn cuStreamBeginRecaptureToGraph_ptsz(stream: $crate::cuda::CUstream, mode: ::core::ffi::c_int,
                graph: $crate::cuda::CUgraph, callback: *mut ::core::ffi::c_void, data: *mut ::core::ffi::c_void)
                => order::begin_recapture, order, "cuStreamBeginRecaptureToGraph" @ 13030 ptsz;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCapture(stream: $crate::cuda::CUstream, graph: *mut $crate::cuda::CUgraph)
                => order::end_capture, order, "cuStreamEndCapture" @ 10000;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCapture_ptsz(stream: $crate::cuda::CUstream, graph: *mut $crate::cuda::CUgraph)
                => order::end_capture, order, "cuStreamEndCapture" @ 10000 ptsz;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCaptureToCig(stream: $crate::cuda::CUstream)
                => order::end_capture_to_cig, order, "cuStreamEndCaptureToCig" @ 13010;
            /// From here on, launches into the stream pay again.
            fn cuStreamEndCaptureToCig_ptsz(stream: $crate::cuda::CUstream)
                => order::end_capture_to_cig, order, "cuStreamEndCaptureToCig" @ 13010 ptsz;
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
