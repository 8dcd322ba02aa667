//! `cuCtxSetLimit`: stacks, print buffer and heap of a context are memory of the device.
//!
//! The driver allocates them when a kernel first needs them; they are charged when the limit is raised, since nothing
//! can be refused later. What a context starts with is part of its price. A stack is counted once for each thread that
//! the device can hold. The limits of the device runtime (depth of synchronization, pending launches) may take memory too,
//! which no document states as a number: it is not charged.

use super::{current_context, current_device};
use crate::budget::record::Record;
use crate::call::Call;
use crate::driver::{self, Next};
use core::ffi::c_int;
use gpucap_abi::cuda::{CuError, CuResult};
use gpucap_core::ledger::Kind;

/// `cuCtxSetLimit`.
pub(crate) fn set(call: &Call, next: impl Next<CuError>, limit: c_int, value: usize) -> CuResult {
    let Some(start) = starts_with(limit) else { return next().map(drop) };
    let Some((session, device)) = current_device(call)? else { return next().map(drop) };
    let each = (value as u64).saturating_sub(start);
    let grown = if limit == STACK_SIZE { each.saturating_mul(threads(call)?) } else { each };
    let context = current_context(call)?;
    let key = context.wrapping_add(u64::from(limit.unsigned_abs()));
    // Of two threads, the latest value is what the driver keeps, and has to be what is charged.
    let _one = session.limits_of_contexts.change();
    let before = session.heaps.take(key);
    let held = before.map_or(0, |record| record.bytes);
    let put_back = |error| {
        // If a tool has set the limit within the driver's call, its record is the one that holds.
        if let Some(record) = before
            && let Some(newer) = session.heaps.insert(key, record)
        {
            session.heaps.insert(key, newer);
            session.budget.refund(record);
        }
        error
    };
    let charge = call
        .charge(session, device, Kind::Heap, grown.saturating_sub(held))
        .map_err(|refusal| put_back(refusal.into()))?;
    next().map_err(put_back)?;
    let mut record = charge.at_home_in(context).commit();
    if let Some(before) = before {
        session.budget.refund(Record { bytes: held.saturating_sub(grown), ..before });
    }
    record.bytes = grown;
    if let Some(other) = session.heaps.insert(key, record) {
        session.budget.refund(other); // a tool has set the limit within the driver's call
    }
    Ok(())
}

const STACK_SIZE: c_int = 0;
const PRINTF_FIFO_SIZE: c_int = 1;
const MALLOC_HEAP_SIZE: c_int = 2;

/// What a context starts with, in bytes; `None` for a limit that is not charged (CUDA C++ programming guide, "Dynamic
/// global memory allocation", "Formatted output"; 1 KiB of stack is what drivers answer).
const fn starts_with(limit: c_int) -> Option<u64> {
    match limit {
        STACK_SIZE => Some(1 << 10),
        PRINTF_FIFO_SIZE => Some(1 << 20),
        MALLOC_HEAP_SIZE => Some(8 << 20),
        _ => None,
    }
}

fn threads(call: &Call) -> Result<u64, CuError> {
    let device = driver::cuda::needed::current_device(call.driver)?;
    device.map_or(Ok(1), |device| driver::cuda::needed::resident_threads(call.driver, device))
}
