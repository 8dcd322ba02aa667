//! Containers of many processes: each has a meter, and each may have borrowed work in flight.

use crate::lending::scene::{Actor, MS, US, actor, all, crowd, launch};
use crate::lending::side::{LOW, burst, fixed};
use crate::report::Report;
use crate::simulator::program::{Act, Program, repeat, rounds};

const OWNERS: [&str; 2] = ["W4 4 streams x 50 us", "W5 training step"];

pub(super) fn run(seconds: u64, report: &mut Report) {
    for (who, limit) in [("low", LOW), ("10 to 100 %", burst(10)), ("fixed 10 %", fixed(10))] {
        for owner in OWNERS {
            for count in [1, 8, 32] {
                let what = "8 ms, each of a new function";
                one(seconds, report, owner, who, count, what, crowd(count, limit, unknown));
                if count == 8 {
                    continue;
                }
                for (what, ns) in [
                    ("10 us", 10 * US),
                    ("0.4 ms", 400 * US),
                    ("0.26 ms", 260 * US),
                    ("0.49 ms", 490 * US),
                    ("0.6 ms", 600 * US),
                    ("0.99 ms", 990 * US),
                    ("8 ms", 8 * MS),
                ] {
                    let beside = crowd(count, limit, |_| repeat(vec![launch(1, ns)]));
                    one(seconds, report, owner, who, count, what, beside);
                }
            }
        }
    }
}

/// In-flight work of low priority counted for each process.
pub(super) fn cured(seconds: u64, report: &mut Report) {
    let [kernels, training] = OWNERS;
    let what = "8 ms, each of a new function";
    one(seconds, report, kernels, "low", 32, what, crowd(32, LOW, unknown));
    let short = crowd(32, LOW, |_| repeat(vec![launch(1, 400 * US)]));
    one(seconds, report, training, "low", 32, "0.4 ms", short);
}

fn unknown(number: usize) -> Program {
    let mut function = 1_000_000 * (number as u64 + 1);
    rounds(move |_, _| {
        function += 1;
        vec![launch(function, 8 * MS), Act::Sync(Some(0))]
    })
}

fn one(
    seconds: u64,
    report: &mut Report,
    owner: &str,
    who: &str,
    count: usize,
    what: &str,
    beside: Actor,
) {
    let alone = all(vec![actor(owner, fixed(70))], &[], seconds)[0];
    let got = all(vec![actor(owner, fixed(70)), beside], &[], seconds);
    let loss = got[0].loss(70, alone);
    let text = format!(
        "crowds: {owner}, fixed 70, beside {count} processes of {who} with kernels of {what}: {:.1} %, {loss:+.1} points \
         less than its guarantee (allowed 2), they {:.1} %",
        got[0].share, got[1].share
    );
    report.check(&text, loss <= 2.0);
}
