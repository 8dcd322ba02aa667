//! What NVML says of memory and processes.

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "nvmlDeviceGetMemoryInfo",
        &[
            "call nvmlDeviceGetHandleByIndex_v2 0 &a",
            "call nvmlDeviceGetMemoryInfo a %0",
            "call nvmlDeviceGetMemoryInfo a 0",
        ],
    ),
    (
        "nvmlDeviceGetMemoryInfo_v2",
        &[
            "call nvmlDeviceGetHandleByIndex_v2 0 &a",
            "call nvmlDeviceGetMemoryInfo_v2 a %0",
            "poke 0 0 4 0x02000028",
            "hide nvmlDeviceGetMemoryInfo_v2 a %0",
            "poke 0 4 4 0",
        ],
    ),
    (
        "nvmlDeviceGetComputeRunningProcesses",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetComputeRunningProcesses a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetComputeRunningProcesses a %1 0",
            "call nvmlDeviceGetComputeRunningProcesses a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetComputeRunningProcesses_v2",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetComputeRunningProcesses_v2 a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetComputeRunningProcesses_v2 a %1 0",
            "call nvmlDeviceGetComputeRunningProcesses_v2 a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetComputeRunningProcesses_v3 a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetComputeRunningProcesses_v3 a %1 0",
            "call nvmlDeviceGetComputeRunningProcesses_v3 a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetGraphicsRunningProcesses",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetGraphicsRunningProcesses a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetGraphicsRunningProcesses a %1 0",
            "call nvmlDeviceGetGraphicsRunningProcesses a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetGraphicsRunningProcesses_v2",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetGraphicsRunningProcesses_v2 a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetGraphicsRunningProcesses_v2 a %1 0",
            "call nvmlDeviceGetGraphicsRunningProcesses_v2 a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetGraphicsRunningProcesses_v3 a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetGraphicsRunningProcesses_v3 a %1 0",
            "call nvmlDeviceGetGraphicsRunningProcesses_v3 a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetMPSComputeRunningProcesses",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetMPSComputeRunningProcesses a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetMPSComputeRunningProcesses a %1 0",
            "call nvmlDeviceGetMPSComputeRunningProcesses a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetMPSComputeRunningProcesses_v2",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetMPSComputeRunningProcesses_v2 a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetMPSComputeRunningProcesses_v2 a %1 0",
            "call nvmlDeviceGetMPSComputeRunningProcesses_v2 a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        &[
            HANDLE,
            "poke 1 0 4 4",
            "hide nvmlDeviceGetMPSComputeRunningProcesses_v3 a %1 %2",
            NO_PID,
            "poke 1 0 4 0",
            "call nvmlDeviceGetMPSComputeRunningProcesses_v3 a %1 0",
            "call nvmlDeviceGetMPSComputeRunningProcesses_v3 a 0 0",
        ],
    ),
    (
        "nvmlDeviceGetRunningProcessDetailList",
        &[
            HANDLE,
            "poke 0 0 8 0x01000018",
            "call nvmlDeviceGetRunningProcessDetailList a %0",
            "poke 0 0 8 0",
            "call nvmlDeviceGetRunningProcessDetailList a %0",
            "call nvmlDeviceGetRunningProcessDetailList a 0",
        ],
    ),
    ("nvmlDeviceGetAttributes", &[HANDLE, "call nvmlDeviceGetAttributes a %0"]),
    ("nvmlDeviceGetAttributes_v2", &[HANDLE, "call nvmlDeviceGetAttributes_v2 a %0"]),
    (
        "nvmlDeviceGetAccountingPids",
        &[HANDLE, "poke 0 0 4 4", "call nvmlDeviceGetAccountingPids a %0 %1"],
    ),
    ("nvmlDeviceGetAccountingStats", &[HANDLE, "call nvmlDeviceGetAccountingStats a 1 %0"]),
    ("nvmlDeviceGetAccountingStats_v2", &[HANDLE, "call nvmlDeviceGetAccountingStats_v2 a %0"]),
    (
        "nvmlDeviceGetUtilizationRates",
        &[
            HANDLE,
            "call nvmlDeviceGetUtilizationRates a %0",
            "call nvmlDeviceGetUtilizationRates a 0",
        ],
    ),
    (
        "nvmlDeviceGetSamples",
        &[
            HANDLE,
            "call nvmlDeviceGetSamples a 1 0 %0 0 0",
            "call nvmlDeviceGetSamples a 7 0 %0 %1 0",
            "call nvmlDeviceGetSamples a 1 0xffffffffffffffff %0 %1 %2",
        ],
    ),
    (
        "nvmlDeviceGetProcessUtilization",
        &[
            HANDLE,
            "poke 0 0 4 0",
            "call nvmlDeviceGetProcessUtilization a 0 %0 0",
            "poke 0 0 4 4",
            "call nvmlDeviceGetProcessUtilization a %1 %0 0",
            "call nvmlDeviceGetProcessUtilization a %1 0 0",
        ],
    ),
    (
        "nvmlDeviceGetProcessesUtilizationInfo",
        &[
            HANDLE,
            "poke 0 0 8 0x01000018",
            "call nvmlDeviceGetProcessesUtilizationInfo a %0",
            "poke 0 0 8 0",
            "call nvmlDeviceGetProcessesUtilizationInfo a %0",
            "call nvmlDeviceGetProcessesUtilizationInfo a 0",
        ],
    ),
];

/// The handle of the first card in slot `a`.
const HANDLE: &str = "call nvmlDeviceGetHandleByIndex_v2 0 &a";

/// The first process in buffer 2 without its number, which differs from run to run, and the gap behind that.
const NO_PID: &str = "poke 2 0 8 0";
