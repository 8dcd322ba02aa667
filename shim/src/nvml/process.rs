//! Process lists: the container's processes, with the numbers that they have in it, and what the ledger says they hold.
//!
//! NVML itself lists the processes of the whole device with the numbers of the host, which mean nothing inside a
//! container and reveal other containers. nvidia-smi's own table of processes does not come from these functions.

use super::Slice;
use crate::call::Call;
use crate::driver::{self, Next};
use gpucap_abi::arg::{Array, InOut};
use gpucap_abi::nvml::{
    NO_INSTANCE, NVML_VALUE_NOT_AVAILABLE, NvmlError, NvmlResult, nvmlDevice_t,
    nvmlProcessDetail_v1_t, nvmlProcessDetailList_v1_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t,
};

/// `nvmlDeviceGetComputeRunningProcesses`, first and second version.
pub(crate) fn computing<R: Record>(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    count: InOut<u32>,
    infos: Array<R>,
) -> NvmlResult {
    match processes(call, device) {
        Some(processes) => answer(next, count, infos, size_of::<R>(), &processes),
        None => next().map(drop),
    }
}

/// Third version. The first drivers of series 535 had larger records under the same name: 535.43 to before 535.98, as
/// the headers of CUDA 12.2.81 and 12.2.128 have them.
pub(crate) fn computing_v3(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    count: InOut<u32>,
    infos: Array<nvmlProcessInfo_v2_t>,
) -> NvmlResult {
    let Some(processes) = processes(call, device) else { return next().map(drop) };
    let large = matches!(driver::nvml::driver_version(call.driver), Some((535, 43..98)));
    let stride =
        if large { size_of::<nvmlProcessDetail_v1_t>() } else { size_of::<nvmlProcessInfo_v2_t>() };
    answer(next, count, infos, stride, &processes)
}

/// Lists in which no process of the container appears.
pub(crate) fn others<R: Record>(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    count: InOut<u32>,
    infos: Array<R>,
) -> NvmlResult {
    match processes(call, device) {
        Some(_) => answer(next, count, infos, size_of::<R>(), &[]),
        None => next().map(drop),
    }
}

/// `nvmlDeviceGetRunningProcessDetailList`.
pub(crate) fn details(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    list: InOut<nvmlProcessDetailList_v1_t>,
) -> NvmlResult {
    let asked = list.get().filter(|list| list.version == nvmlProcessDetailList_v1_t::VERSION);
    let (Some(asked), Some(mut processes)) = (asked, processes(call, device)) else {
        return next().map(drop);
    };
    if asked.mode != nvmlProcessDetailList_v1_t::COMPUTE {
        processes.clear();
    }
    let number = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    list.set(nvmlProcessDetailList_v1_t { numProcArrayEntries: number, ..asked });
    if number == 0 {
        return Ok(());
    }
    if asked.procArray.is_null() || number > asked.numProcArrayEntries {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    let records = processes.iter().map(nvmlProcessDetail_v1_t::from_process);
    let stride = size_of::<nvmlProcessDetail_v1_t>();
    Array::at(asked.procArray).fill(asked.numProcArrayEntries, stride, records);
    Ok(())
}

/// A process of the container.
pub(crate) struct Process {
    pid: u32,
    bytes: u64,
    /// Of the GPU and of the instance that computes in it.
    instance: (u32, u32),
}

/// The structures in which a process is listed.
pub(crate) trait Record: Copy {
    /// This process in this form.
    fn from_process(process: &Process) -> Self;
}

impl Record for nvmlProcessInfo_v1_t {
    fn from_process(&Process { pid, bytes, .. }: &Process) -> Self {
        Self { pid, usedGpuMemory: bytes }
    }
}

impl Record for nvmlProcessInfo_v2_t {
    fn from_process(&Process { pid, bytes, instance }: &Process) -> Self {
        Self { pid, usedGpuMemory: bytes, gpuInstanceId: instance.0, computeInstanceId: instance.1 }
    }
}

impl Record for nvmlProcessDetail_v1_t {
    fn from_process(&Process { pid, bytes, instance }: &Process) -> Self {
        Self {
            pid,
            usedGpuMemory: bytes,
            gpuInstanceId: instance.0,
            computeInstanceId: instance.1,
            usedGpuCcProtectedMemory: 0,
        }
    }
}

/// The container's processes that hold something of a limited device; `None` if it is not limited. Where only time is
/// limited no process is charged for memory, and what each holds is unknown.
fn processes(call: &Call, handle: nvmlDevice_t) -> Option<Vec<Process>> {
    let slice = Slice::of_handle(call, handle)?;
    let charged = slice.limits.memory.is_some();
    let instance =
        driver::nvml::instance(call.driver, handle).unwrap_or((NO_INSTANCE, NO_INSTANCE));
    let holding = slice.processes().filter_map(|(process, account)| {
        let bytes = if charged { account.used } else { NVML_VALUE_NOT_AVAILABLE };
        (bytes > 0).then_some(Process { pid: process.identity.pid, bytes, instance })
    });
    Some(holding.collect())
}

/// Answers as NVML does: the number always, the records if there is room for all of them.
fn answer<R: Record>(
    next: impl Next<NvmlError>,
    count: InOut<u32>,
    infos: Array<R>,
    stride: usize,
    processes: &[Process],
) -> NvmlResult {
    let Some(room) = count.get() else { return next().map(drop) }; // the driver returns the error
    let number = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    count.set(number);
    if number > room {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    if infos.is_null() && number > 0 {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    infos.fill(room, stride, processes.iter().map(R::from_process));
    Ok(())
}
