//! THE table of intercepted NVML functions.

/// Hands every row to `$consumer!`. The form is that of [`cuda_api!`](crate::cuda_api!) without versions; each
/// function returns `nvmlReturn_t`, and `module::handler` lies below `shim/src/nvml`.
#[macro_export]
macro_rules! nvml_api {
    ($consumer:path) => {
        $consumer! {
            /// Shows the slice: total = min(cap, card), used = what the container holds.
            fn nvmlDeviceGetMemoryInfo(device: $crate::nvml::nvmlDevice_t, memory: *mut $crate::nvml::nvmlMemory_t)
                => memory::info, report;
            /// Shows the slice; reserved is 0.
            fn nvmlDeviceGetMemoryInfo_v2(device: $crate::nvml::nvmlDevice_t, memory: *mut $crate::nvml::nvmlMemory_v2_t)
                => memory::info_v2, report;
        }
    };
}
