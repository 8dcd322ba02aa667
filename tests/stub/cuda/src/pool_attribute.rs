//! What can be asked of a pool, and what can be set.
//!
//! Reuse policies are kept and otherwise ignored: streams are in order, so what was freed can always be used again.

use crate::arg::Out;
use crate::driver::state;
use gpucap_abi::cuda::{CUmemoryPool, CuError, CuResult};
use std::ffi::c_void;

const REUSE: std::ops::RangeInclusive<i32> = 1..=3;
const THRESHOLD: i32 = 4;
const RESERVED: i32 = 5;
const RESERVED_HIGH: i32 = 6;
const USED: i32 = 7;
const USED_HIGH: i32 = 8;
const MAX_BYTES: i32 = 13;

fn policy(attribute: i32) -> usize {
    usize::try_from(attribute - 1).unwrap_or(0)
}

pub(crate) fn set_attribute(pool: CUmemoryPool, attribute: i32, value: Out<c_void>) -> CuResult {
    let mut state = state()?;
    let pool = state.pools.alive(pool)?;
    if REUSE.contains(&attribute) {
        pool.policies[policy(attribute)] = value.cast::<i32>().get()?;
        return Ok(());
    }
    let value = value.cast::<u64>().get()?;
    match attribute {
        THRESHOLD => pool.threshold = value,
        // High marks can only be set back.
        RESERVED_HIGH if value == 0 => pool.reserved_high = pool.reserved,
        USED_HIGH if value == 0 => pool.used_high = pool.used,
        _ => return Err(CuError::INVALID_VALUE),
    }
    Ok(())
}

pub(crate) fn get_attribute(pool: CUmemoryPool, attribute: i32, value: Out<c_void>) -> CuResult {
    let mut state = state()?;
    let pool = state.pools.alive(pool)?;
    if REUSE.contains(&attribute) {
        return value.cast::<i32>().put(pool.policies[policy(attribute)]);
    }
    value.cast::<u64>().put(match attribute {
        THRESHOLD => pool.threshold,
        RESERVED => pool.reserved,
        RESERVED_HIGH => pool.reserved_high,
        USED => pool.used,
        USED_HIGH => pool.used_high,
        MAX_BYTES => pool.max_bytes,
        _ => return Err(CuError::INVALID_VALUE),
    })
}
