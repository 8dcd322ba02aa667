//! The short way of a launch: what threads remember, when that is void, and that nothing is lost on it.

use crate::{BEGIN, LAUNCH, MS, WAIT, about, lasts, obey, under, within};
use gpucap_tests::{Result, Run, Stop, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what threads that come and go launch in one stream is paid for", relay),
        trial("a stream whose time is not shared is looked up once", looked_up_once),
        trial("a stream pays, though its handle was of a card whose time is not shared", was_free),
        trial("a kernel's name is asked for once, and again when code was unloaded", names),
        trial("what lies between two events is looked for sixteen times, then no more", spacing),
    ]
}

const STREAM: &str = "call cuStreamCreate &d 1";
const IN_STREAM: &str = "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0";

/// What each of 80 threads takes out of what it has prepaid is found, though none of them says when it ends.
fn relay() -> Result {
    let run = under("90", "relay")?.arg("10").arg("8").arg("50");
    let output = run.output()?.success()?;
    within("launches", run.launches()?, 4000..=4000)?;
    let busy = output.number("busy")?;
    within("the card's own time", busy, 200 * MS..=200 * MS)?;
    lasts("busy time", run.busy_ns()?, about(busy))
}

/// Has a caller obey, and fails if a call does; what the driver was asked in that time.
fn asked(run: &Run, script: &[&str], symbol: &str) -> Result<usize> {
    let trace = run.directory().join("trace");
    let answers = obey(&run.clone().env("STUB_GPU_TRACE", &trace), script)?;
    if let Some(failed) = answers.iter().position(|(code, _)| *code != 0) {
        return Err(Stop::fail(format!("{}: {:?}", script[failed], answers[failed])));
    }
    let trace = std::fs::read_to_string(&trace)?;
    Ok(trace.lines().filter(|line| line.split(' ').nth(1) == Some(symbol)).count())
}

fn looked_up_once() -> Result {
    let mut script = [BEGIN.as_slice(), &[STREAM]].concat();
    script.extend([IN_STREAM; 5]);
    let run = || Ok::<_, Stop>(under("1=50", "caller")?.env("STUB_GPU_COUNT", "2"));
    within("questions", asked(&run()?, &script, "cuStreamGetCtx")?, 1..=1)?;
    script.extend(["call cuStreamCreate &e 1", "call cuStreamDestroy_v2 e"]);
    script.extend([IN_STREAM; 5]);
    within("with one that was never used", asked(&run()?, &script, "cuStreamGetCtx")?, 1..=1)
}

/// Only the second card's time is shared.
fn was_free() -> Result {
    let run = under("1=50", "caller")?.env("STUB_GPU_COUNT", "2");
    let mut script = BEGIN.to_vec();
    script.extend([STREAM, IN_STREAM, WAIT, "call cuStreamDestroy_v2 d"]);
    script.extend(["call cuDevicePrimaryCtxRetain &g 1", "call cuCtxSetCurrent g"]);
    script.extend(["call cuModuleLoadData &b 'image", "call cuModuleGetFunction &c b 'k_10ms"]);
    script.extend([STREAM, IN_STREAM, IN_STREAM, IN_STREAM, WAIT]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    lasts("busy time", run.busy_ns()?, about(30 * MS))
}

fn names() -> Result {
    let run = || under("90", "caller");
    let mut script = BEGIN.to_vec();
    script.extend([LAUNCH; 5]);
    within("questions", asked(&run()?, &script, "cuFuncGetName")?, 1..=1)?;
    script.extend(["call cuModuleLoadData &d 'image", "call cuModuleUnload d", LAUNCH, LAUNCH]);
    within("after an end", asked(&run()?, &script, "cuFuncGetName")?, 2..=2)
}

/// A third event behind each measured launch, as long as it is not known what lies between two.
fn spacing() -> Result {
    const LAUNCHES: usize = 40;
    let mut script = BEGIN.to_vec();
    (0..LAUNCHES).for_each(|_| script.extend([LAUNCH, WAIT]));
    let events = asked(&under("50", "caller")?, &script, "cuEventRecord")?;
    within("events", events, 2 * LAUNCHES + 16..=2 * LAUNCHES + 32)
}
