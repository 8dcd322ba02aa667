//! Pools: what a pool keeps after it was freed is charged, and given back before a request is refused for it.

use crate::contexts::contend;
use crate::{
    LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, answers, begin, calls, in_use, traced, with_limit,
};
use gpucap_tests::{Actor, Result, Run, Stop, trial};
use libtest_mimic::Trial;

const SIZE: u64 = 100 * MIB;
const NOTHING: u64 = 0;
/// The driver's word for a place: this card, or the host.
const ON_CARD: &str = "cuMemPoolCreate p 1";
const ON_HOST: &str = "cuMemPoolCreate p 2";
const KEEP_ALL: &str = "cuMemPoolSetAttribute p 18446744073709551615";
const KEEP_NOTHING: &str = "cuMemPoolSetAttribute p 0";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a pool without a threshold keeps nothing beyond a synchronisation", keeps_nothing),
        trial("what a pool keeps is charged, and once", keeps),
        trial("what a pool keeps is handed out again without a charge", reused),
        trial("a trimmed pool keeps nothing", trimmed),
        trial("a threshold that is taken away refunds", threshold_taken_away),
        trial("a threshold that comes late charges what is kept by then", late_threshold),
        trial("a process gives back what its pools keep before it is refused", gives_back),
        trial("what the pools of another process keep is that process's", another_keeps),
        trial("what the pools of a process kept is back when it dies", keeper_dies),
        trial("a pool that ends refunds what it kept, not what is in use", pool_ends),
        trial("a pool that ends while another thread frees what was taken from it", at_once),
        trial("a pool whose end the driver refuses while another thread frees goes on", refused),
        trial("a pool in host memory is free of charge", on_host),
        trial("memory of the device's current pool is that pool's", current_pool),
        trial("a failure of the driver leaves what a pool keeps as it was", driver_fails),
        trial("what a pool that was met in an unknown way keeps is charged", unknown_way),
        trial("a pool of another card than the current one is that other card's", of_another_card),
        trial("a pool that is asked for by its place is of that place", of_a_location),
        trial(
            "a threshold that was set before the pool was met charges what it keeps",
            early_threshold,
        ),
        trial(
            "after the end of the current pool the default pool is charged, and once",
            current_ends,
        ),
        trial(
            "memory outlives the end of the current pool, and is refunded when freed",
            outlives_current,
        ),
        trial(
            "a pool whose end the driver refuses goes on, and its allocations stay charged",
            does_not_end,
        ),
        trial(
            "a pool that grows by more than is known of pools is refused what does not fit",
            grows,
        ),
    ]
}

/// A process with the default pool in slot `p`, which keeps all.
fn keeper() -> Result<(Run, Actor)> {
    let run = traced(with_limit(&LIMIT.to_string())?);
    let mut actor = begin(&run)?;
    actor.expect(&[("cuDeviceGetDefaultMemPool p", SUCCESS), (KEEP_ALL, SUCCESS)])?;
    Ok((run, actor))
}

/// It has used this many bytes.
fn used(actor: &mut Actor, bytes: u64) -> Result {
    actor.expect(&[(&format!("async a {bytes}"), SUCCESS), ("free-async a", SUCCESS)])
}

fn keeps_nothing() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    used(&mut actor, SIZE)?;
    in_use(&run, SIZE)?;
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, NOTHING)
}

fn keeps() -> Result {
    let (run, mut actor) = keeper()?;
    used(&mut actor, SIZE)?;
    in_use(&run, SIZE)?;
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, SIZE)?;
    answers(&mut actor, "info d", LIMIT, LIMIT - SIZE)?;
    answers(&mut actor, "nvml d 0", LIMIT, SIZE)
}

fn reused() -> Result {
    let (run, mut actor) = keeper()?;
    used(&mut actor, SIZE)?;
    for part in 1..=4 {
        let slot = char::from(b'a' + part);
        actor.expect(&[(&format!("async {slot} {}", SIZE / 4), SUCCESS)])?;
        in_use(&run, SIZE)?;
    }
    actor.expect(&[("async g 1000", SUCCESS)])?;
    in_use(&run, SIZE + 1000)?;
    actor.expect(&[("free-async b", SUCCESS), ("free-async g", SUCCESS)])?;
    in_use(&run, SIZE + 1000)
}

fn trimmed() -> Result {
    let (run, mut actor) = keeper()?;
    used(&mut actor, SIZE)?;
    actor.expect(&[
        ("async b 1000", SUCCESS),
        (&format!("cuMemPoolTrimTo p {}", SIZE / 2), SUCCESS),
    ])?;
    in_use(&run, SIZE / 2)?;
    actor.expect(&[("cuMemPoolTrimTo p 0", SUCCESS)])?;
    in_use(&run, 1000)?;
    actor.expect(&[("free-async b", SUCCESS), ("cuMemPoolTrimTo p 0", SUCCESS)])?;
    in_use(&run, NOTHING)
}

