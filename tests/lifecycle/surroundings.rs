//! Places in which a program may find itself: without descriptors, files, /proc or shared memory. Either the limit holds
//! there, or no GPU work is done and one line says why; the program is never killed by it.

use crate::{
    INVALID_VALUE, LIMIT, MIB, NOT_READY, OUT_OF_MEMORY, SUCCESS, begin, free_contexts, limited,
    take,
};
use gpucap_tests::{Actor, Driver, Machine, Output, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("without a descriptor to be had nothing works", starved_early),
        trial("without a descriptor for a moment the next cuInit works", starved_once),
        trial("without a further descriptor the limit goes on to hold", starved_late),
        trial("without memory for lists to copy a batch is refused", || cramped("batch")),
        trial("with memory for one copy of a list it is read", || cramped("tiles")),
        trial("where files may not grow nothing works, and no process is killed", small_files),
        trial("where files may not grow a ledger that is there works", small_files_later),
        trial("on a kernel without MADV_WIPEONFORK nothing works", no_advice),
        trial("without /proc the limit holds", no_proc),
        trial("a process without /proc is not taken for dead", no_proc_is_not_dead),
        trial("a process of another pid namespace is not taken for dead", other_namespace),
        trial("with the /proc of another pid namespace the dead come back", foreign_proc_dead),
        trial(
            "with the /proc of another pid namespace no process is taken for dead",
            foreign_proc_alive,
        ),
        trial(
            "a process with other clocks than those of the ledger does no GPU work",
            other_clocks,
        ),
        trial("by itself the ledger is one per user and container, and private", default_ledger),
        trial("without a place for the ledger nothing works", no_shared_memory),
        trial("a ledger of another user means no GPU work", not_ours),
    ]
}

/// Lets a shell prepare the run's place first.
pub(crate) fn after(run: Run, script: &str) -> Run {
    let script = format!("{script}\nexec \"$@\"");
    run.through(&["sh".as_ref(), "-ec".as_ref(), script.as_ref(), "sh".as_ref()])
}

/// The same as root of a mount namespace.
pub(crate) fn mounted(run: Run, script: &str) -> Result<Run> {
    Machine::not_emulated(
        "what mounts is a program of this machine, which the preload is not for",
    )?;
    let words = ["unshare", "--mount", "--propagation", "private"];
    let probe = Command::new(words[0]).args(&words[1..]).arg("true").output()?;
    if !probe.status.success() {
        return Err(Stop::skip(String::from_utf8_lossy(&probe.stderr).trim()));
    }
    Ok(after(run, script).through(&words.map(OsStr::new)))
}

/// Beside a process that [`mounted`] has started.
pub(crate) fn beside(run: Run, actor: &Actor) -> Run {
    let pid = actor.pid().to_string();
    run.through(&["nsenter".as_ref(), "--mount".as_ref(), "--target".as_ref(), pid.as_ref()])
}

/// No GPU work, and one line that holds `reason`.
fn refused(run: &Run, reason: &str) -> Result {
    let mut actor = run.start()?;
    actor.expect(&[("init", NOT_READY)])?;
    if actor.call("create a 2097152 0")?.code == SUCCESS {
        return Err(Stop::fail("memory was given"));
    }
    one_line(actor.end()?.success()?, reason)
}

pub(crate) fn one_line(output: Output, reason: &str) -> Result {
    if output.stderr.lines().count() == 1 && output.stderr.contains(reason) {
        Ok(())
    } else {
        Err(Stop::fail(output))
    }
}

