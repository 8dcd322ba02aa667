//! Contexts: charged at a price, once for each card and process, and refunded with what ends with them.

use crate::{LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, answers, calls, in_use, traced, with_limit};
use gpucap_tests::{Actor, Program, Result, Run, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("a context that was retained twice is charged once", charged_once),
        trial("a context that does not fit is refused, and the driver not called", does_not_fit),
        trial("a context that the driver refuses costs nothing", driver_refuses),
        trial("a context of each card is charged to that card", each_card),
        trial("each process pays for its own context", each_process),
        trial("a context that became free lets another one in", room_for_another),
        trial("what no context holds outlives the reset", outlives),
        trial("without a configured price a context costs 256 MiB", default_price),
        trial("a context that ends while another is made takes nothing of it along", at_once),
    ];
    for make in MADE {
        for end in ["cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxDetach"] {
            let rule =
                format!("{make}, {end}: each context is charged, and refunded with what it held");
            trials.push(trial(rule, move || made(make, end)));
        }
        let rule =
            format!("{make}: one that does not fit or that the driver refuses costs nothing");
        trials.push(trial(rule, move || not_made(make)));
    }
    trials.push(trial("a context that was attached to ends with the last detach", attached));
    trials.push(trial("a context of two users ends when it is destroyed", attached_and_destroyed));
    trials.push(trial("a primary context of two users lives on after a detach", primary_detached));
    trials.push(trial("a detach that the driver refuses is no detach", detach_refused));
    trials.push(trial("of two threads that detach at once one is the last", || contend("detach")));
    for end in ["cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxDetach"] {
        let rule = format!(
            "{end}: a context whose end the driver refuses keeps all that it is charged for"
        );
        trials.push(trial(rule, move || goes_on(end)));
    }
    for end in ["release", "release1", "reset", "reset1"] {
        let rule = format!("{end}: the end of a context refunds it and what it held");
        trials.push(trial(rule, move || ends(end)));
        let rule = format!("{end}: an end that the driver refuses refunds nothing");
        trials.push(trial(rule, move || does_not_end(end)));
    }
    for end in ["release", "release1"] {
        let rule = format!("{end}: a release that is not the last refunds nothing");
        trials.push(trial(rule, move || not_the_last(end)));
    }
    trials
}

/// All that makes a context of its own.
const MADE: [&str; 8] = [
    "cuCtxCreate",
    "cuCtxCreate_v2",
    "cuCtxCreate_v3",
    "cuCtxCreate_v4",
    "cuGLCtxCreate",
    "cuGLCtxCreate_v2",
    "cuVDPAUCtxCreate",
    "cuVDPAUCtxCreate_v2",
];

pub(crate) const PRICE: u64 = 300 * MIB;

pub(crate) fn with_price(limit: u64) -> Result<Run> {
    Ok(with_limit(&limit.to_string())?.env("GPUCAP_CONTEXT_MEM", PRICE.to_string()))
}

pub(crate) fn started(run: &Run) -> Result<Actor> {
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    Ok(actor)
}

fn charged_once() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    for _ in 0..10 {
        actor.expect(&[("context 0", SUCCESS)])?;
        in_use(&run, PRICE)?;
    }
    let left = LIMIT - PRICE;
    actor.expect(&[
        (&format!("alloc a {}", left + 1), OUT_OF_MEMORY),
        (&format!("alloc a {left}"), SUCCESS),
    ])
}

fn does_not_fit() -> Result {
    let run = traced(with_price(PRICE - 1)?);
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", OUT_OF_MEMORY)])?;
    in_use(&run, 0)?;
    match calls(&run, "cuDevicePrimaryCtxRetain")? {
        0 => {}
        calls => return Err(Stop::fail(format!("{calls} calls of the driver"))),
    }
    let run = with_price(PRICE)?;
    started(&run)?.expect(&[("context 0", SUCCESS), ("alloc a 1", OUT_OF_MEMORY)])
}

fn driver_refuses() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", "cuDevicePrimaryCtxRetain:2@1"))?;
    actor.expect(&[("context 0", 2)])?;
    in_use(&run, 0)?;
    actor.expect(&[("context 0", SUCCESS)])?;
    in_use(&run, PRICE)
}

fn each_card() -> Result {
    let run = with_price(LIMIT)?.env("STUB_GPU_COUNT", "3");
    let mut actor = started(&run)?;
    for (made, card) in (1..).zip([2, 0, 1]) {
        actor.expect(&[(&format!("context {card}"), SUCCESS)])?;
        answers(&mut actor, &format!("nvml d {card}"), LIMIT, PRICE)?;
        in_use(&run, made * PRICE)?;
    }
    actor.expect(&[("release 0", SUCCESS)])?;
    answers(&mut actor, "nvml d 0", LIMIT, 0)?;
    answers(&mut actor, "nvml d 2", LIMIT, PRICE)
}

