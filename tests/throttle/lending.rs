//! What others leave of a GPU is lent, and comes back.
//!
//! Kernels of 40 ms need hardly any of the host, so a busy machine changes little of these sums. How much is lent and
//! how soon it comes back is what `gpucap-bench lending` measures.

use crate::share::{share, spending};
use crate::{lasts, under, within};
use gpucap_tests::{Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::thread;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what no other container uses is lent", || alone(&[BURST], 20.0..=100.0)),
        trial("without the policy nothing is lent", || alone(&[], 1.0..=13.0)),
        trial("no more is lent than up to the most", || {
            alone(&[BURST, ("GPU_CORE_MAX_PCT", "30")], 13.0..=33.0)
        }),
        trial("what is borrowed is counted", || counted(&[BURST], 0.6..=0.9)),
        trial("what is borrowed up to the most is counted", || {
            counted(&[BURST, ("GPU_CORE_MAX_PCT", "30")], 0.4..=0.67)
        }),
        trial("a fixed share borrows nothing", || counted(&[], 0.0..=0.0)),
        trial("all that low priority uses is borrowed", || {
            counted(&[("GPU_CORE_PRIORITY", "low")], 0.9..=1.0)
        }),
        trial("low priority runs in what others leave", || {
            alone(&[("GPU_CORE_PRIORITY", "low")], 20.0..=100.0)
        }),
        trial("one that borrows leaves another its share", beside),
    ]
}

const BURST: (&str, &str) = ("GPU_CORE_POLICY", "burst");

/// A program at 10 % with work for all of the GPU.
fn program(variables: &[(&str, &str)]) -> Result<Run> {
    let run = spending(under("10", "share")?, &["k_40ms", "2", "3000"]);
    Ok(variables.iter().fold(run, |run, (name, value)| run.env(name, value)))
}

fn alone(variables: &[(&str, &str)], expected: std::ops::RangeInclusive<f64>) -> Result {
    let output = program(variables)?.output()?.success()?;
    lasts(&output.to_string(), share(&output)?, expected)
}

/// Of what a container of 10 % uses alone nine tenths are borrowed, up to 30 % two thirds.
fn counted(variables: &[(&str, &str)], expected: std::ops::RangeInclusive<f64>) -> Result {
    let run = program(variables)?;
    run.output()?.success()?;
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    let part = run.borrowed_ns()? as f64 / run.busy_ns()?.max(1) as f64;
    within("the part that was borrowed", part, expected)
}

/// It is lent the pauses of one at 60 %, which is always the first to be served.
fn beside() -> Result {
    let run = program(&[BURST])?;
    let other = run.clone().budget("other").env("GPU_CORE_PCT", "60").env(BURST.0, "fixed");
    let both = [run, other].map(|run| thread::spawn(move || run.output()?.success()));
    let mut shares = Vec::new();
    for thread in both {
        let output = thread.join().map_err(|_| Stop::fail("a thread ended badly"))??;
        shares.push(share(&output)?);
    }
    lasts("what it borrows, of the other's share", shares[0] / shares[1], 0.05..=0.9)
}
