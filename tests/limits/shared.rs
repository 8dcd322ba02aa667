//! Several processes under one limit: what they hold together is what counts, to the byte.

use crate::ways::{WAYS, Way};
use crate::{LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, answers, begin, in_use, with_limit};
use gpucap_tests::{Actor, Result, trial};
use libtest_mimic::Trial;

const PROCESSES: u64 = 4;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("processes may hold the limit in any parts", in_any_parts),
        trial("a process with a smaller limit of its own stops there", own_limit),
        trial("a process with a larger limit of its own sees what others hold", larger_limit),
    ];
    for way in WAYS {
        trials.push(trial(format!("{}: four processes share one limit", way.symbol), move || {
            shared(way)
        }));
    }
    trials
}

fn crowd(limit: u64) -> Result<(gpucap_tests::Run, Vec<Actor>)> {
    let run = with_limit(&limit.to_string())?;
    let actors = (0..PROCESSES).map(|_| begin(&run)).collect::<Result<_>>()?;
    Ok((run, actors))
}

fn shared(way: Way) -> Result {
    let (run, mut crowd) = crowd(LIMIT)?;
    for (held, actor) in (1..).zip(&mut crowd) {
        actor.expect(&[(&way.take('a', LIMIT / PROCESSES), SUCCESS)])?;
        in_use(&run, held * LIMIT / PROCESSES)?;
    }
    for actor in &mut crowd {
        actor.expect(&[(&way.take('b', 2 * MIB), OUT_OF_MEMORY)])?;
        answers(actor, "info d", LIMIT, 0)?;
    }
    // What one gives back, another can have.
    crowd[2].expect(&[(&way.give('a'), SUCCESS), ("sync", SUCCESS)])?;
    crowd[0].expect(&[(&way.take('b', LIMIT / PROCESSES), SUCCESS)])?;
    crowd[2].expect(&[(&way.take('a', 2 * MIB), OUT_OF_MEMORY)])?;
    crowd[0].expect(&[(&way.give('b'), SUCCESS)])?;
    for index in [0, 1, 3] {
        crowd[index].expect(&[(&way.give('a'), SUCCESS), ("sync", SUCCESS)])?;
    }
    in_use(&run, 0)
}

fn in_any_parts() -> Result {
    const SMALL: u64 = 1_000_003; // a prime: no two sums are alike by accident
    let (run, mut crowd) = crowd(SMALL)?;
    for (actor, bytes) in crowd.iter_mut().zip([1, 499_979, 500_000, 23]) {
        actor.expect(&[(&format!("alloc a {bytes}"), SUCCESS)])?;
    }
    in_use(&run, SMALL)?;
    for actor in &mut crowd {
        actor.expect(&[("alloc b 1", OUT_OF_MEMORY)])?;
    }
    crowd[0].expect(&[("free a", SUCCESS)])?;
    crowd[3].expect(&[
        ("alloc b 2", OUT_OF_MEMORY),
        ("alloc b 1", SUCCESS),
        ("alloc c 1", OUT_OF_MEMORY),
    ])
}

fn own_limit() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut large = begin(&run)?;
    let mut small = begin(&run.clone().env("GPU_MEM_LIMIT", (LIMIT / 4).to_string()))?;
    answers(&mut small, "info d", LIMIT / 4, LIMIT / 4)?;
    small.expect(&[
        (&format!("alloc a {}", LIMIT / 4 + 1), OUT_OF_MEMORY),
        ("alloc a 1000", SUCCESS),
    ])?;
    large.expect(&[(&format!("alloc a {}", LIMIT / 2), SUCCESS)])?;
    // Others hold more than its own limit: nothing is left, and nothing wraps around.
    answers(&mut small, "info d", LIMIT / 4, 0)?;
    answers(&mut small, "nvml d 0", LIMIT / 4, LIMIT / 4)?;
    small.expect(&[("alloc b 1", OUT_OF_MEMORY), ("free a", SUCCESS)])?;
    answers(&mut large, "info d", LIMIT, LIMIT / 2)
}

fn larger_limit() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut small = begin(&run)?;
    small.expect(&[(&format!("alloc a {LIMIT}"), SUCCESS)])?;
    let mut large = begin(&run.clone().env("GPU_MEM_LIMIT", (2 * LIMIT).to_string()))?;
    answers(&mut large, "info d", 2 * LIMIT, LIMIT)?;
    large.expect(&[
        (&format!("alloc a {}", LIMIT + 1), OUT_OF_MEMORY),
        (&format!("alloc a {LIMIT}"), SUCCESS),
    ])?;
    // Together they hold what the larger limit allows; the smaller one has nothing left.
    answers(&mut small, "info d", LIMIT, 0)?;
    small.expect(&[("alloc b 1", OUT_OF_MEMORY), ("free a", SUCCESS), ("alloc b 1", OUT_OF_MEMORY)])
}
