//! Captures: what is recorded pays nothing and never waits, and nothing of ours gets into it.

use crate::{BEGIN, MS, WAIT, about, lasts, obey, under, within};
use gpucap_tests::{Driver, Program, Result, Stop, World, trial};
use libtest_mimic::Trial;

/// A launch into the stream that is captured, in slot `d`.
const RECORDED: &str = "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0";
const STREAM: &str = "call cuStreamCreate &d 1";
const END: &str = "call cuStreamEndCapture d &e";
const COUNT: &str = "call cuGraphGetNodes e 0 &f";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what is captured pays nothing and never waits", pays_nothing),
        trial("a capture holds what was captured and nothing else", holds_nothing_else),
        trial("nothing is put into the legacy stream while another capture forbids it", legacy),
        trial("a launch that replays a capture pays for all of it", replayed),
        trial("launches of other threads spoil no capture", other_threads),
        trial("a capture is over when its stream or its context is", over),
        trial("a capture goes on when something else about its stream fails", not_over),
    ]
}

/// Recorded without a wait: under a share of 1 % a hundred such kernels would take 100 s to be let through.
fn pays_nothing() -> Result {
    let run = under("1", "caller")?;
    let mut script = BEGIN.to_vec();
    script.extend(["call cuMemAlloc_v2 &a 1000"]);
    script.extend([STREAM, "call cuStreamBeginCapture_v2 d 0"]);
    script.extend([RECORDED; 100]);
    script.extend(["call cuMemcpyAsync a a 1000 d"; 100]);
    script.extend([END, COUNT, WAIT]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    within("launches", run.launches()?, 0..=0)?;
    within("busy time", run.busy_ns()?, 0..=0)
}

/// The same commands without the shim lead to the same answers.
fn holds_nothing_else() -> Result {
    let joined = [
        STREAM,
        "call cuStreamCreate &a 1",
        "call cuEventCreate &g 0",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 a 0 0", // the meter knows the stream that joins later
        "call cuStreamBeginCapture_v2 d 0",
        RECORDED,
        "call cuEventRecord g d",
        "call cuStreamWaitEvent a g 0",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 a 0 0",
        "call cuEventRecord g a",
        "call cuStreamWaitEvent d g 0",
        END,
        COUNT,
    ];
    let legacy = [
        "call cuStreamCreate &d 0",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0",
        "call cuStreamBeginCapture_v2 d 2",
        RECORDED,
        "call cuStreamIsCapturing 0 &g",
        END,
        COUNT,
    ];
    let spoilt = ["call cuStreamSynchronize d", "call cuStreamEndCapture 12345 &e", END];
    let again = ["call cuStreamBeginCapture_v2 d 0", RECORDED, END, COUNT, WAIT];
    let begun = [STREAM, "call cuStreamBeginCapture_v2 d 0", RECORDED];
    let scripts: [Vec<&str>; 3] = [
        [joined.as_slice(), &again].concat(),
        [legacy.as_slice(), &again].concat(),
        [begun.as_slice(), &spoilt, &again].concat(),
    ];
    let bare = World::bare(Driver::Stub).run(&Program::new("caller").build()?)?;
    for script in scripts {
        let script = [BEGIN.as_slice(), &script].concat();
        let ends = |answers: Vec<(u32, String)>| -> Vec<(u32, String)> {
            let last = |text: String| text.split(' ').nth(5).unwrap_or_default().to_owned();
            answers.into_iter().map(|(code, shown)| (code, last(shown))).collect()
        };
        let without = ends(obey(&bare, &script)?);
        let with = ends(obey(&under("50", "caller")?, &script)?);
        let differs =
            script.iter().zip(without.iter().zip(&with)).find(|(_, (one, two))| one != two);
        if let Some((command, (without, with))) = differs {
            return Err(Stop::fail(format!("{command}: {without:?} became {with:?}: {script:#?}")));
        }
    }
    Ok(())
}

/// The driver refuses what the application launches; the meter must not have tried before it.
fn legacy() -> Result {
    let run = under("50", "caller")?;
    let trace = run.directory().join("trace");
    let run = run.env("STUB_GPU_TRACE", &trace);
    let mut script = BEGIN.to_vec();
    let launch = "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0";
    script.extend([
        "call cuStreamCreate &d 0",
        launch,
        WAIT,
        "call cuStreamBeginCapture_v2 d 2",
        launch,
    ]);
    let answers = obey(&run, &script)?;
    within("the launch", answers.last().map_or(0, |(code, _)| *code), 906..=906)?;
    let trace = std::fs::read_to_string(trace)?;
    let during = trace.split("cuStreamBeginCapture_v2").nth(1).unwrap_or_default();
    within("events put into it", during.matches("cuEventRecord").count(), 0..=0)?;
    within("events before", trace.matches("cuEventRecord").count(), 1..=9)
}

fn replayed() -> Result {
    let run = under("50", "caller")?;
    let mut script = BEGIN.to_vec();
    script.extend([STREAM, "call cuStreamBeginCapture_v2 d 0", RECORDED, RECORDED, RECORDED, END]);
    script.extend(["call cuGraphInstantiateWithFlags &g e 0", "call cuGraphLaunch g 0", WAIT]);
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    within("launches", run.launches()?, 1..=1)?;
    lasts("busy time", run.busy_ns()?, about(30 * MS))
}

/// Each of these begins a capture and leaves none: questions about events are asked in the usual mode again. But what becomes
/// of the capture of a stream that is destroyed is documented nowhere.
fn over() -> Result {
    let own = "call cuCtxCreate_v2 &g 0 0";
    let begin = "call cuStreamBeginCapture_v2 d 0";
    let destroyed = [STREAM, begin, "call cuStreamDestroy_v2 12345", "call cuStreamDestroy_v2 d"];
    let ways: [(&[&str], _); 6] = [
        (&[STREAM, begin, RECORDED, END], 0..=0),
        (&destroyed, 2..=99),
        (&[STREAM, begin, begin, "call cuStreamSynchronize d", END], 0..=0),
        (&[own, STREAM, begin, "call cuCtxDestroy_v2 g"], 0..=0),
        (&[STREAM, begin, "call cuDevicePrimaryCtxReset_v2 0"], 0..=0),
        (&[STREAM, begin, "call cuStreamEndCapture 12345 &e", END], 0..=0),
    ];
    for (way, in_another_mode) in ways {
        let run = under("50", "caller")?;
        let trace = run.directory().join("trace");
        let run = run.env("STUB_GPU_TRACE", &trace);
        let again = ["call cuDriverGetVersion &f", BEGIN[1], BEGIN[2], BEGIN[3], BEGIN[4]];
        let script = [BEGIN.as_slice(), way, &again, &[crate::LAUNCH, WAIT]].concat();
        obey(&run, &script)?;
        let trace = std::fs::read_to_string(trace)?;
        let after = trace.rsplit("cuDriverGetVersion").next().unwrap_or_default();
        let asked = ["cuEventQuery", "cuThreadExchangeStreamCaptureMode"]
            .map(|question| after.matches(question).count());
        within(&format!("questions after {way:?}"), asked[0], 1..=99)?;
        within(&format!("in another mode after {way:?}"), asked[1], in_another_mode)?;
    }
    Ok(())
}

/// While a stream is captured, that its destruction fails or another one begins in vain changes nothing.
fn not_over() -> Result {
    let vain = ["call cuStreamBeginCapture_v2 d 0", "call cuStreamEndCapture 12345 &e"];
    let run = under("50", "caller")?.env("STUB_GPU_FAIL", "cuStreamDestroy_v2:999");
    let trace = run.directory().join("trace");
    let run = run.env("STUB_GPU_TRACE", &trace);
    let begun = [STREAM, vain[0], "call cuStreamDestroy_v2 d", vain[0], vain[1]];
    let script = [BEGIN.as_slice(), &begun, &[crate::LAUNCH, END, WAIT]].concat();
    let answers = obey(&run, &script)?;
    within("the end of the capture", answers[answers.len() - 2].0, 0..=0)?;
    let trace = std::fs::read_to_string(trace)?;
    within("questions", trace.matches("cuThreadExchangeStreamCaptureMode").count(), 2..=99)
}

/// One thread captures in global mode again and again, which forbids questions about events to every thread, while
/// another one launches and is held up.
fn other_threads() -> Result {
    let output = under("30", "captures")?.output()?.success()?;
    within("captures", output.number("captures")?, 50..=50)?;
    within("spoilt", output.number("spoilt")?, 0..=0)?;
    within("nodes beyond those captured", output.number("beyond")?, 0..=0)?;
    within("failures", output.number("failures")?, 0..=0)
}
