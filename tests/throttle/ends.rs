//! Streams that go without a word: with their context, or with the thread whose default stream they were. What comes after
//! them may have their name, on another card even, and is measured as if it were new.

use crate::{MS, WAIT, about, lasts, obey, under, within};
use gpucap_tests::{Driver, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let of_context = |name: &str, first, devices| trial(name, move || ended(first, devices));
    vec![
        of_context("a stream is measured, though a context ended with one of its handle", MADE, 1),
        of_context("a stream is measured, though a reset ended one of its handle", PRIMARY, 1),
        of_context(
            "a stream pays, though a context of a free card ended with one of its handle",
            MADE,
            2,
        ),
        of_context(
            "a stream pays, though a reset of a free card ended one of its handle",
            PRIMARY,
            2,
        ),
        trial(
            "the end of a primary context leaves the work of other contexts to be measured",
            others_last,
        ),
        trial("work in flight when a context ends is charged by then", in_flight),
        trial("work of a context is measured, though a thread without one ends another", without),
        trial("a context is measured, though a green one had its handle before", after_green),
        trial("threads that have ended leave no streams behind", threads),
    ]
}

/// How a context is made in slot `h`, and ended with a stream in it.
type Context = [&'static [&'static str]; 2];

const MADE: Context = [&["call cuCtxCreate_v2 &h 0 0"], &["call cuCtxDestroy_v2 h"]];
const PRIMARY: Context = [
    &["call cuDevicePrimaryCtxRetain &h 0", "call cuCtxSetCurrent h"],
    &["call cuDevicePrimaryCtxReset_v2 0"],
];
const RELEASED: Context = [PRIMARY[0], &["call cuDevicePrimaryCtxRelease_v2 0"]];
/// A kernel that is launched in the stream of the context that ends, and one of which nothing is known yet.
const FIRST: &str = "call cuModuleGetFunction &c b 'k_10ms";
const SECOND: &str = "call cuModuleGetFunction &c b 'k_30ms";
const LOAD: &str = "call cuModuleLoadData &b 'image";

/// The last of `devices` is the one whose time is shared.
fn ended([begin, end]: Context, devices: u32) -> Result {
    let last = devices - 1;
    let run = under(if last == 0 { "50" } else { "1=50" }, "caller")?;
    let run = run.env("STUB_GPU_COUNT", devices.to_string());
    let (retain, number) = (format!("call cuDevicePrimaryCtxRetain &h {last}"), 4);
    let in_stream = |stream| format!("call cuLaunchKernel c 1 1 1 32 1 1 0 {stream} 0 0");
    let (in_first, in_second) = (in_stream("d"), in_stream("e"));
    let mut script = vec!["call cuInit 0"];
    script.extend(begin);
    script.extend([
        LOAD,
        FIRST,
        "call cuStreamCreate &d 1",
        &in_first,
        "call cuStreamSynchronize d",
    ]);
    script.extend(end);
    script.extend([&retain, "call cuCtxSetCurrent h", LOAD, SECOND, "call cuStreamCreate &e 1"]);
    (0..number).for_each(|_| script.extend([&in_second, "call cuStreamSynchronize e"]));
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    let slots: Vec<_> = answers.last().into_iter().flat_map(|last| last.1.split(' ')).collect();
    if slots.get(3) != slots.get(4) {
        return Err(Stop::fail(format!("the handle is not used again: {slots:?}")));
    }
    let first = if last == 0 { 10 * MS } else { 0 };
    lasts("busy time", run.busy_ns()?, about(first + number * 30 * MS))
}

/// A context that the program made outlives the primary one, with its streams, its events and the work in flight.
fn others_last() -> Result {
    let run = under("50", "caller")?;
    let script = [
        "call cuInit 0",
        "call cuCtxCreate_v2 &h 0 0",
        LOAD,
        SECOND,
        "call cuStreamCreate &d 1",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
        "call cuStreamSynchronize d",
        "call cuDevicePrimaryCtxRetain &g 0",
        "call cuModuleGetFunction &c b 'k_400ms",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
        "call cuDevicePrimaryCtxReset_v2 0",
        "call cuStreamSynchronize d",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 d 0 0",
        "call cuStreamSynchronize d",
    ];
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    lasts("busy time", run.busy_ns()?, about(830 * MS))
}

