//! The limit over the lives of processes: shared, not inherited, given back by the dead.
//!
//! [`births`] is how a process comes to be; [`deaths`] is how it can end or be replaced; [`crowds`] is many at once;
//! [`ledger_files`] is what the ledger file may be; [`surroundings`] is where a process may find itself; [`shortage`] is a place
//! without room for the ledger; [`attendance`] is how a death becomes known; [`own`] is what stays
//! the program's; [`late`] is a library that is not there from the start;
//! [`sequences`] is any order of calls, [`failures`] any of them failing, [`sanitized`] some under sanitizers. A card is asked the first three suites as
//! well; the others need to know how the driver does what it does.

mod attendance;
mod births;
mod crowds;
mod deaths;
mod failures;
mod late;
mod ledger_files;
mod own;
mod sanitized;
mod sequences;
mod shortage;
mod surroundings;

use gpucap_tests::{Actor, Driver, Result, Run, World, main as harness};
use std::process::ExitCode;

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 1 << 30;

const SUCCESS: u64 = 0;
const INVALID_VALUE: u64 = 1;
const OUT_OF_MEMORY: u64 = 2;
const NOT_READY: u64 = 802;

/// Why processes that end within calls of the driver are not tried under emulation: the others would wait for ever.
const NO_ROBUST_LOCK: &str =
    "the emulator releases no lock of the dead, and the stub's card has one";

fn main() -> ExitCode {
    let suites = [
        births::trials,
        deaths::trials,
        crowds::trials,
        ledger_files::trials,
        surroundings::trials,
        shortage::trials,
        attendance::trials,
        own::trials,
        late::trials,
        sequences::trials,
        failures::trials,
        sanitized::trials,
    ];
    let asked = if Driver::available() == Driver::Card { 3 } else { suites.len() };
    harness(suites.into_iter().take(asked).flat_map(|trials| trials()).collect())
}

/// An actor under the limit, with contexts free of charge.
fn limited() -> Result<Run> {
    Ok(free_contexts(World::with_shim(Driver::available())?.actor()?))
}

fn free_contexts(run: Run) -> Run {
    run.env("GPU_MEM_LIMIT", LIMIT.to_string())
        .env("GPUCAP_CONTEXT_MEM", "0")
        .env("STUB_GPU_CONTEXT_MEM", "0")
}

/// Starts the actor and gives it a context.
fn begin(run: &Run) -> Result<Actor> {
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    Ok(actor)
}

/// The command that takes this many MiB into slot `a`.
fn take(mib: u64) -> String {
    format!("alloc a {}", mib * MIB)
}

/// Fails unless a new process can take the whole limit, and not a byte more.
fn all_is_back(run: &Run) -> Result {
    let mut actor = begin(run)?;
    actor.expect(&[
        (&take(LIMIT / MIB), SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
        ("free a", SUCCESS),
    ])
}
