//! Arrays and mipmaps.

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "cuArrayCreate",
        &[
            "poke 0 0 8 0x0000004000000040",
            "poke 0 8 8 0x0000000100000020",
            "call cuArrayCreate &a %0",
            "call cuArrayDestroy a",
        ],
    ),
    (
        "cuArrayCreate_v2",
        &[
            "poke 0 0 8 64",
            "poke 0 8 8 64",
            FLOAT,
            "call cuArrayCreate_v2 &a %0",
            "call cuMemGetInfo_v2 &c &d",
            "call cuArrayCreate_v2 0 %0",
            "poke 0 16 4 77",
            "call cuArrayCreate_v2 &a %0",
        ],
    ),
    (
        "cuArray3DCreate",
        &[
            "poke 0 0 8 0x0000004000000040",
            "poke 0 8 8 0x0000002000000002",
            "poke 0 16 8 1",
            "call cuArray3DCreate &a %0",
        ],
    ),
    (
        "cuArray3DCreate_v2",
        &[
            "poke 0 0 8 64",
            "poke 0 8 8 64",
            "poke 0 16 8 2",
            "poke 0 24 8 0x0000000100000020",
            "poke 0 32 8 0",
            "call cuArray3DCreate_v2 &a %0",
            "call cuMemGetInfo_v2 &c &d",
            "poke 0 32 4 0x40",
            "call cuArray3DCreate_v2 &b %0",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuArrayDestroy",
        &[
            "poke 0 0 8 64",
            "poke 0 8 8 64",
            FLOAT,
            "call cuArrayCreate_v2 &a %0",
            "call cuArrayDestroy a",
            "call cuArrayDestroy a",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuMipmappedArrayCreate",
        &[
            "poke 0 0 8 64",
            "poke 0 8 8 64",
            "poke 0 24 8 0x0000000100000020",
            "call cuMipmappedArrayCreate &a %0 4",
            "call cuMemGetInfo_v2 &c &d",
            "call cuMipmappedArrayCreate 0 %0 4",
            "call cuMipmappedArrayCreate &b 0 4",
        ],
    ),
    (
        "cuMipmappedArrayDestroy",
        &[
            "poke 0 0 8 64",
            "poke 0 8 8 64",
            "poke 0 24 8 0x0000000100000020",
            "call cuMipmappedArrayCreate &a %0 4",
            "call cuMipmappedArrayDestroy a",
            "call cuMipmappedArrayDestroy a",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
];

/// Buffer 0 as a descriptor of one float per element.
const FLOAT: &str = "poke 0 16 8 0x0000000100000020";
