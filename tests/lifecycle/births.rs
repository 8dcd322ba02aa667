//! How a process comes to be: whatever the way, it has charges of its own, and its parent keeps what it holds.

use crate::{
    LIMIT, MIB, NO_ROBUST_LOCK, OUT_OF_MEMORY, SUCCESS, all_is_back, begin, free_contexts, limited,
    take,
};
use gpucap_tests::{Driver, Machine, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("a process may begin and end more often than the ledger has places", many_children),
        trial("a child of busy threads is never kept waiting", busy_children),
        trial("a process whose first thread has ended keeps what it holds", headless),
        trial(
            "a program started by another thread than the first begins with nothing",
            headless_exec,
        ),
    ];
    for way in ["fork", "vfork", "posix_spawn", "system"] {
        let rule =
            format!("{way}: the new program has what its parent left, the parent what it held");
        trials.push(trial(rule, move || spawned(way)));
    }
    trials
}

fn program(name: &'static str) -> Result<Run> {
    Ok(free_contexts(World::with_shim(Driver::available())?.run(&Program::new(name).build()?)?))
}

fn spawned(way: &str) -> Result {
    let (held, left) = (600 * MIB, LIMIT - 600 * MIB);
    let run = program("spawner")?.arg(way).arg(held.to_string()).arg(left.to_string());
    let output = run.output()?.success()?;
    for (key, expected) in [
        ("status", 0),
        ("child_over", OUT_OF_MEMORY),
        ("child_fits", SUCCESS),
        ("parent_over", OUT_OF_MEMORY),
        ("parent_fits", SUCCESS),
    ] {
        if output.number(key)? != expected {
            return Err(Stop::fail(format!("{key} is not {expected}: {output}")));
        }
    }
    Ok(())
}

fn children(from: &str, count: u32) -> Result<Run> {
    if Driver::available() == Driver::Card {
        return Err(Stop::skip("thousands of processes take minutes on a card"));
    }
    let limit = "4Gi"; // as the program knows it
    let run = program("children")?.env("GPU_MEM_LIMIT", limit).arg(from).arg(count.to_string());
    let output = run.output()?.success()?;
    if output.number("wrong")? == 0 { Ok(run) } else { Err(Stop::fail(output)) }
}

fn many_children() -> Result {
    children("fresh", 1100).map(drop)
}

fn busy_children() -> Result {
    Machine::not_emulated(NO_ROBUST_LOCK)?;
    let run = children("busy", 200)?;
    all_is_back(
        &run.program(&Program::new("actor").build()?).env("GPU_MEM_LIMIT", LIMIT.to_string()),
    )
}

fn headless() -> Result {
    let run = limited()?;
    let mut other = begin(&run)?;
    let mut process =
        run.clone().program(&Program::new("headless").build()?).arg(LIMIT.to_string()).start()?;
    if process.line()? != "0" {
        return Err(Stop::fail(process.end()?));
    }
    for _ in 0..10 {
        other.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
    }
    process.order("")?;
    process.end()?;
    other.expect(&[(&take(LIMIT / MIB), SUCCESS)])
}

fn headless_exec() -> Result {
    let run = limited()?;
    let actor = Program::new("actor").build()?;
    let mut other = begin(&run)?;
    let headless = run.clone().program(&Program::new("headless").build()?).arg(LIMIT.to_string());
    let mut process = headless.arg(actor).start()?;
    if process.line()? != "0" {
        return Err(Stop::fail(process.end()?));
    }
    process.order("")?;
    process.expect(&[("init", SUCCESS), ("context 0", SUCCESS)])?;
    other.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    process.expect(&[("alloc a 1", OUT_OF_MEMORY)])
}
