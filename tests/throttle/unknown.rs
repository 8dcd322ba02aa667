//! Launches of functions that were never measured, by several processes of a container: one at a time is in flight.

use crate::{BEGIN, LAUNCH, MS, WAIT, under, within};
use gpucap_tests::{Actor, Result, Run, trial};
use libtest_mimic::Trial;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a launch of unknown length waits for one that another process waits for", measured),
        trial("a launch of unknown length waits for no process that makes no call", silent),
        trial("launches of unknown length that wait for each other do so for a while", mutual),
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
    first.order(WAIT)?;
    std::thread::sleep(Duration::from_millis(50));
    obeys(&mut second, LAUNCH)?;
    first.line()?;
    // The bucket holds 20 ms.
    within("passed, ms", began.elapsed().as_millis(), 560..=u128::MAX)?;
    let waited_ms = run.waited_ns()? / MS;
    within("waited, ms", waited_ms, 200..=u64::MAX)
}

fn silent() -> Result {
    let run = under("50", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_1ms")?, begin(&run, "k_1ms")?];
    obeys(&mut first, LAUNCH)?;
    std::thread::sleep(Duration::from_millis(50));
    obeys(&mut second, LAUNCH)?;
    within("waited, ms", run.waited_ns()? / MS, 0..=20)
}

/// The first process waits for its kernel, which stands for one that waits for the second one's.
fn mutual() -> Result {
    let run = under("50", "caller")?;
    let [mut first, mut second] = [begin(&run, "k_3000ms")?, begin(&run, "k_1ms")?];
    obeys(&mut first, LAUNCH)?;
    first.order(WAIT)?;
    std::thread::sleep(Duration::from_millis(50));
    obeys(&mut second, LAUNCH)?;
    // Within the first kernel: the limit does not hold it back yet.
    within("waited, ms", run.waited_ns()? / MS, 400..=2_000)?;
    first.line()?;
    Ok(())
}
