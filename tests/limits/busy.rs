//! What NVML says of time, and of who uses the card: the container's part of it, where it is limited.

use crate::{GIB, LIMIT, MIB, SUCCESS, begin, with_limit};
use gpucap_tests::{Actor, Driver, Program, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;

const NOT_SUPPORTED: u64 = 3;
const NOT_FOUND: u64 = 6;
const INSUFFICIENT_SIZE: u64 = 7;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("utilisation is the container's share where time is limited", rates),
        trial("utilisation is the card's where only memory is limited", rates_of_the_card),
        trial("samples are the container's, window by window", samples),
        trial("a process is listed with its share, and once per window", processes),
        trial("a list that is too short says how long it is", short_lists),
        trial("a process that worked is listed, one outside of the container is not", worked),
        trial("no process is listed as busy where only memory is limited", memory_only),
        trial("a process of a container without a memory limit is listed without bytes", time_only),
        trial("accounts of the card list no process", accounts),
        trial("a MIG instance is listed with its own numbers", mig),
    ]
}

/// Who looks, and keeps the card busy: not yet started.
fn observer(run: &Run) -> Result<Run> {
    Ok(run.clone().program(&Program::new("busy").build()?))
}

/// The numbers that answer a command.
fn ask(observer: &mut Actor, command: &str) -> Result<Vec<u64>> {
    observer.order(command)?;
    let line = observer.line()?;
    let number = |word: &str| word.parse().map_err(|_| Stop::fail(format!("{command}: {line}")));
    line.split(' ').map(number).collect()
}

fn same(command: &str, found: &[u64], expected: &[u64]) -> Result {
    if found == expected {
        Ok(())
    } else {
        Err(Stop::fail(format!("{command}: {found:?}, not {expected:?}")))
    }
}

fn answers(observer: &mut Actor, command: &str, expected: &[u64]) -> Result {
    let found = ask(observer, command)?;
    same(command, &found, expected)
}

/// Asks right after the ledger was told what to say; again, if the answer took so long that the words were out of date.
fn answers_while_busy(
    run: &Run,
    pid: u32,
    permille: [u64; 2],
    observer: &mut Actor,
    command: &str,
) -> Result<Vec<u64>> {
    for _ in 0..100 {
        let [device, process] = permille;
        let written = run.set_busy(pid, device, process)?;
        let answer = ask(observer, command)?;
        if Run::window() <= written + 2 {
            return Ok(answer);
        }
    }
    Err(Stop::fail("the machine is too slow to be asked in time"))
}

/// A container with both limits, a process in it, and an observer.
fn limited() -> Result<(Run, Actor, Actor)> {
    let run = with_limit(&LIMIT.to_string())?.env("GPU_CORE_PCT", "50");
    let mut actor = begin(&run)?;
    actor.expect(&[(&format!("alloc a {MIB}"), SUCCESS)])?;
    let observer = observer(&run)?.start()?;
    Ok((run, actor, observer))
}

fn rates() -> Result {
    let (run, actor, mut observer) = limited()?;
    answers(&mut observer, "rates", &[SUCCESS, 0, 0])?;
    for (permille, percent) in [(300, 30), (4, 0), (5, 1), (1000, 100)] {
        let words = [permille, 0];
        let found = answers_while_busy(&run, actor.pid(), words, &mut observer, "rates")?;
        same("rates", &found, &[SUCCESS, percent, 0])?;
    }
    Ok(())
}

fn rates_of_the_card() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let actor = begin(&run)?;
    let mut observer = observer(&run)?.start()?;
    let found = answers_while_busy(&run, actor.pid(), [300, 300], &mut observer, "rates")?;
    same("rates", &found, &[SUCCESS, 0, 0]) // no process computes on it
}