/// The process makes no further call, and no other one comes after it.
fn in_flight() -> Result {
    for [begin, end] in [MADE, PRIMARY, RELEASED] {
        let run = under("50", "caller")?;
        let function = "call cuModuleGetFunction &c b 'k_300ms";
        let launch = "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0";
        let answers =
            obey(&run, &[&["call cuInit 0"], begin, &[LOAD, function, launch], end].concat())?;
        within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
        lasts(&format!("busy time, {end:?}"), run.busy_ns()?, about(300 * MS))?;
    }
    Ok(())
}

/// A question about an event may need a current context. The thread has none once it has ended its own, and none that ends
/// the primary one.
fn without() -> Result {
    let begin = [
        "call cuInit 0",
        "call cuCtxCreate_v2 &h 0 0",
        LOAD,
        "call cuModuleGetFunction &c b 'k_1ms",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0",
        "call cuCtxSynchronize",
        "call cuCtxPopCurrent_v2 &h",
        "call cuDevicePrimaryCtxRetain &g 0",
        "call cuCtxSetCurrent g",
        LOAD,
        "call cuModuleGetFunction &c b 'k_300ms",
        "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0",
    ];
    let ends: [&[&str]; 2] = [
        &["call cuCtxSetCurrent h", "call cuCtxDestroy_v2 h", "call cuCtxSetCurrent g", WAIT],
        &["call cuCtxPopCurrent_v2 &g", "call cuDevicePrimaryCtxReset_v2 0"],
    ];
    for end in ends {
        let run = under("50", "caller")?.env("STUB_GPU_EVENT_CONTEXT", "current");
        let answers = obey(&run, &[&begin, end].concat())?;
        within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
        lasts(&format!("busy time, {end:?}"), run.busy_ns()?, about(301 * MS))?;
    }
    Ok(())
}

/// The end of a green context is that of its name alone: the primary one goes on, and its events are no other context's.
fn after_green() -> Result {
    let run = under("50", "caller")?;
    let launch = "call cuLaunchKernel c 1 1 1 32 1 1 0 0 0 0";
    let script = [
        "call cuInit 0",
        "call cuDevicePrimaryCtxRetain &h 0",
        "call cuDeviceGetDevResource 0 %0 1",
        "call cuDevResourceGenerateDesc &d %0 1",
        "call cuGreenCtxCreate &e d 0 1",
        "call cuCtxFromGreenCtx &f e",
        "call cuCtxSetCurrent f",
        LOAD,
        SECOND,
        launch,
        "call cuStreamSynchronize 0",
        "call cuGreenCtxDestroy e",
        "call cuCtxCreate_v2 &g 0 0",
        LOAD,
        "call cuModuleGetFunction &c b 'k_400ms",
        launch,
        "call cuStreamSynchronize 0",
    ];
    let answers = obey(&run, &script)?;
    within("failures", answers.iter().filter(|(code, _)| *code != 0).count(), 0..=0)?;
    let slots: Vec<_> = answers.last().into_iter().flat_map(|last| last.1.split(' ')).collect();
    if slots.get(5) != slots.get(6) {
        return Err(Stop::fail(format!("the handle is not used again: {slots:?}")));
    }
    lasts("busy time", run.busy_ns()?, about(430 * MS))
}

/// What the program's heap grows by is what the driver keeps of threads, and as good as nothing of ours.
fn threads() -> Result {
    const THREADS: u64 = 4000;
    const EACH: u64 = 64;
    let program = Program::new("passers_by").flags(&["-lcuda", "-pthread"]).build()?;
    let run = |world: World| {
        let run = world.run(&program)?.arg(THREADS.to_string());
        Ok::<_, Stop>(run.env("GPU_CORE_PCT", "90").env("MALLOC_ARENA_MAX", "1"))
    };
    let (bare, limited) = (run(World::bare(Driver::Stub))?, run(World::with_shim(Driver::Stub)?)?);
    let grown = |run: &Run| run.output()?.success()?.number("grown");
    let of_driver = grown(&bare)?;
    within("the heap", grown(&limited)?, 0..=of_driver + THREADS * EACH)?;
    within("launches", limited.launches()?, THREADS + 500..=THREADS + 500)
}
