//! Each way of getting memory, under the same rules. What is given back is the card's at the next synchronisation. All
//! sizes are exact to the byte, but for physical memory, which comes in pages of 2 MiB, pools, which take from the card
//! in units of the driver's (of the stub: 1 byte), and rows of pitched memory, which the driver pads to 512 bytes: there
//! it is the limit that is moved by a byte.

use crate::{
    INVALID_VALUE, LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, answers, begin, calls, in_use, traced,
    with_limit,
};
use gpucap_tests::{Actor, Driver, Result, Stop, rows, trial};
use libtest_mimic::Trial;
use std::sync::OnceLock;

/// A pair of the driver's functions, by which the actor knows it too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// Gets memory.
    pub(crate) symbol: &'static str,
    /// Gives it back.
    give: &'static str,
    /// What it costs is rounded up to this.
    padding: u64,
    /// What may be asked for is a multiple of this.
    step: u64,
    /// Whether it takes from a pool, and so from the card in the pool's unit.
    pooled: bool,
}

const fn way(symbol: &'static str, give: &'static str) -> Way {
    Way { symbol, give, padding: 1, step: 1, pooled: false }
}

const fn pooled(symbol: &'static str, give: &'static str) -> Way {
    Way { pooled: true, ..way(symbol, give) }
}

const PITCH: u64 = 512;

/// All of them.
pub(crate) const WAYS: [Way; 15] = [
    way("cuMemAlloc", "cuMemFree"),
    way("cuMemAlloc_v2", "cuMemFree_v2"),
    Way { padding: PITCH, ..way("cuMemAllocPitch", "cuMemFree") },
    Way { padding: PITCH, ..way("cuMemAllocPitch_v2", "cuMemFree_v2") },
    way("cuMemAllocManaged", "cuMemFree_v2"),
    pooled("cuMemAllocAsync", "cuMemFreeAsync"),
    pooled("cuMemAllocAsync_ptsz", "cuMemFreeAsync_ptsz"),
    pooled("cuMemAllocFromPoolAsync", "cuMemFreeAsync"),
    pooled("cuMemAllocFromPoolAsync_ptsz", "cuMemFreeAsync_ptsz"),
    Way { step: 2 * MIB, ..way("cuMemCreate", "cuMemRelease") },
    way("cuArrayCreate", "cuArrayDestroy"),
    way("cuArrayCreate_v2", "cuArrayDestroy"),
    way("cuArray3DCreate", "cuArrayDestroy"),
    way("cuArray3DCreate_v2", "cuArrayDestroy"),
    way("cuMipmappedArrayCreate", "cuMipmappedArrayDestroy"),
];

impl Way {
    /// The actor's command that gets this many bytes into a slot.
    pub(crate) fn take(self, slot: char, bytes: u64) -> String {
        format!("{} {slot} {bytes}", self.symbol)
    }

    /// The actor's command that gives back what is in a slot.
    pub(crate) fn give(self, slot: char) -> String {
        format!("{} {slot}", self.give)
    }

    /// What a request of this many bytes costs.
    const fn cost(self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.padding)
    }

    /// The least by which what it holds of the card can differ.
    fn unit(self) -> Result<u64> {
        static POOL_UNIT: OnceLock<u64> = OnceLock::new();
        match (self.pooled, POOL_UNIT.get()) {
            (false, _) => Ok(self.step),
            (true, Some(unit)) => Ok(*unit),
            (true, None) => {
                let unit = Driver::available().pool_unit()?;
                Ok(*POOL_UNIT.get_or_init(|| unit))
            }
        }
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("every function that gets memory is tried", every_row),
        trial("padding of rows is charged", padding_is_charged),
        trial("padding that does not fit gives everything back", padding_does_not_fit),
    ];
    for way in WAYS {
        let each = |rule: &str, body: fn(Way) -> Result| {
            trial(format!("{}: {rule}", way.symbol), move || body(way))
        };
        trials.extend([
            each("fits under a limit of its size, not of a byte less", exact_limit),
            each("fits up to the limit and not a byte beyond", exact_request),
            each("what is given back can be taken again", given_back),
            each("a refusal costs nothing and never reaches the driver", refusal),
            each("a failure of the driver refunds", driver_fails),
            each("a failure to give back refunds nothing", giving_back_fails),
            each("nothing is asked for, nothing is charged", nothing_asked),
            each("other ways see what it took", other_ways_see),
        ]);
    }
    trials
}

fn every_row() -> Result {
    // What a context holds by a limit of its own is tried with the contexts.
    let tried =
        |symbol: &str| symbol == "cuCtxSetLimit" || WAYS.iter().any(|way| way.symbol == symbol);
    let missing: Vec<_> =
        rows::CUDA.iter().filter(|row| row.class == "alloc" && !tried(row.symbol)).collect();
    if missing.is_empty() { Ok(()) } else { Err(Stop::fail(format!("{missing:?}"))) }
}

/// An actor with a context under a limit of this many bytes.
fn under(limit: u64) -> Result<Actor> {
    begin(&with_limit(&limit.to_string())?)
}

const SIZE: u64 = 64 * MIB;

