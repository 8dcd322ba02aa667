//! The limits file that the hook shows a container. What it says can be lowered from inside, never raised.

use crate::{CARD, GIB, NOT_READY, OUT_OF_MEMORY, SUCCESS, answers, begin, without_limit};
use gpucap_tests::{Result, Run, Stop, limits_text as text, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("limits file: its limit holds", holds),
        trial("limits file: the environment can lower it", lowered),
        trial("limits file: the environment cannot raise it", not_raised),
        trial("limits file: a GPU that it does not list cannot be used", unlisted),
        trial("limits file: on a mount that can be written, nothing works", writable),
        trial("limits file: one that cannot be read means nothing works", damaged),
        trial("limits file: a ledger of one's own buys nothing", own_ledger),
        trial("limits file: each card has what is said of it", each_card),
        trial("limits file: of two cards the one that is not listed cannot be used", one_of_two),
        trial("limits file: the lowest of file, limit and profile holds for each card", lowest),
        trial("limits file: a MIG instance has what its card is allowed", mig),
        trial("limits file: a variable that cannot be used means nothing works", bad_variable),
        trial("limits file: where the administrator says so, a bad variable is left out", open),
        trial("limits file: a share of time alone limits no memory", time_alone),
        trial("limits file: processes share the ledger that lies beside it", shared),
        trial("limits file: a context price of one's own buys nothing", own_price),
    ]
}

fn under(lines: &str) -> Result<Run> {
    without_limit()?.limits_file(&text(lines))
}

const TWO_GIB: &str = "gpu=*\nmem=2147483648\ncontext=0\n";

fn holds() -> Result {
    let mut actor = begin(&under(TWO_GIB)?)?;
    answers(&mut actor, "total d 0", 2 * GIB, 0)?;
    actor.expect(&[
        (&format!("alloc a {}", 2 * GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {}", 2 * GIB), SUCCESS),
    ])
}

fn lowered() -> Result {
    let mut actor = begin(&under(TWO_GIB)?.env("GPU_MEM_LIMIT", "1Gi"))?;
    answers(&mut actor, "total d 0", GIB, 0)
}

fn not_raised() -> Result {
    let mut actor = begin(&under(TWO_GIB)?.env("GPU_MEM_LIMIT", "3Gi"))?;
    answers(&mut actor, "total d 0", 2 * GIB, 0)
}

fn unlisted() -> Result {
    let other = "gpu=GPU-ffffffff-ffff-ffff-ffff-ffffffffffff\nmem=2147483648\n";
    let mut actor = under(other)?.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    let answer = actor.call("context 0")?;
    if answer.code == SUCCESS { Err(Stop::fail(format!("{answer:?}"))) } else { Ok(()) }
}

fn writable() -> Result {
    let mut actor = without_limit()?.writable_limits_file(&text(TWO_GIB))?.start()?;
    actor.expect(&[("init", NOT_READY)])?;
    answers(&mut actor, "nvml d 0", CARD, 0)
}

fn damaged() -> Result {
    let whole = text(TWO_GIB);
    for damaged in ["", &whole.replace("mem=2", "mem=9"), &whole[..whole.len() / 2], "\0\0\0"] {
        let mut actor = without_limit()?.limits_file(damaged)?.start()?;
        actor.expect(&[("init", NOT_READY)])?;
    }
    Ok(())
}

fn own_ledger() -> Result {
    let run = under(TWO_GIB)?;
    let mut first = begin(&run)?;
    first.expect(&[(&format!("alloc a {}", 2 * GIB), SUCCESS)])?;
    let mut second = begin(&run.clone().env("GPUCAP_LEDGER", "/dev/shm/mine"))?;
    second.expect(&[("alloc a 1", OUT_OF_MEMORY)])
}

fn own_price() -> Result {
    let lines = TWO_GIB.replace("context=0", "context=1073741824");
    let mut actor = begin(&under(&lines)?.env("GPUCAP_CONTEXT_MEM", "0"))?;
    actor.expect(&[(&format!("alloc a {}", GIB + 1), OUT_OF_MEMORY)])
}

/// Two cards of different sizes, CUDA counting as NVML does.
fn two(lines: &str) -> Result<Run> {
    let run = without_limit()?.env("STUB_GPU_COUNT", "2").env("STUB_GPU_MEM", "10GiB,20GiB");
    let uuids = [uuid(&run, 0)?, uuid(&run, 1)?];
    run.limits_file(&text(&lines.replace("{0}", &uuids[0]).replace("{1}", &uuids[1])))
}

fn uuid(run: &Run, card: u32) -> Result<String> {
    let answer = run.start()?.call(&format!("uuid a {card}"))?;
    let hex = format!("{:016x}{:016x}", answer.value, answer.extra);
    Ok(format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    ))
}

fn totals(run: &Run, totals: [u64; 2]) -> Result {
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS)])?;
    for (card, total) in totals.into_iter().enumerate() {
        answers(&mut actor, &format!("total d {card}"), total, 0)?;
        answers(&mut actor, &format!("nvml d {card}"), total, 0)?;
    }
    Ok(())
}

