//! Modules and libraries. The stub takes any image; a card refuses those of headers alone.

use super::{Case, kernels};

/// A cubin: the header of an ELF file without sections, in buffer 0.
const ELF: &str = "poke 0 0 8 0x102464c457f";
const TABLE: &str = "poke 0 40 8 64";
const ENTRY: &str = "poke 0 56 8 0x400000";
const LOAD: &str = concat!("call cuModuleLoadData &a '", kernels!());
const LOAD_LIBRARY: &str = concat!("call cuLibraryLoadData &a '", kernels!(), " 0 0 0 0 0 0");
const KERNEL: &str = "call cuLibraryGetKernel &b a 'kernel";

pub(super) const CASES: &[Case] = &[
    ("cuModuleLoad", &["call cuModuleLoad &a 'image.ptx", "call cuModuleLoad &b '/no/such/file"]),
    (
        "cuModuleLoadData",
        &[
            LOAD,
            "call cuModuleLoadData &b 0",
            ELF,
            TABLE,
            ENTRY,
            "call cuModuleLoadData &b %0",
            "call cuModuleLoadData 0 %0",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuModuleLoadDataEx",
        &[
            concat!("call cuModuleLoadDataEx &a '", kernels!(), " 0 0 0"),
            "call cuModuleLoadDataEx &b 0 0 0 0",
        ],
    ),
    (
        "cuModuleLoadFatBinary",
        // Its magic, its header's length, its own length.
        &[
            "poke 0 0 8 0x100001ba55ed50",
            "poke 0 8 8 240",
            "call cuModuleLoadFatBinary &a %0",
            "call cuModuleLoadFatBinary &b 0",
        ],
    ),
    (
        "cuModuleUnload",
        &[
            LOAD,
            "call cuModuleUnload a",
            "call cuModuleUnload a",
            "call cuModuleUnload 12345",
            "call cuMemGetInfo_v2 &c &d",
        ],
    ),
    (
        "cuModuleGetFunction",
        &[
            LOAD,
            "call cuModuleGetFunction &b a 'kernel",
            "call cuModuleGetFunction &c a 'kernel",
            "call cuModuleGetFunction &d a 'missing",
            "call cuModuleGetFunction &d 12345 'kernel",
        ],
    ),
    (
        "cuFuncLoad",
        &[
            LOAD,
            "call cuModuleGetFunction &b a 'kernel",
            "call cuFuncLoad b",
            "call cuFuncIsLoaded &c b",
            "call cuFuncLoad 12345",
        ],
    ),
    ("cuLibraryLoadData", &[LOAD_LIBRARY, "call cuLibraryLoadData &b 0 0 0 0 0 0 0", KERNEL]),
    (
        "cuLibraryLoadFromFile",
        &[
            "call cuLibraryLoadFromFile &a 'image.ptx 0 0 0 0 0 0",
            "call cuLibraryLoadFromFile &b '/no/such/file 0 0 0 0 0 0",
        ],
    ),
    (
        "cuLibraryUnload",
        &[
            LOAD_LIBRARY,
            "call cuLibraryUnload a",
            "call cuLibraryUnload a",
            "call cuLibraryUnload 12345",
        ],
    ),
    (
        "cuLibraryGetGlobal",
        &[
            LOAD_LIBRARY,
            "call cuLibraryGetGlobal &b &c a 'variable",
            "call cuLibraryGetGlobal &b &c a 'missing",
            "call cuLibraryGetGlobal &b &c 12345 'variable",
        ],
    ),
    (
        "cuLibraryGetManaged",
        &[
            LOAD_LIBRARY,
            "call cuLibraryGetManaged &b &c a 'managed",
            "call cuLibraryGetManaged &b &c a 'missing",
        ],
    ),
    (
        "cuLibraryGetModule",
        &[
            LOAD_LIBRARY,
            "call cuLibraryGetModule &b a",
            "call cuLibraryGetModule 0 a",
            "call cuLibraryGetModule &b 12345",
        ],
    ),
    (
        "cuKernelGetFunction",
        &[
            LOAD_LIBRARY,
            KERNEL,
            "call cuKernelGetFunction &c b",
            "call cuKernelGetFunction 0 b",
            "call cuKernelGetFunction &c 12345",
        ],
    ),
];
