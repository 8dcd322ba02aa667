//! The cap, on the stub: exact at its edge, given back on every way out, and shown to whoever asks.
//!
//! Contexts are free of charge here unless a test says otherwise, so that every byte is the test's own.
//!
//! [`ways`] takes each way of getting memory through the same rules; [`reports`] is what a program is told;
//! [`values`] is what the variables may say; [`file`] is the hook's word.

mod file;
mod reports;
mod values;
mod ways;

use gpucap_tests::{Actor, Answer, Driver, Result, Run, Stop, World, main as harness};
use std::process::ExitCode;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The cap of most tests.
const CAP: u64 = GIB;
/// The stub's card, if a test does not ask for another.
const CARD: u64 = 80 * GIB;

const SUCCESS: u64 = 0;
const OUT_OF_MEMORY: u64 = 2;
const NOT_READY: u64 = 802;

fn main() -> ExitCode {
    let mut trials = ways::trials();
    trials.extend(reports::trials());
    trials.extend(values::trials());
    trials.extend(file::trials());
    harness(trials)
}

/// An actor under the cap `limit`, not yet started.
fn capped(limit: &str) -> Result<Run> {
    Ok(uncapped()?.env("GPU_MEM_LIMIT", limit))
}

/// An actor behind the shim, without a limit.
fn uncapped() -> Result<Run> {
    let run = World::capped(Driver::Stub)?.actor()?;
    Ok(run.env("GPUCAP_CONTEXT_MEM", "0").env("STUB_GPU_CONTEXT_MEM", "0"))
}

/// Starts the actor and gives it a context on device 0.
fn begin(run: &Run) -> Result<Actor> {
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    Ok(actor)
}

/// Fails unless the answer is a success with these two numbers.
fn told(actor: &mut Actor, command: &str, value: u64, extra: u64) -> Result {
    let answer = actor.tell(command)?;
    let expected = Answer { code: SUCCESS, value, extra };
    if answer == expected {
        Ok(())
    } else {
        Err(Stop::fail(format!("{command}: {answer:?}, not {expected:?}: {}", actor.end()?)))
    }
}