fn each_process() -> Result {
    let run = with_price(2 * PRICE)?;
    let (mut first, mut second, mut third) = (started(&run)?, started(&run)?, started(&run)?);
    first.expect(&[("context 0", SUCCESS)])?;
    second.expect(&[("context 0", SUCCESS), ("alloc a 1", OUT_OF_MEMORY)])?;
    third.expect(&[("context 0", OUT_OF_MEMORY)])?;
    first.kill()?;
    third.expect(&[("context 0", SUCCESS)])
}

fn room_for_another() -> Result {
    let run = with_price(PRICE)?;
    let (mut first, mut second) = (started(&run)?, started(&run)?);
    for _ in 0..10 {
        first.expect(&[("context 0", SUCCESS)])?;
        second.expect(&[("context 0", OUT_OF_MEMORY)])?;
        first.expect(&[("release 0", SUCCESS)])?;
        second.expect(&[("context 0", SUCCESS), ("reset 0", SUCCESS)])?;
    }
    in_use(&run, 0)
}

fn outlives() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    actor.expect(&[
        ("context 0", SUCCESS),
        ("alloc a 1000", SUCCESS),
        ("async b 2000", SUCCESS),
        ("create c 2097152 0", SUCCESS),
        ("reset 0", SUCCESS),
    ])?;
    in_use(&run, 2000 + 2 * MIB)?;
    actor.expect(&[("context 0", SUCCESS), ("free-async b", SUCCESS), ("drop c", SUCCESS)])?;
    actor.expect(&[("sync", SUCCESS)])?;
    in_use(&run, PRICE)
}

fn default_price() -> Result {
    // An empty variable is one that is not set.
    let run = with_limit(&LIMIT.to_string())?.env("GPUCAP_CONTEXT_MEM", "");
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", SUCCESS)])?;
    in_use(&run, 256 * MIB)
}

fn at_once() -> Result {
    contend("context")
}

/// Two threads do something 4,000 times at once, and the ledger is right after each time.
pub(crate) fn contend(what: &str) -> Result {
    contend_on(what, |run| run)
}

/// The same on a card that a test prepares.
pub(crate) fn contend_on(what: &str, prepare: impl FnOnce(Run) -> Run) -> Result {
    let run = prepare(with_price(LIMIT)?).program(&Program::new("contenders").build()?);
    let run = run.arg(what).arg("4000").arg(PRICE.to_string()).arg("4096");
    let output = run.output()?.success()?;
    if output.number("wrong")? != 0 || output.number("failed")? != 0 {
        return Err(Stop::fail(output));
    }
    in_use(&run, 0)
}

/// Takes memory that ends with the context.
fn hold(actor: &mut Actor) -> Result {
    actor.expect(&[
        ("context 0", SUCCESS),
        ("cuMemAlloc a 1000", SUCCESS),
        ("cuMemAlloc_v2 b 2000", SUCCESS),
        ("cuMemAllocPitch_v2 c 512", SUCCESS),
        ("cuArrayCreate_v2 e 3000", SUCCESS),
        ("cuArray3DCreate_v2 f 4000", SUCCESS),
    ])
}

const HELD: u64 = PRICE + 10_512;

fn ends(end: &str) -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    for _ in 0..3 {
        hold(&mut actor)?;
        in_use(&run, HELD)?;
        actor.expect(&[(&format!("{end} 0"), SUCCESS)])?;
        in_use(&run, 0)?;
    }
    Ok(())
}

fn does_not_end(end: &str) -> Result {
    let symbol = match end {
        "release" => "cuDevicePrimaryCtxRelease_v2",
        "release1" => "cuDevicePrimaryCtxRelease",
        "reset" => "cuDevicePrimaryCtxReset_v2",
        _ => "cuDevicePrimaryCtxReset",
    };
    let run = with_price(LIMIT)?;
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", format!("{symbol}:719@1")))?;
    hold(&mut actor)?;
    actor.expect(&[(&format!("{end} 0"), 719)])?;
    in_use(&run, HELD)?;
    actor.expect(&[(&format!("{end} 0"), SUCCESS)])?;
    in_use(&run, 0)
}

fn not_the_last(end: &str) -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    hold(&mut actor)?;
    actor.expect(&[("context 0", SUCCESS), (&format!("{end} 0"), SUCCESS)])?;
    in_use(&run, HELD)?;
    actor.expect(&[("alloc g 1", SUCCESS), (&format!("{end} 0"), SUCCESS)])?;
    in_use(&run, 0)
}