fn threshold_taken_away() -> Result {
    let (run, mut actor) = keeper()?;
    used(&mut actor, SIZE)?;
    actor.expect(&[(KEEP_NOTHING, SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, NOTHING)?;
    used(&mut actor, SIZE)?;
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, NOTHING)
}

fn late_threshold() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    used(&mut actor, SIZE)?;
    // Nothing has synchronised, so the driver still has it.
    actor.expect(&[("cuDeviceGetDefaultMemPool p", SUCCESS), (KEEP_ALL, SUCCESS)])?;
    in_use(&run, SIZE)
}

fn gives_back() -> Result {
    for command in ["alloc b", "array b", "async b", "create b"] {
        let (run, mut actor) = keeper()?;
        used(&mut actor, SIZE)?;
        let command = match command {
            "array b" => format!("cuArrayCreate_v2 b {LIMIT}"),
            other => format!("{other} {LIMIT}"),
        };
        actor.expect(&[(&command, SUCCESS)])?;
        in_use(&run, LIMIT)?;
        actor.expect(&[("alloc c 1", OUT_OF_MEMORY)])?;
    }
    let (run, mut actor) = keeper()?;
    used(&mut actor, SIZE)?;
    actor.expect(&[(&format!("alloc b {}", LIMIT - SIZE), SUCCESS)])?;
    match calls(&run, "cuMemPoolTrimTo")? {
        0 => in_use(&run, LIMIT),
        _ => Err(Stop::fail("trimmed although there was room")),
    }
}

fn another_keeps() -> Result {
    let (run, mut actor) = keeper()?;
    used(&mut actor, SIZE)?;
    let mut other = begin(&run)?;
    other.expect(&[
        (&format!("alloc a {}", LIMIT - SIZE + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", LIMIT - SIZE), SUCCESS),
    ])?;
    // Its own pool can still use it.
    actor.expect(&[
        (&format!("async a {SIZE}"), SUCCESS),
        ("async b 1", OUT_OF_MEMORY),
        ("alloc b 1", OUT_OF_MEMORY),
    ])?;
    in_use(&run, LIMIT)
}

fn keeper_dies() -> Result {
    let (run, mut actor) = keeper()?;
    used(&mut actor, SIZE)?;
    actor.kill()?;
    begin(&run)?.expect(&[(&format!("alloc a {LIMIT}"), SUCCESS)])
}

fn pool_ends() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        (ON_CARD, SUCCESS),
        (KEEP_ALL, SUCCESS),
        ("from-pool a p 1000", SUCCESS),
        ("from-pool b p 2000", SUCCESS),
        ("free-async b", SUCCESS),
    ])?;
    in_use(&run, 3000)?;
    actor.expect(&[("cuMemPoolDestroy p", SUCCESS)])?;
    in_use(&run, 1000)?;
    actor.expect(&[("free-async a", SUCCESS)])?;
    in_use(&run, NOTHING)
}

fn at_once() -> Result {
    contend("pool")
}

fn refused() -> Result {
    contend("refused")
}

fn on_host() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        (&format!("alloc z {LIMIT}"), SUCCESS),
        (ON_HOST, SUCCESS),
        (KEEP_ALL, SUCCESS),
        ("from-pool a p 1000", SUCCESS),
        ("from-pool b p 2000", SUCCESS),
        ("free-async a", SUCCESS),
    ])?;
    in_use(&run, LIMIT)?;
    actor.expect(&[("cuMemPoolDestroy p", SUCCESS), ("free-async b", SUCCESS)])?;
    in_use(&run, LIMIT)
}

fn current_pool() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[("async z 500", SUCCESS), (ON_CARD, SUCCESS), (KEEP_ALL, SUCCESS)])?;
    actor.expect(&[("cuDeviceSetMemPool p", SUCCESS)])?;
    used(&mut actor, 1000)?;
    in_use(&run, 1500)?;
    // That was of the default pool, which keeps nothing.
    actor.expect(&[("free-async z", SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, 1000)
}

fn driver_fails() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run.clone().env("STUB_GPU_FAIL", "cuMemAllocAsync:719@2"))?;
    actor.expect(&[("cuDeviceGetDefaultMemPool p", SUCCESS), (KEEP_ALL, SUCCESS)])?;
    used(&mut actor, SIZE)?;
    actor.expect(&[(&format!("async a {SIZE}"), 719)])?;
    in_use(&run, SIZE)?;
    actor.expect(&[(&format!("async a {}", 2 * SIZE), SUCCESS)])?;
    in_use(&run, 2 * SIZE)
}

fn unknown_way() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[("stubDefaultPool p 0", SUCCESS), (KEEP_ALL, SUCCESS)])?;
    used(&mut actor, SIZE)?;
    in_use(&run, SIZE)?;
    actor.expect(&[("sync", SUCCESS)])?;
    answers(&mut actor, "info d", LIMIT, LIMIT - SIZE)?;
    actor.expect(&[("cuMemPoolTrimTo p 0", SUCCESS)])?;
    in_use(&run, NOTHING)
}

