//! Instructions of the paths without a clock: the same number on every run, so a change by one is
//! a change. Only a launch under a share reads the clock: its number differs by a few between runs, if there are
//! enough of them that a measured one more or less makes no difference.
//!
//! The client runs under valgrind with two different numbers of turns; the difference of what was
//! counted, divided by that of the turns, is a turn, without all that comes before and after.

use crate::files::Files;
use crate::measure::Sample;
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result, Stop};
use crate::world::World;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

const TURNS: u32 = 20_000;

/// Counts all of it.
///
/// # Errors
/// If a client fails; skips if there is no valgrind.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    for (what, before, command) in [
        ("cuLaunchKernel in a stream, share not used up", "open", "stream-launch"),
        ("cuMemAlloc_v2 + cuMemFree_v2", "open", "pairs"),
        ("cuMemAlloc_v2 + cuMemFree_v2, a random one of 10000", "open\nlive 10000", "random"),
        ("cuMemAllocAsync + cuMemFreeAsync", "open", "async"),
        ("cuGetProcAddress of a name that we intercept", "open", "proc"),
        ("dlsym of another name, driver not loaded", "facts", "other"),
        ("dlsym of another name, driver loaded", "open", "other"),
    ] {
        let bare = turn(files, World::Bare, before, command)?;
        let world = if command == "stream-launch" { World::Timed } else { World::Limited };
        let shim = turn(files, world, before, command)?;
        report.check(&format!("{what}: the shim was there"), shim != bare);
        let (bare, shim) = (Sample::exact(bare), Sample::exact(shim));
        report.row(&Row::difference(what, Unit::Instructions, &bare, &shim));
        if effort == Effort::Quick {
            break;
        }
    }
    Ok(())
}

/// Instructions of one turn.
fn turn(files: &Files, world: World, before: &str, command: &str) -> Result<f64> {
    let few = count(files, world, &format!("{before}\n{command} {TURNS}\n"))?;
    let many = count(files, world, &format!("{before}\n{command} {}\n", 2 * TURNS))?;
    Ok((many - few) / f64::from(TURNS))
}

/// Instructions of a client with this input.
fn count(files: &Files, world: World, input: &str) -> Result<f64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&files.client);
    world.dress(&mut valgrind, files, "counts");
    valgrind.env("LD_LIBRARY_PATH", &files.driver);
    valgrind.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = valgrind.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Stop::Skip("no valgrind".into()),
        _ => Stop::fail(format!("valgrind: {error}")),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected
        .and_then(|number| number.trim().parse().ok())
        .filter(|_| output.status.success())
        .ok_or_else(|| Stop::fail(format!("valgrind: {}: {text}", output.status)))
}
