//! The simulated card behind the stub `libcuda.so.1` and `libnvidia-ml.so.1`.
//!
//! Both libraries, in every process, show the same card: one file in a directory, mapped by all.
//! What it is comes from the environment:
//!
//! | variable | default | meaning |
//! |---|---|---|
//! | `STUB_GPU_DIR` | `/dev/shm/gpucap-stub-<uid>` | directory of the card file; another directory is another machine |
//! | `STUB_GPU_COUNT` | `1` | physical devices, 0 to 8 |
//! | `STUB_GPU_MEM` | `80GiB` | memory of each device; one size, or one per device with commas |
//! | `STUB_GPU_RESERVED` | `0` | part of it that the driver keeps for itself |
//! | `STUB_GPU_NAME` | `Stub GPU` | name of every device |
//! | `STUB_GPU_MIG` | none | MIG slices: `0=10GiB+20GiB;1=5GiB` |
//! | `STUB_GPU_ACCOUNTING` | `off` | `on`: NVML keeps accounts of the processes that use a device |
//! | `STUB_GPU_MEMORY_LIMITS` | `off` | `on`: NVML can limit the memory of a cgroup (13.4) |
//! | `STUB_GPU_SHARED_MEMORY` | `off` | `on`: cards use the machine's memory, as GB10 does; NVML has no figures of it |
//! | `STUB_GPU_MPS` | `off` | `on`: the driver says that contexts are clients of MPS; they take turns all the same |
//! | `STUB_GPU_ORDER` | `pci` | `reverse`: CUDA's fastest-first order is the reverse of PCI order |
//! | `STUB_GPU_CUDA_VERSION` | `13050` | what `cuDriverGetVersion` says; `cuGetProcAddress` knows nothing newer |
//! | `STUB_GPU_DRIVER_VERSION` | `595.10.01` | what NVML says |
//! | `STUB_GPU_CONTEXT_MEM` | `256MiB` | what a context costs on the device |
//! | `STUB_GPU_MODULE_MEM` | `0` | what a loaded module costs |
//! | `STUB_GPU_FUNCTION_MEM` | `0` | what a function costs when it is first needed |
//! | `STUB_GPU_CONCURRENT` | none | `cuModuleLoadData:1GiB`: a peer takes this while the call runs; `-1GiB`: gives it back |
//! | `STUB_GPU_GRANULARITY` | `1` | unit to which the card rounds an allocation |
//! | `STUB_GPU_PITCH` | `512` | what rows of pitched memory are padded to a multiple of |
//! | `STUB_GPU_POOL_GRANULARITY` | `1` | unit by which the reserve of a pool grows |
//! | `STUB_GPU_CLOCK` | `real` | `virtual`: moves by `stubAdvance(ns)` and by host waits, for all processes |
//! | `STUB_GPU_SLICE_NS` | `2000000` | time slice between processes that compute |
//! | `STUB_GPU_SWITCH_NS` | `0` | what a switch from one process to another takes of the engine, in which nothing is done |
//! | `STUB_GPU_EVENTS` | `at-once` | when an event is reached: as soon as its stream comes to it; `in-turn`: in a time slice of its process |
//! | `STUB_GPU_EVENT_CONTEXT` | `any` | a question about an event is answered in any thread; `current`: in one with a current context |
//! | `STUB_GPU_CONTEXT_END` | `waits` | the end of a context waits for its work; `drops`: the work is dropped |
//! | `STUB_GPU_KERNEL_NS` | `10000` | duration of a kernel whose name does not end in one (`spin_40ms`, `k_10us`) |
//! | `STUB_GPU_LAUNCH_NS` | `0` | host time that a launch call takes |
//! | `STUB_GPU_ARRIVAL_NS` | `0` | time until the card sees an operation and until the host sees its end |
//! | `STUB_GPU_EVENT_STEP_NS` | `500` | step of the times that events keep |
//! | `STUB_GPU_COPY_BYTES_PER_US` | `0` | speed of copies; 0 takes no time |
//! | `STUB_GPU_QUEUE_DEPTH` | `1024` | operations that a stream holds before a launch waits |
//! | `STUB_GPU_FAIL` | none | scripted failures: `cuMemAlloc_v2:2@3` fails the third call with 2; no `@n`: every call |
//! | `STUB_GPU_TRACE` | none | file that gets a line `pid name` per call |
//! | `STUB_GPU_TOOL` | none | `cuEventQuery`: this call calls back first what the program gave to `stubTool`; `cuEventQuery:around`: last, too |
//!
//! The switch, the events, their context and the end of a context are what no card has been asked yet: what is built on this driver
//! holds with each of them.
//!
//! CUDA also obeys `CUDA_VISIBLE_DEVICES`, `CUDA_DEVICE_ORDER`, `CUDA_MODULE_LOADING` and
//! `CUDA_LAUNCH_BLOCKING`; NVML obeys none of them, like the real one. A value that cannot be used ends the process with one line.
//!
//! This is the judge of the tests: it shares nothing with the shim or its policy. Sizes are charged
//! exactly as asked unless a granularity says otherwise, so that tests can be exact to the byte.

pub mod arg;
pub mod call;
pub mod card;
pub mod catalog;
pub mod clock;
pub mod engine;
mod lock;
mod map;
pub mod partition;
mod process;
pub mod rows;
pub mod settings;

use std::sync::OnceLock;

/// The machine, read from the environment at first use.
pub fn settings() -> &'static settings::Settings {
    static SETTINGS: OnceLock<settings::Settings> = OnceLock::new();
    SETTINGS.get_or_init(settings::Settings::from_env)
}

/// The card, mapped at first use.
pub fn card() -> &'static card::Card {
    static CARD: OnceLock<card::Card> = OnceLock::new();
    CARD.get_or_init(|| card::Card::open(settings()))
}
