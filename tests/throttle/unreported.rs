//! A process on the GPU that publishes no report: a program without gpucap.
//!
//! Only NVML lists it, and is queried every five seconds while a launch waits. The trace of the driver, which both
//! processes write, has a line for each call.

use crate::peers::pages;
use crate::share::{held_to, share, spending};
use crate::{BEGIN, MS, WAIT, about, lasts, under, within};
use gpucap_tests::{Actor, Driver, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "an unreported process that comes during a wait is noticed in that wait",
            comes_in_a_wait,
        ),
        trial("processes of its own that do nothing are no unreported ones", crowd),
        trial("processes that have executed another program are no unreported ones", executed),
        trial("processes of other containers that do nothing are no unreported ones", foreign),
        trial(
            "a process that asks about a device has no part in it before it has a context",
            asked,
        ),
        trial("a process without gpucap that does nothing changes nothing", idle),
        trial("beside a process without gpucap that works, only estimates count", busy),
        trial("a process with few descriptors is not held up by the question", few_descriptors),
    ]
}

/// Where a page says how many processes use its first device.
const USERS: usize = 1600;

/// The driver does not say how busy the card is, as of a MIG instance: then there are no other processes than NVML lists.
fn counted(run: Run) -> Run {
    run.env("STUB_GPU_FAIL", "nvmlDeviceGetSamples:3")
}

/// Beside a process of unknown work, launches that differ by their data are not charged for all of what they took, since it
/// may be that of the other one. A page has places for 64.
fn crowd() -> Result {
    held_to(&counted(spending(under("30", "crowd")?, &["1", "12000"])), 30.0)?;
    held_to(&counted(spending(under("30", "crowd")?, &["70", "12000"])), 30.0)
}

/// The driver ends a context whose process executes another program, and lists it no longer.
fn executed() -> Result {
    held_to(&counted(spending(under("30", "crowd")?, &["3", "12000", "sleep"])), 30.0)
}

/// They have contexts, and never launch anything. Those that have ended count until another one of their container looks, and
/// hide no program without gpucap here: there is none.
fn foreign() -> Result {
    let run = under("30", "crowd")?;
    let mut idle = Vec::new();
    for ledger in ["other", "other", "third"] {
        let other = under("30", "caller")?.env("STUB_GPU_DIR", run.directory().join("card"));
        let mut process = other.env("GPUCAP_LEDGER", run.directory().join(ledger)).start()?;
        obeys(&mut process, &BEGIN)?;
        idle.push(process);
    }
    held_to(&counted(spending(run, &["0", "12000"])), 30.0)
}

/// NVML does not list it.
fn asked() -> Result {
    let run = under("30", "caller")?;
    let mut process = run.start()?;
    obeys(&mut process, &["call cuInit 0", "call cuDeviceTotalMem &d 0"])?;
    let page = pages(&run)?.join("ledger");
    let users = || -> Result<u8> {
        fs::read(&page)?.get(USERS).copied().ok_or_else(|| Stop::fail("a short page"))
    };
    within("users before", users()?, 0..=0)?;
    obeys(&mut process, &["call cuDevicePrimaryCtxRetain &a 0"])?;
    within("users", users()?, 1..=1)
}

/// NVML lists one that is no container's, and says that the card does nothing but what is reported.
fn idle() -> Result {
    let run = under("30", "crowd")?;
    let mut process = without_gpucap(&run, "caller")?.start()?;
    obeys(&mut process, &BEGIN)?;
    held_to(&spending(run, &["0", "12000"]), 30.0)
}

/// What a launch took may be what the other one did: only estimates count, and no program gets less for that.
fn busy() -> Result {
    let run = under("30", "crowd")?;
    let _working = spending(without_gpucap(&run, "share")?, &["k_5ms", "4", "60000"]).start()?;
    let output = spending(run, &["0", "24000"]).output()?.success()?;
    let share = share(&output)?;
    lasts(&output.to_string(), share, 24.0..=53.0)
}

/// A program without gpucap on the card of another one.
fn without_gpucap(run: &Run, source: &'static str) -> Result<Run> {
    let program = Program::new(source).flags(&["-lcuda", "-pthread"]).build()?;
    let other = World::bare(Driver::Stub).run(&program)?;
    Ok(other.env("STUB_GPU_DIR", run.directory().join("card")))
}

/// The shim loads NVML for the question if the process has not, which takes a descriptor or two.
fn few_descriptors() -> Result {
    for left in 0..=4_u64 {
        let run = under("50", "few_files")?.arg(left.to_string());
        let program = run.output()?.success()?;
        within("failures", program.number("failed")?, 0..=0)?;
        lasts("busy time", run.busy_ns()?, about(80 * MS))?;
        // Less than any wait for work of which nothing is seen.
        within(&format!("the wait with {left} left"), run.waited_ns()?, 1..=2_000 * MS)?;
    }
    Ok(())
}

/// At one percent, what a kernel of 80 ms costs comes in within eight seconds: the launch after it waits for that.
const KERNEL: &str = "call cuModuleGetFunction &c b 'k_80ms";
const LAUNCH: &str = "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0";
/// How often NVML is asked.
const EVERY_NS: u64 = 5_000 * MS;
const QUESTION: &str = "nvmlDeviceGetComputeRunningProcesses";

fn comes_in_a_wait() -> Result {
    let run = under("1", "caller")?;
    let trace = run.directory().join("trace");
    let run = run.env("STUB_GPU_TRACE", &trace);
    let unreported = without_gpucap(&run, "caller")?.env("STUB_GPU_TRACE", &trace);

    // A launch that waits for a little is the first one in which NVML is asked.
    let mut own = run.start()?;
    obeys(&mut own, &BEGIN)?;
    obeys(&mut own, &[crate::LAUNCH, crate::LAUNCH, crate::LAUNCH, WAIT, KERNEL])?;
    obeys(&mut own, &[LAUNCH, WAIT])?;
    let waited = run.waited_ns()?;
    let asked = |text: &str, pid: u32| text.lines().any(|line| line == format!("{pid} {QUESTION}"));
    within("asked", asked(&fs::read_to_string(&trace)?, own.pid()), true..=true)?;

    own.order(LAUNCH)?;
    let mut unreported = unreported.start()?;
    obeys(&mut unreported, &BEGIN)?;
    let before = fs::read_to_string(&trace)?;
    own.line()?;
    // The unreported process had its context from here on at the latest, and the launch went on waiting for long enough.
    within("the wait", run.waited_ns()? - waited, EVERY_NS + 1_000 * MS..=u64::MAX)?;
    let after = fs::read_to_string(&trace)?;
    let since = after.strip_prefix(&before).ok_or_else(|| Stop::fail("the trace has changed"))?;
    within("asked again", asked(since, own.pid()), true..=true)
}

fn obeys(actor: &mut Actor, commands: &[&str]) -> Result {
    for command in commands {
        actor.order(command)?;
        let line = actor.line()?;
        if !line.starts_with("0 ") && line != "0" {
            return Err(Stop::fail(format!("{command}: {line}")));
        }
    }
    Ok(())
}