fn samples() -> Result {
    let (run, actor, mut observer) = limited()?;
    let words = [300, 0];
    let found = answers_while_busy(&run, actor.pid(), words, &mut observer, "samples 1 0 16")?;
    let values: Vec<u64> = found.iter().skip(3).step_by(2).copied().collect();
    same("samples", &found[..2], &[SUCCESS, 6])?;
    same("samples", &values, &[30; 6])?;
    let times: Vec<u64> = found.iter().skip(2).step_by(2).copied().collect();
    if !times.is_sorted() || times.first() == times.last() {
        return Err(Stop::fail(format!("{times:?}")));
    }
    // What is newer than the fourth: two of them, or more if time has gone on.
    let command = format!("samples 1 {} 16", times[3]);
    let found = answers_while_busy(&run, actor.pid(), words, &mut observer, &command)?;
    if found[0] != SUCCESS || found[1] < 2 || found[2] <= times[3] {
        return Err(Stop::fail(format!("{command}: {found:?} after {times:?}")));
    }
    let found = answers_while_busy(&run, actor.pid(), words, &mut observer, "samples 1 0 2")?;
    same("samples", &found[..2], &[SUCCESS, 2])?;
    // Memory was not busy for longer than the container was; of the stub's, not at all.
    let found = answers_while_busy(&run, actor.pid(), words, &mut observer, "samples 2 0 16")?;
    same("samples", &found[..1], &[SUCCESS])?;
    // The driver says how many there may be: the stub keeps 64, the present one included.
    answers(&mut observer, "samples 1 0 0", &[SUCCESS, 63])?;
    answers(&mut observer, "samples 1 18446744073709551615 16", &[NOT_FOUND, 0])
}

fn processes() -> Result {
    let (run, actor, mut observer) = limited()?;
    let pid = actor.pid();
    for verb in ["processes", "list"] {
        answers(&mut observer, &format!("{verb} 0 4"), &[NOT_FOUND, 0])?;
        let found =
            answers_while_busy(&run, pid, [900, 200], &mut observer, &format!("{verb} 0 4"))?;
        let [code, count, who, time, share] = found[..] else {
            return Err(Stop::fail(format!("{verb}: {found:?}")));
        };
        same(verb, &[code, count, who, share], &[SUCCESS, 1, pid.into(), 20])?;
        // Long after what was last seen there is nothing.
        let later = format!("{verb} {} 4", time + 60_000_000);
        let found = answers_while_busy(&run, pid, [900, 200], &mut observer, &later)?;
        same(&later, &found, &[NOT_FOUND, 0])?;
        let earlier = format!("{verb} {} 4", time - 300_000);
        let found = answers_while_busy(&run, pid, [900, 200], &mut observer, &earlier)?;
        same(&earlier, &[found[0], found[1], found[4]], &[SUCCESS, 1, 20])?;
        run.set_busy(pid, 0, 0)?;
    }
    Ok(())
}

fn short_lists() -> Result {
    let (run, actor, mut observer) = limited()?;
    for command in ["processes 0 0", "list 0 0"] {
        let found = answers_while_busy(&run, actor.pid(), [900, 200], &mut observer, command)?;
        same(command, &found, &[INSUFFICIENT_SIZE, 1])?;
    }
    Ok(())
}

/// A process outside of the container keeps the card busy.
fn outsider(run: &Run) -> Result<Actor> {
    let card = run.directory().join("card");
    let bare = World::bare(Driver::Stub).run(&Program::new("busy").build()?)?;
    let mut outsider = bare.env("STUB_GPU_DIR", card).env("STUB_GPU_CONTEXT_MEM", "1").start()?;
    answers(&mut outsider, "begin", &[SUCCESS])?;
    answers(&mut outsider, "work spin_100ms", &[SUCCESS])?;
    Ok(outsider)
}

/// It works until the driver lists it, and no other process: a sample of the stub is over after a sixth of a second.
fn is_listed(outsider: &mut Actor) -> Result {
    for _ in 0..20 {
        let found = ask(outsider, "processes 0 8")?;
        if let [SUCCESS, 1, pid, ..] = found[..] {
            return same("processes", &[pid], &[outsider.pid().into()]);
        }
        same("processes", &found, &[NOT_FOUND, 0])?;
        answers(outsider, "work spin_100ms", &[SUCCESS])?;
    }
    Err(Stop::fail("the stub does not list who was busy"))
}

