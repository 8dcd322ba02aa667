//! Who uses a device.
//!
//! Pids are those that the processes themselves see.

use crate::device::{instances, unit};
use crate::export::{Out, exports};
use gpucap_abi::nvml::{NvmlError, NvmlResult, nvmlDevice_t};
use gpucap_stub_device::card;
use gpucap_stub_device::card::Tenant;
use gpucap_stub_device::catalog::{Unit, slices_of};

exports! {
    /// 16-byte records.
    fn nvmlDeviceGetComputeRunningProcesses(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record1) => compute_v1, library;
    /// 24-byte records.
    fn nvmlDeviceGetComputeRunningProcesses_v2(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record2) => compute_v2, library;
    /// 24-byte records.
    fn nvmlDeviceGetComputeRunningProcesses_v3(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record2) => compute_v2, library;
    /// None: nothing draws here.
    fn nvmlDeviceGetGraphicsRunningProcesses(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record1) => none_v1, library;
    /// None: nothing draws here.
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record2) => none_v2, library;
    /// None: nothing draws here.
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record2) => none_v2, library;
    /// None: there is no MPS server.
    fn nvmlDeviceGetMPSComputeRunningProcesses(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record1) => none_v1, library;
    /// None: there is no MPS server.
    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record2) => none_v2, library;
    /// None: there is no MPS server.
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: nvmlDevice_t, count: *mut u32,
        records: *mut Record2) => none_v2, library;
    /// Compute processes as 32-byte records; other modes have none.
    fn nvmlDeviceGetRunningProcessDetailList(device: nvmlDevice_t, list: *mut List)
        => details, library;
}

/// `nvmlProcessInfo_v1_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Record1 {
    pid: u32,
    used: u64,
}

/// `nvmlProcessInfo_v2_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Record2 {
    pid: u32,
    used: u64,
    gpu_instance: u32,
    compute_instance: u32,
}
const _: () = assert!(size_of::<Record1>() == 16 && size_of::<Record2>() == 24);

/// `nvmlProcessDetail_v1_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Detail {
    pid: u32,
    used: u64,
    gpu_instance: u32,
    compute_instance: u32,
    protected: u64,
}

/// `nvmlProcessDetailList_v1_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct List {
    version: u32,
    mode: u32,
    count: u32,
    records: *mut Detail,
}
const _: () = assert!(size_of::<Detail>() == 32 && size_of::<List>() == 24);

/// Version 1 of a list, which has 24 bytes.
pub(crate) const LIST_VERSION: u32 = 0x0100_0018;
const COMPUTE: u32 = 0;

/// Tenants with the unit that each uses: a slice, or the device if it has none.
fn tenants(device: nvmlDevice_t) -> Result<Vec<(Unit, Tenant)>, NvmlError> {
    let unit = unit(device)?;
    let mut parts: Vec<_> = slices_of(gpucap_stub_device::settings(), unit.device).collect();
    if unit.slice.is_some() || parts.is_empty() {
        parts = vec![unit];
    }
    Ok(parts
        .into_iter()
        .flat_map(|part| card().tenants(part).into_iter().map(move |t| (part, t)))
        .collect())
}

/// Fills an array of a caller who says how many there is room for, and wants to know how many there
/// are.
pub(crate) fn fill<T: Copy>(count: Out<u32>, records: Out<T>, found: &[T]) -> NvmlResult {
    let room = usize::try_from(count.get()?).unwrap_or(usize::MAX);
    count.put(u32::try_from(found.len()).unwrap_or(u32::MAX))?;
    if found.len() > room {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    for (index, record) in found.iter().enumerate() {
        records.at(index).put(*record)?;
    }
    Ok(())
}

fn record2((unit, tenant): &(Unit, Tenant)) -> Record2 {
    let (gpu_instance, compute_instance) = instances(*unit);
    Record2 { pid: tenant.pid, used: tenant.holding.total(), gpu_instance, compute_instance }
}

fn compute_v1(device: nvmlDevice_t, count: Out<u32>, records: Out<Record1>) -> NvmlResult {
    let found: Vec<_> = tenants(device)?
        .iter()
        .map(|(_, tenant)| Record1 { pid: tenant.pid, used: tenant.holding.total() })
        .collect();
    fill(count, records, &found)
}

fn compute_v2(device: nvmlDevice_t, count: Out<u32>, records: Out<Record2>) -> NvmlResult {
    let found: Vec<_> = tenants(device)?.iter().map(record2).collect();
    fill(count, records, &found)
}

fn none_v1(device: nvmlDevice_t, count: Out<u32>, records: Out<Record1>) -> NvmlResult {
    unit(device)?;
    fill(count, records, &[])
}

fn none_v2(device: nvmlDevice_t, count: Out<u32>, records: Out<Record2>) -> NvmlResult {
    unit(device)?;
    fill(count, records, &[])
}

fn details(device: nvmlDevice_t, list: Out<List>) -> NvmlResult {
    let mut asked = list.get()?;
    if asked.version != LIST_VERSION {
        return Err(NvmlError::ARGUMENT_VERSION_MISMATCH);
    }
    let found: Vec<_> = tenants(device)?
        .iter()
        .filter(|_| asked.mode == COMPUTE)
        .map(record2)
        .map(|r| Detail {
            pid: r.pid,
            used: r.used,
            gpu_instance: r.gpu_instance,
            compute_instance: r.compute_instance,
            protected: 0,
        })
        .collect();
    let answer = fill_list(&mut asked.count, asked.records, &found, || Ok(()));
    list.put(asked)?;
    answer
}

/// As [`fill`], for a list that holds its own count and array.
pub(crate) fn fill_list<T: Copy>(
    count: &mut u32,
    records: *mut T,
    found: &[T],
    nothing: impl FnOnce() -> NvmlResult,
) -> NvmlResult {
    // SAFETY: the count is ours.
    let own_count = unsafe { Out::new(std::ptr::from_mut(count)) };
    // SAFETY: the caller of the export promises that the array in its list has room for the count
    // beside it.
    let records = unsafe { Out::new(records) };
    if found.is_empty() {
        own_count.put(0)?;
        return nothing();
    }
    fill(own_count, records, found)
}
