//! Physical memory of the virtual memory management: charged as long as a handle or a mapping refers to it.

use crate::{
    LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, answers, begin, in_use, with_limit, without_limit,
};
use gpucap_tests::{Actor, Result, Run, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a mapping keeps its memory charged", mapping_keeps),
        trial("the last of two mappings refunds", mapped_twice),
        trial("a handle got from a mapping keeps its memory charged", retained),
        trial("a handle got after the release keeps its memory charged", retained_after_release),
        trial("unmapping a range refunds all that lay in it", range),
        trial("what the driver did not unmap is not refunded", not_unmapped),
        trial("what the driver did not map keeps nothing charged", not_mapped),
        trial("memory of the host is free of charge", host),
        trial("physical memory outlives its context", outlives_context),
        trial("physical memory is charged to the card that it names", named_card),
    ]
}

const PAGE: u64 = 2 * MIB;

fn started() -> Result<(Run, Actor)> {
    let run = with_limit(&LIMIT.to_string())?;
    let actor = begin(&run)?;
    Ok((run, actor))
}

fn mapping_keeps() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {LIMIT} 0"), SUCCESS),
        (&format!("map b a {LIMIT}"), SUCCESS),
        ("drop a", SUCCESS),
        ("alloc c 1", OUT_OF_MEMORY),
    ])?;
    in_use(&run, LIMIT)?;
    actor.expect(&[(&format!("unmap b {LIMIT}"), SUCCESS), (&format!("alloc c {LIMIT}"), SUCCESS)])
}

fn mapped_twice() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        (&format!("map b a {PAGE}"), SUCCESS),
        (&format!("map c a {PAGE}"), SUCCESS),
        ("drop a", SUCCESS),
        (&format!("unmap b {PAGE}"), SUCCESS),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[(&format!("unmap c {PAGE}"), SUCCESS)])?;
    in_use(&run, 0)
}

fn retained() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        (&format!("map b a {PAGE}"), SUCCESS),
        ("retain c b", SUCCESS),
        (&format!("unmap b {PAGE}"), SUCCESS),
        ("drop a", SUCCESS),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("drop c", SUCCESS)])?;
    in_use(&run, 0)?;
    match actor.call("drop c")?.code {
        SUCCESS => Err(Stop::fail("the stub released it once too often")),
        _ => in_use(&run, 0),
    }
}

fn retained_after_release() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        (&format!("map b a {PAGE}"), SUCCESS),
        ("drop a", SUCCESS),
        ("retain c b", SUCCESS),
        (&format!("unmap b {PAGE}"), SUCCESS),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("drop c", SUCCESS)])?;
    in_use(&run, 0)
}

/// Three pages side by side, whose handles are released.
fn three_pages(actor: &mut Actor) -> Result {
    actor.expect(&[(&format!("reserve r {}", 3 * PAGE), SUCCESS)])?;
    for offset in [0, PAGE, 2 * PAGE] {
        actor.expect(&[
            (&format!("create a {PAGE} 0"), SUCCESS),
            (&format!("map-at r a {PAGE} {offset}"), SUCCESS),
            ("drop a", SUCCESS),
        ])?;
    }
    Ok(())
}

fn range() -> Result {
    let (run, mut actor) = started()?;
    three_pages(&mut actor)?;
    in_use(&run, 3 * PAGE)?;
    actor.expect(&[(&format!("unmap r {}", 2 * PAGE), SUCCESS)])?;
    in_use(&run, PAGE)?;
    actor.expect(&[(&format!("unmap r {}", 3 * PAGE), SUCCESS)])?;
    in_use(&run, 0)
}

fn not_unmapped() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run.clone().env("STUB_GPU_FAIL", "cuMemUnmap:1@1,cuMemRelease:1@4"))?;
    three_pages(&mut actor)?;
    actor.expect(&[(&format!("unmap r {}", 3 * PAGE), 1)])?;
    in_use(&run, 3 * PAGE)?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        ("drop a", 1),
        (&format!("unmap r {}", 3 * PAGE), SUCCESS),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("drop a", SUCCESS)])?;
    in_use(&run, 0)
}

fn not_mapped() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut actor = begin(&run.clone().env("STUB_GPU_FAIL", "cuMemMap:1@1"))?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        (&format!("map b a {PAGE}"), 1),
        ("drop a", SUCCESS),
    ])?;
    in_use(&run, 0)
}

fn host() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[(&format!("alloc a {LIMIT}"), SUCCESS)])?;
    for kind in 2..=4 {
        actor.expect(&[(&format!("create-on-host b {} {kind}", 2 * LIMIT), SUCCESS)])?;
        in_use(&run, LIMIT)?;
        actor.expect(&[("drop b", SUCCESS)])?;
        in_use(&run, LIMIT)?;
    }
    Ok(())
}

fn outlives_context() -> Result {
    let (run, mut actor) = started()?;
    actor.expect(&[
        (&format!("create a {PAGE} 0"), SUCCESS),
        ("alloc b 1000", SUCCESS),
        ("release 0", SUCCESS),
    ])?;
    in_use(&run, PAGE)?;
    actor.expect(&[("drop a", SUCCESS)])?;
    in_use(&run, 0)
}

fn named_card() -> Result {
    let run = without_limit()?.env("GPU_MEM_LIMIT", "0=1Gi,1=4Mi").env("STUB_GPU_COUNT", "2");
    let mut actor = begin(&run)?;
    // The context is that of card 0.
    actor.expect(&[
        (&format!("create a {} 1", 6 * MIB), OUT_OF_MEMORY),
        (&format!("create a {} 1", 4 * MIB), SUCCESS),
        (&format!("create b {PAGE} 0"), SUCCESS),
    ])?;
    answers(&mut actor, "nvml d 1", 4 * MIB, 4 * MIB)?;
    answers(&mut actor, "nvml d 0", LIMIT, PAGE)?;
    actor.expect(&[("drop a", SUCCESS)])?;
    answers(&mut actor, "nvml d 1", 4 * MIB, 0)
}
