//! Stream-ordered memory and its pools.

use super::{Case, DEVICE, EXPORTABLE, PINNED};

macro_rules! of_a_location {
    ($symbol:literal) => {
        &[
            "poke 1 0 8 1", // device 0
            concat!("call ", $symbol, " &a %1 1"),
            "call cuMemAllocFromPoolAsync &b 1048576 a 0",
            "call cuMemFreeAsync b 0",
            concat!("call ", $symbol, " 0 %1 1"),
            concat!("call ", $symbol, " &a 0 1"),
            "poke 1 4 4 7",
            concat!("call ", $symbol, " &a %1 1"),
            "poke 1 0 8 2", // the host
            concat!("call ", $symbol, " &a %1 1"),
        ]
    };
}

pub(super) const CASES: &[Case] = &[
    (
        "cuMemAllocAsync",
        &[
            "call cuMemAllocAsync &a 1048576 0",
            "call cuMemAllocAsync 0 1 0",
            "call cuMemAllocAsync &b 0 0",
            "call cuMemFree_v2 a",
        ],
    ),
    (
        "cuMemAllocAsync_ptsz",
        &["call cuMemAllocAsync_ptsz &a 1048576 0", "call cuMemFreeAsync_ptsz a 0"],
    ),
    (
        "cuMemFreeAsync",
        &[
            "call cuMemAllocAsync &a 1048576 0",
            "call cuMemFreeAsync a 0",
            "call cuMemFreeAsync a 0",
            "call cuMemFreeAsync 12345 0",
            "call cuCtxSynchronize",
        ],
    ),
    (
        "cuMemFreeAsync_ptsz",
        &[
            "call cuMemAlloc_v2 &a 1048576",
            "call cuMemFreeAsync_ptsz a 0",
            "call cuCtxSynchronize",
            "call cuMemFree_v2 a",
        ],
    ),
    (
        "cuMemAllocFromPoolAsync",
        &[
            PINNED,
            DEVICE,
            "call cuMemPoolCreate &a %0",
            "call cuMemAllocFromPoolAsync &b 1048576 a 0",
            "call cuMemFreeAsync b 0",
            "call cuMemAllocFromPoolAsync &b 1048576 12345 0",
            "call cuMemAllocFromPoolAsync 0 1 a 0",
            "call cuMemAllocFromPoolAsync &b 0 a 0",
        ],
    ),
    (
        "cuMemAllocFromPoolAsync_ptsz",
        &[
            "call cuDeviceGetDefaultMemPool &a 0",
            "call cuMemAllocFromPoolAsync_ptsz &b 1048576 a 0",
            "call cuMemFree_v2 b",
        ],
    ),
    (
        "cuDeviceGetDefaultMemPool",
        &["call cuDeviceGetDefaultMemPool &a 0", "call cuDeviceGetDefaultMemPool &a 7"],
    ),
    ("cuDeviceGetMemPool", &["call cuDeviceGetMemPool &a 0", "call cuDeviceGetMemPool &a 7"]),
    (
        "cuDeviceSetMemPool",
        &[
            PINNED,
            DEVICE,
            "call cuMemPoolCreate &a %0",
            "call cuDeviceSetMemPool 0 a",
            "call cuMemAllocAsync &b 1048576 0",
            "call cuDeviceSetMemPool 0 12345",
            "call cuDeviceSetMemPool 7 a",
        ],
    ),
    ("cuMemGetDefaultMemPool", of_a_location!("cuMemGetDefaultMemPool")),
    ("cuMemGetMemPool", of_a_location!("cuMemGetMemPool")),
    (
        "cuMemPoolGetAttribute",
        &[
            "call cuDeviceGetDefaultMemPool &a 0",
            "call cuMemAllocAsync &b 1048576 0",
            "call cuMemPoolGetAttribute a 3 %1",
            "call cuMemPoolGetAttribute a 4 %1",
            "call cuMemPoolGetAttribute a 5 %1",
            "call cuMemPoolGetAttribute a 6 %1",
            "call cuMemPoolGetAttribute a 7 %1",
            "call cuMemPoolGetAttribute a 8 %1",
            "call cuMemPoolGetAttribute a 13 %1",
            "call cuMemPoolGetAttribute a 77 %1",
            "call cuMemPoolGetAttribute a 5 0",
            "call cuMemPoolGetAttribute 12345 5 %1",
        ],
    ),
    (
        "cuMemSetMemPool",
        &[
            PINNED,
            DEVICE,
            "call cuMemPoolCreate &a %0",
            "poke 1 0 8 1",
            "call cuMemSetMemPool %1 1 a",
            "call cuMemAllocAsync &b 1048576 0",
        ],
    ),
    (
        "cuMemPoolCreate",
        &[
            PINNED,
            DEVICE,
            "call cuMemPoolCreate &a %0",
            "call cuMemPoolCreate 0 %0",
            "call cuMemPoolCreate &a 0",
            "poke 0 12 4 7",
            "call cuMemPoolCreate &a %0",
        ],
    ),
    (
        "cuMemPoolDestroy",
        &[
            PINNED,
            DEVICE,
            "call cuMemPoolCreate &a %0",
            "call cuMemAllocFromPoolAsync &b 1048576 a 0",
            "call cuMemPoolDestroy a",
            "call cuMemPoolDestroy a",
            "call cuMemFreeAsync b 0",
            "call cuCtxSynchronize",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuMemPoolImportPointer",
        &[
            EXPORTABLE,
            DEVICE,
            "call cuMemPoolCreate &a %0",
            "call cuMemAllocFromPoolAsync &b 1048576 a 0",
            "hide cuMemPoolExportPointer %1 b",
            "call cuMemPoolExportToShareableHandle &c a 1 0",
            "call cuMemPoolImportFromShareableHandle &d c 1 0",
            "hide cuMemPoolImportPointer &e d %1",
            "hide cuMemPoolImportPointer 0 d %1",
            "hide cuMemPoolImportPointer &f a %1",
            "hide cuMemPoolImportPointer &f 12345 %1",
            "hide cuMemPoolImportPointer &f d 0",
            "call cuMemFreeAsync e 0",
            "call cuMemFreeAsync e 0",
            "call cuMemFreeAsync b 0",
            "call cuCtxSynchronize",
            "call cuMemGetInfo_v2 &e &f",
        ],
    ),
    (
        "cuMemPoolImportFromShareableHandle",
        &[
            EXPORTABLE,
            DEVICE,
            "call cuMemPoolCreate &b %0",
            "call cuMemPoolExportToShareableHandle &c b 1 0",
            "call cuMemPoolImportFromShareableHandle &a c 1 0",
            "call cuMemPoolImportFromShareableHandle 0 c 1 0",
            "call cuMemPoolImportFromShareableHandle &d c 1 1",
            "call cuMemAllocFromPoolAsync &d 1048576 a 0",
            "call cuMemPoolDestroy a",
            "call cuMemPoolImportFromShareableHandle &a 9999 1 0",
            "call cuMemPoolImportFromShareableHandle &a 9999 77 0",
        ],
    ),
    (
        "cuMemPoolSetAttribute",
        &[
            "call cuDeviceGetDefaultMemPool &a 0",
            "poke 1 0 8 1048576",
            "call cuMemPoolSetAttribute a 4 %1",
            "call cuMemPoolGetAttribute a 4 %2",
            "call cuMemPoolSetAttribute a 77 %1",
            "call cuMemPoolSetAttribute a 4 0",
            "call cuMemPoolSetAttribute 12345 4 %1",
        ],
    ),
    (
        "cuMemPoolTrimTo",
        &[
            "call cuDeviceGetDefaultMemPool &a 0",
            "poke 1 0 8 0xffffffffffffffff",
            "call cuMemPoolSetAttribute a 4 %1",
            "call cuMemAllocAsync &b 1048576 0",
            "call cuMemFreeAsync b 0",
            "call cuCtxSynchronize",
            "call cuMemPoolTrimTo a 0",
            "call cuMemGetInfo_v2 &c &d",
            "call cuMemPoolTrimTo 12345 0",
        ],
    ),
];
