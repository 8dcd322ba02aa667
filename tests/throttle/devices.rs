//! One process on two devices: each has its share, and pays from its own bucket. In collectives they meet, and there the
//! slower one sets the pace.

use crate::share::spending;
use crate::{under, within};
use gpucap_tests::{Output, Result, Run, trial};
use libtest_mimic::Trial;

/// Percent of a card that nobody may take beyond its share.
const ABOVE: f64 = 3.0;
/// The part of its share that a device has even on a machine so busy that it hardly runs.
const PROGRESS: f64 = 0.1;
/// What a device has that nobody holds back, on such a machine: more than the share of the other one.
const HARDLY_HELD_UP: f64 = 20.0;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("two devices of a process keep to a share each", each_its_own),
        trial("a device without a share does not wait for the other one", no_share),
        trial("devices that meet in collectives go at the pace of the slower one", slower_pace),
        trial("a device without a share does not pay for the one it meets", meets_without_share),
    ]
}

/// A program on two devices under these shares, for two seconds.
fn on_two(shares: &str, collective: &str) -> Result<Run> {
    let run = under(shares, "devices")?.env("STUB_GPU_COUNT", "2");
    Ok(spending(run, &["k_2ms", collective, "2000"]))
}

/// What each device got, in percent of its time.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
fn shares(output: &Output) -> Result<[f64; 2]> {
    let share = |busy: &str, clock: &str| -> Result<f64> {
        Ok(output.number(busy)? as f64 * 100.0 / output.number(clock)? as f64)
    };
    Ok([share("busy0", "clock0")?, share("busy1", "clock1")?])
}

fn each_its_own() -> Result {
    let run = on_two("0=10,1=50", "-")?;
    let output = run.output()?.success()?;
    let [first, second] = shares(&output)?;
    within(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    within(&format!("the second device: {output}"), second, 50.0 * PROGRESS..=50.0 + ABOVE)?;
    // What each has paid is its own work, that of the first quarter besides. Which of them the book has first is as the
    // threads come to it; the first device has a fifth of the other's.
    let mut book: Vec<_> = run.busy_by_device()?.into_iter().filter(|busy| *busy > 0).collect();
    book.sort_unstable();
    within("devices that pay", book.len(), 2..=2)?;
    for (name, paid) in ["busy0", "busy1"].into_iter().zip(book) {
        let counted = output.number(name)?;
        within(&format!("the book's {name}: {output}"), paid, counted / 10 * 7..=counted * 4)?;
    }
    Ok(())
}

fn no_share() -> Result {
    let output = on_two("0=10", "-")?.output()?.success()?;
    let [first, second] = shares(&output)?;
    within(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    within(&format!("the second device: {output}"), second, HARDLY_HELD_UP..=100.0)
}

/// The first device takes 90 ms for a round of 9 ms. The second one, by itself, would be busy for 72 of them; it is held
/// back while the first one is in debt, which is all the time but for a turn of 20 ms.
fn slower_pace() -> Result {
    let output = on_two("0=10,1=80", "ncclAll_1ms")?.output()?.success()?;
    let [first, second] = shares(&output)?;
    within(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    within(&format!("the second device: {output}"), second, 10.0 * PROGRESS..=45.0)
}

fn meets_without_share() -> Result {
    let run = on_two("0=10", "ncclAll_1ms")?;
    let output = run.output()?.success()?;
    let [first, second] = shares(&output)?;
    within(&format!("the first device: {output}"), first, 10.0 * PROGRESS..=10.0 + ABOVE)?;
    within(&format!("the second device: {output}"), second, HARDLY_HELD_UP..=100.0)?;
    let paying = run.busy_by_device()?.iter().filter(|busy| **busy > 0).count();
    within("devices that pay", paying, 1..=1)
}
