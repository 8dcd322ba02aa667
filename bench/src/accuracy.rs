//! How exactly the meter holds a share, in virtual time.
//!
//! Every workload runs at every percentage on the simulated card (`simulator`), by itself and unlimited too, so that
//! what it gets can be compared with what it asks for. [`bounds`] says how far off each cell may be, and a cell beyond
//! its bound is a failed check. **Simulated, virtual time: not a measurement of any card.**
//!
//! * [`cell`]: one run. * [`sharing`]: several containers on one card. * [`bounds`]: what is allowed.
//! * [`unreported`]: beside a program that publishes nothing.
//! * [`picture`]: the lines of a run for people.

pub mod bounds;
pub mod cell;
pub mod picture;
pub mod sharing;
#[cfg(test)]
mod tests;
pub mod unreported;

use crate::report::Report;
use crate::run::Effort;
use crate::simulator::Setup;
use crate::simulator::workloads::{ALL, Workload};
use bounds::Bound;
use cell::Cell;
use sharing::{GROUPS, Group};

/// The percentages, in the order of the table.
pub const PERCENTAGES: [u16; 11] = [5, 10, 20, 30, 50, 70, 80, 90, 95, 99, 100];
const QUICK: [u16; 4] = [5, 30, 80, 99];

/// Measures all of it: a share that is off is a check that does not hold.
pub fn run(effort: Effort, report: &mut Report) {
    let (percentages, rounds) = match effort {
        Effort::Quick => (&QUICK[..], 1),
        Effort::Full => (&PERCENTAGES[..], 4),
    };
    for workload in ALL {
        let wanted = |percent: &&u16| report.wants(&format!("{}, {percent}", workload.name));
        let percentages: Vec<u16> = percentages.iter().filter(wanted).copied().collect();
        if percentages.is_empty() {
            continue;
        }
        measure(workload, &percentages, rounds, &Setup::default(), |cell, bound| {
            report.line(cell.to_json(bound));
            report.check(&cell.verdict(bound), cell.is_within(bound));
        });
    }
    for group in GROUPS.iter().filter(|group| effort == Effort::Full || group.quick) {
        if !report.wants(&group.name()) {
            continue;
        }
        let found = group.run(10, &Setup::default());
        report.line(Group::to_json(&found));
        for (cell, bound) in &found {
            report.check(&format!("side by side: {}", cell.verdict(bound)), cell.is_within(bound));
        }
    }
    for (setup, name, percent) in unreported::all(effort == Effort::Quick) {
        if !report.wants(&format!("{name}, {percent}, beside an unreported process")) {
            continue;
        }
        let (cell, bound) = unreported::run(name, percent, &setup);
        // Without samples it is for comparison.
        let bound = setup.samples.is_some().then_some(&bound);
        report.line(unreported::to_json(&setup, &cell, bound));
        if let Some(bound) = bound {
            let events = if setup.events_at_once { "at once" } else { "in turn" };
            let what =
                format!("beside an unreported process, events {events}: {}", cell.verdict(bound));
            report.check(&what, cell.is_within(bound));
        }
    }
}

/// One workload at several percentages.
pub fn measure(
    workload: &Workload,
    percentages: &[u16],
    rounds: u64,
    setup: &Setup,
    mut found: impl FnMut(&Cell, &Bound),
) {
    let seconds = workload.seconds * rounds;
    let solo = cell::run(workload, None, seconds, setup, None);
    found(&solo, &Bound::UNLIMITED);
    for &percent in percentages {
        let cell = cell::run(workload, Some(percent), seconds, setup, Some(&solo));
        found(&cell, &bounds::of(workload.name, percent));
    }
}
