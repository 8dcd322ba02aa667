//! Each way of getting memory, under the same rules.

use crate::{CAP, MIB, OUT_OF_MEMORY, SUCCESS, begin, capped, told};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;

/// A pair of the driver's functions.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// The function that gets memory.
    symbol: &'static str,
    /// The actor's command that gets so many MiB into `a`, `b` or `c`.
    take: fn(char, u64) -> String,
    /// The command that gives them back.
    give: &'static str,
}

const WAYS: [Way; 5] = [
    Way {
        symbol: "cuMemAlloc_v2",
        take: |slot, mib| format!("alloc {slot} {}", mib * MIB),
        give: "free",
    },
    Way {
        symbol: "cuMemAllocPitch_v2",
        take: |slot, mib| format!("pitch {slot} 4096 {}", mib * MIB / 4096),
        give: "free",
    },
    Way {
        symbol: "cuMemAllocAsync",
        take: |slot, mib| format!("async {slot} {}", mib * MIB),
        give: "free-async",
    },
    Way {
        symbol: "cuArrayCreate_v2",
        take: |slot, mib| format!("array {slot} 1024 {}", mib * MIB / 4096),
        give: "free-array",
    },
    Way {
        symbol: "cuMemCreate",
        take: |slot, mib| format!("create {slot} {} 0", mib * MIB),
        give: "drop",
    },
];

/// Amounts are even: physical memory comes in pages of 2 MiB.
const CAP_MIB: u64 = CAP / MIB;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("one byte too many is refused", one_byte_too_many),
        trial("padding of rows is charged", padding_is_charged),
        trial("padding that does not fit gives everything back", padding_does_not_fit),
        trial("freeing an address that is not ours refunds nothing", foreign_address),
        trial("freeing twice refunds once", freed_twice),
        trial("a mapping keeps its memory charged", mapping_keeps),
        trial("the end of a context refunds what ended with it", context_ends),
        trial("a request that no card could hold is refused", absurd_request),
    ];
    for way in WAYS {
        let each = |rule: &str, body: fn(Way) -> Result| {
            trial(format!("{}: {rule}", way.symbol), move || body(way))
        };
        trials.extend([
            each("fits up to the cap and not beyond", fits_up_to_the_cap),
            each("what is given back can be taken again", given_back),
            each("a refusal costs nothing and never reaches the driver", refusal),
            each("a failure of the driver refunds", driver_fails),
            each("other ways see what it took", other_ways_see),
        ]);
    }
    trials
}

fn fits_up_to_the_cap(way: Way) -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[
        (&(way.take)('a', CAP_MIB - 2), SUCCESS),
        (&(way.take)('b', 4), OUT_OF_MEMORY),
        (&(way.take)('b', 2), SUCCESS),
        (&(way.take)('c', 2), OUT_OF_MEMORY),
    ])?;
    told(&mut actor, "info d", CAP, 0)
}

fn given_back(way: Way) -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    let give = format!("{} a", way.give);
    for _ in 0..100 {
        actor.expect(&[(&(way.take)('a', CAP_MIB), SUCCESS), (&give, SUCCESS)])?;
    }
    told(&mut actor, "info d", CAP, CAP)
}

fn refusal(way: Way) -> Result {
    let run = capped(&CAP.to_string())?;
    let trace = run.directory().join("trace");
    let mut actor = begin(&run.env("STUB_GPU_TRACE", &trace))?;
    actor.expect(&[
        (&(way.take)('a', CAP_MIB + 2), OUT_OF_MEMORY),
        (&(way.take)('a', CAP_MIB), SUCCESS),
    ])?;
    let calls = std::fs::read_to_string(trace)?;
    let calls = calls.lines().filter(|line| line.split(' ').nth(1) == Some(way.symbol)).count();
    if calls == 1 { Ok(()) } else { Err(Stop::fail(format!("the driver saw {calls} calls"))) }
}

