//! At no instant, not even within a call, does the card hold more for the processes of a ledger than the limit allows.
//!
//! The judge is the driver's own count: what it has handed out, and the most that it ever had. Memory counts for as
//! long as the driver holds it, whatever the program has called free on.

use crate::{LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, begin, in_use, with_limit};
use gpucap_tests::{Actor, Result, Stop, trial};
use libtest_mimic::Trial;

const SIZE: u64 = 200 * MIB;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a mipmapped array has one level at least, and it is charged", levels_below_one),
        trial("levels beyond the last are not charged", levels_beyond_the_last),
        trial("padding of rows is charged before the driver is asked", padding_before),
        trial("a pitch larger than any seen before is refused after the fact", larger_pitch),
        trial("pools with freed memory hold no more than the limit", many_pools),
        trial(
            "pools destroyed before their memory is freed hold no more than the limit",
            destroyed,
        ),
        trial("a threshold of 0 refunds nothing before a synchronisation", threshold_to_zero),
        trial("each way to synchronise refunds what a pool gave back", synchronised),
        trial("another process is not given what a pool still holds", held_against_others),
        trial("a destroyed pool is charged until its last allocation is freed", destroyed_pool),
        trial("a new pool at the address of a destroyed one has its own charges", reused_address),
        trial("what a pool reserves beyond its allocations is charged", reserves),
        trial("a graph is charged where no context is current", graph_without_context),
        trial("a pool that keeps all reaches the whole limit", whole_limit),
    ]
}

/// Fails if the card ever held more than the limit, or holds more than is charged now.
fn never_over(actor: &mut Actor, run: &gpucap_tests::Run) -> Result {
    let truth = actor.call("truth z")?;
    let in_use = run.bytes_in_use()?;
    if truth.extra <= LIMIT && truth.value <= in_use {
        Ok(())
    } else {
        Err(Stop::fail(format!("peak {}, in use {}, charged {in_use}", truth.extra, truth.value)))
    }
}

fn levels_below_one() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[(&format!("mipmap-levels a {} 0", 600 * MIB), SUCCESS)])?;
    in_use(&run, 600 * MIB)?;
    actor.expect(&[(&format!("mipmap-levels b {} 0", 600 * MIB), OUT_OF_MEMORY)])?;
    never_over(&mut actor, &run)
}

fn levels_beyond_the_last() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    for levels in [21, 22, 60, u32::MAX] {
        actor.expect(&[(&format!("mipmap-levels a {} {levels}", 64 * MIB), SUCCESS)])?;
        let truth = actor.call("truth z")?;
        in_use(&run, truth.value)?;
        actor.expect(&[("cuMipmappedArrayDestroy a", SUCCESS)])?;
    }
    in_use(&run, 0)
}

fn padding_before() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    // A byte a row: the driver makes 512 of it.
    actor.expect(&[(&format!("pitch a 1 {}", LIMIT / 512 + 1), OUT_OF_MEMORY)])?;
    actor.expect(&[(&format!("pitch a 1 {}", LIMIT / 512), SUCCESS)])?;
    in_use(&run, LIMIT)?;
    never_over(&mut actor, &run)
}

fn larger_pitch() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_PITCH", "4096");
    let mut actor = begin(&run)?;
    actor.expect(&[("pitch a 1 1", SUCCESS)])?;
    in_use(&run, 4096)?;
    // From the first one on, the step is known.
    actor.expect(&[
        (&format!("pitch b 1 {}", LIMIT / 4096), OUT_OF_MEMORY),
        (&format!("pitch b 1 {}", LIMIT / 4096 - 1), SUCCESS),
    ])?;
    in_use(&run, LIMIT)?;
    never_over(&mut actor, &run)
}

fn many_pools() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    for _ in 0..12 {
        actor.expect(&[("cuMemPoolCreate p 1", SUCCESS)])?;
        let answer = actor.call(&format!("from-pool a p {SIZE}"))?;
        if answer.code == SUCCESS {
            actor.expect(&[("free-async a", SUCCESS)])?;
        }
        never_over(&mut actor, &run)?;
    }
    // What it needs comes back from its pools, without a synchronisation.
    actor.expect(&[(&format!("alloc b {LIMIT}"), SUCCESS)])?;
    never_over(&mut actor, &run)
}

fn destroyed() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    for _ in 0..12 {
        actor.expect(&[
            ("cuMemPoolCreate p 1", SUCCESS),
            ("cuMemPoolSetAttribute p 18446744073709551615", SUCCESS),
            (&format!("from-pool a p {SIZE}"), SUCCESS),
            (&format!("from-pool b p {SIZE}"), SUCCESS),
            ("free-async a", SUCCESS),
            ("cuMemPoolDestroy p", SUCCESS),
        ])?;
        never_over(&mut actor, &run)?;
        actor.expect(&[("free-async b", SUCCESS)])?;
        never_over(&mut actor, &run)?;
    }
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, 0)
}

