//! Accounting: what processes did to the card, also those that have ended.
//!
//! The driver keeps it for an administrator, for the whole device and by the numbers of the host. Behind a limit no
//! process is listed and none is found; whether accounting is enabled stays the driver's answer.

use super::Slice;
use crate::call::Call;
use crate::driver::Next;
use gpucap_abi::arg::{Array, InOut, Out};
use gpucap_abi::nvml::{
    NvmlError, NvmlResult, nvmlAccountingStats_t, nvmlAccountingStats_v2_t, nvmlDevice_t,
};

/// `nvmlDeviceGetAccountingPids`: an empty list.
pub(crate) fn pids(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    count: InOut<u32>,
    pids: Array<u32>,
) -> NvmlResult {
    let answer = next();
    if Slice::of_handle(call, device).is_none() {
        return answer.map(drop);
    }
    match answer {
        Ok(written) => {
            pids.change(&written, if pids.is_null() { 0 } else { count.get().unwrap_or(0) }, |_| 0);
            count.set(0);
            Ok(())
        }
        Err(NvmlError::INSUFFICIENT_SIZE) => {
            count.set(0);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// `nvmlDeviceGetAccountingStats`.
pub(crate) fn stats(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    _pid: u32,
    stats: Out<nvmlAccountingStats_t>,
) -> NvmlResult {
    no_process(call, next, device, stats)
}

/// `nvmlDeviceGetAccountingStats_v2`.
pub(crate) fn stats_v2(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    stats: Out<nvmlAccountingStats_v2_t>,
) -> NvmlResult {
    no_process(call, next, device, stats)
}

fn no_process<const WORDS: usize>(
    call: &Call,
    next: impl Next<NvmlError>,
    device: nvmlDevice_t,
    stats: Out<[u64; WORDS]>,
) -> NvmlResult {
    let written = next()?;
    if Slice::of_handle(call, device).is_none() {
        return Ok(());
    }
    stats.set(&written, [0; WORDS]);
    Err(NvmlError::NOT_FOUND)
}
