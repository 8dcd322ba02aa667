//! What a program should not do, and what no program can have: the driver's answers stay the driver's, and the book
//! stays right.

use crate::ways::WAYS;
use crate::{
    INVALID_VALUE, LIMIT, MIB, NOT_INITIALIZED, OUT_OF_MEMORY, SUCCESS, answers, begin, calls,
    in_use, traced, with_limit,
};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;

const INVALID_CONTEXT: u64 = 201;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("freeing an address that is not ours refunds nothing", foreign_address),
        trial("freeing the address of another process refunds nothing", another_process),
        trial("freeing twice refunds once", freed_twice),
        trial("giving back in another way than the driver allows refunds nothing", wrong_way),
        trial("a request that no card could hold is refused", absurd_request),
        trial("a request that wraps around what is used is refused", wrapping_request),
        trial("a product of sizes that wraps around is refused", wrapping_product),
        trial("before cuInit the driver answers", before_init),
        trial("without a context the driver answers", without_context),
        trial("a device that is not there is the driver's to refuse", no_device),
    ]
}

fn foreign_address() -> Result {
    let run = traced(with_limit(&LIMIT.to_string())?);
    let mut actor = begin(&run)?;
    let start = actor.call(&format!("alloc a {LIMIT}"))?.value;
    for address in [0, 4096, start + 256, u64::MAX] {
        actor.expect(&[(&format!("free-at b {address}"), INVALID_VALUE)])?;
    }
    in_use(&run, LIMIT)?;
    actor.expect(&[("alloc b 1", OUT_OF_MEMORY)])?;
    match calls(&run, "cuMemFree_v2")? {
        4 => Ok(()),
        calls => Err(Stop::fail(format!("the driver saw {calls} of 4 calls"))),
    }
}

fn another_process() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let (mut first, mut second) = (begin(&run)?, begin(&run)?);
    let address = first.call(&format!("alloc a {LIMIT}"))?.value;
    second.expect(&[
        (&format!("free-at a {address}"), INVALID_VALUE),
        ("alloc a 1", OUT_OF_MEMORY),
    ])?;
    in_use(&run, LIMIT)
}

fn freed_twice() -> Result {
    for way in WAYS {
        let run = with_limit(&LIMIT.to_string())?;
        let mut actor = begin(&run)?;
        actor.expect(&[
            (&way.take('a', LIMIT / 2), SUCCESS),
            (&way.take('b', LIMIT / 2), SUCCESS),
            (&way.give('a'), SUCCESS),
        ])?;
        if actor.call(&way.give('a'))?.code == SUCCESS {
            return Err(Stop::fail(format!("{}: the stub freed it twice", way.symbol)));
        }
        actor.expect(&[("sync", SUCCESS)])?;
        in_use(&run, LIMIT / 2)?;
    }
    Ok(())
}

fn wrong_way() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    actor.expect(&[
        ("cuMemAlloc_v2 a 1000", SUCCESS),
        ("cuArrayCreate_v2 b 1000", SUCCESS),
        ("cuMemCreate c 2097152", SUCCESS),
    ])?;
    for command in ["cuArrayDestroy a", "cuMemFree_v2 b", "cuMemFree_v2 c"] {
        if actor.call(command)?.code == SUCCESS {
            return Err(Stop::fail(format!("the stub accepts {command}")));
        }
    }
    in_use(&run, 2000 + 2 * MIB)
}

fn absurd_request() -> Result {
    let run = traced(with_limit(&LIMIT.to_string())?);
    let mut actor = begin(&run)?;
    for way in WAYS {
        // What the 32 bits of the oldest functions cut off is cut off by the caller.
        for bytes in [1 << 31, (1 << 32) - 1, 1 << 40, 1 << 63, u64::MAX - 1, u64::MAX] {
            let oldest = ["cuMemAlloc", "cuMemAllocPitch", "cuArrayCreate", "cuArray3DCreate"];
            if bytes >> 32 == 0 || !oldest.contains(&way.symbol) {
                actor.expect(&[(&way.take('a', bytes), OUT_OF_MEMORY)])?;
            }
        }
        if calls(&run, way.symbol)? != 0 {
            return Err(Stop::fail(format!("{} reached the driver", way.symbol)));
        }
    }
    answers(&mut actor, "info d", LIMIT, LIMIT)
}

fn wrapping_request() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    let used = 4 * MIB;
    actor.expect(&[(&format!("alloc a {used}"), SUCCESS)])?;
    for bytes in
        [u64::MAX - used, u64::MAX - used + 1, u64::MAX - used + 2, 1 << 42, (1 << 42) - used]
    {
        actor.expect(&[(&format!("alloc b {bytes}"), OUT_OF_MEMORY)])?;
    }
    in_use(&run, used)
}

fn wrapping_product() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    for (width, height) in
        [(1u64 << 32, 1u64 << 32), (1 << 63, 2), (u64::MAX, u64::MAX), (3, u64::MAX / 3 + 1)]
    {
        actor.expect(&[
            (&format!("pitch a {width} {height}"), OUT_OF_MEMORY),
            (&format!("array a {width} {height}"), OUT_OF_MEMORY),
        ])?;
    }
    in_use(&run, 0)
}

fn before_init() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = run.start()?;
    for way in WAYS {
        actor.expect(&[
            (&way.take('a', 2 * MIB), NOT_INITIALIZED),
            (&way.give('a'), NOT_INITIALIZED),
        ])?;
    }
    actor.expect(&[
        ("context 0", NOT_INITIALIZED),
        ("release 0", NOT_INITIALIZED),
        ("init", SUCCESS),
    ])?;
    in_use(&run, 0)
}

fn without_context() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    // Physical memory names its device itself.
    for way in WAYS.iter().filter(|way| way.symbol != "cuMemCreate") {
        actor.expect(&[(&way.take('a', 1), INVALID_CONTEXT)])?;
    }
    in_use(&run, 0)
}

fn no_device() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    for ordinal in [1u64, 63, 64, 1 << 31, (1 << 32) - 1] {
        for command in ["context", "release", "reset", "total d", "create a 2097152"] {
            let code = actor.call(&format!("{command} {ordinal}"))?.code;
            if code != 101 {
                return Err(Stop::fail(format!("{command} {ordinal}: {code}")));
            }
        }
    }
    in_use(&run, 0)
}
