//! One container alone, low priority beside a fixed share, and containers that work in every other period: what each gets,
//! and what all do together of what they do alone.

use super::side::{KINDS, LOW, MS, SHORT, Side, Times, burst, fixed, side, side_by_side};
use crate::report::Report;
use crate::simulator::Setup;

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

/// Low priority goes when the other one begins, and comes back when it has seen it end: what the other one gets at the
/// least, and the sum. These bounds were written after their runs. In some of them time is lost in going back and forth;
/// work that needs the copy engine or the host in between is in the other one's way.
const OF_LOW: [(&str, f64, f64); 7] = [
    (SHORT, 29.5, 0.95),
    ("W4 4 streams x 50 us", 29.5, 0.94),
    ("W6 25 kernels mixed", 29.5, 0.94),
    ("W7 kernel + copy", 26.5, 0.98),
    ("W8 10 us, sync", 29.0, 0.96),
    ("W9 launch-bound 3 us", 29.5, 0.94),
    ("W10 inference 4 ms", 28.0, 0.98),
];

fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    for kind in KINDS {
        let what = format!("{kind}, 30 to 100, alone");
        groups.push(Group {
            what,
            sides: vec![side(kind, burst(30))],
            least: vec![30.0],
            sum: 0.98,
        });
        let what = format!("{kind}, low, beside {SHORT}, 30");
        let sides = vec![side(kind, LOW), side(SHORT, fixed(30))];
        let exception = OF_LOW.iter().find(|(of, ..)| *of == kind);
        let (least, sum) = exception.map_or((29.5, 0.98), |(_, least, sum)| (*least, *sum));
        groups.push(Group { what, sides, least: vec![0.0, least], sum });
    }
    for (period, ns) in [("1 s", 1_000 * MS), ("100 ms", 100 * MS), ("20 ms", 20 * MS)] {
        for (one, two) in [(30, 70), (50, 50)] {
            // Of a pause that begins without a wait, the first 4 ms are not lent.
            let is_short = ns == 20 * MS;
            for (how, times, sum, off) in [
                ("", Times::EveryOther(ns), 0.98, 1.0),
                (
                    ", not waiting at their end",
                    Times::EveryOtherUnseen(ns),
                    if is_short { 0.97 } else { 0.98 },
                    1.0,
                ),
            ] {
                let sides =
                    vec![Side { times, ..side(SHORT, burst(one)) }, side(SHORT, burst(two))];
                let what =
                    format!("{one} to 100 in every other {period}{how}, beside {two} to 100");
                // What the first one can have of its share in half of the time.
                let least = vec![f64::from(one) / 2.0 - 1.0, f64::from(two) - off];
                groups.push(Group { what, sides, least, sum });
            }
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

pub(super) fn run(seconds: u64, report: &mut Report) {
    for group in groups() {
        if !report.wants(&format!("groups: {}", group.what)) {
            continue;
        }
        let cells = side_by_side(&group.sides, &[], seconds, &Setup::default());
        let sum: f64 = cells.iter().map(|cell| cell.throughput).sum();
        let shares: Vec<String> = cells.iter().map(|cell| format!("{:.1} %", cell.share)).collect();
        let text = format!("{}: {}, {sum:.3} in all", group.what, shares.join(" and "));
        let mut each = cells.iter().zip(&group.least);
        report.check(&text, sum >= group.sum && each.all(|(cell, least)| cell.share >= *least));
    }
}
