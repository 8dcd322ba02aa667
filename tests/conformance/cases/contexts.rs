//! Contexts: primary, own, green and those of other libraries.

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "cuDevicePrimaryCtxRetain",
        &[
            "call cuDevicePrimaryCtxRetain &a 0",
            "call cuDevicePrimaryCtxRetain 0 0",
            "call cuDevicePrimaryCtxRetain &a 7",
            "call cuDevicePrimaryCtxGetState 0 &b &c",
        ],
    ),
    (
        "cuDevicePrimaryCtxRelease",
        &[
            "call cuDevicePrimaryCtxRelease 0",
            "call cuDevicePrimaryCtxGetState 0 &b &c",
            "call cuDevicePrimaryCtxRelease 0",
            "call cuDevicePrimaryCtxRelease 7",
        ],
    ),
    (
        "cuDevicePrimaryCtxRelease_v2",
        &[
            "call cuDevicePrimaryCtxRetain &a 0",
            "call cuDevicePrimaryCtxRelease_v2 0",
            "call cuDevicePrimaryCtxRelease_v2 0",
            "call cuDevicePrimaryCtxRelease_v2 0",
        ],
    ),
    (
        "cuDevicePrimaryCtxReset",
        &[
            "call cuMemAlloc_v2 &a 1048576",
            "call cuDevicePrimaryCtxReset 0",
            "call cuMemFree_v2 a",
            "call cuDevicePrimaryCtxReset 7",
        ],
    ),
    (
        "cuDevicePrimaryCtxReset_v2",
        &[
            "call cuMemAlloc_v2 &a 1048576",
            "call cuDevicePrimaryCtxReset_v2 0",
            "call cuDevicePrimaryCtxRetain &h 0",
            "call cuCtxSetCurrent h",
            "call cuMemGetInfo_v2 &b &c",
        ],
    ),
    (
        "cuCtxCreate",
        &["call cuCtxCreate &a 0 0", "call cuCtxGetDevice &b", "call cuCtxCreate &c 0 7"],
    ),
    (
        "cuCtxCreate_v2",
        &[
            "call cuCtxCreate_v2 &a 0 0",
            "call cuCtxGetDevice &b",
            "call cuMemAlloc_v2 &c 1048576",
            "call cuCtxDestroy_v2 a",
            "call cuCtxGetDevice &b",
            "call cuCtxCreate_v2 0 0 0",
            "call cuCtxCreate_v2 &a 0xffffffff 0",
            "call cuCtxCreate_v2 &a 0 7",
        ],
    ),
    ("cuCtxCreate_v3", &["call cuCtxCreate_v3 &a 0 0 0 0", "call cuCtxCreate_v3 &a 0 0 0 7"]),
    ("cuCtxCreate_v4", &["call cuCtxCreate_v4 &a 0 0 0", "call cuCtxCreate_v4 &a 0 0 7"]),
    (
        "cuCtxAttach",
        &[
            "call cuCtxAttach &a 0",
            "call cuCtxAttach &a 1",
            "call cuCtxDetach a",
            "call cuCtxGetDevice &b",
        ],
    ),
    (
        "cuCtxDetach",
        &[
            "call cuCtxCreate_v2 &a 0 0",
            "call cuCtxAttach &b 0",
            "call cuCtxDetach a",
            "call cuCtxGetDevice &c",
            "call cuCtxDetach a",
            "call cuCtxDetach h",
            "call cuCtxDetach 12345",
        ],
    ),
    ("cuCtxDestroy", &["call cuCtxCreate_v2 &a 0 0", "call cuCtxDestroy a", "call cuCtxDestroy a"]),
    (
        "cuCtxDestroy_v2",
        &[
            "call cuCtxCreate_v2 &a 0 0",
            "call cuMemAlloc_v2 &b 1048576",
            "call cuCtxDestroy_v2 a",
            "call cuCtxDestroy_v2 a",
            "call cuCtxDestroy_v2 h",
            "call cuCtxDestroy_v2 12345",
            "call cuCtxSetCurrent h",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    ("cuGLCtxCreate", &["call cuGLCtxCreate &a 0 0", "call cuGLCtxCreate &a 0 7"]),
    ("cuGLCtxCreate_v2", &["call cuGLCtxCreate_v2 &a 0 0", "call cuGLCtxCreate_v2 &a 0 7"]),
    ("cuVDPAUCtxCreate", &["call cuVDPAUCtxCreate &a 0 0 0 0", "call cuVDPAUCtxCreate &a 0 7 0 0"]),
    (
        "cuVDPAUCtxCreate_v2",
        &["call cuVDPAUCtxCreate_v2 &a 0 0 0 0", "call cuVDPAUCtxCreate_v2 &a 0 7 0 0"],
    ),
    (
        "cuGreenCtxCreate",
        &[
            "call cuDeviceGetDevResource 0 %0 1",
            "call cuDevResourceGenerateDesc &a %0 1",
            "call cuGreenCtxCreate &b a 0 1",
            "call cuGreenCtxCreate &c a 0 0",
            "call cuGreenCtxCreate &c a 7 1",
        ],
    ),
    (
        "cuGreenCtxDestroy",
        &[
            "call cuDeviceGetDevResource 0 %0 1",
            "call cuDevResourceGenerateDesc &a %0 1",
            "call cuGreenCtxCreate &b a 0 1",
            "call cuGreenCtxDestroy b",
            "call cuGreenCtxDestroy b",
            "call cuGreenCtxDestroy 12345",
        ],
    ),
    (
        "cuCtxFromGreenCtx",
        &[
            "call cuDeviceGetDevResource 0 %0 1",
            "call cuDevResourceGenerateDesc &a %0 1",
            "call cuGreenCtxCreate &b a 0 1",
            "call cuCtxFromGreenCtx &c b",
            "call cuCtxSetCurrent c",
            "call cuMemAlloc_v2 &d 1048576",
            "call cuMemGetInfo_v2 &e &f",
            "call cuMemFree_v2 d",
            "call cuGreenCtxDestroy b",
            "call cuCtxSetCurrent h",
            "call cuMemGetInfo_v2 &e &f",
        ],
    ),
    (
        "cuCtxSetLimit",
        &[
            "call cuCtxSetLimit 2 16777216",
            "call cuCtxGetLimit &a 2",
            "call cuMemGetInfo_v2 &b &c",
            "call cuCtxSetLimit 2 0",
            "call cuCtxGetLimit &a 2",
            "call cuMemGetInfo_v2 &b &c",
            "call cuCtxSetLimit 0 4096",
            "call cuCtxSetLimit 77 1",
        ],
    ),
];
