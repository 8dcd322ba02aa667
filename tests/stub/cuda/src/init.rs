//! Initialisation, versions, errors, and the look-ups that answer before `cuInit`.

use crate::arg::{In, Out};
use crate::driver::init;
use crate::export::exports;
use gpucap_abi::cuda::{CUuuid, CuError, CuResult};
use std::ffi::{c_char, c_void};

exports! {
    /// Everything else answers NOT_INITIALIZED until this has succeeded.
    fn cuInit(flags: u32) => init, nothing, "cuInit" @ 2000;
    /// Works before `cuInit`.
    fn cuDriverGetVersion(version: *mut i32) => version, nothing, "cuDriverGetVersion" @ 2020;
    /// Name of an error, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    fn cuGetErrorName(error: u32, text: *mut *const c_char)
        => error_name, nothing, "cuGetErrorName" @ 6000;
    /// Description of an error.
    fn cuGetErrorString(error: u32, text: *mut *const c_char)
        => error_text, nothing, "cuGetErrorString" @ 6000;
    /// Knows no table: NVIDIA's private tables are not imitated.
    fn cuGetExportTable(table: *mut *const c_void, id: *const CUuuid)
        => export_table, nothing, "cuGetExportTable" @ 3000;
}

fn version(version: Out<i32>) -> CuResult {
    version.put(gpucap_stub_device::settings().cuda_version)
}

fn export_table(table: Out<*const c_void>, id: In<CUuuid>) -> CuResult {
    id.get()?;
    table.put(std::ptr::null())?;
    Err(CuError::NOT_FOUND)
}

fn error_name(error: u32, text: Out<*const c_char>) -> CuResult {
    describe(error, text, |(_, name, _)| name)
}

fn error_text(error: u32, text: Out<*const c_char>) -> CuResult {
    describe(error, text, |(_, _, description)| description)
}

type Description = (u32, &'static std::ffi::CStr, &'static std::ffi::CStr);

fn describe(
    error: u32,
    text: Out<*const c_char>,
    part: impl Fn(Description) -> &'static std::ffi::CStr,
) -> CuResult {
    match ERRORS.iter().find(|(code, ..)| *code == error) {
        Some(found) => text.put(part(*found).as_ptr()),
        None => {
            text.put(std::ptr::null())?;
            Err(CuError::INVALID_VALUE)
        }
    }
}

const ERRORS: &[Description] = &[
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (200, c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (205, c"CUDA_ERROR_MAP_FAILED", c"mapping of buffer object failed"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution"),
    (215, c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"limit is not supported on this architecture"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
    (219, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", c"invalid OpenGL or DirectX context"),
    (224, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", c"the execution affinity is not supported"),
    (301, c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found"),
    (304, c"CUDA_ERROR_OPERATING_SYSTEM", c"OS call failed or operation not supported on this OS"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (401, c"CUDA_ERROR_ILLEGAL_STATE", c"the operation cannot be performed in the present state"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (600, c"CUDA_ERROR_NOT_READY", c"device not ready"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    (701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch"),
    (704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled"),
    (705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access has not been enabled"),
    (708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"primary context is active"),
    (709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed"),
    (712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"host memory is already registered"),
    (713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"host memory is not registered"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    (800, c"CUDA_ERROR_NOT_PERMITTED", c"operation not permitted"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not yet initialized"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"not permitted when the stream is capturing"),
    (901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"the capture was spoilt by an earlier error"),
    (903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"the capture did not begin in this stream"),
    (904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"the capture has a stream that did not join"),
    (905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"a captured stream would wait for another"),
    (
        906,
        c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
        c"the default stream would wait for a captured one",
    ),
    (907, c"CUDA_ERROR_CAPTURED_EVENT", c"the event was last recorded in a capturing stream"),
    (908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"the capture began in another thread"),
    (910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"the graph cannot be updated"),
    (914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"invalid resource type"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];
