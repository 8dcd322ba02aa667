//! Graphs that allocate.

use super::{Case, DEVICE, PINNED};

/// The size in `CUDA_MEM_ALLOC_NODE_PARAMS`, behind the properties of a pool and the list of who may reach the memory.
const SIZE: &str = "poke 0 104 8 1048576";
const CREATE: &str = "call cuGraphCreate &a 0";
const ALLOCATE: &str = "hide cuGraphAddMemAllocNode &b a 0 0 %0";
/// The address that the node was given, which may differ.
const FORGET: &str = "poke 0 112 8 0";

macro_rules! instantiated {
    ($($call:literal),*) => {
        &[
            PINNED, DEVICE, SIZE, CREATE, ALLOCATE, FORGET,
            $($call,)*
            "call cuGraphLaunch c 0",
            "call cuCtxSynchronize",
            "call cuMemGetInfo_v2 &d &e",
            "call cuGraphExecDestroy c",
            "call cuDeviceGraphMemTrim 0",
            "call cuGraphDestroy a",
        ]
    };
}

pub(super) const CASES: &[Case] = &[
    (
        "cuGraphInstantiate",
        instantiated!("call cuGraphInstantiate &c a 0 0 0", "call cuGraphInstantiate 0 a 0 0 0"),
    ),
    (
        "cuGraphInstantiate_v2",
        instantiated!(
            "call cuGraphInstantiate_v2 &c a 0 0 0",
            "call cuGraphInstantiate_v2 &d 12345 0 0 0"
        ),
    ),
    (
        "cuGraphInstantiateWithFlags",
        instantiated!(
            "call cuGraphInstantiateWithFlags &c a 0",
            "call cuGraphInstantiateWithFlags 0 a 0"
        ),
    ),
    (
        "cuGraphInstantiateWithParams",
        instantiated!(
            "poke 1 0 8 0",
            "poke 1 8 8 0",
            "poke 1 16 8 0",
            "poke 1 24 8 0",
            "call cuGraphInstantiateWithParams &c a %1"
        ),
    ),
    (
        "cuGraphInstantiateWithParams_ptsz",
        instantiated!(
            "poke 1 0 8 0",
            "poke 1 8 8 0",
            "poke 1 16 8 0",
            "poke 1 24 8 0",
            "call cuGraphInstantiateWithParams_ptsz &c a %1"
        ),
    ),
    (
        "cuGraphDestroy",
        &[
            CREATE,
            "call cuGraphDestroy a",
            "call cuGraphInstantiateWithFlags &c a 0",
            "call cuGraphDestroy a",
            "call cuGraphDestroy 12345",
        ],
    ),
    (
        "cuGraphExecDestroy",
        &[
            CREATE,
            "call cuGraphInstantiateWithFlags &c a 0",
            "call cuGraphExecDestroy c",
            "call cuGraphExecDestroy c",
            "call cuGraphExecDestroy 12345",
        ],
    ),
    (
        "cuDeviceGetGraphMemAttribute",
        &[
            PINNED,
            DEVICE,
            SIZE,
            CREATE,
            ALLOCATE,
            FORGET,
            "call cuGraphInstantiateWithFlags &c a 0",
            "call cuGraphLaunch c 0",
            "call cuDeviceGetGraphMemAttribute 0 0 %1",
            "call cuDeviceGetGraphMemAttribute 0 1 %1",
            "call cuDeviceGetGraphMemAttribute 0 2 %1",
            "call cuDeviceGetGraphMemAttribute 0 3 %1",
            "call cuDeviceGetGraphMemAttribute 0 77 %1",
            "call cuDeviceGetGraphMemAttribute 7 0 %1",
            "call cuDeviceGetGraphMemAttribute 0 0 0",
        ],
    ),
    ("cuDeviceGraphMemTrim", &["call cuDeviceGraphMemTrim 0", "call cuDeviceGraphMemTrim 7"]),
];
