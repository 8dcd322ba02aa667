//! Who uses a device, and how busy it is.
//!
//! Pids are those that the processes themselves see. Shares of the engine between processes follow
//! the time that each has had since it started, scaled to the busy part of the last sample: the
//! real samples of single processes are not simulated.

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
    /// Busy part of the last sample period, in percent.
    fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, rates: *mut [u32; 2]) => rates, library;
    /// One sample per process that had the engine; NOT_FOUND if none had.
    fn nvmlDeviceGetProcessUtilization(device: nvmlDevice_t, samples: *mut Sample, count: *mut u32,
        since: u64) => samples, library;
    /// The same as a versioned list.
    fn nvmlDeviceGetProcessesUtilizationInfo(device: nvmlDevice_t, list: *mut UtilizationList)
        => utilization_list, library;
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

/// `nvmlProcessUtilizationSample_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Sample {
    pid: u32,
    time: u64,
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

/// `nvmlProcessUtilizationInfo_v1_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct Utilization {
    time: u64,
    pid: u32,
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
    jpeg: u32,
    ofa: u32,
}

/// `nvmlProcessesUtilizationInfo_v1_t`
#[repr(C)]
#[derive(Clone, Copy)]
struct UtilizationList {
    version: u32,
    count: u32,
    since: u64,
    records: *mut Utilization,
}
const _: () = assert!(size_of::<Sample>() == 32);
const _: () = assert!(size_of::<Utilization>() == 40 && size_of::<UtilizationList>() == 24);

/// Version 1 of the lists above, which all have 24 bytes.
const LIST_VERSION: u32 = 0x0100_0018;
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
fn fill<T: Copy>(count: Out<u32>, records: Out<T>, found: &[T]) -> NvmlResult {
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
fn fill_list<T: Copy>(
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

fn rates(device: nvmlDevice_t, rates: Out<[u32; 2]>) -> NvmlResult {
    let busy = u32::try_from(card().utilisation(unit(device)?)).unwrap_or(100);
    rates.put([busy, busy / 2])
}

fn shares(device: nvmlDevice_t) -> Result<Vec<(u32, u64, u32)>, NvmlError> {
    let unit = unit(device)?;
    let busy = card().utilisation(unit);
    let tenants: Vec<_> = card().tenants(unit).into_iter().filter(|t| t.busy_ns > 0).collect();
    let all: u64 = tenants.iter().map(|tenant| tenant.busy_ns).sum();
    let time = card().clock().now() / 1000;
    let share = |of: u64| {
        u32::try_from(u128::from(busy) * u128::from(of) / u128::from(all.max(1))).unwrap_or(100)
    };
    Ok(tenants.iter().map(|tenant| (tenant.pid, time, share(tenant.busy_ns))).collect())
}

fn samples(device: nvmlDevice_t, samples: Out<Sample>, count: Out<u32>, _since: u64) -> NvmlResult {
    let found: Vec<_> = shares(device)?
        .into_iter()
        .map(|(pid, time, sm)| Sample { pid, time, sm, memory: 0, encoder: 0, decoder: 0 })
        .collect();
    if found.is_empty() {
        count.put(0)?;
        return Err(NvmlError::NOT_FOUND);
    }
    fill(count, samples, &found)
}

fn utilization_list(device: nvmlDevice_t, list: Out<UtilizationList>) -> NvmlResult {
    let mut asked = list.get()?;
    if asked.version != LIST_VERSION {
        return Err(NvmlError::ARGUMENT_VERSION_MISMATCH);
    }
    let found: Vec<_> = shares(device)?
        .into_iter()
        .map(|(pid, time, sm)| Utilization {
            time,
            pid,
            sm,
            memory: 0,
            encoder: 0,
            decoder: 0,
            jpeg: 0,
            ofa: 0,
        })
        .collect();
    let answer = fill_list(&mut asked.count, asked.records, &found, || Err(NvmlError::NOT_FOUND));
    list.put(asked)?;
    answer
}