fn exact_limit(way: Way) -> Result {
    for (limit, left) in [(SIZE, 0), (SIZE + 1, 1)] {
        let mut actor = under(limit)?;
        actor.expect(&[(&way.take('a', SIZE), SUCCESS)])?;
        answers(&mut actor, "info d", limit, left)?;
        actor.expect(&[(&format!("alloc b {}", left + 1), OUT_OF_MEMORY)])?;
        if left > 0 {
            actor.expect(&[(&format!("alloc b {left}"), SUCCESS)])?;
        }
    }
    let mut actor = under(SIZE - 1)?;
    actor.expect(&[(&way.take('a', SIZE), OUT_OF_MEMORY)])?;
    answers(&mut actor, "info d", SIZE - 1, SIZE - 1)
}

fn exact_request(way: Way) -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    let unit = way.unit()?;
    for request in [LIMIT - unit, LIMIT] {
        actor.expect(&[(&way.take('a', request), SUCCESS)])?;
        answers(&mut actor, "info d", LIMIT, LIMIT - way.cost(request))?;
        in_use(&run, way.cost(request))?;
        actor.expect(&[(&way.give('a'), SUCCESS), ("sync", SUCCESS)])?;
        in_use(&run, 0)?;
    }
    actor.expect(&[(&way.take('a', LIMIT + unit), OUT_OF_MEMORY)])?;
    in_use(&run, 0)
}

fn given_back(way: Way) -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    for _ in 0..50 {
        actor.expect(&[(&way.take('a', LIMIT), SUCCESS), (&way.give('a'), SUCCESS)])?;
    }
    for slot in 'a'..='h' {
        actor.expect(&[(&way.take(slot, LIMIT / 8), SUCCESS)])?;
    }
    actor.expect(&[(&way.take('i', way.step), OUT_OF_MEMORY)])?;
    for slot in ['c', 'a', 'h', 'b', 'g', 'd', 'f', 'e'] {
        actor.expect(&[(&way.give(slot), SUCCESS)])?;
    }
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, 0)
}

fn refusal(way: Way) -> Result {
    let run = traced(with_limit(&LIMIT.to_string())?);
    let mut actor = begin(&run)?;
    actor.expect(&[
        (&way.take('a', LIMIT + way.step), OUT_OF_MEMORY),
        (&way.take('a', LIMIT), SUCCESS),
        (&way.take('b', way.step), OUT_OF_MEMORY),
    ])?;
    in_use(&run, LIMIT)?;
    match calls(&run, way.symbol)? {
        1 => Ok(()),
        calls => Err(Stop::fail(format!("the driver saw {calls} calls"))),
    }
}

fn driver_fails(way: Way) -> Result {
    // The code is the driver's, whichever it is: also one that we use ourselves.
    for code in [OUT_OF_MEMORY, 999] {
        let run = with_limit(&LIMIT.to_string())?;
        let mut actor =
            begin(&run.clone().env("STUB_GPU_FAIL", format!("{}:{code}@1", way.symbol)))?;
        actor.expect(&[(&way.take('a', LIMIT), code)])?;
        answers(&mut actor, "info d", LIMIT, LIMIT)?;
        in_use(&run, 0)?;
        actor.expect(&[(&way.take('a', LIMIT), SUCCESS)])?;
    }
    Ok(())
}

fn giving_back_fails(way: Way) -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run.clone().env("STUB_GPU_FAIL", format!("{}:719@1", way.give)))?;
    actor.expect(&[
        (&way.take('a', LIMIT), SUCCESS),
        (&way.give('a'), 719),
        ("alloc b 1", OUT_OF_MEMORY),
    ])?;
    in_use(&run, LIMIT)?;
    actor.expect(&[(&way.give('a'), SUCCESS), ("sync", SUCCESS)])?;
    in_use(&run, 0)
}

fn nothing_asked(way: Way) -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run)?;
    // Also at the limit the driver is the one who refuses: nothing always fits.
    actor.expect(&[
        (&way.take('a', 0), INVALID_VALUE),
        (&way.take('a', LIMIT), SUCCESS),
        (&way.take('b', 0), INVALID_VALUE),
    ])?;
    in_use(&run, LIMIT)
}

fn other_ways_see(way: Way) -> Result {
    // What is left fits each way, and twice of it none.
    let left = pooled("", "").unit()?.max(2 * MIB);
    let mut actor = under(LIMIT)?;
    actor.expect(&[(&way.take('a', LIMIT - left), SUCCESS)])?;
    for other in WAYS {
        actor.expect(&[
            (&other.take('b', 2 * left), OUT_OF_MEMORY),
            (&other.take('b', left), SUCCESS),
            (&other.give('b'), SUCCESS),
        ])?;
    }
    Ok(())
}

fn padding_is_charged() -> Result {
    let mut actor = under(LIMIT)?;
    let answer = actor.call("pitch a 100 1000")?; // rows of 100 bytes become rows of 512
    if answer.code != SUCCESS || answer.extra != PITCH {
        return Err(Stop::fail(format!("{answer:?}")));
    }
    answers(&mut actor, "info d", LIMIT, LIMIT - PITCH * 1000)
}

fn padding_does_not_fit() -> Result {
    let run = with_limit(&(100 * MIB).to_string())?;
    let mut actor = begin(&run)?;
    // 100 bytes x 1 Mi rows fit, 512 bytes x 1 Mi rows do not.
    actor.expect(&[(&format!("pitch a 100 {MIB}"), OUT_OF_MEMORY)])?;
    answers(&mut actor, "info d", 100 * MIB, 100 * MIB)?;
    in_use(&run, 0)?;
    actor.expect(&[(&format!("alloc a {}", 100 * MIB), SUCCESS)])
}
