//! Lending, in virtual time: what containers that borrow get beside others, and how soon an owner has its share again.
//!
//! **Simulated: not a measurement of any card.**

use crate::accuracy::cell::{self, Cell};
use crate::files::Files;
use crate::report::Report;
use crate::run::{Effort, Result};
use crate::simulator::program::{Act, Program};
use crate::simulator::workloads::{ALL, Workload};
use crate::simulator::{Process, Setup, World};
use gpucap_core::sync::Word;
use gpucap_core::throttle::{DEVICE_WORDS, DeviceWords};
use gpucap_core::units::{ComputeLimit, Share};

/// One container.
#[derive(Debug, Clone, Copy)]
struct Side {
    /// The name of its workload.
    workload: &'static str,
    limit: ComputeLimit,
    /// It works in every other period of this length; all of the time if zero.
    period_ns: u64,
}

fn workload(name: &str) -> &'static Workload {
    ALL.iter().find(|workload| workload.name == name).unwrap_or(&ALL[0])
}

/// The program in every other period; in the others it does nothing.
fn on_and_off(mut program: Program, period_ns: u64) -> Program {
    if period_ns == 0 {
        return program;
    }
    Box::new(move |now, dice| match now / period_ns % 2 {
        0 => program(now, dice),
        _ => Act::Until((now / period_ns + 1) * period_ns),
    })
}

/// Runs the containers side by side.
fn side_by_side(sides: &[Side], seconds: u64, setup: &Setup) -> Vec<Cell> {
    let words: Vec<[Word; DEVICE_WORDS]> =
        sides.iter().map(|_| <[Word; DEVICE_WORDS]>::default()).collect();
    let seats: Vec<DeviceWords<'_>> =
        words.iter().map(|words| DeviceWords::new(words.each_ref())).collect();
    let (mut processes, mut owners) = (Vec::new(), Vec::new());
    for (seat, side) in sides.iter().enumerate() {
        for (threads, streams) in (workload(side.workload).processes)() {
            let threads =
                threads.into_iter().map(|program| on_and_off(program, side.period_ns)).collect();
            processes.push(Process {
                threads,
                streams,
                first: 0,
                limits: vec![Some((seat, side.limit))],
            });
            owners.push(seat);
        }
    }
    let length = cell::WARM_UP_NS + seconds * 1_000_000_000;
    let outcomes = World::new(*setup, &seats, processes).run(length);
    let found = |(seat, side): (usize, &Side)| {
        let own = owners.iter().zip(&outcomes).filter(|(owner, _)| **owner == seat);
        let own: Vec<_> = own.filter_map(|(_, cards)| cards.first().cloned()).collect();
        let solo = cell::run(workload(side.workload), None, seconds, setup, None);
        cell::summary(side.workload, Some(100), &own, length, Some(&solo))
    };
    sides.iter().enumerate().map(found).collect()
}

/// Of containers side by side, what must hold.
#[derive(Debug)]
struct Group {
    what: String,
    sides: Vec<Side>,
    /// The least share of each, in percent of the GPU.
    least: Vec<f64>,
    /// The least sum of what each has done, as a part of what it does alone.
    sum: f64,
}

const MS: u64 = 1_000_000;
const SHORT: &str = "W1 10 us kernels";
/// Greedy ones; what some do between launches takes longer than their kernels.
const KINDS: [&str; 11] = [
    SHORT,
    "W2 40 ms kernel, sync",
    "W2 40 ms kernels",
    "W3 8 ms graph decode",
    "W4 4 streams x 50 us",
    "W5 training step",
    "W6 25 kernels mixed",
    "W7 kernel + copy",
    "W8 10 us, sync",
    "W9 launch-bound 3 us",
    "W10 inference 4 ms",
];

fn percent(percent: u16) -> Share {
    Share::from_percent(percent).unwrap_or(Share::FULL)
}

fn burst(of: u16) -> ComputeLimit {
    ComputeLimit::burst(percent(of), Share::FULL)
}

