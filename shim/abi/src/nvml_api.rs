//! THE table of intercepted NVML functions.

/// Hands every row to `$consumer!`. The form is that of [`cuda_api!`](crate::cuda_api!) without versions; each
/// function returns `nvmlReturn_t`, and `module::handler` lies below `shim/src/nvml`.
#[macro_export]
macro_rules! nvml_api {
    ($consumer:path) => {
        $consumer! {
            /// Shows the slice: total = min(limit, GPU's memory), used = what the container holds.
            fn nvmlDeviceGetMemoryInfo(device: $crate::nvml::nvmlDevice_t, memory: *mut $crate::nvml::nvmlMemory_t)
                => memory::info, report;
            /// Shows the slice; reserved is 0.
            fn nvmlDeviceGetMemoryInfo_v2(device: $crate::nvml::nvmlDevice_t, memory: *mut $crate::nvml::nvmlMemory_v2_t)
                => memory::info_v2, report;
            /// Shows the slice of a MIG instance that is limited.
            fn nvmlDeviceGetAttributes(device: $crate::nvml::nvmlDevice_t,
                attributes: *mut $crate::nvml::nvmlDeviceAttributes_t) => memory::attributes, report;
            /// Shows the slice, as its first version.
            fn nvmlDeviceGetAttributes_v2(device: $crate::nvml::nvmlDevice_t,
                attributes: *mut $crate::nvml::nvmlDeviceAttributes_t) => memory::attributes, report;

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
            /// Lists nothing: processes of the past, of the whole card and with the numbers of the host.
            fn nvmlDeviceGetAccountingPids(device: $crate::nvml::nvmlDevice_t, count: $crate::arg::InOut<u32>,
                pids: $crate::arg::Array<u32>) => accounting::pids, report;
            /// Finds no process: a number of the host is not one of the container's.
            fn nvmlDeviceGetAccountingStats(device: $crate::nvml::nvmlDevice_t, pid: u32,
                stats: *mut $crate::nvml::nvmlAccountingStats_t) => accounting::stats, report;
            /// Finds no process, as its first version.
            fn nvmlDeviceGetAccountingStats_v2(device: $crate::nvml::nvmlDevice_t,
                stats: *mut $crate::nvml::nvmlAccountingStats_v2_t) => accounting::stats_v2, report;

            // --- time: where it is limited, and so measured, the container's share of the card's ---
            /// Shows the container's share of the card's time.
            fn nvmlDeviceGetUtilizationRates(device: $crate::nvml::nvmlDevice_t,
                rates: *mut $crate::nvml::nvmlUtilization_t) => utilization::rates, report;
            /// Shows the container's share of the card's time, window by window.
            fn nvmlDeviceGetSamples(device: $crate::nvml::nvmlDevice_t, kind: u32, since: u64, value_type: *mut u32,
                count: $crate::arg::InOut<u32>, samples: $crate::arg::Array<$crate::nvml::nvmlSample_t>)
                => utilization::samples, report;
            /// Lists the container's processes that computed, and their shares of the card's time.
            fn nvmlDeviceGetProcessUtilization(device: $crate::nvml::nvmlDevice_t,
                samples: $crate::arg::Array<$crate::nvml::nvmlProcessUtilizationSample_t>,
                count: $crate::arg::InOut<u32>, since: u64) => utilization::processes, report;
            /// Lists the container's processes that computed, and their shares of the card's time.
            fn nvmlDeviceGetProcessesUtilizationInfo(device: $crate::nvml::nvmlDevice_t,
                list: $crate::arg::InOut<$crate::nvml::nvmlProcessesUtilizationInfo_v1_t>)
                => utilization::list, report;
        }
    };
}
