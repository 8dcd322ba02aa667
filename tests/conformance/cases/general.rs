//! Initialisation, look-up and what a device is.

use super::Case;

pub(super) const CASES: &[Case] = &[
    ("cuInit", &["call cuInit 0", "call cuInit 1"]),
    (
        "cuGetProcAddress",
        &[
            "ask cuGetProcAddress 'cuMemAlloc &a 3020 0",
            "ask cuGetProcAddress 'cuMemAlloc &a 2000 0",
            "ask cuGetProcAddress 'cuMemAlloc &a 1000 0",
            "ask cuGetProcAddress 'cuMemAlloc &a 99999 0",
            "ask cuGetProcAddress 'cuMemAllocAsync &a 12000 2",
            "ask cuGetProcAddress 'cuMemAllocAsync &a 12000 8",
            "ask cuGetProcAddress 'cuNoSuchName &a 12000 0",
        ],
    ),
    (
        "cuGetProcAddress_v2",
        &[
            "ask cuGetProcAddress_v2 'cuMemAlloc &a 3020 0 &b",
            "ask cuGetProcAddress_v2 'cuMemAlloc &a 1000 0 &b",
            "ask cuGetProcAddress_v2 'cuMemAlloc &a 99999 0 &b",
            "ask cuGetProcAddress_v2 'cuMemAllocAsync &a 12000 2 &b",
            "ask cuGetProcAddress_v2 'cuNoSuchName &a 12000 0 &b",
            "ask cuGetProcAddress_v2 'cuMemAlloc &a 3020 0 0",
        ],
    ),
    ("cuDeviceTotalMem", &["call cuDeviceTotalMem &a 0", "call cuDeviceTotalMem &a 7"]),
    ("cuDeviceTotalMem_v2", &["call cuDeviceTotalMem_v2 &a 0", "call cuDeviceTotalMem_v2 &a 7"]),
];
