//! Every way of giving a card work, in random orders: what is charged is what the card was kept busy.
//!
//! `throttle/times.c` makes the calls. Whenever nothing is in flight it compares the card's own count of the time for which
//! it worked with the ledger's: too little is a hole, too much is taken from a program that did nothing wrong. A seed says
//! the order. Longer: `GPUCAP_TEST_SEEDS`, `GPUCAP_TEST_CALLS` (steps of each process); `GPUCAP_TEST_FIRST` is added to the
//! seeds.
//!
//! Kernels last as long as they say, and events have the card's own times, so a machine that is late changes little of
//! either sum. What it adds: a thread that is held up between an event and its launch is charged for that in an empty
//! stream, and work in flight when its context ends, to the return of the call. So there is more room above.
//!
//! Who ends with work in flight leaves what is not entered yet, which is at most what the bucket holds and one operation;
//! who comes next may charge two seconds for it. Only too little is a failure there.

use crate::{MS, lasts, under, within};
use gpucap_tests::{Output, Result, Run, Stop, trial};
use libtest_mimic::Trial;
use std::env;
use std::ops::Range;
use std::time::Duration;

/// Steps of a sequence, each of some calls.
const STEPS: u64 = 90;
/// What a driver may do in one way or another; the seed says in which.
const CARDS: &[&[(&str, &str)]] = &[
    &[],
    &[("STUB_GPU_EVENTS", "in-turn")],
    &[("STUB_GPU_EVENT_CONTEXT", "current")],
    &[("STUB_GPU_CONTEXT_END", "drops")],
];
/// Beyond nine tenths, and thirteen, of what was done between two moments with nothing in flight.
const SHORT: u64 = 5 * MS;
const OVER: u64 = 40 * MS;
/// What a bucket holds at this share, and the longest operation: a graph of four kernels.
const NOT_ENTERED: u64 = (36 + 4 * 30) * MS;
/// What may be charged for work that was in flight when its process ended.
const OWED: u64 = 2_000 * MS;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("no sequence of calls is charged less or more than it keeps the card busy", alone),
        trial("no sequences of two processes are charged less or more than they do", together),
        trial("no sequence that ends with work in flight leaves more than that unpaid", left),
        trial("no sequence that is killed leaves more unpaid than was in flight", killed),
    ]
}

/// A number that a longer run sets.
fn number(name: &str, usual: u64) -> Result<u64> {
    match env::var(name) {
        Ok(text) => text.parse().map_err(|_| Stop::fail(format!("{name}={text} is no number"))),
        Err(_) => Ok(usual),
    }
}

fn steps() -> Result<u64> {
    number("GPUCAP_TEST_CALLS", STEPS)
}

/// The usual number of seeds, or the one that is asked for.
fn seeds(first: u64, usual: u64) -> Result<Range<u64>> {
    let first = first + number("GPUCAP_TEST_FIRST", 0)?;
    Ok(first..first + number("GPUCAP_TEST_SEEDS", usual)?)
}

/// A card and a ledger of their own for sequences of this seed.
fn card(seed: u64) -> Result<Run> {
    let run = under("90", "times")?.time_limit(Duration::from_secs(120));
    let kind = usize::try_from(seed).unwrap_or(0) % CARDS.len();
    let settings = CARDS[kind].iter().chain(&[("STUB_GPU_COPY_BYTES_PER_US", "1000")]);
    Ok(settings.fold(run, |run, (name, value)| run.env(name, value)))
}

fn sequence(run: &Run, seed: u64, steps: u64) -> Run {
    let ledger = run.directory().join("ledger");
    run.clone().arg(seed.to_string()).arg(steps.to_string()).arg(ledger)
}

/// What the card did for the processes that are gone, as the next one finds it.
fn found(run: &Run, seed: u64) -> Result<u64> {
    sequence(run, seed, 0).output()?.success()?.number("found")
}

fn judge(seed: u64, output: &Output) -> Result {
    let all = [output.number("failed")?, output.number("short")?, output.number("over")?];
    let right = all[0] == 0 && all[1] <= SHORT && output.number("calls")? > 0;
    if !right {
        return Err(Stop::fail(format!("seed {seed}: {output}")));
    }
    lasts(&format!("seed {seed}: {output}\nover"), all[2], 0..=OVER)
}

fn alone() -> Result {
    for seed in seeds(0, 24)? {
        judge(seed, &sequence(&card(seed)?, seed, steps()?).output()?.success()?)?;
    }
    Ok(())
}

/// Fails unless this time of several processes was charged.
fn compare(what: &str, busy: u64, charged: u64) -> Result {
    within(what, charged, (busy - busy / 10).saturating_sub(2 * SHORT)..=u64::MAX)?;
    lasts(what, charged, 0..=busy + busy / 10 * 3 + OVER)
}

fn together() -> Result {
    for seed in seeds(1_000_000, 6)? {
        let (run, other) = (card(seed)?, seed + 10_000_000);
        let mut both = [seed, other].map(|seed| sequence(&run, seed, steps()?).start());
        let mut outputs = String::new();
        for actor in &mut both {
            let actor = actor.as_mut().map_err(|stop| stop.clone())?;
            outputs += &actor.end()?.success()?.to_string();
        }
        let charged = run.busy_ns()?;
        compare(
            &format!("seeds {seed} and {other}: {outputs}\ncharged"),
            found(&run, seed)?,
            charged,
        )?;
    }
    Ok(())
}

/// Fails unless what was done was entered but for what was in flight; what the next process adds is bounded.
fn entered(run: &Run, seed: u64, calls: &str) -> Result {
    let charged = run.busy_ns()?;
    let busy = found(run, seed)?;
    let least = (busy - busy / 10).saturating_sub(NOT_ENTERED);
    let what = format!("seed {seed}: {calls}\nafter {busy} ns, charged");
    within(&what, charged, least..=u64::MAX)?;
    lasts(&what, charged, 0..=busy + busy / 10 * 3 + OVER)?;
    lasts(&what, run.busy_ns()?, least..=busy * 2 + OWED)
}

fn left() -> Result {
    for seed in seeds(2_000_000, 5)? {
        let run = card(seed)?;
        let output = sequence(&run, seed, steps()?).arg("exit").output()?.success()?;
        entered(&run, seed, &output.to_string())?;
    }
    Ok(())
}

fn killed() -> Result {
    for seed in seeds(3_000_000, 5)? {
        let run = card(seed)?;
        let mut actor = sequence(&run, seed, 0).arg("on").start()?;
        for _ in 0..20 + seed * 7 % 50 {
            actor.line()?;
        }
        actor.kill()?;
        entered(&run, seed, &actor.end()?.to_string())?;
    }
    Ok(())
}
