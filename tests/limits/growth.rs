//! What a context holds beyond its price: stacks, print buffer and heap, as `cuCtxSetLimit` lets them grow.

use crate::contexts::{PRICE, contend, started, with_price};
use crate::{LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, calls, in_use, traced};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("cuCtxSetLimit: what a context starts with is in its price", in_the_price),
        trial("cuCtxSetLimit: growth is charged, shrinking refunds", grows),
        trial("cuCtxSetLimit: a refusal or failure changes nothing", does_not_grow),
        trial("cuCtxSetLimit: what a context grew by ends with it", growth_ends),
        trial("cuCtxSetLimit: two threads that set one limit at once are charged once", at_once),
    ]
}

/// The limits that are memory, with what each starts with, and for how many one is counted: a stack for each thread
/// that the stub's card holds.
const GROWING: [(u32, u64, u64); 3] = [(0, 1 << 10, 108 * 2048), (1, MIB, 1), (2, 8 * MIB, 1)];

fn in_the_price() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", SUCCESS)])?;
    for (limit, start, _) in GROWING {
        for value in [start, start / 2, 0, start] {
            actor.expect(&[(&format!("limit a {limit} {value}"), SUCCESS)])?;
            in_use(&run, PRICE)?;
        }
    }
    // Cache lines, recursion depth and the like are no memory.
    for limit in 3..8 {
        actor.expect(&[(&format!("limit a {limit} 1000000000000"), SUCCESS)])?;
        in_use(&run, PRICE)?;
    }
    Ok(())
}

fn grows() -> Result {
    for (limit, start, each) in GROWING {
        let run = with_price(LIMIT)?;
        let mut actor = started(&run)?;
        actor.expect(&[("context 0", SUCCESS)])?;
        for more in [1, 1000, 300, 2000, 0] {
            actor.expect(&[(&format!("limit a {limit} {}", start + more), SUCCESS)])?;
            in_use(&run, PRICE + more * each)?;
        }
        actor.expect(&[(&format!("limit a {limit} {}", start + 77), SUCCESS)])?;
        let left = LIMIT - PRICE - 77 * each;
        actor.expect(&[
            (&format!("alloc b {}", left + 1), OUT_OF_MEMORY),
            (&format!("alloc b {left}"), SUCCESS),
        ])?;
    }
    Ok(())
}

fn does_not_grow() -> Result {
    for (limit, start, each) in GROWING {
        let run = traced(with_price(LIMIT)?);
        let mut actor = started(&run.clone().env("STUB_GPU_FAIL", "cuCtxSetLimit:719@2"))?;
        let ten = format!("limit a {limit} {}", start + 10);
        let twenty = format!("limit a {limit} {}", start + 20);
        let too_much = format!("limit a {limit} {}", start + LIMIT);
        let absurd = format!("limit a {limit} {}", u64::MAX);
        actor.expect(&[("context 0", SUCCESS), (&ten, SUCCESS), (&twenty, 719)])?;
        in_use(&run, PRICE + 10 * each)?;
        actor.expect(&[(&too_much, OUT_OF_MEMORY), (&absurd, OUT_OF_MEMORY)])?;
        in_use(&run, PRICE + 10 * each)?;
        if calls(&run, "cuCtxSetLimit")? != 2 {
            return Err(Stop::fail("the driver was asked"));
        }
        actor.expect(&[(&twenty, SUCCESS)])?;
        in_use(&run, PRICE + 20 * each)?;
    }
    Ok(())
}

fn growth_ends() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    let heap = format!("limit z 2 {}", 8 * MIB + 1000);
    for (make, end) in [
        ("context 0", "release 0"),
        ("context 0", "reset 0"),
        ("cuCtxCreate_v2 a", "cuCtxDestroy_v2 a"),
    ] {
        actor.expect(&[(make, SUCCESS), (&heap, SUCCESS)])?;
        in_use(&run, PRICE + 1000)?;
        actor.expect(&[(end, SUCCESS)])?;
        in_use(&run, 0)?;
    }
    actor.expect(&[
        ("cuCtxCreate_v2 a", SUCCESS),
        (&heap, SUCCESS),
        ("cuCtxCreate_v2 b", SUCCESS),
    ])?;
    in_use(&run, 2 * PRICE + 1000)?;
    actor.expect(&[(&heap, SUCCESS), ("cuCtxDestroy_v2 a", SUCCESS)])?;
    in_use(&run, PRICE + 1000)
}

fn at_once() -> Result {
    contend("limit")
}
