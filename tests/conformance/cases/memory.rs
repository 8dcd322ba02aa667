//! Linear and physical memory, and what is left of it.

use super::{Case, DEVICE, EXPORTABLE, PINNED};

/// Memory without a handle behind the first of two tiles of an array, whose end is the memory's too.
macro_rules! tiles {
    ($symbol:literal) => {
        &[
            "poke 0 0 8 256",
            "poke 0 8 8 128",
            "poke 0 24 8 0x0000000100000020",
            "poke 0 32 4 0x40",
            "call cuArray3DCreate_v2 &a %0",
            "poke 0 24 8 0",
            "poke 0 32 4 0",
            PINNED,
            DEVICE,
            "call cuMemCreate &b 2097152 %0 0",
            "poke 0 0 8 0", // an array
            "put 0 8 a",
            "poke 0 16 8 0", // a level
            "poke 0 24 8 0", // level and layer
            "poke 0 32 8 0", // where the tile begins
            "poke 0 40 8 0x8000000000",
            "poke 0 48 8 0x100000080",
            "poke 0 56 8 1", // map
            "put 0 64 b",
            "poke 0 72 8 0",
            "poke 0 80 8 1", // for device 0
            "poke 0 88 8 0",
            concat!("hide ", $symbol, " %0 1 0"),
            "call cuMemRelease b",
            "call cuMemGetInfo_v2 &c &d",
            concat!("hide ", $symbol, " %0 1 0"), // no such handle
            "poke 0 84 4 1",
            concat!("hide ", $symbol, " %0 1 0"), // a flag that must be zero
            "poke 0 84 4 0",
            "poke 0 56 4 3",
            concat!("hide ", $symbol, " %0 1 0"), // no such operation
            "poke 0 56 4 2",
            concat!("hide ", $symbol, " 0 1 0"),
            concat!("hide ", $symbol, " %0 1 12345"),
            concat!("hide ", $symbol, " %0 1 0"), // unmap
            "call cuMemGetInfo_v2 &c &d",
            "call cuArrayDestroy a",
        ]
    };
}

