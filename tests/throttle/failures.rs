//! A driver that refuses: its answers reach the application unchanged, and what did not run is not paid for.

use crate::{BEGIN, LAUNCH, MS, WAIT, about, lasts, obey, under, within};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;

/// What the meter asks of the driver by itself.
const OWN_QUESTIONS: [&str; 10] = [
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPushCurrent_v2",
    "cuEventCreate",
    "cuEventElapsedTime_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuStreamCreateWithPriority",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("a launch that fails answers with the driver's code", a_failed_launch),
        trial("launches that fail pay nothing and are not held up for it", all_fail),
    ];
    for question in OWN_QUESTIONS {
        let name = format!("a driver that refuses {question} to the meter runs what it is given");
        trials.push(trial(name, move || refused(question)));
    }
    trials
}

fn a_failed_launch() -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_FAIL", "cuLaunchKernel:719@2");
    let mut script = BEGIN.to_vec();
    script.extend([LAUNCH, LAUNCH, LAUNCH, "call cuLaunchKernel 12345 1 1 1 1 1 1 0 0 0 0", WAIT]);
    let answers = obey(&run, &script)?;
    let codes: Vec<u32> = answers.iter().skip(BEGIN.len()).map(|(code, _)| *code).collect();
    if codes != [0, 719, 0, 400, 0] {
        return Err(Stop::fail(format!("{codes:?}")));
    }
    lasts("busy time", run.busy_ns()?, about(20 * MS))
}

/// At 1 %, what a hundred unknown kernels reserve would take minutes to come in.
fn all_fail() -> Result {
    let run = under("1", "caller")?.env("STUB_GPU_FAIL", "cuLaunchKernel:719");
    let mut script = BEGIN.to_vec();
    script.extend([LAUNCH; 100]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code == 719).count(), 100..=100)?;
    within("busy time", run.busy_ns()?, 0..=0)
}

/// The application's own calls succeed, in order, and the work is done.
fn refused(question: &str) -> Result {
    let run = under("50", "caller")?.env("STUB_GPU_FAIL", format!("{question}:999"));
    let mut script = BEGIN.to_vec();
    script.extend([LAUNCH; 8]);
    script.extend([WAIT, "call stubBusy 0"]);
    let mut answers = obey(&run, &script)?;
    let busy = answers.pop().map_or(0, |(busy, _)| u64::from(busy));
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    within("the card's own time", busy, 80 * MS..=80 * MS)
}
