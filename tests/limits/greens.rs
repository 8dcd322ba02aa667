//! Green contexts: no price of their own; each keeps the primary context of its card alive, and what is made in one
//! lives in that.

use crate::contexts::{PRICE, started, with_price};
use crate::{LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, calls, in_use, traced};
use gpucap_tests::{Actor, Result, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("green contexts pay for the primary context once", pay_once),
        trial("a green context that does not fit never reaches the driver", does_not_fit),
        trial("a green context that the driver refuses costs nothing", driver_refuses),
        trial("a green context whose end the driver refuses goes on", does_not_end),
        trial("what was made in a green context ends with the primary one", lives_in_primary),
        trial("the last green context takes along what was made in it", last_takes_along),
        trial("a context that gets a green one's handle takes nothing of it along", handle_again),
        trial("a reset refunds what was made in green contexts", reset),
        trial("green contexts of two cards keep each its own", two_cards),
    ]
}

fn pay_once() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    for slot in ['a', 'b', 'c'] {
        actor.expect(&[(&format!("cuGreenCtxCreate {slot}"), SUCCESS)])?;
        in_use(&run, PRICE)?;
    }
    actor.expect(&[("context 0", SUCCESS), ("cuGreenCtxDestroy b", SUCCESS)])?;
    actor.expect(&[("cuGreenCtxDestroy a", SUCCESS), ("release 0", SUCCESS)])?;
    in_use(&run, PRICE)?;
    actor.expect(&[("cuGreenCtxDestroy c", SUCCESS)])?;
    in_use(&run, 0)?;
    if actor.call("cuGreenCtxDestroy c")?.code == SUCCESS {
        return Err(Stop::fail("the stub ends one green context twice"));
    }
    in_use(&run, 0)
}

fn does_not_fit() -> Result {
    let run = traced(with_price(PRICE - 1)?);
    started(&run)?.expect(&[("cuGreenCtxCreate a", OUT_OF_MEMORY)])?;
    in_use(&run, 0)?;
    match calls(&run, "cuGreenCtxCreate")? {
        0 => Ok(()),
        calls => Err(Stop::fail(format!("{calls} calls of the driver"))),
    }
}

fn driver_refuses() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", "cuGreenCtxCreate:2@1"))?;
    actor.expect(&[("cuGreenCtxCreate a", 2)])?;
    in_use(&run, 0)?;
    actor.expect(&[("cuGreenCtxCreate a", SUCCESS)])?;
    in_use(&run, PRICE)
}

/// A green context in slot `a`, its context in `b` and current, with 1000 bytes.
fn used(actor: &mut Actor) -> Result {
    actor.expect(&[
        ("cuGreenCtxCreate a", SUCCESS),
        ("as-context b a", SUCCESS),
        ("cuCtxSetCurrent b", SUCCESS),
        ("alloc c 1000", SUCCESS),
    ])
}

fn does_not_end() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run.clone().env("STUB_GPU_FAIL", "cuGreenCtxDestroy:719@1"))?;
    used(&mut actor)?;
    let heap = format!("limit z 2 {}", 8 * MIB + 300);
    actor.expect(&[(&heap, SUCCESS), ("cuGreenCtxDestroy a", 719)])?;
    in_use(&run, PRICE + 1300)?;
    // It is still its own.
    actor.expect(&[(&heap, SUCCESS)])?;
    in_use(&run, PRICE + 1300)?;
    actor.expect(&[(&format!("limit z 2 {}", 8 * MIB), SUCCESS)])?;
    in_use(&run, PRICE + 1000)?;
    actor.expect(&[("alloc d 500", SUCCESS), ("cuGreenCtxDestroy a", SUCCESS)])?;
    in_use(&run, 0)
}

fn lives_in_primary() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    actor.expect(&[("context 0", SUCCESS), ("alloc e 2000", SUCCESS)])?;
    used(&mut actor)?;
    actor.expect(&[("cuArrayCreate_v2 d 500", SUCCESS), ("cuGreenCtxDestroy a", SUCCESS)])?;
    in_use(&run, PRICE + 3500)?;
    // It is still the program's to free.
    actor.expect(&[("context 0", SUCCESS), ("free c", SUCCESS), ("release 0", SUCCESS)])?;
    in_use(&run, PRICE + 2500)?;
    actor.expect(&[("release 0", SUCCESS)])?;
    in_use(&run, 0)
}

fn last_takes_along() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    for _ in 0..3 {
        used(&mut actor)?;
        actor.expect(&[(&format!("limit z 2 {}", 8 * MIB + 500), SUCCESS)])?;
        in_use(&run, PRICE + 1500)?;
        actor.expect(&[("cuGreenCtxDestroy a", SUCCESS)])?;
        in_use(&run, 0)?;
    }
    Ok(())
}

fn handle_again() -> Result {
    let run = with_price(LIMIT)?;
    // Also where the primary context is kept alive by green contexts alone, and its handle never given out.
    for keep in ["context 0", "cuGreenCtxCreate e"] {
        let mut actor = started(&run)?;
        actor.expect(&[(keep, SUCCESS)])?;
        used(&mut actor)?;
        let heap = format!("limit z 2 {}", 8 * MIB + 300);
        actor.expect(&[(&heap, SUCCESS)])?;
        let green = actor.call("cuGreenCtxDestroy a")?;
        let own = actor.call("cuCtxCreate_v2 d")?;
        if own.value != green.value {
            return Err(Stop::fail("the stub gives out another handle"));
        }
        in_use(&run, 2 * PRICE + 1300)?;
        // The heap of the green one is the primary's, and this one has its own.
        actor.expect(&[(&heap, SUCCESS)])?;
        in_use(&run, 2 * PRICE + 1600)?;
        actor.expect(&[("cuCtxDestroy_v2 d", SUCCESS)])?;
        in_use(&run, PRICE + 1300)?;
        let end = if keep == "context 0" { "release 0" } else { "cuGreenCtxDestroy e" };
        actor.expect(&[(end, SUCCESS)])?;
        in_use(&run, 0)?;
    }
    Ok(())
}

fn reset() -> Result {
    let run = with_price(LIMIT)?;
    let mut actor = started(&run)?;
    used(&mut actor)?;
    in_use(&run, PRICE + 1000)?;
    actor.expect(&[("reset 0", SUCCESS)])?;
    in_use(&run, 0)
}

fn two_cards() -> Result {
    let run = with_price(LIMIT)?.env("STUB_GPU_COUNT", "2");
    let mut actor = started(&run)?;
    used(&mut actor)?;
    actor.expect(&[
        ("cuGreenCtxCreate d 1", SUCCESS),
        ("as-context e d", SUCCESS),
        ("cuCtxSetCurrent e", SUCCESS),
        ("alloc f 500", SUCCESS),
    ])?;
    in_use(&run, 2 * PRICE + 1500)?;
    actor.expect(&[("cuGreenCtxDestroy a", SUCCESS)])?;
    in_use(&run, PRICE + 500)?;
    actor.expect(&[("cuGreenCtxDestroy d", SUCCESS)])?;
    in_use(&run, 0)
}
