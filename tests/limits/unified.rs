//! A card that uses the machine's memory, as GB10 does: NVML has no figures of it. The limit counts what is asked for as
//! the card's memory, and is shown where it is a number of bytes.

use crate::{
    CARD, GIB, MIB, OUT_OF_MEMORY, SUCCESS, answers, begin, in_use, with_limit, without_limit,
};
use gpucap_tests::{Actor, Result, Run, trial};
use libtest_mimic::Trial;

/// `NVML_ERROR_NOT_SUPPORTED`
const NOT_SUPPORTED: u64 = 3;
/// `NVML_ERROR_NOT_FOUND`: the list lacks the process.
const NOT_FOUND: u64 = 6;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("shared memory: NVML has no figures of the card", no_figures),
        trial("shared memory: a limit in bytes holds and is shown", bytes),
        trial(
            "shared memory: a percentage is one of what CUDA says, and NVML shows none",
            percentage,
        ),
        trial("shared memory: a limit above the machine's memory is not shown by NVML", above),
        trial("shared memory: the list of processes is the container's", processes),
    ]
}

fn on_shared(run: Run) -> Run {
    run.env("STUB_GPU_SHARED_MEMORY", "on")
}

/// Both forms of NVML's question about memory.
fn no_answer(actor: &mut Actor) -> Result {
    actor.expect(&[("nvml d 0", NOT_SUPPORTED), ("nvml2 d 0", NOT_SUPPORTED)])
}

fn no_figures() -> Result {
    let mut actor = begin(&on_shared(without_limit()?))?;
    no_answer(&mut actor)?;
    answers(&mut actor, "info d", CARD, CARD)
}

fn bytes() -> Result {
    let run = on_shared(with_limit("1Gi")?);
    let mut actor = begin(&run)?;
    actor.expect(&[
        (&format!("alloc a {}", GIB + 1), OUT_OF_MEMORY),
        (&format!("managed b {}", 100 * MIB), SUCCESS),
    ])?;
    in_use(&run, 100 * MIB)?;
    for report in ["nvml d 0", "nvml2 d 0"] {
        answers(&mut actor, report, GIB, 100 * MIB)?;
    }
    answers(&mut actor, "info d", GIB, GIB - 100 * MIB)?;
    answers(&mut actor, "total d 0", GIB, 0)
}

fn percentage() -> Result {
    let mut actor = begin(&on_shared(with_limit("25%")?))?;
    answers(&mut actor, "total d 0", CARD / 4, 0)?;
    actor.expect(&[
        (&format!("alloc a {}", CARD / 4 + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", CARD / 4), SUCCESS),
    ])?;
    answers(&mut actor, "info d", CARD / 4, 0)?;
    no_answer(&mut actor)
}

fn above() -> Result {
    let mut actor = begin(&on_shared(with_limit("1000Ti")?))?;
    answers(&mut actor, "total d 0", CARD, 0)?;
    no_answer(&mut actor)
}

fn processes() -> Result {
    for limit in ["1Gi", "25%"] {
        let run = on_shared(with_limit(limit)?);
        let mut outside = begin(&run.clone().budget("outside"))?;
        let mut actor = begin(&run)?;
        actor.expect(&[(&format!("alloc a {}", 100 * MIB), SUCCESS)])?;
        let own = actor.pid();
        answers(&mut actor, &format!("process d {own}"), 100 * MIB, 0)?;
        let other = outside.pid();
        actor.expect(&[(&format!("process d {other}"), NOT_FOUND)])?;
        outside.expect(&[(&format!("process d {own}"), NOT_FOUND)])?;
    }
    Ok(())
}
