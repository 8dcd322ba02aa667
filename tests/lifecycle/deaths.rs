//! How a process can end, be replaced or multiply.

use crate::{
    LIMIT, MIB, NO_ROBUST_LOCK, OUT_OF_MEMORY, SUCCESS, all_is_back, begin, free_contexts, limited,
    take,
};
use gpucap_tests::{Actor, Driver, Machine, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    type End = fn(&mut Actor) -> Result;
    let ways: [(&str, End); 5] = [
        ("is killed", Actor::kill),
        ("ends with main", |actor| actor.end().map(drop)),
        ("calls exit", |actor| ends(actor, "exit 3")),
        ("calls _exit", |actor| ends(actor, "vanish 3")),
        ("aborts", |actor| ends(actor, "kill 6")),
    ];
    let mut trials: Vec<_> = ways
        .into_iter()
        .map(|(way, end)| {
            trial(format!("what a process held is back when it {way}"), move || {
                let run = limited()?;
                let (mut first, mut second) = (begin(&run)?, begin(&run)?);
                first.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
                second.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
                end(&mut first)?;
                second.expect(&[(&take(LIMIT / MIB), SUCCESS)])
            })
        })
        .collect();
    for way in ["return", "exit", "quick_exit", "_exit"] {
        let rule = format!("{way}: a process can end while its threads get memory");
        trials.push(trial(rule, move || leaving(way)));
    }
    trials.extend([
        trial("processes share one limit", shared),
        trial("a larger limit of one's own does not undo what others hold", larger_limit),
        trial("what a process held is back when it becomes another program", execs),
        trial("what a process held is back when it becomes a program without a GPU", execs_idle),
        trial("a process whose stack seems to be another one keeps what it holds", moved_stack),
        trial("a zombie holds nothing", zombie),
        trial("a forked child that dies takes nothing of its parent along", child_dies),
        trial("a forked child that frees takes nothing of its parent along", child_frees),
        trial("a child that begins on its own has its own charges", child_begins),
        trial(
            "a child that begins where its parent failed has its own charges",
            child_of_a_failure,
        ),
        trial("a stopped process keeps what it holds and blocks no other", stopped),
        trial("many deaths leave nothing behind", many_deaths),
        trial("memory can be freed in the last code that runs", last_words),
    ]);
    trials
}

fn ends(actor: &mut Actor, order: &str) -> Result {
    actor.order(order)?;
    actor.end().map(drop)
}

fn shared() -> Result {
    let run = limited()?;
    let (mut first, mut second) = (begin(&run)?, begin(&run)?);
    first.expect(&[(&take(600), SUCCESS)])?;
    second.expect(&[(&take(600), OUT_OF_MEMORY), (&take(424), SUCCESS)])?;
    first.expect(&[("alloc b 1", OUT_OF_MEMORY), ("free a", SUCCESS)])?;
    second.expect(&[("alloc b 629145600", SUCCESS), ("alloc c 1", OUT_OF_MEMORY)])
}

fn larger_limit() -> Result {
    let run = limited()?;
    let mut first = begin(&run)?;
    first.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    let mut second = begin(&run.env("GPU_MEM_LIMIT", (2 * LIMIT).to_string()))?;
    second.expect(&[
        (&format!("alloc a {}", LIMIT + 1), OUT_OF_MEMORY),
        (&take(LIMIT / MIB), SUCCESS),
    ])
}

