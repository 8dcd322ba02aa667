//! The library's calls to itself, made the way the real one makes them.
//!
//! The real libnvidia-ml reaches about 23 of its own functions through its procedure linkage table,
//! and some through pointers in its data: a library loaded earlier can stand in between. A Rust
//! call would be bound when the library is linked, so the jumps are written out. What a test must
//! be able to see: one jump slot or data relocation against each exported name used here.

use gpucap_abi::nvml::{NvmlResult, nvmlDevice_t, nvmlMemory_v2_t};
use std::ffi::c_char;

/// The jump to an exported function through the linkage table.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($exported:literal) => {
        concat!("jmp ", $exported, "@PLT")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($exported:literal) => {
        concat!("b ", $exported)
    };
}

macro_rules! through_plt {
    ($($local:ident = $exported:literal;)*) => {
        std::arch::global_asm!($(concat!(
            ".text\n.hidden ", stringify!($local), "\n.globl ", stringify!($local), "\n",
            ".type ", stringify!($local), ",@function\n",
            stringify!($local), ":\n ", jump!($exported), "\n",
            ".size ", stringify!($local), ", . - ", stringify!($local), "\n",
        )),*);
    };
}
through_plt! {
    stub_own_init_v2 = "nvmlInit_v2";
    stub_own_init_with_flags = "nvmlInitWithFlags";
    stub_own_count_v2 = "nvmlDeviceGetCount_v2";
    stub_own_handle_by_index_v2 = "nvmlDeviceGetHandleByIndex_v2";
    stub_own_handle_by_pci_v2 = "nvmlDeviceGetHandleByPciBusId_v2";
    stub_own_memory_info_v2 = "nvmlDeviceGetMemoryInfo_v2";
}

// A pointer in data, as the real library's tables of functions hold them.
std::arch::global_asm!(
    ".data",
    ".p2align 3",
    ".hidden stub_own_memory_info_pointer",
    ".globl stub_own_memory_info_pointer",
    "stub_own_memory_info_pointer: .quad nvmlDeviceGetMemoryInfo_v2",
    ".text",
);

// SAFETY: the assembly above makes each a name of the exported function with this signature.
unsafe extern "C" {
    fn stub_own_init_v2() -> NvmlResult;
    fn stub_own_init_with_flags(flags: u32) -> NvmlResult;
    fn stub_own_count_v2(count: *mut u32) -> NvmlResult;
    fn stub_own_handle_by_index_v2(index: u32, device: *mut nvmlDevice_t) -> NvmlResult;
    fn stub_own_handle_by_pci_v2(text: *const c_char, device: *mut nvmlDevice_t) -> NvmlResult;
    fn stub_own_memory_info_v2(device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t) -> NvmlResult;
    static stub_own_memory_info_pointer:
        Option<unsafe extern "C" fn(nvmlDevice_t, *mut nvmlMemory_v2_t) -> NvmlResult>;
}

/// `nvmlInit_v2`
pub(crate) fn init_v2() -> NvmlResult {
    // SAFETY: no argument, no precondition.
    unsafe { stub_own_init_v2() }
}

/// `nvmlInitWithFlags`
pub(crate) fn init_with_flags(flags: u32) -> NvmlResult {
    // SAFETY: any flags are allowed.
    unsafe { stub_own_init_with_flags(flags) }
}

/// `nvmlDeviceGetCount_v2`; `count` is a caller's output.
pub(crate) fn count_v2(count: u64) -> NvmlResult {
    // SAFETY: the address came from the caller of the first form, under the same contract.
    unsafe { stub_own_count_v2(count as *mut u32) }
}

/// `nvmlDeviceGetHandleByIndex_v2`; `device` is a caller's output.
pub(crate) fn handle_by_index_v2(index: u32, device: u64) -> NvmlResult {
    // SAFETY: the address came from the caller of the first form, under the same contract.
    unsafe { stub_own_handle_by_index_v2(index, device as *mut nvmlDevice_t) }
}

/// `nvmlDeviceGetHandleByPciBusId_v2`; both addresses are a caller's.
pub(crate) fn handle_by_pci_v2(text: u64, device: u64) -> NvmlResult {
    // SAFETY: the addresses came from the caller of the first form, under the same contract.
    unsafe { stub_own_handle_by_pci_v2(text as *const c_char, device as *mut nvmlDevice_t) }
}

/// `nvmlDeviceGetMemoryInfo_v2`, once through the linkage table and once through a pointer: the real library asks
/// twice for a ratio of a MIG slice's memory to its device's.
pub(crate) fn memory_info_v2(
    device: nvmlDevice_t,
    by_pointer: bool,
) -> Result<nvmlMemory_v2_t, gpucap_abi::nvml::NvmlError> {
    let mut memory = nvmlMemory_v2_t { version: nvmlMemory_v2_t::VERSION, ..Default::default() };
    // SAFETY: a static that only the loader writes, before any code of ours runs.
    let pointer = unsafe { stub_own_memory_info_pointer };
    match pointer.filter(|_| by_pointer) {
        // SAFETY: the loader bound it to a function of this type; the output is ours.
        Some(function) => unsafe { function(device, &raw mut memory) }?,
        // SAFETY: the output is ours.
        None => unsafe { stub_own_memory_info_v2(device, &raw mut memory) }?,
    }
    Ok(memory)
}
