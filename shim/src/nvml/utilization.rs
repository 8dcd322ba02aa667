//! Time: how busy the container and its processes keep a card whose time is limited.
//!
//! Where time is limited it is measured, and the ledger has it ([`Ledger::busy_share`]). Without a compute limit it
//! is not: the device's own numbers stay, but no process is listed, since the driver would list those of the whole
//! device by the numbers of the host.
//!
//! [`Ledger::busy_share`]: gpucap_core::ledger::Ledger::busy_share

use super::Slice;
use crate::call::Call;
use crate::driver::Next;
use crate::sys;
use gpucap_abi::arg::{Array, InOut, Out};
use gpucap_abi::nvml::{
    NVML_GPU_UTILIZATION_SAMPLES, NVML_MEMORY_UTILIZATION_SAMPLES, NvmlError, NvmlResult,
    nvmlDevice_t, nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_v1_t, nvmlSample_t, nvmlUtilization_t,
};
use gpucap_core::ledger::BusyWindow;

/// `nvmlDeviceGetUtilizationRates`. Memory cannot have been busy for the container for longer than the container was.
pub(crate) fn rates(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    rates: Out<nvmlUtilization_t>,
) -> NvmlResult {
    let written = next()?;
    if let Some(card) = rates.get(&written)
        && let Some(gpu) = share(call, device)
    {
        rates.set(&written, nvmlUtilization_t { gpu, memory: card.memory.min(gpu) });
    }
    Ok(())
}

