//! The limit of time, on the stub: whose functions it needs, what each launch pays, and what is left alone.
//!
//! Durations are those of the stub's kernels, which are exact on its card; what the host does between them takes as long
//! as it takes on a busy machine. So shares are counted in completed work over the card's own clock, with wide bounds
//! where a late host could lower them, and close ones where nothing could raise them.
//!
//! [`redirect`] is about who is met at all, [`charged`] about each form of a launch, [`failures`] about a driver that
//! refuses, [`capture`] about what is recorded, [`share`] about what comes of it over time, [`deaths`] about who is killed
//! in the mean time, [`devices`] about several of them, [`ends`] about streams that end silently, [`fences`] about what takes
//! time in a stream and is none of the launches before it, [`limits`] about who says what it is, [`sequences`] about all of
//! it in random orders, [`short`] about launches that wait for no other thread, [`implicit`] about streams that wait for one
//! another, [`silent`] about processes that make no call, [`unknown`] about functions that were never measured,
//! [`unreported`] about processes without a report, [`tools`] about tools that the driver calls back.

mod capture;
mod charged;
mod deaths;
mod devices;
mod ends;
mod failures;
mod fences;
mod implicit;
mod lending;
mod limits;
mod peers;
mod redirect;
mod sequences;
mod share;
mod short;
mod silent;
mod tools;
mod unknown;
mod unreported;

use gpucap_tests::{Driver, Program, Result, Run, Stop, World, main as harness};
use std::process::ExitCode;

const MS: u64 = 1_000_000;

/// Commands for `tools/caller.c` that give it a context on device 0 (in slot `h`) and a kernel of 10 ms (`c`).
const BEGIN: [&str; 5] = [
    "call cuInit 0",
    "call cuDevicePrimaryCtxRetain &h 0",
    "call cuCtxSetCurrent h",
    "call cuModuleLoadData &b 'image",
    "call cuModuleGetFunction &c b 'k_10ms",
];
const LAUNCH: &str = "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0";
const WAIT: &str = "call cuCtxSynchronize";

fn main() -> ExitCode {
    let suites = [
        redirect::trials,
        charged::trials,
        deaths::trials,
        devices::trials,
        ends::trials,
        failures::trials,
        fences::trials,
        capture::trials,
        share::trials,
        sequences::trials,
        limits::trials,
        lending::trials,
        peers::trials,
        short::trials,
        implicit::trials,
        silent::trials,
        unknown::trials,
        unreported::trials,
        tools::trials,
    ];
    harness(suites.into_iter().flat_map(|trials| trials()).collect())
}

/// A program, linked with the driver, on the stub's card under a share of its time.
fn under(percent: &str, source: &'static str) -> Result<Run> {
    let program = Program::new(source).flags(&["-lcuda", "-pthread"]).build()?;
    Ok(World::with_shim(Driver::Stub)?.run(&program)?.env("GPU_CORE_PCT", percent))
}

/// Has a caller obey: the driver's code for each command, and what it shows besides.
fn obey(run: &Run, script: &[&str]) -> Result<Vec<(u32, String)>> {
    let mut caller = run.start()?;
    let mut answers = Vec::new();
    for command in script {
        caller.order(command)?;
        let line = caller.line()?;
        let (code, rest) = line.split_once(' ').unwrap_or((&line, ""));
        // `poke` and `put` call no host function.
        let code = if command.starts_with('p') { "0" } else { code };
        let code = code.parse().map_err(|_| Stop::fail(format!("{command}: {line}")))?;
        answers.push((code, rest.to_owned()));
    }
    let output = caller.end()?;
    if output.code() == Some(0) { Ok(answers) } else { Err(Stop::fail(output)) }
}

/// What this length may be measured as: a host that is late between two events adds to it, and little takes from it.
fn about(ns: u64) -> std::ops::RangeInclusive<u64> {
    ns / 10 * 7..=ns * 2
}

/// Fails unless the value lies in the range.
fn within<T: PartialOrd + std::fmt::Debug>(
    what: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result {
    outside(what, &value, &range).map_or(Ok(()), |text| Err(Stop::fail(text)))
}

/// The same for an amount of time, to which a machine that stands still adds.
fn lasts<T: PartialOrd + std::fmt::Debug>(
    what: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result {
    outside(what, &value, &range).map_or(Ok(()), |text| Err(Stop::late(text)))
}

fn outside<T: PartialOrd + std::fmt::Debug>(
    what: &str,
    value: &T,
    range: &std::ops::RangeInclusive<T>,
) -> Option<String> {
    (!range.contains(value)).then(|| format!("{what}: {value:?} is not in {range:?}"))
}
