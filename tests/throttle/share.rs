//! What comes of it over time: the share of the card that programs get, alone and together.

use crate::{MS, under, within};
use gpucap_tests::{Output, Result, Run, Stop, trial};
use libtest_mimic::Trial;

/// Percent by which a busy machine may leave the card idle; nothing allows a program to take as much more.
const BELOW: f64 = 12.0;
const ABOVE: f64 = 3.0;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("kernels that are waited for one by one keep to the share", || {
            alone("30", "k_2ms", 1)
        }),
        trial("a deep queue keeps to the share", || alone("30", "k_100us", 200)),
        trial("kernels longer than the period keep to the share", || alone("30", "k_40ms", 1)),
        trial("a small share is kept", || alone("5", "k_1ms", 4)),
        trial("launches that wait for their kernels keep to the share", blocking),
        trial("two processes share one budget", together),
        trial("a process that begins after others inherits no debt but the card's", forked),
    ]
}

/// A program that launches for three seconds of the card's clock.
fn spender(percent: &str, kernel: &str, depth: u32) -> Result<Run> {
    Ok(under(percent, "share")?.arg(kernel).arg(depth.to_string()).arg("3000"))
}

/// The part of the card's clock, in percent, in which a program's kernels ran.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
fn share(output: &Output) -> Result<f64> {
    Ok(output.number("busy")? as f64 * 100.0 / output.number("clock")? as f64)
}

fn alone(percent: &str, kernel: &str, depth: u32) -> Result {
    let output = spender(percent, kernel, depth)?.output()?.success()?;
    within_share(&output, percent.parse().unwrap_or_default())
}

fn within_share(output: &Output, asked: f64) -> Result {
    let range = (asked - BELOW).max(asked / 2.0)..=asked + ABOVE;
    within(&output.to_string(), share(output)?, range)
}

fn blocking() -> Result {
    let run = spender("30", "k_2ms", 1)?.env("CUDA_LAUNCH_BLOCKING", "1");
    within_share(&run.output()?.success()?, 30.0)
}

fn together() -> Result {
    let run = spender("40", "k_1ms", 4)?;
    let other = run.clone();
    let thread = std::thread::spawn(move || other.output()?.success());
    let one = run.output()?.success()?;
    let two = thread.join().map_err(|_| Stop::fail("a thread ended badly"))??;
    let sum = share(&one)? + share(&two)?;
    within(&format!("{one}{two}"), sum, 40.0 - BELOW..=40.0 + ABOVE)?;
    within("the book, ms", run.busy_ns()? / MS, 600..=1600)
}

fn forked() -> Result {
    let output = under("50", "forks")?.output()?.success()?;
    within("parent", output.number("parent")?, 0..=0)?;
    within("child", output.number("child")?, 3..=3)?; // CUDA_ERROR_NOT_INITIALIZED
    within("wait", output.number("wait")?, 0..=0)
}
