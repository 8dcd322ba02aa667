//! Greedy containers in pairs and triples: what each gets where all borrow, beside what it gets where all limits are fixed.
//!
//! A guarantee is one of the time in which the container has work: a program that pauses leaves its share to others, which
//! need not give it back later. With fixed limits the others run in those pauses and less after them, so a program that
//! pauses gets more than its share of the time in which it works. Here it has to get one of both, less a point.

use super::side::{KINDS, Side, burst, fixed, side, side_by_side};
use crate::report::Report;
use crate::simulator::Setup;
use gpucap_core::units::ComputeLimit;

const PAIRS: [[u16; 2]; 5] = [[30, 30], [30, 70], [70, 30], [50, 50], [65, 65]];
const TRIPLES: [[u16; 3]; 3] = [[20, 20, 20], [20, 30, 50], [30, 50, 50]];
const OF_THREE: [[&str; 3]; 4] = [
    ["W1 10 us kernels", "W8 10 us, sync", "W10 inference 4 ms"],
    ["W2 40 ms kernels", "W5 training step", "W4 4 streams x 50 us"],
    ["W3 8 ms graph decode", "W6 25 kernels mixed", "W7 kernel + copy"],
    ["W9 launch-bound 3 us", "W2 40 ms kernel, sync", "W1 10 us kernels"],
];
const ALLOWED: f64 = 1.0;
/// What containers get, in percent of the GPU.
struct Mix {
    workloads: Vec<&'static str>,
    guarantees: Vec<u16>,
    fixed: Vec<f64>,
    lent: Vec<f64>,
    /// For how much of the time each does nothing.
    paused: Vec<f64>,
    /// What all do together, of what each does alone without a limit: with fixed limits, and where all borrow.
    sums: [f64; 2],
}

impl Mix {
    fn run(workloads: &[&'static str], guarantees: &[u16], seconds: u64) -> Self {
        let all = |limit: fn(u16) -> ComputeLimit| {
            let sides = workloads.iter().zip(guarantees);
            let sides: Vec<Side> = sides.map(|(work, of)| side(work, limit(*of))).collect();
            side_by_side(&sides, &[], seconds, &Setup::default())
        };
        let (with_fixed, with_lent) = (all(fixed), all(burst));
        let sums =
            [&with_fixed, &with_lent].map(|cells| cells.iter().map(|it| it.throughput).sum());
        Self {
            workloads: workloads.to_vec(),
            guarantees: guarantees.to_vec(),
            fixed: with_fixed.iter().map(|cell| cell.share).collect(),
            lent: with_lent.iter().map(|cell| cell.share).collect(),
            paused: with_lent.iter().map(|cell| cell.paused).collect(),
            sums,
        }
    }

    /// By how many points the one that loses most gets less than it has to.
    fn loss(&self) -> f64 {
        let asked: u16 = self.guarantees.iter().sum();
        let over = (f64::from(asked) / 100.0).max(1.0);
        let loss = |at: usize| {
            let of_its_time = self.lent[at] / (1.0 - self.paused[at]);
            let guarantee = f64::from(self.guarantees[at]) / over;
            (self.fixed[at] - self.lent[at]).min(guarantee - of_its_time)
        };
        (0..self.lent.len()).map(loss).fold(f64::MIN, f64::max)
    }

    fn report(&self, report: &mut Report) {
        let loss = self.loss();
        let [fixed, lent] = self.sums;
        let text = format!(
            "{}, {:?} to 100: {:.1?} %, {:.1?} % with fixed limits; in all {lent:.3}, {fixed:.3} \
             with fixed limits; {loss:+.1} points less (allowed {ALLOWED})",
            self.workloads.join(" beside "),
            self.guarantees,
            self.lent,
            self.fixed,
        );
        report.check(&text, loss <= ALLOWED);
    }
}

pub(super) fn run(seconds: u64, is_quick: bool, report: &mut Report) {
    let mut runs: Vec<(Vec<&'static str>, Vec<u16>)> = Vec::new();
    for (at, one) in KINDS.iter().enumerate() {
        for two in &KINDS[at..] {
            let all = PAIRS.iter().filter(|of| one != two || of[0] <= of[1]);
            runs.extend(all.map(|of| (vec![*one, *two], of.to_vec())));
        }
    }
    for workloads in OF_THREE {
        runs.extend(TRIPLES.map(|of| (workloads.to_vec(), of.to_vec())));
    }
    // Of all kinds some, in two seconds each, whose means are not exact.
    let step = if is_quick { 29 } else { 1 };
    for (workloads, guarantees) in runs.iter().step_by(step) {
        if !report.wants(&format!("mixes: {}, {guarantees:?}", workloads.join(" beside "))) {
            continue;
        }
        let mix = Mix::run(workloads, guarantees, seconds);
        if is_quick {
            let is_one = mix.lent.iter().all(|share| (0.0..=100.0).contains(share));
            report.check(&format!("{workloads:?} get {:.1?} %", mix.lent), is_one);
        } else {
            mix.report(report);
        }
    }
}