fn threshold_to_zero() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuDeviceGetDefaultMemPool p", SUCCESS),
        ("cuMemPoolSetAttribute p 18446744073709551615", SUCCESS),
        (&format!("async a {SIZE}"), SUCCESS),
        ("free-async a", SUCCESS),
        ("cuMemPoolSetAttribute p 0", SUCCESS),
    ])?;
    in_use(&run, SIZE)?;
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, 0)?;
    never_over(&mut actor, &run)
}

fn synchronised() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    for way in ["sync", "sync-stream", "sync-event"] {
        actor.expect(&[(&format!("async a {SIZE}"), SUCCESS), ("free-async a", SUCCESS)])?;
        in_use(&run, SIZE)?;
        actor.expect(&[(way, SUCCESS)])?;
        in_use(&run, 0)?;
    }
    never_over(&mut actor, &run)
}

fn held_against_others() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let (mut actor, mut other) = (begin(&run)?, begin(&run)?);
    let all_but = format!("alloc a {}", LIMIT - SIZE + 1);
    actor.expect(&[(&format!("async a {SIZE}"), SUCCESS), ("free-async a", SUCCESS)])?;
    other.expect(&[(&all_but, OUT_OF_MEMORY)])?;
    actor.expect(&[("sync", SUCCESS)])?;
    other.expect(&[(&all_but, SUCCESS)])?;
    never_over(&mut actor, &run)
}

fn destroyed_pool() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuMemPoolCreate p 1", SUCCESS),
        ("from-pool a p 1000", SUCCESS),
        ("from-pool b p 2000", SUCCESS),
        ("cuMemPoolDestroy p", SUCCESS),
        ("free-async a", SUCCESS),
    ])?;
    never_over(&mut actor, &run)?;
    actor.expect(&[("free-async b", SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, 0)
}

fn reused_address() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuMemPoolCreate p 1", SUCCESS),
        ("from-pool a p 1000", SUCCESS),
        ("cuMemPoolDestroy p", SUCCESS),
        ("cuMemPoolCreate q 1", SUCCESS),
        ("from-pool b q 2000", SUCCESS),
    ])?;
    in_use(&run, 3000)?;
    actor.expect(&[("free-async a", SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, 2000)?;
    never_over(&mut actor, &run)?;
    actor.expect(&[("free-async b", SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, 0)
}

fn reserves() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_POOL_GRANULARITY", "2MiB");
    let mut actor = begin(&run)?;
    actor.expect(&[("async a 1000", SUCCESS)])?;
    in_use(&run, 2 * MIB)?;
    actor.expect(&[("async b 1000", SUCCESS)])?;
    in_use(&run, 2 * MIB)?;
    actor.expect(&[
        (&format!("alloc c {}", LIMIT - 3 * MIB), SUCCESS),
        (&format!("async d {}", 2 * MIB), OUT_OF_MEMORY),
    ])?;
    never_over(&mut actor, &run)?;
    actor.expect(&[("free-async a", SUCCESS), ("free-async b", SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, LIMIT - 3 * MIB)
}

fn graph_without_context() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = run.start()?;
    actor.expect(&[
        ("init", SUCCESS),
        ("cuGraphCreate g", SUCCESS),
        (&format!("cuGraphAddMemAllocNode g {SIZE}"), SUCCESS),
        ("cuGraphInstantiateWithFlags g", SUCCESS),
    ])?;
    in_use(&run, SIZE)?;
    actor.expect(&[("context 0", SUCCESS), ("cuGraphLaunch g", SUCCESS)])?;
    never_over(&mut actor, &run)
}

fn whole_limit() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuDeviceGetDefaultMemPool p", SUCCESS),
        ("cuMemPoolSetAttribute p 18446744073709551615", SUCCESS),
    ])?;
    // Ever larger ones, of which the pool keeps each: no trim by the program.
    for part in [8, 4, 2, 1] {
        actor.expect(&[
            (&format!("async a {}", LIMIT / part), SUCCESS),
            ("free-async a", SUCCESS),
        ])?;
        never_over(&mut actor, &run)?;
    }
    actor.expect(&[(&format!("async a {}", LIMIT / 2), SUCCESS)])?;
    actor.expect(&[(&format!("alloc b {}", LIMIT / 2), SUCCESS), ("alloc c 1", OUT_OF_MEMORY)])?;
    in_use(&run, LIMIT)?;
    never_over(&mut actor, &run)
}
