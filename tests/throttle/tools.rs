//! Tools that the driver calls back: CUPTI, NVBit, compute-sanitizer. They run inside a call that the shim makes of the
//! driver while it holds a lock, on the same thread, and use the driver themselves while other threads wait for that lock.
//!
//! The stub calls one back in a question about an event, which is asked under the meter's lock. Another thread then ends
//! a stream, which takes the lanes' lock first and waits for the meter's: a thread that waits for a lane or for the lanes under
//! the meter's lock waits for ever, and the harness ends him.

use crate::share::{ABOVE, PROGRESS, share, spending};
use crate::{lasts, under, within};
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;

/// What the tool does in the mean time. Nothing: then it is the order of the locks alone that matters.
const WAYS: [&str; 4] = ["nothing", "launch", "wait", "destroy"];

/// What a tool does inside a call, on the thread that holds a lock around it.
const AGAIN: [(&str, &str); 5] = [
    ("launch", "cuEventQuery"),
    ("context", "cuDevicePrimaryCtxRetain"),
    ("context", "cuDevicePrimaryCtxRelease_v2"),
    ("memory", "cuMemCreate"),
    ("memory", "cuMemRelease"),
];

/// What a tool keeps inside a call, on the thread that holds the lock of physical memory around it.
const KEPT: [(&str, &str); 2] = [("keep", "cuMemCreate"), ("export", "cuMemRelease")];

pub(crate) fn trials() -> Vec<Trial> {
    let again = AGAIN.map(|(what, call)| {
        let name = format!("a tool that is called back in {call} does not wait for itself: {what}");
        trial(&name, move || itself(what, call))
    });
    let others = WAYS.map(|way| {
        let name = format!(
            "a tool that is called back while a stream ends waits for no other thread: {way}"
        );
        trial(&name, move || called_back(way))
    });
    let kept = KEPT.map(|(what, call)| {
        let name = format!("what a tool keeps that is called back in {call} stays charged: {what}");
        trial(&name, move || keeps(what, call))
    });
    let work = trial("launches of a tool that is called back in cuEventQuery are charged", works);
    let held = LAUNCHES.map(|(call, kernel)| {
        let name = format!("a tool that launches {kernel} in {call} keeps to the share");
        trial(&name, move || keeps_to_the_share(call, kernel))
    });
    let many = trial("short kernels of a tool hold a call back for what they take", many);
    let endless = ["cuEventQuery", "cuMemCreate"].map(|call| {
        let name = format!("a tool that launches without end in one {call} keeps to the share");
        trial(&name, move || endless(call))
    });
    others
        .into_iter()
        .chain(again)
        .chain(kept)
        .chain([work, many])
        .chain(held)
        .chain(endless)
        .collect()
}

/// Calls that the shim makes of the driver under a lock, and what a tool launches in them.
const LAUNCHES: [(&str, &str); 4] = [
    ("cuEventQuery", "k_20ms"),
    ("cuEventQuery", "k_2ms"),
    ("cuMemCreate", "k_20ms"),
    ("cuMemRelease", "k_500us"),
];

fn keeps_to_the_share(call: &str, kernel: &str) -> Result {
    let run = under("20", "tool_share")?.env("GPU_MEM_LIMIT", "4Gi").env("STUB_GPU_TOOL", call);
    let words = [kernel, "4000", "own"];
    let words = if call == "cuEventQuery" { &words[..] } else { &words[..2] };
    let output = spending(run, words).output()?.success()?;
    within("calls of the tool", output.number("called")?, 3..=u64::MAX)?;
    lasts("percent", share(&output)?, 20.0 * PROGRESS..=20.0 + ABOVE)
}

/// One callback that does not return launches all that the card would take.
fn endless(call: &str) -> Result {
    let run = under("20", "tool_endless")?.env("GPU_MEM_LIMIT", "4Gi").env("STUB_GPU_TOOL", call);
    let output = spending(run, &["k_2ms", "4000"]).output()?.success()?;
    within("launches of the tool", output.number("called")?, 3..=u64::MAX)?;
    // In a question about an event nothing can be asked: what is over the bound is refused.
    let least = if call == "cuEventQuery" { 0.0 } else { 20.0 * PROGRESS };
    lasts("percent", share(&output)?, least..=20.0 + ABOVE)
}

/// They take 1 ms of a fifth of the card; the driver's answers come in their own time.
fn many() -> Result {
    let run = under("20", "tool_many")?.env("GPU_MEM_LIMIT", "4Gi");
    let output = run.env("STUB_GPU_TOOL", "cuMemCreate").arg("20").output()?.success()?;
    within("launches of the tool", output.number("called")?, 20..=20)?;
    lasts("nanoseconds", output.number("clock")?, 1..=500_000_000)
}

fn itself(what: &str, call: &str) -> Result {
    let run = under("90", "reenter")?.env("GPU_MEM_LIMIT", "4Gi").env("STUB_GPU_TOOL", call);
    let output = run.arg(what).output()?.success()?;
    within("calls of the tool", output.number("called")?, 3..=u64::MAX)
}

fn called_back(way: &'static str) -> Result {
    let run = under("90", "called_back")?.env("STUB_GPU_TOOL", "cuEventQuery");
    let output = run.arg(way).output()?.success()?;
    within("calls of the tool", output.number("called")?, 3..=3)
}

/// Of 2.5 GiB, a context and two times 1 GiB fit, the tool's among them.
fn keeps(what: &str, call: &str) -> Result {
    let run = under("90", "reenter")?.env("GPU_MEM_LIMIT", "2560Mi").env("STUB_GPU_TOOL", call);
    let output = run.arg(what).output()?.success()?;
    within("calls of the tool", output.number("called")?, 1..=u64::MAX)?;
    within("GiB kept", output.number("kept")?, 2..=2)
}

fn works() -> Result {
    let run = under("90", "reenter")?.env("STUB_GPU_TOOL", "cuEventQuery").arg("work");
    let output = run.output()?.success()?;
    let called = output.number("called")?;
    within("calls of the tool", called, 3..=u64::MAX)?;
    // The program itself launches twice in each of three rounds.
    within("launches", run.launches()?, 6 + called..=6 + called)
}
