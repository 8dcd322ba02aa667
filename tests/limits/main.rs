//! The limit, on the stub: exact at its edge, given back on every way out, and shown to each query. A card is asked the
//! first two suites as well.
//!
//! Contexts are free of charge here unless a test says otherwise, so that every byte is the test's own.
//!
//! [`ways`] takes each way of getting memory through the same rules, [`shared`] does so with several processes;
//! [`physical`], [`sparse`], [`contexts`], [`greens`], [`prices`], [`code`] and [`growth`] are what lives by
//! references, [`imports`] what has two names or two processes, [`pools`] and [`graphs`] what is kept beyond its use,
//! [`instants`] what the driver holds between calls and within them, [`within`] what other threads change in them;
//! [`misuse`] is what a program should not do; [`reports`] is what it is told, [`unified`] of a card without memory of its
//! own, [`busy`] of time; [`values`] is what the
//! variables may say and [`devices`] of which card; [`file`] is the hook's word.

mod busy;
mod code;
mod contexts;
mod devices;
mod file;
mod graphs;
mod greens;
mod growth;
mod imports;
mod instants;
mod live;
mod misuse;
mod physical;
mod pools;
mod prices;
mod reports;
mod shared;
mod sparse;
mod unified;
mod values;
mod ways;
mod within;

use gpucap_tests::{Actor, Answer, Driver, Result, Run, Stop, World, main as harness};
use std::fs;
use std::process::ExitCode;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The limit of most tests.
const LIMIT: u64 = GIB;
/// The stub's card, if a test does not ask for another.
const CARD: u64 = 80 * GIB;

const SUCCESS: u64 = 0;
const INVALID_VALUE: u64 = 1;
const OUT_OF_MEMORY: u64 = 2;
const INVALID_HANDLE: u64 = 400;
const NOT_INITIALIZED: u64 = 3;
const NOT_READY: u64 = 802;

fn main() -> ExitCode {
    let suites = [
        ways::trials,
        shared::trials,
        physical::trials,
        imports::trials,
        sparse::trials,
        pools::trials,
        instants::trials,
        within::trials,
        contexts::trials,
        greens::trials,
        prices::trials,
        code::trials,
        graphs::trials,
        growth::trials,
        misuse::trials,
        reports::trials,
        unified::trials,
        values::trials,
        devices::trials,
        file::trials,
        live::trials,
        busy::trials,
    ];
    let asked = if Driver::available() == Driver::Card { 2 } else { suites.len() };
    harness(suites.into_iter().take(asked).flat_map(|trials| trials()).collect())
}

/// An actor under the limit `limit`, not yet started.
fn with_limit(limit: &str) -> Result<Run> {
    Ok(without_limit()?.env("GPU_MEM_LIMIT", limit))
}

/// An actor behind the shim, without a limit.
fn without_limit() -> Result<Run> {
    let run = World::with_shim(Driver::available())?.actor()?;
    Ok(run.env("GPUCAP_CONTEXT_MEM", "0").env("STUB_GPU_CONTEXT_MEM", "0"))
}

/// Starts the actor and gives it a context on device 0.
fn begin(run: &Run) -> Result<Actor> {
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    Ok(actor)
}

/// Fails unless the answer is a success with these two numbers.
fn answers(actor: &mut Actor, command: &str, value: u64, extra: u64) -> Result {
    let answer = actor.call(command)?;
    let expected = Answer { code: SUCCESS, value, extra };
    if answer == expected {
        Ok(())
    } else {
        Err(Stop::fail(format!("{command}: {answer:?}, not {expected:?}: {}", actor.end()?)))
    }
}

/// Fails unless the ledger of the run says that this much is in use of all devices together.
fn in_use(run: &Run, bytes: u64) -> Result {
    match run.bytes_in_use()? {
        found if found == bytes => Ok(()),
        found => Err(Stop::fail(format!("booked: {found}, not {bytes}"))),
    }
}

/// How often the driver was called by this name in runs with [`traced`].
fn calls(run: &Run, symbol: &str) -> Result<usize> {
    let trace = fs::read_to_string(run.directory().join("trace"))?;
    Ok(trace.lines().filter(|line| line.split(' ').nth(1) == Some(symbol)).count())
}

/// Has the driver write down its calls.
fn traced(run: Run) -> Run {
    let trace = run.directory().join("trace");
    run.env("STUB_GPU_TRACE", trace)
}
