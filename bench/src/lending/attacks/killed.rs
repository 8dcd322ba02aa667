//! Processes that are killed: in a wait, with a launch held back, with borrowed work, with work that may be long. What is
//! left of them must not keep what their container leaves from being lent for ever, and takes nothing from an owner.

use super::long::{owner, share_of};
use crate::lending::scene::{Actor, MS, US, actor, all, all_after, crowd, launch, shares};
use crate::lending::side::{LOW, SHORT, burst, fixed};
use crate::report::Report;
use crate::simulator::program::{Act, Program, repeat, rounds};
use crate::simulator::workloads::Threads;

const SECOND: u64 = 1_000 * MS;

/// A thread that ends its process then.
fn killer(at_ns: u64) -> Program {
    repeat(vec![Act::Until(SECOND + at_ns), Act::Die])
}

fn once(first: Vec<Act>) -> Program {
    let mut acts = first.into_iter();
    Box::new(move |now, _| acts.next().unwrap_or(Act::Until(now + 3_600 * SECOND)))
}

/// How it is killed, and what it did before.
fn victims() -> Vec<(&'static str, Threads)> {
    let held = repeat(vec![launch(1, MS)]);
    let mut number = 0_u64;
    let rarely = rounds(move |_, _| {
        number += 1;
        let ns = if number.is_multiple_of(10) { 30 * MS } else { 10 * US };
        vec![launch(1, ns)]
    });
    let wait = once(vec![launch(1, 3 * SECOND), Act::Sync(Some(0))]);
    vec![
        ("in a wait", (vec![wait, killer(2 * SECOND)], 1)),
        ("with a launch held back", (vec![held, killer(5 * SECOND)], 1)),
        ("with work that may be long", (vec![rarely, killer(5 * SECOND)], 1)),
    ]
}

/// The report of a killed process stayed as long as another one of its container went on.
pub(super) fn cured(seconds: u64, report: &mut Report) {
    for (how, victim) in victims() {
        one(seconds, report, how, victim, "beside one that works each 5 s", Some(5_000));
    }
}

fn one(
    seconds: u64,
    report: &mut Report,
    how: &str,
    victim: Threads,
    beside: &str,
    every_ms: Option<u64>,
) {
    let mut processes = vec![victim];
    if let Some(every_ms) = every_ms {
        let idler = rounds(move |now, _| {
            let next = (now / (every_ms * MS) + 1) * every_ms * MS;
            vec![Act::Until(next), launch(2, 10 * US), Act::Sync(Some(0))]
        });
        processes.push((vec![idler], 1));
    }
    let killed = Actor { processes, limit: fixed(50) };
    let got = all_after(20 * SECOND, vec![killed, actor(SHORT, burst(50))], &[], seconds);
    let text = format!(
        "killed: fixed 50, {how}, {beside}: 15 s later 50 to 100 % beside it gets {:.1} % (at least 95)",
        got[1].share
    );
    report.check(&text, got[1].share >= 95.0);
}

pub(super) fn run(seconds: u64, report: &mut Report) {
    // A process of the same container that does next to nothing goes on, or none does.
    let siblings: [(&str, Option<u64>); 3] = [
        ("alone in its container", None),
        ("beside one that works each 5 s", Some(5_000)),
        ("beside one that works each 0.1 s", Some(100)),
    ];
    for (beside, every_ms) in siblings {
        for (how, victim) in victims() {
            one(seconds, report, how, victim, beside, every_ms);
        }
    }
    // Again and again, by one that borrows: what each leaves is paid for, and the owner keeps its own.
    for (who, limit) in [("low", LOW), ("30 to 100 %", burst(30))] {
        for (what, ns) in [("10 us", 10 * US), ("8 ms", 8 * MS), ("40 ms", 40 * MS)] {
            // Never, to compare with.
            let mut usual = f64::MAX;
            for life_ms in [u64::MAX / MS, 300, 30, 3] {
                let mut born = None;
                let program = rounds(move |now, _| {
                    if now - *born.get_or_insert(now) >= life_ms * MS {
                        born = None;
                        return vec![Act::Again(MS)];
                    }
                    vec![launch(1, ns); 2]
                });
                let other = Actor { processes: vec![(vec![program], 1)], limit };
                let owner = actor("W8 10 us, sync", fixed(50));
                let got = shares(vec![owner, other], &[], seconds);
                if life_ms > 300 {
                    usual = got[0];
                    continue;
                }
                let least = usual.min(50.0) - 2.0;
                let text = format!(
                    "killed: {who} with kernels of {what}, killed each {life_ms} ms: W8 of fixed 50 gets {:.1} % (at \
                     least {least:.1}), the other one {:.1} %",
                    got[0], got[1]
                );
                report.check(&text, got[0] >= least);
            }
        }
    }
    pools(seconds, report);
}

/// Processes made for one launch each, which end while it runs: what they leave unpaid is the container's.
fn pools(seconds: u64, report: &mut Report) {
    let (period, work) = (100 * MS, 60 * MS);
    let share = share_of(period, work);
    for ns in [8 * MS, 40 * MS, 200 * MS, 1_000 * MS] {
        for count in [1, 4] {
            let beside = |limit| {
                let other = crowd(count, limit, |_| {
                    rounds(move |now, _| vec![launch(1, ns), Act::Until(now + MS), Act::Again(MS)])
                });
                let owner = crowd(1, fixed(share), |_| owner(period, work, MS));
                all(vec![owner, other], &[], seconds)
            };
            let usual = beside(fixed(100 - share))[0];
            for (who, limit) in [("low", LOW), ("10 to 100 %", burst(10))] {
                let got = beside(limit);
                let loss = got[0].loss(share, usual);
                let text = format!(
                    "killed: an owner of {share} %, beside {count} of {who} at a time that end each in its first kernel, of \
                     {} ms: {:.1} %, beside a fixed {} % {:.1}, {loss:+.1} points less than its guarantee (allowed 2), the \
                     other one {:.1} %",
                    ns / MS,
                    got[0].share,
                    100 - share,
                    usual.share,
                    got[1].share
                );
                report.check(&text, loss <= 2.0);
            }
        }
    }
}
