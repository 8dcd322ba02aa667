//! Launches of functions that were never measured, by several processes of a container: one at a time is in flight.

use crate::{BEGIN, LAUNCH, MS, WAIT, under, within};
use gpucap_tests::{Actor, Result, Run, trial};
use libtest_mimic::Trial;
use std::time::Instant;

/// For how long another process is waited for.
const PATIENCE_MS: u128 = 2_000;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a launch of unknown length waits for that of another process", measured),
        trial("a process that makes no call is waited for two seconds", silent),
        trial("a process that was killed is not waited for", killed),
    ]
}

/// A process with a kernel of this name.
fn begin(run: &Run, kernel: &str) -> Result<Actor> {
    let mut caller = run.start()?;
    let function = format!("call cuModuleGetFunction &c b '{kernel}");
    for command in BEGIN.iter().chain(&[function.as_str()]) {
        obeys(&mut caller, command)?;
    }
    Ok(caller)
}

fn obeys(caller: &mut Actor, command: &str) -> Result {
    caller.order(command)?;
    caller.line()?;
    Ok(())
}

/// The second process pays for the kernel of the first one, of which it knew nothing when it asked.
fn measured() -> Result {
    let run = under("50", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_300ms")?, begin(&run, "k_300ms")?];
    let began = Instant::now();
    obeys(&mut first, LAUNCH)?;
    second.order(LAUNCH)?;
    obeys(&mut first, WAIT)?;
    second.line()?;
    // The bucket holds 20 ms.
    within("passed, ms", began.elapsed().as_millis(), 560..=u128::MAX)?;
    let waited_ms = run.waited_ns()? / MS;
    within("waited, ms", waited_ms, 250..=u64::MAX)
}

fn silent() -> Result {
    let run = under("50", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_1ms")?, begin(&run, "k_1ms")?];
    obeys(&mut first, LAUNCH)?;
    let began = Instant::now();
    obeys(&mut second, LAUNCH)?;
    within("passed, ms", began.elapsed().as_millis(), PATIENCE_MS - 50..=30_000)
}

/// Found dead within 100 ms, on a machine that is not late.
fn killed() -> Result {
    let run = under("50", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_1ms")?, begin(&run, "k_1ms")?];
    obeys(&mut first, LAUNCH)?;
    first.kill()?;
    let began = Instant::now();
    obeys(&mut second, LAUNCH)?;
    within("passed, ms", began.elapsed().as_millis(), 0..=PATIENCE_MS - 100)
}
