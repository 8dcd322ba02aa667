//! What comes of it over time: the share of the card that programs get, alone and together.

use crate::{BEGIN, LAUNCH, MS, WAIT, about, lasts, obey, under, within};
use gpucap_tests::{Output, Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::time::Instant;

/// Percent of the card that no program may take beyond its share.
pub(crate) const ABOVE: f64 = 3.0;
/// The part of its share that it has even on a machine so busy that it hardly runs. How much it has on an idle one is
/// what `gpucap-bench share` and `accuracy` measure; no test can.
pub(crate) const PROGRESS: f64 = 0.1;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("kernels that are waited for one by one keep to the share", || {
            alone("30", "k_2ms", 1)
        }),
        trial("a deep queue keeps to the share", || alone("30", "k_100us", 200)),
        trial("kernels longer than the period keep to the share", || alone("30", "k_40ms", 1)),
        trial("a small share is kept", || alone("5", "k_1ms", 4)),
        trial("streams side by side keep to the share", || {
            shaped("30", &["k_1ms", "8", "3000", "4"])
        }),
        trial(
            "launches of which a few take longer, waited for one by one, keep to the share",
            || shaped("30", &["spin_ns", "1", "8000"]),
        ),
        trial(
            "launches of which a few take longer, waited for by twenty, keep to the share",
            || shaped("30", &["spin_ns", "20", "8000"]),
        ),
        trial("launches of functions that were never measured keep to the share", || {
            shaped("30", &["fresh_100ms", "1", "6000"])
        }),
        trial("graphs keep to the share", || shaped("30", &["k_1ms", "2", "3000", "1", "8"])),
        trial("threads with a stream each keep to the share", || crew("own")),
        trial("threads that share a stream keep to the share", || crew("one")),
        trial("threads that make and destroy streams keep to the share", || crew("churn")),
        trial("what has run is paid for when its context ends", context_ended),
        trial("a process that only waits for its copy back has paid when it ends", short_lived),
        trial("launches that wait for their kernels keep to the share", blocking),
        trial("a program of collectives alone keeps to the share once it owes much", || {
            shaped("5", &["ncclAll_2ms", "4", "4000"])
        }),
        trial("a collective does not wait, and the next launch pays for it", collective),
        trial("two processes share one budget", together),
        trial("a child of a process that has launched is not held up", forked),
        trial(
            "a child that parts before there is a driver pays from the same budget",
            forked_before,
        ),
    ]
}

/// A program that launches for three seconds of the card's clock.
fn spender(percent: &str, kernel: &str, depth: u32) -> Result<Run> {
    Ok(spending(under(percent, "share")?, &[kernel, &depth.to_string(), "3000"]))
}

/// Gives the program its words.
pub(crate) fn spending(run: Run, words: &[&str]) -> Run {
    words.iter().fold(run, Run::arg)
}

/// The part of the card's clock, in percent, in which a program's kernels ran.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
pub(crate) fn share(output: &Output) -> Result<f64> {
    Ok(output.number("busy")? as f64 * 100.0 / output.number("clock")? as f64)
}

/// Fails unless a program gets on, and takes no more than its share.
pub(crate) fn held_to(run: &Run, asked: f64) -> Result {
    let output = run.output()?.success()?;
    lasts(&output.to_string(), share(&output)?, asked * PROGRESS..=asked + ABOVE)
}

fn shaped(percent: &str, words: &[&str]) -> Result {
    held_to(&spending(under(percent, "share")?, words), percent.parse().unwrap_or_default())
}

fn alone(percent: &str, kernel: &str, depth: u32) -> Result {
    held_to(&spender(percent, kernel, depth)?, percent.parse().unwrap_or_default())
}

fn blocking() -> Result {
    held_to(&spender("30", "k_2ms", 1)?.env("CUDA_LAUNCH_BLOCKING", "1"), 30.0)
}