pub(super) const CASES: &[Case] = &[
    ("cuMemAlloc", &["call cuMemAlloc &a 1048576", "call cuMemFree a", "call cuMemAlloc &b 0"]),
    (
        "cuMemAlloc_v2",
        &[
            "call cuMemAlloc_v2 &a 1048576",
            "call cuMemAlloc_v2 0 1048576",
            "call cuMemAlloc_v2 &b 0",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    ("cuMemAllocPitch", &["call cuMemAllocPitch &a &b 100 100 4", "call cuMemFree a"]),
    (
        "cuMemAllocPitch_v2",
        &[
            "call cuMemAllocPitch_v2 &a &b 100 100 4",
            "call cuMemGetInfo_v2 &c &d",
            "call cuMemAllocPitch_v2 &a 0 100 100 4",
            "call cuMemAllocPitch_v2 &a &b 100 100 5",
            "call cuMemAllocPitch_v2 &a &b 0 100 4",
            "call cuMemAllocPitch_v2 &a &b 100 0 4",
        ],
    ),
    ("cuMemFree", &["call cuMemAlloc &a 1048576", "call cuMemFree a", "call cuMemFree a"]),
    (
        "cuMemFree_v2",
        &[
            "call cuMemAlloc_v2 &a 1048576",
            "call cuMemFree_v2 a",
            "call cuMemFree_v2 a",
            "call cuMemFree_v2 0",
            "call cuMemFree_v2 12345",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuMemAllocManaged",
        &[
            "call cuMemAllocManaged &a 1048576 1",
            "call cuMemGetInfo_v2 &b &c",
            "call cuMemFree_v2 a",
            "call cuMemAllocManaged &a 1048576 77",
            "call cuMemAllocManaged &a 0 1",
        ],
    ),
    ("cuMemCreate", &[PINNED, DEVICE, "call cuMemCreate &a 2097152 %0 0", "call cuMemRelease a"]),
    (
        "cuMemCreate",
        &[
            PINNED,
            DEVICE,
            "call cuMemCreate &a 1 %0 0",
            "call cuMemCreate 0 2097152 %0 0",
            "call cuMemCreate &a 0 %0 0",
            "call cuMemCreate &a 2097152 0 0",
            "poke 0 12 4 7",
            "call cuMemCreate &a 2097152 %0 0",
        ],
    ),
    (
        "cuMemRelease",
        &[
            PINNED,
            DEVICE,
            "call cuMemCreate &a 2097152 %0 0",
            "call cuMemRelease a",
            "call cuMemRelease a",
            "call cuMemRelease 12345",
        ],
    ),
    (
        "cuMemRetainAllocationHandle",
        &[
            PINNED,
            DEVICE,
            "call cuMemCreate &a 2097152 %0 0",
            "call cuMemAddressReserve &b 2097152 0 0 0",
            "call cuMemMap b 2097152 0 a 0",
            "call cuMemRetainAllocationHandle &c b",
            "call cuMemRetainAllocationHandle &c 12345",
        ],
    ),
    (
        "cuMemMap",
        &[
            PINNED,
            DEVICE,
            "call cuMemCreate &a 2097152 %0 0",
            "call cuMemAddressReserve &b 2097152 0 0 0",
            "call cuMemMap b 2097152 0 a 0",
            "call cuMemMap b 2097152 0 a 0",
            "call cuMemMap 12345 2097152 0 a 0",
        ],
    ),
    (
        "cuMemUnmap",
        &[
            PINNED,
            DEVICE,
            "call cuMemCreate &a 2097152 %0 0",
            "call cuMemAddressReserve &b 2097152 0 0 0",
            "call cuMemMap b 2097152 0 a 0",
            "call cuMemRelease a",
            "call cuMemUnmap b 2097152",
            "call cuMemUnmap b 2097152",
            "call cuMemUnmap b 0",
            "call cuMemUnmap b 0xffffffffffffffff",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuMemExportToShareableHandle",
        &[
            EXPORTABLE,
            DEVICE,
            "call cuMemCreate &a 2097152 %0 0",
            "poke 1 0 8 0",
            "hide cuMemExportToShareableHandle %1 a 1 0",
            "call cuMemExportToShareableHandle 0 a 1 0",
            "hide cuMemExportToShareableHandle %1 a 77 0",
            "hide cuMemExportToShareableHandle %1 a 1 1",
            "hide cuMemExportToShareableHandle %1 12345 1 0",
            "call cuMemRelease a",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuMemImportFromShareableHandle",
        &[
            EXPORTABLE,
            DEVICE,
            "call cuMemCreate &a 2097152 %0 0",
            // The descriptor becomes the value of slot `b`.
            "poke 1 0 8 0",
            "call cuMemExportToShareableHandle &b a 1 0",
            "call cuMemImportFromShareableHandle &c b 1",
            "call cuMemImportFromShareableHandle 0 b 1",
            "call cuMemImportFromShareableHandle &d b 77",
            "call cuMemImportFromShareableHandle &d 9999 1",
            "call cuMemRelease a",
            "call cuMemRelease c",
            "call cuMemRelease c",
        ],
    ),
    ("cuMemMapArrayAsync", tiles!("cuMemMapArrayAsync")),
    ("cuMemMapArrayAsync_ptsz", tiles!("cuMemMapArrayAsync_ptsz")),
    ("cuIpcOpenMemHandle", &["byvalue cuIpcOpenMemHandle &a", "byvalue cuIpcOpenMemHandle 0"]),
    (
        "cuIpcOpenMemHandle_v2",
        &["byvalue cuIpcOpenMemHandle_v2 &a", "byvalue cuIpcOpenMemHandle_v2 0"],
    ),
    (
        "cuIpcCloseMemHandle",
        &[
            "call cuIpcCloseMemHandle 12345",
            "call cuMemAlloc_v2 &a 1048576",
            "call cuIpcCloseMemHandle a",
            "call cuMemFree_v2 a",
        ],
    ),
    ("cuMemGetInfo", &["call cuMemGetInfo &a &b", "call cuMemGetInfo 0 &b"]),
    (
        "cuMemGetInfo_v2",
        &["call cuMemGetInfo_v2 &a &b", "call cuMemGetInfo_v2 &a 0", "call cuMemGetInfo_v2 0 0"],
    ),
];