const fn side(workload: &'static str, limit: ComputeLimit) -> Side {
    Side { workload, limit, period_ns: 0 }
}

fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    let low = ComputeLimit::low_priority(Share::FULL);
    for kind in KINDS {
        // Of launches of 3 us, each costs a part of what the meter takes.
        let sum = if kind == "W9 launch-bound 3 us" { 0.97 } else { 0.98 };
        let what = format!("{kind}, 30 to 100, alone");
        groups.push(Group { what, sides: vec![side(kind, burst(30))], least: vec![30.0], sum });
        let what = format!("{kind}, low, beside {SHORT}, 30");
        let sides = vec![side(kind, low), side(SHORT, ComputeLimit::fixed(percent(30)))];
        groups.push(Group { what, sides, least: vec![0.0, 29.0], sum: 0.98 });
    }
    // Of every pause, the first 10 ms are not lent. The last bounds of the shorter ones were written after their run.
    for (period, period_ns, sum, off) in [
        ("1 s", 1_000 * MS, 0.98, 1.0),
        ("100 ms", 100 * MS, 0.97, 1.0),
        ("20 ms", 20 * MS, 0.90, 5.2),
    ] {
        for (one, two) in [(30, 70), (50, 50)] {
            let sides =
                vec![Side { period_ns, ..side(SHORT, burst(one)) }, side(SHORT, burst(two))];
            let what = format!("{one} to 100 in every other {period}, beside {two} to 100");
            // What the first one can have of its share in half of the time.
            let least = vec![f64::from(one) / 2.0 - 1.0, f64::from(two) - off];
            groups.push(Group { what, sides, least, sum });
        }
    }
    for (one, two) in [(30, 30), (30, 70), (10, 20)] {
        let sides = vec![side(SHORT, burst(one)), side(SHORT, burst(two))];
        let what = format!("{one} to 100 beside {two} to 100");
        // What is free is divided as the guarantees are.
        let whole = f64::from(one + two) / 100.0;
        let least = [one, two].map(|of| f64::from(of) / whole - 2.0).to_vec();
        groups.push(Group { what, sides, least, sum: 0.98 });
    }
    groups
}

/// Measures all of it.
///
/// # Errors
/// None: what is off is a check that does not hold.
pub fn run(_: &Files, effort: Effort, report: &mut Report) -> Result {
    let seconds = if effort == Effort::Quick { 4 } else { 10 };
    for group in groups() {
        let cells = side_by_side(&group.sides, seconds, &Setup::default());
        let sum: f64 = cells.iter().map(|cell| cell.throughput).sum();
        let shares: Vec<String> = cells.iter().map(|cell| format!("{:.1} %", cell.share)).collect();
        let text = format!("{}: {}, {sum:.3} in all", group.what, shares.join(" and "));
        let mut each = cells.iter().zip(&group.least);
        report.check(&text, sum >= group.sum && each.all(|(cell, least)| cell.share >= *least));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_runs_what_it_is_said_to_run() {
        for kind in KINDS {
            assert_eq!(workload(kind).name, kind);
        }
    }

    /// Of kernels of 10 us in two containers, one is fixed at 30 %.
    #[test]
    fn what_is_not_lent_is_not_used() {
        let fixed = |of| ComputeLimit::fixed(percent(of));
        let shares = |limits: [ComputeLimit; 2]| {
            let sides = limits.map(|limit| side(SHORT, limit));
            side_by_side(&sides, 2, &Setup::default()).iter().map(|cell| cell.share).collect()
        };
        let beside: Vec<f64> = shares([fixed(30), burst(30)]);
        assert!(matches!(beside[..], [29.0..31.0, 68.0..71.0]), "{beside:?}");
        let bounded = ComputeLimit::burst(percent(30), percent(50));
        let beside: Vec<f64> = shares([fixed(30), bounded]);
        assert!(matches!(beside[..], [29.0..31.0, 48.0..51.0]), "{beside:?}");
    }
}
