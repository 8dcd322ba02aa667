//! How busy a device is, and for whom.
//!
//! Percentages are those of the device's samples of a sixth of a second, of which it keeps sixteen; a process has one
//! for each of them in which it had the engine, for three seconds. Times are microseconds since 1970. A device with MIG on, or a slice, does not tell: the driver's reference says so.

use crate::device::unit;
use crate::export::{Out, exports};
use crate::process::{LIST_VERSION, fill, fill_list};
use gpucap_abi::nvml::{NvmlError, NvmlResult, nvmlDevice_t};
use gpucap_stub_device::catalog::{Unit, slices_of};
use gpucap_stub_device::engine::SAMPLE_NS;
use gpucap_stub_device::{card, settings};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

exports! {
    /// Busy part of the last sample period, in percent.
    fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, rates: *mut [u32; 2]) => rates, library;
    /// The samples of the engine (kind 1) and of the memory (kind 2).
    fn nvmlDeviceGetSamples(device: nvmlDevice_t, kind: u32, since: u64, value_type: *mut u32,
        count: *mut u32, samples: *mut DeviceSample) => device_samples, library;
    /// One sample per process that had the engine; NOT_FOUND if none had.
    fn nvmlDeviceGetProcessUtilization(device: nvmlDevice_t, samples: *mut Sample, count: *mut u32,
        since: u64) => samples, library;
    /// The same as a versioned list.
    fn nvmlDeviceGetProcessesUtilizationInfo(device: nvmlDevice_t, list: *mut UtilizationList)
        => utilization_list, library;
}

/// `nvmlSample_t` of an unsigned int.
#[repr(C)]
#[derive(Clone, Copy)]
struct DeviceSample {
    time: u64,
    value: u64,
}

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
const _: () = assert!(size_of::<DeviceSample>() == 16 && size_of::<Sample>() == 32);
const _: () = assert!(size_of::<Utilization>() == 40 && size_of::<UtilizationList>() == 24);

/// `NVML_VALUE_TYPE_UNSIGNED_INT`
const UNSIGNED_INT: u32 = 1;
/// What a look at the processes' work goes back at most.
const LATEST_NS: u64 = 3_000_000_000;

/// A whole device without MIG.
fn metered(device: nvmlDevice_t) -> Result<Unit, NvmlError> {
    let unit = unit(device)?;
    let sliced = slices_of(settings(), unit.device).next().is_some();
    if unit.slice.is_some() || sliced { Err(NvmlError::NOT_SUPPORTED) } else { Ok(unit) }
}

/// Nanoseconds between 1970 and the start of the card's clock, as this process found it first: a sample is at one time
/// whenever it is asked for. A clock that tests move began in 1970.
fn epoch_ns() -> u64 {
    static FOUND: OnceLock<u64> = OnceLock::new();
    let find = || {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(since_1970.as_nanos()).unwrap_or(0);
        now.saturating_sub(card().clock().now())
    };
    if settings().virtual_clock { 0 } else { *FOUND.get_or_init(find) }
}

fn percent(part: u64) -> u32 {
    u32::try_from(part).unwrap_or(100).min(100)
}

fn rates(device: nvmlDevice_t, rates: Out<[u32; 2]>) -> NvmlResult {
    let busy = percent(card().utilisation(metered(device)?));
    rates.put([busy, busy / 2])
}

fn device_samples(
    device: nvmlDevice_t,
    kind: u32,
    since: u64,
    value_type: Out<u32>,
    count: Out<u32>,
    samples: Out<DeviceSample>,
) -> NvmlResult {
    let (unit, room) = (metered(device)?, count.get()?);
    let divisor = match kind {
        1 => 1,
        2 => 2, // as the memory's part of the rates
        _ => return Err(NvmlError::NOT_SUPPORTED),
    };
    let epoch = epoch_ns();
    let all = card().samples(unit);
    let all = all
        .iter()
        .map(|&(end, busy)| DeviceSample { time: (epoch + end) / 1000, value: busy / divisor });
    value_type.put(UNSIGNED_INT)?;
    if samples.address() == 0 {
        return count.put(u32::try_from(all.len()).unwrap_or(0));
    }
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let newer: Vec<_> = all.filter(|sample| sample.time > since).take(room).collect();
    if newer.is_empty() {
        count.put(0)?;
        return Err(NvmlError::NOT_FOUND);
    }
    fill(count, samples, &newer)
}

/// Pid, time and percentage of each process that had the engine in samples which ended after `since`.
fn shares(device: nvmlDevice_t, since: u64) -> Result<Vec<(u32, u64, u32)>, NvmlError> {
    let unit = metered(device)?;
    let (epoch, now) = (epoch_ns(), card().clock().now());
    let seen = since.saturating_mul(1000).saturating_sub(epoch);
    let first = seen.max(now.saturating_sub(LATEST_NS)) / SAMPLE_NS;
    let ends = (first + 1..=now / SAMPLE_NS).map(|sample| sample * SAMPLE_NS);
    let ends = ends.filter(|end| (epoch + end) / 1000 > since);
    Ok(ends.flat_map(|end| sample_of(unit, end, (epoch + end) / 1000)).collect())
}

/// The sample that ended then, which is said to be at `time`.
fn sample_of(unit: Unit, end: u64, time: u64) -> impl Iterator<Item = (u32, u64, u32)> {
    let later: BTreeMap<_, _> = card().busy_since(unit, end).into_iter().collect();
    let busy = card().busy_since(unit, end - SAMPLE_NS).into_iter();
    busy.filter_map(move |(pid, busy)| {
        let busy = busy.saturating_sub(later.get(&pid).copied().unwrap_or(0));
        (busy > 0).then(|| (pid, time, percent((busy * 100).div_ceil(SAMPLE_NS))))
    })
}

fn samples(device: nvmlDevice_t, samples: Out<Sample>, count: Out<u32>, since: u64) -> NvmlResult {
    let found: Vec<_> = shares(device, since)?
        .into_iter()
        .map(|(pid, time, sm)| Sample { pid, time, sm, memory: 0, encoder: 0, decoder: 0 })
        .collect();
    if found.is_empty() {
        count.put(0)?;
        return Err(NvmlError::NOT_FOUND);
    }
    if samples.address() == 0 {
        // Whatever the count says: this is how a caller asks for it.
        count.put(u32::try_from(found.len()).unwrap_or(u32::MAX))?;
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    fill(count, samples, &found)
}

fn utilization_list(device: nvmlDevice_t, list: Out<UtilizationList>) -> NvmlResult {
    let mut asked = list.get()?;
    if asked.version != LIST_VERSION {
        return Err(NvmlError::ARGUMENT_VERSION_MISMATCH);
    }
    let found: Vec<_> = shares(device, asked.since)?
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
    if asked.records.is_null() {
        asked.count = 0;
    }
    let answer = fill_list(&mut asked.count, asked.records, &found, || Err(NvmlError::NOT_FOUND));
    list.put(asked)?;
    answer
}