fn execs() -> Result {
    let mut actor = begin(&limited()?)?;
    actor.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    actor.order("exec")?;
    actor.expect(&[
        ("init", SUCCESS),
        ("context 0", SUCCESS),
        (&take(LIMIT / MIB), SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
    ])
}

fn execs_idle() -> Result {
    let run = limited()?;
    let mut other = begin(&run)?;
    let mut actor = begin(&run)?;
    actor.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    actor.order("exec")?;
    actor.call("nothing")?; // it is the new program that answers
    other.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    actor.call("nothing").map(drop)
}

/// `execve` moves the stack, and a process may say of itself that it is elsewhere.
fn moved_stack() -> Result {
    let run = limited()?;
    let mut first = begin(&run)?;
    first.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    let moved = first.call("move-stack 64")?;
    if moved.code != 0 {
        return Err(Stop::skip("this kernel lets no process set its PR_SET_MM_MAP"));
    }
    begin(&run)?.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
    first.expect(&[("alloc b 1", OUT_OF_MEMORY), ("free a", SUCCESS)])?;
    let mut second = begin(&run)?;
    second.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    // What it executes is another program all the same.
    second.call("move-stack 64")?;
    second.order("exec")?;
    second.call("nothing")?;
    first.expect(&[(&take(LIMIT / MIB), SUCCESS)])
}

fn zombie() -> Result {
    let run = limited()?;
    let mut parent = run.start()?;
    // The parent has not touched the driver, so the child can.
    parent.expect(&[
        ("fork-zombie", 0),
        ("init", SUCCESS),
        ("context 0", SUCCESS),
        (&take(LIMIT / MIB), SUCCESS),
    ])?;
    parent.order("vanish 0")?;
    parent.answer("fork-zombie")?; // now the parent speaks, and its child is a zombie
    all_is_back(&run)
}

/// A parent holds 600 MiB; its forked child does this and dies; the parent must hold what it held.
fn with_child(orders: &[&str]) -> Result {
    let run = limited()?;
    let mut parent = begin(&run)?;
    parent.expect(&[(&take(600), SUCCESS), ("fork", 0)])?;
    for order in orders {
        parent.call(order)?;
    }
    parent.order("vanish 7")?;
    let end = parent.answer("fork")?;
    if end.code != 7 {
        return Err(Stop::fail(format!("the child ended with {}", end.code)));
    }
    let mut other = begin(&run)?;
    other.expect(&[(&take(425), OUT_OF_MEMORY), (&take(424), SUCCESS), ("free a", SUCCESS)])?;
    parent.expect(&[("free a", SUCCESS), (&take(LIMIT / MIB), SUCCESS)])
}

fn child_dies() -> Result {
    with_child(&[])
}

fn child_frees() -> Result {
    with_child(&["free a", "reset 0", "init", "free a"])
}

fn child_begins() -> Result {
    let run = limited()?;
    let mut parent = run.start()?;
    parent.expect(&[
        ("fork", 0),
        ("init", SUCCESS),
        ("context 0", SUCCESS),
        (&take(LIMIT / MIB), SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
    ])?;
    let mut other = begin(&run)?;
    other.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
    parent.order("vanish 0")?;
    parent.answer("fork")?;
    other.expect(&[(&take(LIMIT / MIB), SUCCESS)])
}

fn child_of_a_failure() -> Result {
    let run = limited()?;
    let mut parent = run.clone().env("STUB_GPU_FAIL", "cuInit:100@1").start()?;
    parent.expect(&[
        ("init", 100),
        ("fork", 0),
        ("init", SUCCESS),
        ("context 0", SUCCESS),
        (&take(LIMIT / MIB), SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
    ])?;
    parent.order("vanish 7")?;
    parent.answer("fork")?; // the parent's own: its child has ended
    all_is_back(&run)
}

fn stopped() -> Result {
    let run = limited()?;
    let (mut first, mut second) = (begin(&run)?, begin(&run)?);
    first.expect(&[(&take(500), SUCCESS)])?;
    first.signal(libc::SIGSTOP)?;
    second.expect(&[(&take(525), OUT_OF_MEMORY), (&take(524), SUCCESS)])?;
    second.expect(&[("free a", SUCCESS)])?;
    first.signal(libc::SIGCONT)?;
    first.expect(&[("free a", SUCCESS), (&take(LIMIT / MIB), SUCCESS)])
}

fn many_deaths() -> Result {
    Machine::not_emulated(NO_ROBUST_LOCK)?;
    let run = limited()?;
    let deaths = match Driver::available() {
        Driver::Card => 20,
        _ if cfg!(debug_assertions) => 100,
        _ => 1000,
    };
    for _ in 0..deaths {
        let mut actor = begin(&run)?;
        actor.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
        actor.kill()?;
    }
    all_is_back(&run)
}

fn last_words() -> Result {
    let world = World::with_shim(Driver::available())?;
    let run: Run = free_contexts(world.run(&Program::new("last_words").build()?)?);
    let output = run.output()?.success()?;
    for place in ["free0", "free1", "free2"] {
        if output.number(place)? != SUCCESS {
            return Err(Stop::fail(output));
        }
    }
    all_is_back(&run.program(&Program::new("actor").build()?))
}

fn leaving(way: &str) -> Result {
    Machine::not_emulated(NO_ROBUST_LOCK)?;
    let world = World::with_shim(Driver::available())?;
    let run = free_contexts(world.run(&Program::new("leaving").build()?)?).arg(way);
    for _ in 0..10 {
        let output = run.output()?;
        if output.code() != Some(7) || !output.stderr.is_empty() {
            return Err(Stop::fail(output));
        }
    }
    all_is_back(&run.program(&Program::new("actor").build()?))
}