pub(crate) fn holds(actor: &mut Actor) -> Result {
    actor.expect(&[
        ("init", SUCCESS),
        ("context 0", SUCCESS),
        (&format!("alloc a {}", LIMIT + 1), OUT_OF_MEMORY),
        (&take(LIMIT / MIB), SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
    ])
}

fn starved(when: &str) -> Result<Output> {
    let run = World::with_shim(Driver::available())?.run(&Program::new("starved").build()?)?;
    let run = free_contexts(run).env("GPUCAP_LOG", "error");
    run.env("GPU_MEM_LIMIT", "4Gi").arg(when).output()?.success()
}

fn starved_early() -> Result {
    let output = starved("early")?;
    if output.number("init")? == NOT_READY {
        one_line(output, "ledger")
    } else {
        Err(Stop::fail(output))
    }
}

fn starved_once() -> Result {
    let output = starved("once")?;
    let seen = ["init", "again", "over", "small"].map(|name| output.number(name));
    let [init, again, over, small] = seen;
    if (init?, again?, over?, small?) == (NOT_READY, SUCCESS, OUT_OF_MEMORY, SUCCESS) {
        one_line(output, "ledger")
    } else {
        Err(Stop::fail(output))
    }
}

fn starved_late() -> Result {
    let output = starved("late")?;
    if output.number("over")? == OUT_OF_MEMORY && output.number("small")? == SUCCESS {
        Ok(())
    } else {
        Err(Stop::fail(output))
    }
}

/// A list as long as the caller likes is copied; the process is never killed for it.
fn cramped(what: &str) -> Result {
    Machine::not_emulated("a limit of the address space is the emulator's")?;
    let program = Program::new("cramped").flags(&["-lcuda"]).build()?;
    let run = free_contexts(World::with_shim(Driver::available())?.run(&program)?);
    let run = run.env("GPU_MEM_LIMIT", "4Gi").env("GPU_CORE_PCT", "50");
    let output = run.arg(what).output()?.success()?;
    let (answer, after) = (output.number("answer")?, output.number("after")?);
    let as_expected =
        if what == "batch" { answer == OUT_OF_MEMORY } else { answer == INVALID_VALUE };
    if as_expected && after == SUCCESS { Ok(()) } else { Err(Stop::fail(output)) }
}

fn small_files() -> Result {
    let run = limited()?;
    // The card itself lies in a file that must be there.
    begin(&run.clone().env("GPUCAP_LEDGER", run.directory().join("other")))?;
    refused(&after(run, "ulimit -f 1"), "ledger")
}

fn small_files_later() -> Result {
    let run = limited()?;
    begin(&run)?;
    holds(&mut after(run, "ulimit -f 1").start()?)
}

fn no_advice() -> Result {
    Machine::not_emulated("there is no seccomp")?;
    let wrapper = Program::new("no_advice").build()?;
    refused(&limited()?.through(&[wrapper.as_os_str()]), "fork")
}

fn no_proc() -> Result {
    holds(&mut mounted(limited()?, "umount -l /proc")?.start()?)
}

fn no_proc_is_not_dead() -> Result {
    let run = limited()?;
    let mut without = mounted(run.clone(), "umount -l /proc")?.start()?;
    holds(&mut without)?;
    begin(&run)?.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
    without.expect(&[("free a", SUCCESS)])?;
    begin(&run)?.expect(&[(&take(LIMIT / MIB), SUCCESS)])
}

fn other_namespace() -> Result {
    let run = limited()?;
    let words = ["unshare", "--pid", "--fork", "--mount-proc"];
    mounted(run.clone(), "")?.output()?; // skips where no namespace can be had
    let mut inside = run.clone().through(&words.map(OsStr::new)).start()?;
    holds(&mut inside)?;
    let mut outside = begin(&run)?;
    outside.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
    inside.expect(&[("free a", SUCCESS)])?;
    outside.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    inside.expect(&[("alloc a 1", OUT_OF_MEMORY)])
}

/// In a time namespace of its own, whose monotonic clock is ahead by 1000 s.
fn other_clocks() -> Result {
    let run = limited()?;
    let words = ["unshare", "--time", "--fork", "--monotonic", "1000"];
    let inside = run.clone().through(&words.map(OsStr::new));
    let probe = Command::new(words[0]).args(&words[1..]).arg("true").output()?;
    if !probe.status.success() {
        return Err(Stop::skip(String::from_utf8_lossy(&probe.stderr).trim()));
    }
    // Where all processes have the same, it is theirs.
    let alone = inside.clone().env("GPUCAP_LEDGER", run.directory().join("other"));
    holds(&mut alone.start()?)?;
    begin(&run)?;
    refused(&inside, "time namespace")
}

/// A pid namespace that sees the /proc of the one around it; its first process, and a way for others to get into it.
fn foreign_proc(run: &Run) -> Result<(Actor, Run)> {
    mounted(run.clone(), "")?.output()?; // skips where no namespace can be had
    let mut first = run.clone().through(&["unshare", "--pid", "--fork"].map(OsStr::new)).start()?;
    first.call("nothing")?; // it is there
    let namespace = format!("--pid=/proc/{}/ns/pid_for_children", first.pid());
    let inside = run.clone().through(&["nsenter", &namespace].map(OsStr::new));
    Ok((first, inside))
}

fn foreign_proc_dead() -> Result {
    let (_first, inside) = foreign_proc(&limited()?)?;
    // Of this many numbers some belong to a process of the namespace around, and some to none.
    for _ in 0..8 {
        let mut second = begin(&inside)?;
        second.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
        second.order("vanish 0")?;
        second.end()?;
    }
    begin(&inside)?.expect(&[(&take(LIMIT / MIB), SUCCESS)])
}

fn foreign_proc_alive() -> Result {
    let (mut first, inside) = foreign_proc(&limited()?)?;
    first.expect(&[("init", SUCCESS), ("context 0", SUCCESS), (&take(1), SUCCESS)])?;
    let mut second = begin(&inside)?;
    second.expect(&[(&take(LIMIT / MIB - 1), SUCCESS)])?;
    begin(&inside)?.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
    first.expect(&[("alloc b 1", OUT_OF_MEMORY), ("free a", SUCCESS)])?;
    second.expect(&[("alloc b 1048576", SUCCESS), ("alloc c 1", OUT_OF_MEMORY)])
}

fn default_ledger() -> Result {
    let run = limited()?.env("GPUCAP_LEDGER", "");
    let place = "mount -t tmpfs tmpfs /dev/shm";
    let mut first = mounted(run.clone(), place)?.start()?;
    holds(&mut first)?;
    // Another user's setting or another limit does not lead to another book.
    let second = beside(run.clone().env("GPU_MEM_LIMIT", "2Gi"), &first);
    begin(&second)?.expect(&[(&take(LIMIT / MIB), SUCCESS), ("alloc b 1", OUT_OF_MEMORY)])?;
    let look = after(run.clone().program("".as_ref()), "set -- stat -c '%a %u' /dev/shm/*");
    let list = beside(look, &first).output()?.success()?;
    let own = format!("600 {}\n", fs::metadata(run.directory())?.uid());
    if list.stdout != own {
        return Err(Stop::fail(list));
    }
    // Another container has a book of its own.
    holds(&mut mounted(run, place)?.start()?)
}

fn no_shared_memory() -> Result {
    let run = limited()?.env("GPUCAP_LEDGER", "");
    refused(&mounted(run.clone(), "mount -t tmpfs -o ro tmpfs /dev/shm")?, "/dev/shm/gpucap-")?;
    refused(&mounted(run, "mount -t tmpfs tmpfs /dev")?, "/dev/shm/gpucap-")
}

fn not_ours() -> Result {
    let run = limited()?;
    begin(&run)?;
    let ledger = run.directory().join("ledger");
    if let Err(why) = chown(&ledger, Some(65534), None) {
        return Err(Stop::skip(format!("no file can be given to another user here: {why}")));
    }
    refused(&run, "belongs to user 65534")
}