/// `nvmlDeviceGetSamples`: of the two kinds that report how busy the device is.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn samples(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    kind: u32,
    since: u64,
    _value_type: Out<u32>,
    count: InOut<u32>,
    samples: Array<nvmlSample_t>,
) -> NvmlResult {
    let room = count.get();
    let written = next()?;
    if samples.is_null() {
        return Ok(()); // the driver has said how many there may be
    }
    match kind {
        NVML_GPU_UTILIZATION_SAMPLES => {
            let Some(own) = own_samples(call, device, since) else { return Ok(()) };
            let room = room.unwrap_or(0);
            count.set(room.min(u32::try_from(own.len()).unwrap_or(u32::MAX)));
            let found = !own.is_empty();
            samples.fill(room, size_of::<nvmlSample_t>(), own.into_iter());
            if found { Ok(()) } else { Err(NvmlError::NOT_FOUND) }
        }
        NVML_MEMORY_UTILIZATION_SAMPLES => {
            if let Some(most) = share(call, device) {
                samples.change(&written, count.get().unwrap_or(0), |sample| nvmlSample_t {
                    sampleValue: sample.sampleValue.min(most.into()),
                    ..sample
                });
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `nvmlDeviceGetProcessUtilization`.
pub(crate) fn processes(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    samples: Array<nvmlProcessUtilizationSample_t>,
    count: InOut<u32>,
    since: u64,
) -> NvmlResult {
    let (Some(room), Some(busy)) = (count.get(), busy_processes(call, device, since)) else {
        return next().map(drop); // the driver returns the error
    };
    let room = if samples.is_null() { 0 } else { room };
    count.set(number(&busy));
    check_room(&busy, room)?;
    let records = busy.iter().map(|&Busy { pid, time_us, percent }| {
        let computed = nvmlProcessUtilizationSample_t { smUtil: percent, ..Default::default() };
        nvmlProcessUtilizationSample_t { pid, timeStamp: time_us, ..computed }
    });
    samples.fill(room, size_of::<nvmlProcessUtilizationSample_t>(), records);
    Ok(())
}

/// `nvmlDeviceGetProcessesUtilizationInfo`.
pub(crate) fn list(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    list: InOut<nvmlProcessesUtilizationInfo_v1_t>,
) -> NvmlResult {
    let known = |list: &nvmlProcessesUtilizationInfo_v1_t| {
        list.version == nvmlProcessesUtilizationInfo_v1_t::VERSION
    };
    let Some(asked) = list.get().filter(known) else { return next().map(drop) };
    let Some(busy) = busy_processes(call, device, asked.lastSeenTimeStamp) else {
        return next().map(drop);
    };
    let room = if asked.procUtilArray.is_null() { 0 } else { asked.processSamplesCount };
    let answer = nvmlProcessesUtilizationInfo_v1_t { processSamplesCount: number(&busy), ..asked };
    list.set(answer);
    check_room(&busy, room)?;
    let records = busy.iter().map(|&Busy { pid, time_us, percent }| {
        let computed = nvmlProcessUtilizationInfo_v1_t { smUtil: percent, ..Default::default() };
        nvmlProcessUtilizationInfo_v1_t { pid, timeStamp: time_us, ..computed }
    });
    let stride = size_of::<nvmlProcessUtilizationInfo_v1_t>();
    Array::at(asked.procUtilArray).fill(room, stride, records);
    Ok(())
}

/// A process that computed lately.
struct Busy {
    pid: u32,
    /// The end of the last window in which it did.
    time_us: u64,
    percent: u32,
}

/// The container's processes that computed after `since_us`; `None` if the device is not limited.
fn busy_processes(call: &Call, handle: nvmlDevice_t, since_us: u64) -> Option<Vec<Busy>> {
    let slice = Slice::of_handle(call, handle)?;
    let (Some(_), Some(device)) = (slice.limits.core, slice.device) else {
        return Some(Vec::new());
    };
    let times = Times::now();
    let busy = slice.processes().filter_map(|(process, _)| {
        let windows = || times.newer(process.busy_windows(device, times.now_ns), since_us);
        let last = windows().filter(|window| window.busy_ns > 0).last()?;
        let (pid, time_us) = (process.identity.pid, times.us(last.until_ns));
        Some(Busy { pid, time_us, percent: percent(BusyWindow::permille_of(windows())) })
    });
    Some(busy.collect())
}

fn number(busy: &[Busy]) -> u32 {
    u32::try_from(busy.len()).unwrap_or(u32::MAX)
}

/// What NVML says of a list that is empty, or larger than its caller expects.
fn check_room(busy: &[Busy], room: u32) -> NvmlResult {
    match number(busy) {
        0 => Err(NvmlError::NOT_FOUND),
        number if number > room => Err(NvmlError::INSUFFICIENT_SIZE),
        _ => Ok(()),
    }
}

/// The container's share of a device's time, in percent; `None` if its time is not limited.
fn share(call: &Call, handle: nvmlDevice_t) -> Option<u32> {
    let slice = Slice::of_handle(call, handle)?;
    slice.limits.core?;
    let now_ns = sys::monotonic_ns();
    Some(slice.device.map_or(0, |device| percent(slice.ledger.busy_share(device, now_ns))))
}

/// The windows of a device that ended after `since_us`, as samples; `None` if its time is not limited.
fn own_samples(call: &Call, handle: nvmlDevice_t, since_us: u64) -> Option<Vec<nvmlSample_t>> {
    let slice = Slice::of_handle(call, handle)?;
    slice.limits.core?;
    let Some(device) = slice.device else { return Some(Vec::new()) };
    let times = Times::now();
    let windows = times.newer(slice.ledger.busy_windows(device, times.now_ns), since_us);
    let sample = |window: BusyWindow| nvmlSample_t {
        timeStamp: times.us(window.until_ns),
        sampleValue: percent(window.permille()).into(),
    };
    Some(windows.map(sample).collect())
}

fn percent(permille: u32) -> u32 {
    permille.saturating_add(5) / 10
}

/// The ledger's clock and NVML's, which says microseconds since 1970.
struct Times {
    now_ns: u64,
    /// What is between the two.
    offset_ns: u64,
}

impl Times {
    fn now() -> Self {
        let now_ns = sys::monotonic_ns();
        Self { now_ns, offset_ns: sys::unix_time_ns().saturating_sub(now_ns) }
    }

    fn us(&self, ledger_ns: u64) -> u64 {
        ledger_ns.saturating_add(self.offset_ns) / 1000
    }

    /// Windows that ended after `since_us`. The two clocks drift: a window that ended at about that time is the one
    /// that was seen last.
    fn newer(
        &self,
        windows: impl Iterator<Item = BusyWindow>,
        since_us: u64,
    ) -> impl Iterator<Item = BusyWindow> {
        let later_us = since_us.saturating_add(BusyWindow::LENGTH_NS / 2000);
        windows.filter(move |window| self.us(window.until_ns) > later_us)
    }
}
