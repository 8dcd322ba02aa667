//! Every way of getting memory, in random orders: the limit holds at each instant of them.
//!
//! `processes/sequence.c` makes the calls and compares what the driver has handed out with the limit and with the
//! ledger after each one; the driver keeps the most that it ever had out, so that instants within a call count too.
//! A seed says the order. Longer: `GPUCAP_TEST_SEEDS`, `GPUCAP_TEST_CALLS` (of each process), `GPUCAP_TEST_KILLS`.

use crate::{LIMIT, NO_ROBUST_LOCK, all_is_back, begin};
use gpucap_tests::{Actor, Driver, Machine, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use std::env;
use std::time::Duration;

/// Processes of one ledger.
const CROWD: usize = 3;
/// What a context costs, and is charged.
const PRICE: &str = "4MiB";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("no sequence of calls takes more than the limit, or leaves a charge", alone),
        trial("no sequences of several processes take more than the limit", together),
        trial("pools that grow in steps take no more than the limit", in_steps),
        trial("processes killed within any call take nothing along", killed),
    ]
}

/// A number that a longer run sets.
fn number(name: &str, usual: u64) -> Result<u64> {
    match env::var(name) {
        Ok(text) => text.parse().map_err(|_| Stop::fail(format!("{name}={text} is no number"))),
        Err(_) => Ok(usual),
    }
}

/// Prepares sequences on one card; each is a seed and a number of calls.
fn sequences() -> Result<impl Fn(u64, u64) -> Run> {
    let run = World::with_shim(Driver::available())?.run(&Program::new("sequence").build()?)?;
    let run = run
        .time_limit(Duration::from_secs(600))
        .env("GPU_MEM_LIMIT", LIMIT.to_string())
        .env("GPUCAP_CONTEXT_MEM", PRICE)
        .env("STUB_GPU_CONTEXT_MEM", PRICE)
        // Work goes on only while a client waits for it, so that an order is the same each time.
        .env("STUB_GPU_CLOCK", "virtual");
    Ok(move |seed: u64, calls: u64| {
        let (ledger, peers) = (run.directory().join("ledger"), run.directory());
        let words = [seed, calls, LIMIT].map(|word| word.to_string());
        words.iter().fold(run.clone(), |run, word| run.arg(word)).arg(ledger).arg(peers)
    })
}

fn judge(seed: u64, output: Output) -> Result {
    let output = output.success()?;
    let right = output.number("peak")? <= LIMIT
        && output.number("short")? == 0
        && output.number("left")? == output.number("held")?
        && output.number("done")? > 0;
    if right { Ok(()) } else { Err(Stop::fail(format!("seed {seed}: {output}"))) }
}

fn alone() -> Result {
    let sequence = sequences()?;
    let calls = number("GPUCAP_TEST_CALLS", 400)?;
    for seed in 0..number("GPUCAP_TEST_SEEDS", 200)? {
        judge(seed, sequence(seed, calls).output()?)?;
    }
    Ok(())
}

fn together() -> Result {
    let sequence = sequences()?;
    let calls = number("GPUCAP_TEST_CALLS", 400)?;
    let end = 1_000_000 + number("GPUCAP_TEST_SEEDS", 120)?;
    for first in (1_000_000..end).step_by(CROWD) {
        let seeds = first..end.min(first + CROWD as u64);
        let start = |seed: u64| Ok((seed, sequence(seed, calls).start()?));
        let crowd: Vec<(u64, Actor)> = seeds.map(start).collect::<Result<_>>()?;
        crowd.into_iter().try_for_each(|(seed, mut actor)| judge(seed, actor.end()?))?;
    }
    Ok(())
}

fn in_steps() -> Result {
    let sequence = sequences()?;
    let calls = number("GPUCAP_TEST_CALLS", 400)?;
    for seed in 0..number("GPUCAP_TEST_SEEDS", 100)? {
        let run = sequence(2_000_000 + seed, calls).env("STUB_GPU_POOL_GRANULARITY", "2MiB");
        judge(seed, run.output()?)?;
    }
    Ok(())
}

fn killed() -> Result {
    Machine::not_emulated(NO_ROBUST_LOCK)?;
    let sequence = sequences()?;
    let mut seed = 3_000_000;
    let mut next = || {
        seed += 1;
        Ok::<_, Stop>((seed, sequence(seed, 0).start()?))
    };
    let mut crowd = (0..CROWD).map(|_| next()).collect::<Result<Vec<_>>>()?;
    for (death, place) in (0..number("GPUCAP_TEST_KILLS", 60)?).zip((0..CROWD).cycle()) {
        let (seed, actor) = &mut crowd[place];
        // Each dies after another amount of work; how far it gets beyond that line is its own affair.
        for _ in 0..1 + (*seed * 7 + death) % 23 {
            actor.line()?;
        }
        actor.kill()?;
        crowd[place] = next()?;
    }
    crowd.iter_mut().try_for_each(|(_, actor)| actor.kill())?;
    let run = sequence(0, 0).program(&Program::new("actor").build()?);
    let run = run.env("GPUCAP_CONTEXT_MEM", "0").env("STUB_GPU_CONTEXT_MEM", "0");
    let truth = begin(&run)?.call("truth z")?;
    if truth.extra > LIMIT {
        return Err(Stop::fail(format!("the card had {} out", truth.extra)));
    }
    all_is_back(&run)
}
