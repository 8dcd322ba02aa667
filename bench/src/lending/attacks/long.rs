//! Long launches in the pauses of an owner, under the name of short ones too.

use crate::lending::scene::{MS, US, all, crowd, launch};
use crate::lending::side::{LOW, burst, fixed};
use crate::report::Report;
use crate::simulator::program::{Act, Program, repeat, rounds};

/// The owner has work of this length in each period, and waits for each kernel. What is late is done later: it never has
/// less to do.
pub(super) fn owner(period_ns: u64, work_ns: u64, kernel_ns: u64) -> Program {
    let mut number = 0;
    rounds(move |_, _| {
        number += 1;
        let mut acts = vec![Act::Until(1_000 * MS + number * period_ns)];
        for _ in 0..work_ns / kernel_ns {
            acts.extend([launch(1, kernel_ns), Act::Sync(Some(0))]);
        }
        acts
    })
}

/// Short kernels, and long ones of the same function, of which each begins when the owner pauses.
fn disguised(period_ns: u64, work_ns: u64, long_ns: u64, short_ns: u64) -> Program {
    let mut last = 0;
    rounds(move |now, _| {
        let (period, at) = (now / period_ns, now % period_ns);
        if at > work_ns + 12 * work_ns / 100 + 1_100 * US
            && at < period_ns - 100 * US
            && period > last
        {
            last = period;
            return vec![launch(1, long_ns)];
        }
        vec![launch(1, short_ns); 4]
    })
}

/// One launch in each pause of the owner, of a function never seen before, once the owner is taken to be idle.
fn fresh(long_ns: u64, period_ns: u64, work_ns: u64) -> Program {
    let (mut function, mut last) = (1_000, 0);
    rounds(move |now, _| {
        let (period, at) = (now / period_ns, now % period_ns);
        if at > work_ns + 12 * work_ns / 100 + 21 * MS && period > last {
            (last, function) = (period, function + 1);
            return vec![launch(function, long_ns)];
        }
        vec![Act::Until(now + MS)]
    })
}

/// The same, and short ones of a known function behind it, whose calls show the meter what has ended.
fn fresh_and_short(long_ns: u64, period_ns: u64, work_ns: u64) -> Program {
    let mut long = fresh(long_ns, period_ns, work_ns);
    let mut is_short = false;
    Box::new(move |now, dice| {
        is_short = !is_short;
        match long(now, dice) {
            Act::Until(_) if is_short => launch(1, 20 * US),
            act => act,
        }
    })
}

type Attack = fn(u64, u64, u64) -> Program;

/// Those of which each is of a new function.
pub(super) fn cured(seconds: u64, report: &mut Report) {
    for (period, work) in [(100 * MS, 60 * MS), (200 * MS, 100 * MS), (1_000 * MS, 500 * MS)] {
        for ns in [8 * MS, 40 * MS, 200 * MS, 1_000 * MS] {
            let what = [period, work, ns];
            one(seconds, report, what, 10, "each of a new function, in a pause", fresh);
            let how = "each of a new function, in a pause, and short ones";
            one(seconds, report, what, 10, how, fresh_and_short);
        }
    }
}

pub(super) fn run(seconds: u64, report: &mut Report) {
    let attacks: [(&str, Attack); 4] = [
        ("one behind the other", |ns, _, _| repeat(vec![launch(1, ns)])),
        ("each waited for", |ns, _, _| repeat(vec![launch(1, ns), Act::Sync(Some(0))])),
        ("now and then among short ones", |ns, period, work| disguised(period, work, ns, 20 * US)),
        ("now and then among ones of 2 ms", |ns, period, work| disguised(period, work, ns, 2 * MS)),
    ];
    cured(seconds, report);
    for (period, work) in [(10 * MS, 6 * MS), (20 * MS, 14 * MS), (40 * MS, 28 * MS)] {
        for ns in [MS / 5, MS, 2 * MS, 8 * MS, 40 * MS, 200 * MS, 1_000 * MS] {
            // A fixed limit of what is not guaranteed costs the owner as much, by kernels that long.
            let rest = if ns < 200 * MS { 10 } else { 100 - share_of(period, work) };
            for (how, attack) in attacks {
                one(seconds, report, [period, work, ns], rest, how, attack);
            }
        }
    }
}

pub(super) fn share_of(period_ns: u64, work_ns: u64) -> u16 {
    u16::try_from(100 * work_ns / period_ns).unwrap_or(0) + 5
}

fn one(
    seconds: u64,
    report: &mut Report,
    [period, work, ns]: [u64; 3],
    rest: u16,
    how: &str,
    attack: Attack,
) {
    let share = share_of(period, work);
    let beside = |limit| {
        let owner = crowd(1, fixed(share), |_| owner(period, work, MS));
        let other = crowd(1, limit, |_| attack(ns, period, work));
        all(vec![owner, other], &[], seconds)
    };
    let usual = beside(fixed(rest))[0];
    for (who, limit) in [("low", LOW), ("10 to 100 %", burst(10))] {
        let got = beside(limit);
        let loss = got[0].loss(share, usual);
        let text = format!(
            "long: an owner of {share} % with {} of each {} ms, beside {who} with kernels of {} us, {how}: {:.1} %, beside a \
             fixed {rest} % {:.1}, {loss:+.1} points less than its guarantee (allowed 2), the other one {:.1} %",
            work / MS,
            period / MS,
            ns / US,
            got[0].share,
            usual.share,
            got[1].share,
        );
        report.check(&text, loss <= 2.0);
    }
}
