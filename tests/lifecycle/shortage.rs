//! A place for the ledger that has no room left, from the start or later. Writing to a map of a file that its file system
//! has no memory for is a SIGBUS: whatever the ledger writes to must be there before, or no GPU work is done and one line
//! says why.

use crate::surroundings::{after, beside, holds, mounted, one_line};
use crate::{LIMIT, MIB, NOT_READY, OUT_OF_MEMORY, SUCCESS, begin, limited, take};
use gpucap_tests::{Actor, Result, Run, Stop, trial};
use libtest_mimic::Trial;

/// What the place holds when it is empty.
const ROOM: &str = "mount -t tmpfs -o size=1m tmpfs /dev/shm";
/// Takes all of it that is left.
const FILL: &str = "head -c 1m /dev/zero >/dev/shm/rest 2>/dev/null || true";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "where files have no room no process is killed, and the limit holds or nothing works",
            full,
        ),
        trial(
            "a device first used when the room is gone is refused, or its limit holds",
            later_device,
        ),
        trial(
            "a process begun when the room is gone is refused, or its limit holds",
            later_process,
        ),
    ]
}

/// An actor whose ledger lies where it lies by itself.
fn by_itself() -> Result<Run> {
    Ok(limited()?.env("GPUCAP_LEDGER", "").env("GPUCAP_LOG", "error"))
}

fn full() -> Result {
    let mut worked = 0;
    for left_kib in (0..=128).step_by(4) {
        let fill =
            format!("{ROOM}; head -c $((1048576 - {left_kib} * 1024)) /dev/zero >/dev/shm/full");
        let mut actor = mounted(by_itself()?, &fill)?.start()?;
        match actor.call("init")?.code {
            NOT_READY => one_line(actor.end()?.success()?, "ledger")?,
            _ => match actor.call("context 0")?.code {
                SUCCESS => {
                    holds(&mut actor)?;
                    worked += 1;
                }
                _ => one_line(actor.end()?.success()?, "ledger")?,
            },
        }
    }
    // With 128 KiB there is room for one process.
    if worked > 0 { Ok(()) } else { Err(Stop::fail("nothing worked with 128 KiB left")) }
}

fn fill(run: &Run, first: &Actor) -> Result {
    beside(after(run.clone().program("true".as_ref()), FILL), first).output()?.success().map(drop)
}

/// The limit holds, or nothing is given and one line says why.
fn held_or_refused(mut actor: Actor, use_it: &str) -> Result {
    if actor.call(use_it)?.code == SUCCESS && actor.call(&take(LIMIT / MIB))?.code == SUCCESS {
        return actor.expect(&[("alloc b 1", OUT_OF_MEMORY)]);
    }
    if actor.call("alloc c 1")?.code == SUCCESS {
        return Err(Stop::fail("memory was given without a place to note it"));
    }
    one_line(actor.end()?.success()?, "ledger")
}

fn later_device() -> Result {
    let run = by_itself()?.env("STUB_GPU_COUNT", "2");
    let mut actor = mounted(run.clone(), ROOM)?.start()?;
    holds(&mut actor)?;
    fill(&run, &actor)?;
    held_or_refused(actor, "context 1")
}

fn later_process() -> Result {
    // The books of sixteen processes share a page.
    let run = by_itself()?;
    let mut first = mounted(run.clone(), ROOM)?.start()?;
    first.call("nothing")?; // it is where it is to be
    let place = beside(run.clone(), &first);
    let crowd = (0..16).map(|_| begin(&place)).collect::<Result<Vec<_>>>()?;
    fill(&run, &first)?;
    let mut next = place.start()?;
    if next.call("init")?.code != SUCCESS {
        return one_line(next.end()?.success()?, "ledger");
    }
    held_or_refused(next, "context 0")?;
    drop(crowd);
    Ok(())
}
