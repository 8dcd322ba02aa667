//! What share the library that ships gets of the stub's card: real threads, real waits, the real clock.
//!
//! `accuracy` runs the meter alone in virtual time. Here is all of it: hooks, locks, events of a driver, sleeps that end
//! late, a host that has other things to do. The judge is the stub's card, which shares nothing with the shim and knows
//! how long it has worked. Each cell is a process of its own on a card of its own, under no limit or a percentage.
//!
//! Kernels take time only on that card's clock, so a machine that is busy leaves a program less than its share. What
//! cannot be blamed on the machine is checked: no program gets more than was asked for, [`ABOVE`] points allowed.

mod cell;
mod latency;
mod pair;

use crate::files::Files;
use crate::report::Report;
use crate::run::{Effort, Result};
use cell::{ABOVE, Bench, Workload, workload};

/// The percentages, in the order of the table.
const PERCENTAGES: [u16; 9] = [5, 10, 20, 30, 50, 70, 80, 95, 100];

const WORKLOADS: &[Workload] = &[
    Workload { quick: true, ..workload("W1 10 us kernels", "share-async 10") },
    // At 5 % a kernel each 800 ms.
    Workload { milliseconds: 5000, ..workload("W2 40 ms kernel, sync", "share-synced 40000") },
    workload("W3 8 ms graphs, sync", "share-graph 1000"),
    workload("W4 4 streams x 50 us", "share-streams 50"),
    workload("W5 training step", "share-training 1600"),
    Workload { quick: true, ..workload("W6 20 kernels mixed", "share-mixed 0") },
    workload("W7 kernel + copy", "share-copies 500"),
    Workload { quick: true, ..workload("W8 10 us, sync", "share-synced 10") },
    Workload { launch_ns: 4000, ..workload("W9 launch-bound 3 us", "share-async 3") },
    workload("W12 2 threads x 20 us", "share-threads 2"),
    Workload { quick: true, ..workload("W12 4 threads x 20 us", "share-threads 4") },
    workload("W12 8 threads x 20 us", "share-threads 8"),
    Workload { processes: 2, ..workload("W13 2 processes x 50 us", "share-async 50") },
    Workload { processes: 4, ..workload("W13 4 processes x 50 us", "share-async 50") },
    Workload { quick: true, ..workload("W15 captures meanwhile", "share-captures 50") },
];

/// Measures all of it.
///
/// # Errors
/// If a client fails, or the stub cannot be built.
pub fn run(files: &Files, effort: Effort, report: &mut Report) -> Result {
    let percentages = if effort == Effort::Full { &PERCENTAGES[..] } else { &[30] };
    let bench = Bench { files, driver: files.stub()?, effort };
    for workload in WORKLOADS.iter().filter(|workload| effort == Effort::Full || workload.quick) {
        let solo = bench.cell(workload, None)?;
        report.line(solo.to_json(&solo));
        report.check(&format!("{}: the card has worked", workload.name), solo.share > 0.0);
        for &percent in percentages {
            let cell = bench.cell(workload, Some(percent))?;
            report.line(cell.to_json(&solo));
            let got =
                format!("{} at {percent} %: {:.2}, no more than asked", cell.name, cell.share);
            report.check(&got, cell.share > 0.0 && cell.share <= f64::from(percent) + ABOVE);
        }
    }
    pair::run(&bench, report)?;
    latency::run(&bench, report)
}
