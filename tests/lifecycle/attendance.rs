//! By what the processes of a ledger know that one has died: a segment of System V shared memory that the system counts.
//! It is there as long as one of them is, and says nothing of a child that has not begun; without it all holds as well.

use crate::surroundings::mounted;
use crate::{LIMIT, MIB, OUT_OF_MEMORY, SUCCESS, all_is_back, begin, limited, take};
use gpucap_tests::{Actor, Machine, Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::ffi::OsStr;
use std::fs;
use std::time::Instant;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("every process is counted once, a fork is not, and nothing is left behind", counted),
        trial("what a process held is back when another one comes as it dies", replaced),
        trial("cuMemGetInfo shows what is back before a second has passed", shown),
        trial("in another IPC namespace the limit holds and the dead come back", other_namespace),
        trial("a foreign segment that the ledger names is left alone", foreign),
    ]
}

/// Why these are not tried: without it no segment is joined.
const NO_SEGMENT: &str = "the emulator refuses MADV_DONTFORK";

/// How many have attached the segment that the ledger names; `None` if it is gone.
fn attached(run: &Run) -> Result<Option<u64>> {
    const NAME: std::ops::Range<usize> = 64..68;
    let ledger = fs::read(run.directory().join("ledger"))?;
    let id = ledger.get(NAME).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let id = id.ok_or_else(|| Stop::fail("the ledger is short"))?.to_string();
    let list = fs::read_to_string("/proc/sysvipc/shm")?;
    // key shmid perms size cpid lpid nattch
    let line = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut found = line.filter(|words| words.get(1) == Some(&id.as_str()));
    Ok(found.next().and_then(|words| words.get(6)?.parse().ok()))
}

fn expect(run: &Run, expected: Option<u64>) -> Result {
    match attached(run)? {
        found if found == expected => Ok(()),
        found => Err(Stop::fail(format!("attached: {found:?}, not {expected:?}"))),
    }
}

fn counted() -> Result {
    Machine::not_emulated(NO_SEGMENT)?;
    let run = limited()?;
    let mut first = begin(&run)?;
    expect(&run, Some(1))?;
    let mut second = begin(&run)?;
    expect(&run, Some(2))?;
    second.expect(&[("fork", 0), ("nothing", 9999)])?; // its child answers
    expect(&run, Some(2))?;
    second.kill()?;
    first.expect(&[("init", SUCCESS)])?;
    expect(&run, Some(1))?;
    first.kill()?;
    expect(&run, None)?;
    all_is_back(&run)
}

fn replaced() -> Result {
    let run = limited()?;
    let mut first = begin(&run)?;
    for _ in 0..16 {
        let mut second = begin(&run)?;
        second.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
        first.expect(&[("alloc b 1", OUT_OF_MEMORY)])?;
        second.kill()?;
        let third = begin(&run)?;
        first.expect(&[(&take(LIMIT / MIB), SUCCESS), ("free a", SUCCESS)])?;
        drop(third);
    }
    Ok(())
}

fn shown() -> Result {
    let run = limited()?;
    let (mut first, mut second) = (begin(&run)?, begin(&run)?);
    second.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
    while first.call("info z")?.extra != 0 {} // asked not long ago, so that the next answer need not look
    second.kill()?;
    let killed = Instant::now();
    // The answer that the last question before the end of that second had, which may be late.
    loop {
        let asked = killed.elapsed();
        if first.call("info z")?.extra == LIMIT {
            return Ok(());
        }
        if asked.as_secs() >= 1 {
            return Err(Stop::fail("what is back is not shown a second later"));
        }
    }
}

fn other_namespace() -> Result {
    let run = limited()?;
    mounted(run.clone(), "")?.output()?; // skips where no namespace can be had
    let apart = run.clone().through(&["unshare", "--ipc"].map(OsStr::new));
    let mut near = begin(&run)?;
    let there = |run: &Run| -> Result<Actor> {
        let mut actor = begin(run)?;
        actor.expect(&[(&take(LIMIT / MIB), SUCCESS)])?;
        Ok(actor)
    };
    for run in [&apart, &run, &apart] {
        let mut other = there(run)?;
        near.expect(&[("alloc b 1", OUT_OF_MEMORY)])?;
        other.kill()?;
        near.expect(&[(&take(LIMIT / MIB), SUCCESS), ("free a", SUCCESS)])?;
    }
    Ok(())
}

fn foreign() -> Result {
    Machine::not_emulated(NO_SEGMENT)?;
    let run = limited()?;
    drop(begin(&run)?);
    // SAFETY: no memory is involved.
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | 0o600) };
    let path = run.directory().join("ledger");
    let mut ledger = fs::read(&path)?;
    let name = id.cast_unsigned().to_le_bytes();
    ledger[64..68].copy_from_slice(&name);
    fs::write(&path, ledger)?;
    let mut actor = begin(&run)?;
    let held = fs::read(&path)?[64..68] == name;
    // SAFETY: the segment made above.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    if held {
        return Err(Stop::fail("a foreign segment was joined"));
    }
    expect(&run, Some(1))?;
    actor.expect(&[(&take(LIMIT / MIB), SUCCESS), ("alloc b 1", OUT_OF_MEMORY)])
}
