//! What the variables may say, and what happens when it cannot be used: no GPU work, and one line that says why.

use crate::ways::WAYS;
use crate::{
    CARD, GIB, MIB, NOT_INITIALIZED, NOT_READY, SUCCESS, answers, begin, calls, traced,
    without_limit,
};
use gpucap_tests::{Actor, Driver, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

/// Variable, value, and the limit that it makes on a card of 80 GiB.
const USABLE: [(&str, &str, u64); 12] = [
    ("GPU_MEM_LIMIT", "4Gi", 4 * GIB),
    ("GPU_MEM_LIMIT", "4GiB", 4 * GIB),
    ("GPU_MEM_LIMIT", "4096Mi", 4 * GIB),
    ("GPU_MEM_LIMIT", "4G", 4_000_000_000),
    ("GPU_MEM_LIMIT", "4gb", 4_000_000_000),
    ("GPU_MEM_LIMIT", "123456789", 123_456_789),
    ("GPU_MEM_LIMIT", "1.5Gi", 1536 * MIB),
    ("GPU_MEM_LIMIT", "25%", CARD / 4),
    ("GPU_MEM_LIMIT", "0=2Gi", 2 * GIB),
    ("GPU_MEM_LIMIT", "1=2Gi", CARD),
    ("GPU_PROFILE", "1g.5gb", 5 * GIB),
    ("GPU_PROFILE", "3g", CARD / 2),
];

const UNUSABLE: [(&str, &str); 15] = [
    ("GPU_MEM_LIMIT", "0"),
    ("GPU_MEM_LIMIT", "-1"),
    ("GPU_MEM_LIMIT", "abc"),
    ("GPU_MEM_LIMIT", "200%"),
    ("GPU_MEM_LIMIT", "4096m"),
    ("GPU_MEM_LIMIT", "4Gi,"),
    ("GPU_MEM_LIMIT", "99999999999999999999"),
    ("GPU_PROFILE", "5gg"),
    ("GPU_PROFILE", "8g.80gb"),
    ("GPU_CORE_PCT", "101"),
    ("GPU_CORE_PCT", "0"),
    ("GPU_CORE_MAX_PCT", "101"),
    ("GPU_CORE_POLICY", "brust"),
    ("GPU_CORE_PRIORITY", "high"),
    ("GPUCAP_LEDGER", "relative"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("the smaller of two limits holds", smaller_holds),
        trial("a process that uses no GPU does not notice an unusable limit", unnoticed),
        trial(
            "a limit that turns out to be unusable for a card stops all GPU work",
            unusable_later,
        ),
        trial("cards that the driver hides stay hidden if the variable goes", shows_later),
        trial("a card that does not say which one it is stops all GPU work", nameless),
        trial("without limits a card need not say which one it is", nameless_without_limits),
        trial("a variable that is empty or blank is not set", empty),
        trial("white space around a value is dropped", white_space),
        trial("an unusable variable of no limit stops no program without limits", no_limit),
        trial("a log level that is none stops nothing, and one line says so", no_level),
        trial("limits that name only GPUs that are not here are told of in one line", absent),
        trial("limits that name one of the GPUs here are told of in no line", present),
    ];
    for (variable, value, bytes) in USABLE {
        trials.push(trial(format!("{variable}={value} is a limit of {bytes}"), move || {
            let mut actor = begin(&without_limit()?.env(variable, value))?;
            answers(&mut actor, "total d 0", bytes, 0)
        }));
    }
    for (variable, value) in UNUSABLE {
        let name = format!("{variable}={value} cannot be used: no GPU work, one line that says so");
        trials.push(trial(name, move || unusable(variable, value)));
    }
    trials
}

/// Every function that is charged is refused, and the driver does not see the call.
fn nothing_works(actor: &mut Actor, run: &Run) -> Result {
    actor.expect(&[("context 0", NOT_INITIALIZED)])?;
    for way in WAYS {
        actor.expect(&[(&way.take('a', 2 * MIB), NOT_INITIALIZED)])?;
        if calls(run, way.symbol)? != 0 {
            return Err(Stop::fail(format!("{} reached the driver", way.symbol)));
        }
    }
    match calls(run, "cuDevicePrimaryCtxRetain")? {
        0 => Ok(()),
        _ => Err(Stop::fail("a context was made")),
    }
}

/// One line, which holds all these.
fn one_line(output: Output, parts: &[&str]) -> Result {
    let complaint = output.stderr.trim_end();
    if complaint.lines().count() == 1 && parts.iter().all(|part| complaint.contains(part)) {
        Ok(())
    } else {
        Err(Stop::fail(output))
    }
}

fn unusable(variable: &str, value: &str) -> Result {
    let run = traced(without_limit()?.env("GPU_MEM_LIMIT", "4Gi").env(variable, value));
    let mut actor = run.start()?;
    actor.expect(&[("init", NOT_READY), ("init", NOT_READY)])?;
    // An administrator can still look.
    answers(&mut actor, "nvml d 0", CARD, 0)?;
    nothing_works(&mut actor, &run)?;
    if calls(&run, "cuInit")? != 0 {
        return Err(Stop::fail("cuInit reached the driver"));
    }
    one_line(actor.end()?, &[variable, value, "allowed: "])
}

fn unusable_later() -> Result {
    // One percent of it is less than a byte; which is unknown before the card is seen.
    let run = traced(without_limit()?.env("STUB_GPU_MEM", "99").env("GPU_MEM_LIMIT", "1%"));
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    nothing_works(&mut actor, &run)?;
    actor.expect(&[("init", NOT_READY)])?;
    answers(&mut actor, "nvml d 0", 99, 0)?;
    one_line(actor.end()?, &["GPU_MEM_LIMIT", "1%", "allowed: "])
}

const NAMELESS: &str = "cuDeviceGetUuid:999,cuDeviceGetUuid_v2:999";

fn nameless() -> Result {
    // A limit that cannot be resolved must not become a card without a limit.
    for fail in [NAMELESS, "cuDeviceTotalMem_v2:999"] {
        let run = traced(without_limit()?.env("GPU_MEM_LIMIT", "1Gi").env("STUB_GPU_FAIL", fail));
        let mut actor = run.start()?;
        actor.expect(&[("init", SUCCESS)])?;
        nothing_works(&mut actor, &run)?;
        actor.expect(&[("init", NOT_READY)])?;
        one_line(actor.end()?, &["device 0", "UUID"])?;
    }
    Ok(())
}

fn nameless_without_limits() -> Result {
    let mut actor = begin(&without_limit()?.env("STUB_GPU_FAIL", NAMELESS))?;
    actor.expect(&[(&format!("alloc a {GIB}"), SUCCESS), ("free a", SUCCESS)])?;
    match actor.end()? {
        output if output.stderr.is_empty() => Ok(()),
        output => Err(Stop::fail(output)),
    }
}

fn empty() -> Result {
    for variable in
        ["GPU_MEM_LIMIT", "GPU_PROFILE", "GPU_CORE_PCT", "GPU_CORE_POLICY", "GPU_CORE_PRIORITY"]
    {
        for value in ["", " ", "\t\n "] {
            let mut actor = begin(&without_limit()?.env(variable, value))?;
            answers(&mut actor, "total d 0", CARD, 0)?;
        }
    }
    Ok(())
}

fn white_space() -> Result {
    let mut actor = begin(&without_limit()?.env("GPU_MEM_LIMIT", " 4Gi\n"))?;
    answers(&mut actor, "total d 0", 4 * GIB, 0)
}

fn no_limit() -> Result {
    let run = without_limit()?.env("GPUCAP_LEDGER", "relative").env("GPUCAP_LOG", "loud");
    let mut actor = begin(&run)?;
    answers(&mut actor, "info d", CARD, CARD)?;
    match actor.end()? {
        output if output.stderr.is_empty() => Ok(()),
        output => Err(Stop::fail(output)),
    }
}

fn no_level() -> Result {
    let run = without_limit()?.env("GPU_MEM_LIMIT", "4Gi").env("GPUCAP_LOG", "loud");
    let mut actor = begin(&run)?;
    answers(&mut actor, "total d 0", 4 * GIB, 0)?;
    one_line(actor.end()?, &["WARN", "GPUCAP_LOG", "loud", "ignored"])
}

fn absent() -> Result {
    let unknown = "GPU-99999999-9999-9999-9999-999999999999=1Gi";
    for (variable, value) in
        [("GPU_MEM_LIMIT", "9=1Gi"), ("GPU_MEM_LIMIT", unknown), ("GPU_PROFILE", "9=1g.5gb")]
    {
        let run = without_limit()?.env("STUB_GPU_COUNT", "2").env(variable, value);
        let mut actor = begin(&run)?;
        actor.expect(&[("context 1", SUCCESS)])?;
        answers(&mut actor, "total d 0", CARD, 0)?;
        let parts = ["WARN", "nothing is limited", variable, "none of the 2 GPUs"];
        one_line(actor.end()?, &parts)?;
    }
    Ok(())
}

fn present() -> Result {
    let run = without_limit()?.env("STUB_GPU_COUNT", "2").env("GPU_MEM_LIMIT", "1=1Gi,9=1Gi");
    let mut actor = begin(&run)?;
    answers(&mut actor, "total d 0", CARD, 0)?;
    match actor.end()? {
        output if output.stderr.is_empty() => Ok(()),
        output => Err(Stop::fail(output)),
    }
}

fn smaller_holds() -> Result {
    for (limit, profile, bytes) in [("4Gi", "1g.5gb", 4 * GIB), ("6Gi", "1g.5gb", 5 * GIB)] {
        let run = without_limit()?.env("GPU_MEM_LIMIT", limit).env("GPU_PROFILE", profile);
        answers(&mut begin(&run)?, "total d 0", bytes, 0)?;
    }
    Ok(())
}

/// Without NVML a card's index is known only if CUDA shows all cards. The driver has read the variable in `cuInit`.
fn shows_later() -> Result {
    let run = World::with_shim(Driver::Stub)?.run(&Program::new("shows_later").build()?)?;
    let run = run.env("STUB_GPU_COUNT", "2").env("STUB_GPU_FAIL", "nvmlInit_v2:9");
    let run = run.env("CUDA_VISIBLE_DEVICES", "1").env("GPU_MEM_LIMIT", "1=4Gi");
    let output = run.output()?.success()?;
    match (output.number("init")?, output.number("retained")?) {
        (0, NOT_INITIALIZED) => one_line(output, &["GPU_MEM_LIMIT", "no GPU work"]),
        _ => Err(Stop::fail(output)),
    }
}

fn unnoticed() -> Result {
    let program = Program::new("absent").build()?;
    let run = World::with_shim(Driver::Absent)?.run(&program)?.env("GPU_MEM_LIMIT", "abc");
    let output = run.output()?.success()?;
    if output.stderr.is_empty() { Ok(()) } else { Err(Stop::fail(output)) }
}