fn driver_fails(way: Way) -> Result {
    let run = capped(&CAP.to_string())?;
    let mut actor = begin(&run.env("STUB_GPU_FAIL", format!("{}:999@1", way.symbol)))?;
    actor.expect(&[(&(way.take)('a', CAP_MIB), 999)])?;
    told(&mut actor, "info d", CAP, CAP)?;
    actor.expect(&[(&(way.take)('a', CAP_MIB), SUCCESS)])
}

fn other_ways_see(way: Way) -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[(&(way.take)('a', CAP_MIB - 2), SUCCESS)])?;
    for other in WAYS {
        actor.expect(&[
            (&(other.take)('b', 4), OUT_OF_MEMORY),
            (&(other.take)('b', 2), SUCCESS),
            (&format!("{} b", other.give), SUCCESS),
        ])?;
    }
    Ok(())
}

fn one_byte_too_many() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[
        (&format!("alloc a {}", CAP + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", CAP - 1), SUCCESS),
        ("alloc b 2", OUT_OF_MEMORY),
        ("alloc b 1", SUCCESS),
        ("alloc c 1", OUT_OF_MEMORY),
    ])
}

fn padding_is_charged() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    let pitch = actor.tell("pitch a 1 1024")?.extra;
    if pitch < 2 {
        return Err(Stop::fail("the stub pads nothing, so nothing was tested"));
    }
    told(&mut actor, "info d", CAP, CAP - pitch * 1024)?;
    actor.expect(&[("free a", SUCCESS)])?;
    told(&mut actor, "info d", CAP, CAP)
}

fn padding_does_not_fit() -> Result {
    // A million rows of one byte: with the padding more than the cap, without it far less.
    let mut actor = begin(&capped("100Mi")?)?;
    actor.expect(&[(&format!("pitch a 1 {MIB}"), OUT_OF_MEMORY)])?;
    told(&mut actor, "info d", 100 * MIB, 100 * MIB)?;
    actor.expect(&[(&format!("alloc a {}", 100 * MIB), SUCCESS)])
}

fn foreign_address() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[(&(WAYS[0].take)('a', CAP_MIB), SUCCESS)])?;
    let inside = actor.tell("alloc a 0")?.value; // refused by the driver; the slot keeps what it had
    for address in [0, 4096, inside + 256] {
        actor.tell(&format!("free-at b {address}"))?;
    }
    actor.expect(&[("alloc b 1", OUT_OF_MEMORY)])
}

fn freed_twice() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[
        (&(WAYS[0].take)('a', CAP_MIB / 2), SUCCESS),
        (&(WAYS[0].take)('b', CAP_MIB / 2), SUCCESS),
        ("free a", SUCCESS),
    ])?;
    if actor.tell("free a")?.code == SUCCESS {
        return Err(Stop::fail("the stub freed one address twice"));
    }
    told(&mut actor, "info d", CAP, CAP / 2)
}

fn mapping_keeps() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[
        (&format!("create a {CAP} 0"), SUCCESS),
        (&format!("map b a {CAP}"), SUCCESS),
        ("drop a", SUCCESS),
        ("alloc c 1", OUT_OF_MEMORY),
        (&format!("unmap b {CAP}"), SUCCESS),
        (&format!("alloc c {CAP}"), SUCCESS),
    ])
}

fn context_ends() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[
        (&(WAYS[0].take)('a', CAP_MIB / 2), SUCCESS),
        (&(WAYS[3].take)('b', CAP_MIB / 2), SUCCESS),
        ("reset 0", SUCCESS),
        ("context 0", SUCCESS),
    ])?;
    told(&mut actor, "info d", CAP, CAP)
}

fn absurd_request() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[
        (&format!("alloc a {}", u64::MAX), OUT_OF_MEMORY),
        (&format!("pitch a {} {}", u64::MAX, u64::MAX), OUT_OF_MEMORY),
        (&format!("array a {} {}", u64::MAX, u64::MAX), OUT_OF_MEMORY),
        (&format!("create a {} 0", u64::MAX), OUT_OF_MEMORY),
    ])?;
    told(&mut actor, "info d", CAP, CAP)
}