fn early_threshold() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = run.start()?;
    // No context is current, so nothing says which card this pool is of.
    actor.expect(&[
        ("init", SUCCESS),
        ("stubDefaultPool p 0", SUCCESS),
        (KEEP_ALL, SUCCESS),
        ("context 0", SUCCESS),
    ])?;
    used(&mut actor, SIZE)?;
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, SIZE)
}

fn of_another_card() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_COUNT", "2");
    let mut actor = begin(&run)?;
    actor.expect(&[
        (&format!("alloc z {SIZE}"), SUCCESS),
        ("stubDefaultPool p 1", SUCCESS),
        (KEEP_ALL, SUCCESS),
        ("context 1", SUCCESS),
    ])?;
    used(&mut actor, SIZE)?;
    answers(&mut actor, "nvml d 1", LIMIT, SIZE)?;
    actor.expect(&[("cuMemPoolTrimTo p 0", SUCCESS)])?;
    answers(&mut actor, "nvml d 0", LIMIT, SIZE)?;
    answers(&mut actor, "nvml d 1", LIMIT, NOTHING)
}

fn of_a_location() -> Result {
    for ask in ["cuMemGetDefaultMemPool", "cuMemGetMemPool"] {
        let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_COUNT", "2");
        let mut actor = begin(&run)?;
        // The context is that of card 0, the pool that of card 1.
        actor.expect(&[(&format!("{ask} p 1"), SUCCESS), (KEEP_ALL, SUCCESS)])?;
        actor.expect(&[(&format!("from-pool a p {SIZE}"), SUCCESS)])?;
        answers(&mut actor, "nvml d 0", LIMIT, NOTHING)?;
        answers(&mut actor, "nvml d 1", LIMIT, SIZE)?;
        actor.expect(&[("free-async a", SUCCESS)])?;
        answers(&mut actor, "nvml d 1", LIMIT, SIZE)?;
    }
    Ok(())
}

/// A keeper whose current pool is one of its own, in slot `q`, which keeps nothing.
fn with_current_pool() -> Result<(Run, Actor)> {
    let (run, mut actor) = keeper()?;
    actor.expect(&[("cuMemPoolCreate q 1", SUCCESS), ("cuDeviceSetMemPool q", SUCCESS)])?;
    Ok((run, actor))
}

fn current_ends() -> Result {
    let (run, mut actor) = with_current_pool()?;
    actor.expect(&[("cuMemPoolDestroy q", SUCCESS)])?;
    actor.expect(&[(&format!("async a {SIZE}"), SUCCESS)])?;
    in_use(&run, SIZE)?;
    actor.expect(&[("free-async a", SUCCESS)])?;
    in_use(&run, SIZE)?;
    used(&mut actor, SIZE)?;
    in_use(&run, SIZE)?;
    actor.expect(&[("cuMemPoolTrimTo p 0", SUCCESS)])?;
    in_use(&run, NOTHING)
}

fn outlives_current() -> Result {
    let (run, mut actor) = with_current_pool()?;
    actor.expect(&[("async a 500", SUCCESS), ("cuMemPoolDestroy q", SUCCESS)])?;
    in_use(&run, 500)?;
    actor.expect(&[("async b 1000", SUCCESS)])?;
    in_use(&run, 1500)?;
    actor.expect(&[("free-async a", SUCCESS)])?;
    in_use(&run, 1000)?;
    actor.expect(&[("free-async b", SUCCESS), (KEEP_NOTHING, SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, NOTHING)
}

fn does_not_end() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run.clone().env("STUB_GPU_FAIL", "cuMemPoolDestroy:719@1"))?;
    actor.expect(&[
        (ON_CARD, SUCCESS),
        (KEEP_ALL, SUCCESS),
        ("cuDeviceSetMemPool p", SUCCESS),
        ("async a 1000", SUCCESS),
        ("async b 2000", SUCCESS),
        ("free-async b", SUCCESS),
        ("cuMemPoolDestroy p", 719),
    ])?;
    in_use(&run, 1000)?; // trimmed before
    actor.expect(&[("async b 1500", SUCCESS)])?;
    in_use(&run, 2500)?;
    actor.expect(&[("free-async b", SUCCESS), ("cuMemPoolDestroy p", SUCCESS)])?;
    in_use(&run, 1000)?;
    actor.expect(&[("free-async a", SUCCESS)])?;
    in_use(&run, NOTHING)
}

/// No driver is known whose pools grow by more than 32 MiB at once; this one does.
fn grows() -> Result {
    let run = with_limit(&LIMIT.to_string())?.env("STUB_GPU_POOL_GRANULARITY", "64MiB");
    let mut actor = begin(&run)?;
    let held = LIMIT - 40 * MIB;
    actor.expect(&[
        (&format!("alloc a {held}"), SUCCESS),
        ("async b 1", OUT_OF_MEMORY),
        ("async b 1", OUT_OF_MEMORY),
    ])?;
    in_use(&run, held)?;
    actor.expect(&[("free a", SUCCESS), ("async b 1", SUCCESS)])?;
    in_use(&run, 64 * MIB)
}
