//! The rows of [`cuda_time_api!`](crate::cuda_time_api!) by which memory is set or copied on the device.
//!
//! All are of class `launch`: it keeps the multiprocessors busy as a kernel does. Functions that can only copy from or to
//! the host have no row here, since those copies have engines of their own: see
//! [`cuda_fence_api!`](crate::cuda_fence_api!). Where a call may do either, its handler asks.
//! Ordered by what is said of the memory: addresses, shapes, arrays, attributes.

/// Hands the rows it is given, and these behind them, to `$consumer!`.
#[doc(hidden)]
#[macro_export]
macro_rules! cuda_copy_api {
    ($consumer:path; $($before:tt)*) => {
        $crate::cuda_fence_api! { $consumer;
            $($before)*

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
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpyBatchAsync(to: $crate::arg::List<$crate::cuda::CUdeviceptr>, from: $crate::arg::List<$crate::cuda::CUdeviceptr>,
                sizes: $crate::arg::List<usize>, count: usize, attributes: *mut ::core::ffi::c_void,
                indices: $crate::arg::List<usize>, attribute_count: usize, failed: *mut usize, stream: $crate::cuda::CUstream)
                => copy::batch_first, launch, "cuMemcpyBatchAsync" @ 12080;
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpyBatchAsync_ptsz(to: $crate::arg::List<$crate::cuda::CUdeviceptr>, from: $crate::arg::List<$crate::cuda::CUdeviceptr>,
                sizes: $crate::arg::List<usize>, count: usize, attributes: *mut ::core::ffi::c_void,
                indices: $crate::arg::List<usize>, attribute_count: usize, failed: *mut usize, stream: $crate::cuda::CUstream)
                => copy::batch_first, launch, "cuMemcpyBatchAsync" @ 12080 ptsz;
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpyBatchAsync_v2(to: $crate::arg::List<$crate::cuda::CUdeviceptr>, from: $crate::arg::List<$crate::cuda::CUdeviceptr>,
                sizes: $crate::arg::List<usize>, count: usize, attributes: *mut ::core::ffi::c_void,
                indices: $crate::arg::List<usize>, attribute_count: usize, stream: $crate::cuda::CUstream)
                => copy::batch, launch, "cuMemcpyBatchAsync" @ 13000;
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpyBatchAsync_v2_ptsz(to: $crate::arg::List<$crate::cuda::CUdeviceptr>, from: $crate::arg::List<$crate::cuda::CUdeviceptr>,
                sizes: $crate::arg::List<usize>, count: usize, attributes: *mut ::core::ffi::c_void,
                indices: $crate::arg::List<usize>, attribute_count: usize, stream: $crate::cuda::CUstream)
                => copy::batch, launch, "cuMemcpyBatchAsync" @ 13000 ptsz;
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpy3DBatchAsync(count: usize, copies: $crate::arg::List<$crate::cuda::CUDA_MEMCPY3D_BATCH_OP>, failed: *mut usize,
                flags: u64, stream: $crate::cuda::CUstream)
                => copy::described_batch_first, launch, "cuMemcpy3DBatchAsync" @ 12080;
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpy3DBatchAsync_ptsz(count: usize, copies: $crate::arg::List<$crate::cuda::CUDA_MEMCPY3D_BATCH_OP>, failed: *mut usize,
                flags: u64, stream: $crate::cuda::CUstream)
                => copy::described_batch_first, launch, "cuMemcpy3DBatchAsync" @ 12080 ptsz;
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpy3DBatchAsync_v2(count: usize, copies: $crate::arg::List<$crate::cuda::CUDA_MEMCPY3D_BATCH_OP>,
                flags: u64, stream: $crate::cuda::CUstream)
                => copy::described_batch, launch, "cuMemcpy3DBatchAsync" @ 13000;
            /// Pays as a whole for the time that it takes if one of its copies is within the device.
            fn cuMemcpy3DBatchAsync_v2_ptsz(count: usize, copies: $crate::arg::List<$crate::cuda::CUDA_MEMCPY3D_BATCH_OP>,
                flags: u64, stream: $crate::cuda::CUstream)
                => copy::described_batch, launch, "cuMemcpy3DBatchAsync" @ 13000 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpyWithAttributesAsync(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize,
                attributes: *mut ::core::ffi::c_void, stream: $crate::cuda::CUstream)
                => copy::attributed_async, launch, "cuMemcpyWithAttributesAsync" @ 13020;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpyWithAttributesAsync_ptsz(to: $crate::cuda::CUdeviceptr, from: $crate::cuda::CUdeviceptr, bytes: usize,
                attributes: *mut ::core::ffi::c_void, stream: $crate::cuda::CUstream)
                => copy::attributed_async, launch, "cuMemcpyWithAttributesAsync" @ 13020 ptsz;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DWithAttributesAsync(copy: *const $crate::cuda::CUDA_MEMCPY3D_BATCH_OP, flags: u64,
                stream: $crate::cuda::CUstream)
                => copy::described_attributed_async, launch, "cuMemcpy3DWithAttributesAsync" @ 13020;
            /// Pays for the time that it takes if both sides are memory of the device.
            fn cuMemcpy3DWithAttributesAsync_ptsz(copy: *const $crate::cuda::CUDA_MEMCPY3D_BATCH_OP, flags: u64,
                stream: $crate::cuda::CUstream)
                => copy::described_attributed_async, launch, "cuMemcpy3DWithAttributesAsync" @ 13020 ptsz;
        }
    };
}
