//! Linear and physical memory, and what is left of it.

use super::{Case, DEVICE, PINNED};

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
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    ("cuMemGetInfo", &["call cuMemGetInfo &a &b", "call cuMemGetInfo 0 &b"]),
    (
        "cuMemGetInfo_v2",
        &["call cuMemGetInfo_v2 &a &b", "call cuMemGetInfo_v2 &a 0", "call cuMemGetInfo_v2 0 0"],
    ),
];