/// Its program counts from the beginning, so it has the burst of a full bucket and what the limit must learn besides.
fn crew(mode: &str) -> Result {
    held_to(&spending(under("30", "crew")?, &[mode, "2000"]), 30.0)
}

/// What many a small program does: one kernel, a copy back, the end.
fn short_lived() -> Result {
    let run = under("50", "caller")?;
    for copy in [
        "call cuMemcpyDtoH_v2 %1 a 64",
        "call cuMemcpyDtoH_v2_ptds %1 a 64",
        "call cuMemcpy %1 a 64",
    ] {
        let before = run.busy_ns().unwrap_or(0);
        let script = [BEGIN.as_slice(), &["call cuMemAlloc_v2 &a 64", LAUNCH, copy]].concat();
        obey(&run, &script)?;
        lasts(copy, run.busy_ns()? - before, about(10 * MS))?;
    }
    Ok(())
}

/// Who never waits but asks until it is done, or only knows how long it takes, ends its context all the same.
fn context_ended() -> Result {
    let own = [
        "call cuCtxCreate_v2 &g 0 0",
        "call cuModuleLoadData &b 'image",
        "call cuModuleGetFunction &c b 'k_10ms",
    ];
    for (begin, end) in [
        ([].as_slice(), "call cuDevicePrimaryCtxRelease_v2 0"),
        (&[], "call cuDevicePrimaryCtxReset_v2 0"),
        (&own, "call cuCtxDestroy_v2 g"),
    ] {
        let run = under("50", "caller")?;
        let passed = "call stubAdvance 20000000";
        obey(&run, &[BEGIN.as_slice(), begin, &[LAUNCH, passed, end]].concat())?;
        lasts(end, run.busy_ns()?, about(10 * MS))?;
    }
    Ok(())
}

/// A tenth of the card's time: 200 ms are paid for in two seconds, of which the bucket holds 4 ms.
fn collective() -> Result {
    let run = under("10", "caller")?;
    let mut caller = run.start()?;
    let name = "call cuModuleGetFunction &d b 'ncclAll_20ms";
    let launch = "call cuLaunchKernel d 1 1 1 32 1 1 0 0 0 0";
    for command in BEGIN.iter().chain(&[name, launch, WAIT, launch, launch, WAIT]) {
        caller.order(command)?;
        caller.line()?;
    }
    let paid_from = Instant::now();
    let waited = run.waited_ns()?;
    within("the collectives waited", waited, 0..=0)?;
    caller.order(LAUNCH)?;
    caller.line()?;
    within("the launch waited, ms", paid_from.elapsed().as_millis(), 400..=20_000)
}

fn together() -> Result {
    let run = spender("40", "k_1ms", 4)?;
    let other = run.clone();
    let thread = std::thread::spawn(move || other.output()?.success());
    let one = run.output()?.success()?;
    let two = thread.join().map_err(|_| Stop::fail("a thread ended badly"))??;
    let sum = share(&one)? + share(&two)?;
    lasts(&format!("{one}{two}"), sum, 40.0 * PROGRESS..=40.0 + ABOVE)?;
    // The programs leave out what was before they began to count, and the book has that too.
    let counted = one.number("busy")? + two.number("busy")?;
    lasts("the book", run.busy_ns()?, counted / 10 * 7..=counted * 4)
}

fn forked() -> Result {
    let output = under("50", "forks")?.output()?.success()?;
    within("parent", output.number("parent")?, 0..=0)?;
    within("child", output.number("child")?, 3..=3)?; // CUDA_ERROR_NOT_INITIALIZED
    within("wait", output.number("wait")?, 0..=0)
}

fn forked_before() -> Result {
    let run = under("50", "forks")?.arg("before");
    let output = run.output()?.success()?;
    for who in ["parent", "child", "wait"] {
        within(who, output.number(who)?, 0..=0)?;
    }
    lasts("busy time", run.busy_ns()?, about(80 * MS))
}