fn made(make: &str, end: &str) -> Result {
    let run = with_price(LIMIT)?;
    let fail = format!("{end}:719@1");
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", fail))?;
    // The one that was made last is current, and holds what is taken.
    actor.expect(&[
        (&format!("{make} a"), SUCCESS),
        (&format!("{make} b"), SUCCESS),
        ("alloc c 1000", SUCCESS),
        ("cuMemAllocManaged d 2000", SUCCESS),
        ("cuMipmappedArrayCreate e 3000", SUCCESS),
        ("async f 4000", SUCCESS),
        ("create g 2097152 0", SUCCESS),
    ])?;
    let outlive = 4000 + 2 * MIB;
    in_use(&run, 2 * PRICE + 6000 + outlive)?;
    actor.expect(&[(&format!("{make} h"), SUCCESS), (&format!("{end} h"), 719)])?;
    in_use(&run, 3 * PRICE + 6000 + outlive)?;
    actor.expect(&[
        (&format!("{end} h"), SUCCESS),
        ("cuCtxSetCurrent b", SUCCESS),
        (&format!("{end} b"), SUCCESS),
    ])?;
    in_use(&run, PRICE + outlive)?;
    actor.expect(&[("cuCtxSetCurrent a", SUCCESS), (&format!("{end} a"), SUCCESS)])?;
    in_use(&run, outlive)?;
    if actor.call(&format!("{end} a"))?.code == SUCCESS {
        return Err(Stop::fail("the stub ends one context twice"));
    }
    in_use(&run, outlive)
}

fn not_made(make: &str) -> Result {
    let run = traced(with_price(LIMIT)?);
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", format!("{make}:2@1")))?;
    actor.expect(&[(&format!("{make} a"), 2)])?;
    in_use(&run, 0)?;
    for slot in ['a', 'b', 'c'] {
        actor.expect(&[(&format!("{make} {slot}"), SUCCESS)])?;
    }
    in_use(&run, 3 * PRICE)?;
    let before = calls(&run, make)?;
    actor.expect(&[(&format!("{make} d"), OUT_OF_MEMORY), ("context 0", OUT_OF_MEMORY)])?;
    if calls(&run, make)? != before {
        return Err(Stop::fail("the driver was asked"));
    }
    in_use(&run, 3 * PRICE)
}

fn attached() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    actor.expect(&[
        ("cuCtxCreate_v2 a", SUCCESS),
        ("alloc b 1000", SUCCESS),
        ("cuCtxAttach a", SUCCESS),
        ("cuCtxAttach a", SUCCESS),
        ("cuCtxDetach a", SUCCESS),
        ("cuCtxDetach a", SUCCESS),
    ])?;
    in_use(&run, PRICE + 1000)?;
    actor.expect(&[("cuCtxDetach a", SUCCESS)])?;
    in_use(&run, 0)
}

fn attached_and_destroyed() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    actor.expect(&[
        ("cuCtxCreate_v2 a", SUCCESS),
        ("alloc b 1000", SUCCESS),
        ("cuCtxAttach a", SUCCESS),
        ("cuCtxDestroy_v2 a", SUCCESS),
    ])?;
    in_use(&run, 0)
}

fn primary_detached() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", SUCCESS), ("context 0", SUCCESS), ("alloc b 1000", SUCCESS)])?;
    actor.expect(&[("current a", SUCCESS), ("cuCtxDetach a", SUCCESS)])?;
    in_use(&run, PRICE + 1000)?;
    actor.expect(&[("release 0", SUCCESS)])?;
    in_use(&run, 0)
}

fn detach_refused() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", "cuCtxDetach:719@1"))?;
    actor.expect(&[
        ("cuCtxCreate_v2 a", SUCCESS),
        ("alloc b 1000", SUCCESS),
        ("cuCtxAttach a", SUCCESS),
        ("cuCtxDetach a", 719),
        ("cuCtxDetach a", SUCCESS),
    ])?;
    in_use(&run, PRICE + 1000)?;
    actor.expect(&[("cuCtxDetach a", SUCCESS)])?;
    in_use(&run, 0)
}

fn goes_on(end: &str) -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", format!("{end}:719@1,{end}:719@2")))?;
    actor.expect(&[
        ("cuCtxCreate_v2 a", SUCCESS),
        ("alloc b 1000", SUCCESS),
        ("cuMemAllocManaged c 2000", SUCCESS),
        ("cuMipmappedArrayCreate d 4000", SUCCESS),
        (&format!("limit z 2 {}", 8 * MIB + 8000), SUCCESS),
        (&format!("{end} a"), 719),
    ])?;
    in_use(&run, PRICE + 15_000)?;
    // All of it can still be given back on its own, and is then refunded once.
    actor.expect(&[
        ("free b", SUCCESS),
        ("cuMipmappedArrayDestroy d", SUCCESS),
        (&format!("limit z 2 {}", 8 * MIB), SUCCESS),
        (&format!("{end} a"), 719),
    ])?;
    in_use(&run, PRICE + 2000)?;
    actor.expect(&[(&format!("{end} a"), SUCCESS)])?;
    in_use(&run, 0)
}
