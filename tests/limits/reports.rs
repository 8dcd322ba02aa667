//! What a program is told: the slice as if it were the card.

use crate::{CAP, CARD, GIB, MIB, OUT_OF_MEMORY, SUCCESS, begin, capped, told, uncapped};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("driver and NVML show the cap and what is held of it", slice_is_shown),
        trial("a cap above the card shows the card", cap_above_card),
        trial("free is never more than the card has", card_is_fuller),
        trial("a context is charged at its price", context_price),
        trial("a context that does not fit is refused", context_refused),
        trial("each card has a cap of its own", two_cards),
        trial("without limits the card is shown", card_is_shown),
        trial("the first refusal says so, and only the first", refusal_is_told),
    ]
}

fn slice_is_shown() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?)?;
    actor.expect(&[(&format!("alloc a {}", 100 * MIB), SUCCESS)])?;
    told(&mut actor, "info d", CAP, CAP - 100 * MIB)?;
    told(&mut actor, "nvml d 0", CAP, 100 * MIB)?;
    told(&mut actor, "total d 0", CAP, 0)
}

fn cap_above_card() -> Result {
    let mut actor = begin(&capped("1000Gi")?)?;
    told(&mut actor, "total d 0", CARD, 0)?;
    told(&mut actor, "info d", CARD, CARD)?;
    told(&mut actor, "nvml d 0", CARD, 0)
}

fn card_is_fuller() -> Result {
    // Somebody outside the container has most of the card.
    let run = capped(&(10 * GIB).to_string())?;
    let mut outside = run
        .clone()
        .env("GPUCAP_LEDGER", run.directory().join("other"))
        .env("GPU_MEM_LIMIT", "79Gi");
    outside = outside.env("GPUCAP_CONTEXT_MEM", "0");
    let mut outside = begin(&outside)?;
    outside.expect(&[(&format!("alloc a {}", 79 * GIB), SUCCESS)])?;
    let mut actor = begin(&run)?;
    told(&mut actor, "info d", 10 * GIB, GIB)
}

fn context_price() -> Result {
    let mut actor = begin(&capped(&CAP.to_string())?.env("GPUCAP_CONTEXT_MEM", "300Mi"))?;
    told(&mut actor, "nvml d 0", CAP, 300 * MIB)?;
    actor.expect(&[
        ("context 0", SUCCESS), // retained again: the same context
        (&format!("alloc a {}", CAP - 300 * MIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", CAP - 300 * MIB), SUCCESS),
        ("reset 0", SUCCESS),
    ])?;
    told(&mut actor, "nvml d 0", CAP, 0)
}

fn context_refused() -> Result {
    let mut actor = capped("200Mi")?.env("GPUCAP_CONTEXT_MEM", "300Mi").start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", OUT_OF_MEMORY)])?;
    told(&mut actor, "nvml d 0", 200 * MIB, 0)
}

fn two_cards() -> Result {
    // The index is NVML's, also where CUDA counts the other way round.
    for (order, cuda) in [("pci", [0, 1]), ("reverse", [1, 0])] {
        let run = capped("0=1Gi,1=2Gi")?.env("STUB_GPU_COUNT", "2").env("STUB_GPU_ORDER", order);
        let mut actor = run.start()?;
        actor.expect(&[("init", SUCCESS)])?;
        told(&mut actor, "nvml d 0", GIB, 0)?;
        told(&mut actor, "nvml d 1", 2 * GIB, 0)?;
        for (nvml, ordinal) in cuda.into_iter().enumerate() {
            let cap = GIB * (nvml as u64 + 1);
            told(&mut actor, &format!("total d {ordinal}"), cap, 0)?;
            actor.expect(&[
                (&format!("context {ordinal}"), SUCCESS),
                (&format!("alloc a {}", cap + 1), OUT_OF_MEMORY),
                (&format!("alloc a {cap}"), SUCCESS),
            ])?;
            told(&mut actor, &format!("nvml d {nvml}"), cap, cap)?;
        }
    }
    Ok(())
}

fn card_is_shown() -> Result {
    let mut actor = begin(&uncapped()?)?;
    told(&mut actor, "info d", CARD, CARD)?;
    told(&mut actor, "total d 0", CARD, 0)?;
    told(&mut actor, "nvml d 0", CARD, 0)
}

fn refusal_is_told() -> Result {
    let mut actor = begin(&capped("1Gi")?)?;
    let too_much = format!("alloc a {}", 2 * GIB);
    for _ in 0..100 {
        actor.expect(&[(&too_much, OUT_OF_MEMORY)])?;
    }
    let output = actor.end()?;
    let lines = output.stderr.lines().count();
    if lines == 1 && output.stderr.contains("1GiB") {
        Ok(())
    } else {
        Err(Stop::fail(format!("{lines} lines: {output}")))
    }
}