fn worked() -> Result {
    let (run, _actor, mut looks) = limited()?;
    let mut works = observer(&run)?.start()?;
    answers(&mut works, "begin", &[SUCCESS])?;
    let mut outsider = outsider(&run)?;
    is_listed(&mut outsider)?;
    for _ in 0..200 {
        answers(&mut works, "work spin_20ms", &[SUCCESS])?;
        answers(&mut outsider, "work spin_1ms", &[SUCCESS])?;
        let found = ask(&mut looks, "processes 0 8")?;
        if found == [NOT_FOUND, 0] {
            continue; // its time is not settled yet
        }
        let [code, count, pid, _, share] = found[..] else {
            return Err(Stop::fail(format!("{found:?}")));
        };
        same("processes", &[code, count, pid], &[SUCCESS, 1, works.pid().into()])?;
        let rates = ask(&mut looks, "rates")?;
        if share > 100 || rates[0] != SUCCESS || rates[1] > 100 {
            return Err(Stop::fail(format!("{found:?} {rates:?}")));
        }
        if share > 0 && rates[1] > 0 {
            return Ok(());
        }
    }
    Err(Stop::fail("who works is never listed"))
}

fn memory_only() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut looks = observer(&run)?.start()?;
    let mut outsider = outsider(&run)?;
    is_listed(&mut outsider)?;
    answers(&mut looks, "processes 0 8", &[NOT_FOUND, 0])?;
    answers(&mut looks, "list 0 8", &[NOT_FOUND, 0])
}

fn time_only() -> Result {
    let run = crate::without_limit()?.env("GPU_CORE_PCT", "100");
    let mut works = observer(&run)?.start()?;
    let mut looks = observer(&run)?.start()?;
    answers(&mut works, "begin", &[SUCCESS])?;
    let _outsider = outsider(&run)?;
    answers(&mut looks, "computing 8", &[SUCCESS, 0])?;
    let pid = u64::from(works.pid());
    for _ in 0..200 {
        answers(&mut works, "work spin_20ms", &[SUCCESS])?;
        let found = ask(&mut looks, "computing 8")?;
        if found.len() > 2 {
            return same("computing", &found, &[SUCCESS, 1, pid, u64::MAX, u64::from(u32::MAX)]);
        }
    }
    Err(Stop::fail("who works is never listed"))
}

fn accounts() -> Result {
    let run = with_limit(&LIMIT.to_string())?;
    let mut outsider = outsider(&run)?;
    // Off: the driver says so.
    let mut looks = observer(&run)?.start()?;
    answers(&mut looks, "accounts 8", &[NOT_SUPPORTED, 8])?;
    let account = format!("account {}", outsider.pid());
    answers(&mut looks, &account, &[NOT_SUPPORTED, 0])?;
    let run = run.env("STUB_GPU_ACCOUNTING", "on");
    let mut bare = World::bare(Driver::Stub)
        .run(&Program::new("busy").build()?)?
        .env("STUB_GPU_DIR", run.directory().join("card"))
        .env("STUB_GPU_ACCOUNTING", "on")
        .start()?;
    answers(&mut bare, "accounts 8", &[SUCCESS, 1, outsider.pid().into()])?;
    answers(&mut bare, "accounts 0", &[INSUFFICIENT_SIZE, 1])?;
    answers(&mut bare, &account, &[SUCCESS, 1])?;
    let mut looks = observer(&run)?.start()?;
    answers(&mut looks, "accounts 8", &[SUCCESS, 0])?;
    answers(&mut looks, "accounts 0", &[SUCCESS, 0])?;
    answers(&mut looks, &account, &[NOT_FOUND, 0])?;
    outsider.kill()
}

fn mig() -> Result {
    let run =
        with_limit("1Gi")?.env("STUB_GPU_MIG", "0=5GiB+10GiB").env("CUDA_VISIBLE_DEVICES", "0");
    let mut actor = begin(&run)?;
    actor.expect(&[(&format!("alloc a {}", GIB), SUCCESS)])?;
    let mut looks = observer(&run)?.env("BUSY_SLICE", "0").start()?;
    let pid = u64::from(actor.pid());
    answers(&mut looks, "computing 8", &[SUCCESS, 1, pid, GIB, 1])?;
    answers(&mut looks, "rates", &[NOT_SUPPORTED, 0, 0])
}
