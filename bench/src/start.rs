//! What a process pays for the shim before it does anything: at its start, and at its first CUDA
//! call.

use crate::files::Files;
use crate::measure::{Sample, in_turns};
use crate::report::{Report, Row, Unit};
use crate::run::{Effort, Result, Stop};
use crate::world::World;
use std::process::Command;
use std::time::Instant;

/// The most that the shim may add to a process that uses no GPU, in nanoseconds.
const START: f64 = 200_000.0;
/// The most that the shim may add up to and including the first allocation.
const FIRST_CALL: f64 = 1_000_000.0;

/// Measures all of it.
///
/// # Errors
/// If a process fails.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    idle(files, effort, report)?;
    untouched(files, report)?;
    system_calls(files, report)?;
    first_call(files, effort, report)
}

/// From before the spawn to after the wait, for a program that ends at once.
fn idle(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let mut worlds = [World::Bare, World::Empty, World::Unlimited, World::Limited];
    let samples = in_turns(&mut worlds, effort.pick(5, 2500), |world| {
        let mut command = Command::new(&files.idle);
        world.dress(&mut command, files, "idle");
        let faults = page_faults()?;
        let start = Instant::now();
        let status = command.spawn()?.wait()?;
        let ns = nanoseconds(start);
        let faults = page_faults()? - faults;
        if status.success() { Ok([ns, faults]) } else { Err(Stop::fail(format!("idle: {status}"))) }
    })?;
    let [[bare, bare_faults], [empty, _], [unlimited, _], [limited, faults]] = &samples;
    let row = |what: &str, sample: &Sample| Row::difference(what, Unit::Ns, bare, sample);
    report.row(&row("process that uses no GPU, empty library preloaded", empty));
    report.row(&row("process that uses no GPU, shim without limits", unlimited).at_most(START));
    report.row(&row("process that uses no GPU, shim with limits", limited).at_most(START));
    let what = "page faults of a process that uses no GPU, shim with limits";
    report.row(&Row::difference(what, Unit::Count, bare_faults, faults));
    report.check("a process that uses no GPU makes no ledger", !files.ledger("idle").exists());
    Ok(())
}

/// What the process has of ours while it uses no GPU.
fn untouched(files: &Files, report: &mut Report) -> Result {
    let mut clients = [World::Empty.client(files, "idle")?, World::Limited.client(files, "idle")?];
    let samples = in_turns(&mut clients, 1, |client| {
        let facts = client.ask("facts")?;
        Ok(["descriptors", "threads", "shim"].map(|name| facts.get(name)))
    })?;
    let [[bare_files, bare_threads, bare_shim], [files, threads, shim]] = &samples;
    let row = |what: &str, bare, shim| Row::difference(what, Unit::Count, bare, shim).at_most(0.0);
    report.row(&row("open files of a process that uses no GPU", bare_files, files));
    report.row(&row("threads of a process that uses no GPU", bare_threads, threads));
    report.check("only one world has the shim", bare_shim.median() < shim.median());
    Ok(())
}

/// What the kernel is asked for until a program that ends at once has ended: a number without a
/// clock. The greater part is the loader's, for each library that another one needs.
fn system_calls(files: &Files, report: &mut Report) -> Result {
    let worlds = [World::Bare, World::Empty, World::Unlimited, World::Limited];
    let mut counted = Vec::new();
    for world in worlds {
        let mut strace = Command::new("strace");
        let mut command = Command::new(&files.idle);
        world.dress(&mut command, files, "idle");
        // Set in the traced program alone.
        for (name, value) in command.get_envs() {
            let (name, value) =
                (name.to_string_lossy(), value.map(|value| value.to_string_lossy()));
            let set = value.map_or_else(|| name.to_string(), |value| format!("{name}={value}"));
            strace.args(["-E", &set]);
        }
        let Ok(output) = strace.arg(&files.idle).output() else {
            report.skip("system calls: no strace");
            return Ok(());
        };
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || !text.contains("exit_group(") {
            report.skip("system calls: strace may not trace here");
            return Ok(());
        }
        let calls = |name: &str| text.lines().filter(|line| line.contains(name)).count();
        counted.push([calls("("), calls("openat(")]);
    }
    #[expect(clippy::cast_precision_loss, reason = "a few dozen")]
    let sample = |count: usize| Sample::exact(count as f64);
    for (index, what) in ["system calls", "calls of open"].into_iter().enumerate() {
        for (world, shim) in ["empty library", "shim without limits", "shim with limits"]
            .into_iter()
            .zip(counted.iter().skip(1))
        {
            let (bare, shim) = (sample(counted[0][index]), sample(shim[index]));
            let what = format!("{what} of a process that uses no GPU, {world}");
            report.row(&Row::difference(what, Unit::Count, &bare, &shim));
        }
    }
    Ok(())
}

/// New processes, each up to its first allocation.
fn first_call(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let mut worlds = [(World::Bare, false), (World::Limited, false), (World::Limited, true)];
    let mut number = 0;
    let samples = in_turns(&mut worlds, effort.pick(3, 400), |(world, fresh)| {
        number += 1;
        let ledger = if *fresh { format!("first-{number}") } else { "first".into() };
        let mut client = world.client(files, &ledger)?;
        let answer = client.ask("open")?;
        drop(client);
        if *fresh {
            std::fs::remove_file(files.ledger(&ledger))?;
        }
        Ok(["all", "load", "init", "context", "alloc"].map(|name| answer.get(name)))
    })?;
    let [bare, joining, creating] = &samples;
    let all = |what: &str, shim: &[Sample; 5]| {
        Row::difference(what, Unit::Ns, &bare[0], &shim[0]).at_most(FIRST_CALL)
    };
    report.row(&all("load, cuInit, context and first allocation, new ledger", creating));
    report.row(&all("load, cuInit, context and first allocation, ledger there", joining));
    for (part, what) in ["  of it: load and look-ups", "  cuInit", "  context", "  allocation"]
        .into_iter()
        .enumerate()
        .map(|(index, what)| (index + 1, what))
    {
        report.row(&Row::difference(what, Unit::Ns, &bare[part], &joining[part]));
    }
    Ok(())
}

/// The page faults so far of all children that have ended.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn page_faults() -> Result<f64> {
    // SAFETY: the structure is a frame of this function, and zeros are valid in it.
    let mut usage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a place for what is asked for.
    match unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } {
        0 => Ok(usage.ru_minflt as f64),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9
}
