//! Accounts of the processes that use a device: off unless the settings say otherwise.
//!
//! What a process did is not simulated; that there is an answer for it is.

use crate::device::unit;
use crate::export::{Out, exports};
use crate::process::fill;
use gpucap_abi::nvml::{NvmlError, NvmlResult, nvmlDevice_t};
use gpucap_stub_device::{card, settings};

exports! {
    /// Whether accounts are kept.
    fn nvmlDeviceGetAccountingMode(device: nvmlDevice_t, mode: *mut u32) => mode, library;
    /// The pids of those that hold something of the device.
    fn nvmlDeviceGetAccountingPids(device: nvmlDevice_t, count: *mut u32, pids: *mut u32)
        => pids, library;
    /// Memory that the process holds; NOT_FOUND if it holds none.
    fn nvmlDeviceGetAccountingStats(device: nvmlDevice_t, pid: u32, stats: *mut Stats)
        => stats, library;
    /// The same, with the pid in the structure.
    fn nvmlDeviceGetAccountingStats_v2(device: nvmlDevice_t, stats: *mut Stats2)
        => stats_v2, library;
}

/// `nvmlAccountingStats_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Stats {
    gpu_percent: u32,
    memory_percent: u32,
    most_memory: u64,
    time_ms: u64,
    start_us: u64,
    is_running: u32,
    reserved: [u32; 5],
}

/// `nvmlAccountingStats_v2_t`: the pid comes first.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stats2 {
    pid: u32,
    gpu_percent: u32,
    memory_percent: u32,
    most_memory: u64,
    time_ms: u64,
    start_us: u64,
    is_running: u32,
    reserved: [u32; 5],
}
const _: () = assert!(size_of::<Stats>() == 56 && size_of::<Stats2>() == 64);

fn kept(device: nvmlDevice_t) -> Result<Vec<(u32, u64)>, NvmlError> {
    let unit = unit(device)?;
    if !settings().accounting {
        return Err(NvmlError::NOT_SUPPORTED);
    }
    Ok(card().tenants(unit).iter().map(|it| (it.pid, it.holding.total())).collect())
}

fn mode(device: nvmlDevice_t, mode: Out<u32>) -> NvmlResult {
    unit(device)?;
    mode.put(settings().accounting.into())
}

fn pids(device: nvmlDevice_t, count: Out<u32>, pids: Out<u32>) -> NvmlResult {
    let all: Vec<u32> = kept(device)?.into_iter().map(|(pid, _)| pid).collect();
    fill(count, pids, &all)
}

fn stats_of(device: nvmlDevice_t, pid: u32) -> Result<Stats, NvmlError> {
    let found = kept(device)?.into_iter().find(|(kept, _)| *kept == pid);
    let (_, most_memory) = found.ok_or(NvmlError::NOT_FOUND)?;
    Ok(Stats {
        gpu_percent: 0,
        memory_percent: 0,
        most_memory,
        time_ms: 0,
        start_us: 0,
        is_running: 1,
        reserved: [0; 5],
    })
}

fn stats(device: nvmlDevice_t, pid: u32, stats: Out<Stats>) -> NvmlResult {
    stats.required()?;
    stats.put(stats_of(device, pid)?)
}

fn stats_v2(device: nvmlDevice_t, stats: Out<Stats2>) -> NvmlResult {
    let asked = stats.get()?;
    let Stats { most_memory, is_running, .. } = stats_of(device, asked.pid)?;
    stats.put(Stats2 { most_memory, is_running, ..asked })
}
