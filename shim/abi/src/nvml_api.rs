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

            // --- processes: those of the container, with the numbers they have in it ---
            /// Lists the container's processes and what each holds.
            fn nvmlDeviceGetComputeRunningProcesses(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v1_t>)
                => process::computing, report;
            /// Lists the container's processes and what each holds.
            fn nvmlDeviceGetComputeRunningProcesses_v2(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v2_t>)
                => process::computing, report;
            /// Lists the container's processes and what each holds.
            fn nvmlDeviceGetComputeRunningProcesses_v3(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v2_t>)
                => process::computing_v3, report;
            /// Lists nothing: what draws does not pass through us, and other containers' processes are not shown.
            fn nvmlDeviceGetGraphicsRunningProcesses(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v1_t>)
                => process::others, report;
            /// Lists nothing, as its first version.
            fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v2_t>)
                => process::others, report;
            /// Lists nothing, as its first version.
            fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v2_t>)
                => process::others, report;
            /// Lists nothing: the container's processes are all in the list of those that compute.
            fn nvmlDeviceGetMPSComputeRunningProcesses(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v1_t>)
                => process::others, report;
            /// Lists nothing, as its first version.
            fn nvmlDeviceGetMPSComputeRunningProcesses_v2(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v2_t>)
                => process::others, report;
            /// Lists nothing, as its first version.
            fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: $crate::nvml::nvmlDevice_t,
                count: $crate::arg::InOut<u32>, infos: $crate::arg::Array<$crate::nvml::nvmlProcessInfo_v2_t>)
                => process::others, report;
            /// Lists the container's processes and what each holds, in the compute mode; nothing in the others.
            fn nvmlDeviceGetRunningProcessDetailList(device: $crate::nvml::nvmlDevice_t,
                list: $crate::arg::InOut<$crate::nvml::nvmlProcessDetailList_v1_t>)
                => process::details, report;
        }
    };
}
