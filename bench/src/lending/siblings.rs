//! Processes of one container that borrows all of an idle device: none keeps another one from its turns.
//!
//! Each is compared with itself where the container has a fixed limit of 99 %. The bounds were written after the run.

use std::{cell::Cell, rc::Rc};

use super::scene::{Actor, MS, US, all, launch};
use super::side::{LOW, burst, fixed};
use crate::report::Report;
use crate::simulator::program::{Act, Program, repeat};
use gpucap_core::units::ComputeLimit;

/// A process makes at least this part of the launches that it makes with a fixed limit. By itself the device gives one that
/// waits for each a turn in each 2 ms; beside a limit it often has none to wait for.
const LEAST_PART: u64 = 10;
/// By how many points less of the device they use together, at most.
const MOST_LOSS: f64 = 8.0;

/// A kernel's length, and whether each is waited for.
type Kind = (u64, bool);

pub(super) fn run(seconds: u64, is_quick: bool, report: &mut Report) {
    let lengths = [2 * MS, 8 * MS, 40 * MS];
    for first_ns in if is_quick { &lengths[2..] } else { &lengths[..] } {
        for others_ns in [10 * US, 400 * US, 40 * MS] {
            for (first, others) in [(false, false), (true, true), (false, true)] {
                for count in [1, 4] {
                    let kinds = [(*first_ns, first), (others_ns, others)];
                    for (who, limit) in [("low", LOW), ("10 to 100 %", burst(10))] {
                        one(seconds, report, kinds, count, who, limit);
                    }
                }
            }
        }
    }
}

fn one(
    seconds: u64,
    report: &mut Report,
    kinds: [Kind; 2],
    count: usize,
    who: &str,
    limit: ComputeLimit,
) {
    let (lent, launches) = together(seconds, kinds, count, limit);
    let (usual, usually) = together(seconds, kinds, count, fixed(99));
    let [(first_ns, first), (others_ns, others)] = kinds;
    let wait = |waits| if waits { "waited for" } else { "in a queue" };
    let text = format!(
        "siblings: {who}, kernels of {} us {}, beside {count} of {} us {}: {lent:.1} % of the device and {launches:?} \
         launches, with a fixed 99 % {usual:.1} (at most {MOST_LOSS} more) and {usually:?} (each at most {LEAST_PART} times as \
         many)",
        first_ns / US,
        wait(first),
        others_ns / US,
        wait(others),
    );
    let mut each = launches.iter().zip(&usually);
    let holds = each.all(|(launches, usually)| launches * LEAST_PART >= *usually);
    report.check(&text, holds && lent >= usual - MOST_LOSS);
}

/// What they get together, and how often each launched.
fn together(
    seconds: u64,
    [first, others]: [Kind; 2],
    count: usize,
    limit: ComputeLimit,
) -> (f64, Vec<u64>) {
    let counts: Vec<Rc<Cell<u64>>> = (0..=count).map(|_| Rc::default()).collect();
    let program = |(number, count): (usize, &Rc<Cell<u64>>)| {
        let (ns, waits) = if number == 0 { first } else { others };
        counted(ns, waits, Rc::clone(count))
    };
    let processes =
        counts.iter().enumerate().map(|each| (vec![program(each)], 1)).collect::<Vec<_>>();
    let got = all(vec![Actor { processes, limit }], &[], seconds);
    (got[0].share, counts.iter().map(|count| count.get()).collect())
}

fn counted(ns: u64, waits: bool, count: Rc<Cell<u64>>) -> Program {
    let launch = launch(1, ns);
    let acts = if waits { vec![launch, Act::Sync(Some(0))] } else { vec![launch] };
    let mut program = repeat(acts);
    Box::new(move |now, dice| {
        let act = program(now, dice);
        count.set(count.get() + u64::from(matches!(act, Act::Launch { .. })));
        act
    })
}