fn each_card() -> Result {
    totals(&two("gpu={0}\nmem=1073741824\ngpu={1}\nmem=25%\n")?, [GIB, 5 * GIB])?;
    totals(&two("gpu={1}\nmem=1073741824\ngpu=*\nmem=50%\n")?, [5 * GIB, GIB])?;
    totals(&two("gpu={1}\ngpu={0}\nmem=1073741824\n")?, [GIB, 20 * GIB])
}

fn one_of_two() -> Result {
    let mut actor = two("gpu={1}\nmem=1073741824\ncontext=0\n")?.start()?;
    actor.expect(&[
        ("init", SUCCESS),
        ("context 0", OUT_OF_MEMORY),
        ("create a 2097152 0", OUT_OF_MEMORY),
        ("context 1", SUCCESS),
        (&format!("alloc a {}", GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {GIB}"), SUCCESS),
    ])
}

fn lowest() -> Result {
    let file = "gpu={0}\nmem=3221225472\ngpu={1}\nmem=50%\n"; // 3 and 10 GiB
    let under = |limit: &str, profile: &str| -> Result<Run> {
        Ok(two(file)?.env("GPU_MEM_LIMIT", limit).env("GPU_PROFILE", profile))
    };
    totals(&under("", "1g.5gb")?, [3 * GIB, 5 * GIB])?;
    totals(&under("0=2Gi", "1g.5gb")?, [2 * GIB, 5 * GIB])?;
    totals(&under("100%", "7g.80gb")?, [3 * GIB, 10 * GIB])?;
    totals(&under("1=4Gi", "1=1g.3gb")?, [3 * GIB, 3 * GIB])
}

fn mig() -> Result {
    let run = without_limit()?.env("STUB_GPU_MIG", "0=5GiB+10GiB");
    let card = uuid(&run, 0)?;
    let run = run.limits_file(&text(&format!("gpu={card}\nmem=3221225472\ncontext=0\n")))?;
    let mut actor = begin(&run)?;
    answers(&mut actor, "total d 0", 3 * GIB, 0)?;
    answers(&mut actor, "nvml d 0 1", 3 * GIB, 0)
}

fn bad_variable() -> Result {
    let mut actor = under(TWO_GIB)?.env("GPU_MEM_LIMIT", "abc").start()?;
    actor.expect(&[("init", NOT_READY)])
}

fn open() -> Result {
    let lines = format!("open=1\n{TWO_GIB}");
    let mut actor = begin(&under(&lines)?.env("GPU_MEM_LIMIT", "abc"))?;
    answers(&mut actor, "total d 0", 2 * GIB, 0)?;
    let output = actor.end()?;
    if output.stderr.lines().count() == 1 && output.stderr.contains("abc") {
        Ok(())
    } else {
        Err(Stop::fail(output))
    }
}

fn time_alone() -> Result {
    let mut actor = begin(&under("gpu=*\ncore=50%\n")?)?;
    answers(&mut actor, "total d 0", CARD, 0)
}

fn shared() -> Result {
    let run = under(TWO_GIB)?;
    let (mut first, mut second) = (begin(&run)?, begin(&run)?);
    first.expect(&[(&format!("alloc a {GIB}"), SUCCESS)])?;
    answers(&mut second, "info d", 2 * GIB, GIB)?;
    second.expect(&[
        (&format!("alloc a {}", GIB + 1), OUT_OF_MEMORY),
        (&format!("alloc a {GIB}"), SUCCESS),
    ])?;
    first.expect(&[("alloc b 1", OUT_OF_MEMORY)])
}
