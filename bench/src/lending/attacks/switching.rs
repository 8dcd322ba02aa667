//! A borrower whose accomplice makes what is lent come and go: what it reserves at one share is not to come back at
//! another.

use super::scene::{Actor, MS, US, shares};
use crate::lending::side::{fixed, percent};
use crate::report::Report;
use crate::simulator::program::{Act, Kernel, repeat};
use crate::simulator::{Flaps, Page, Says};
use gpucap_core::units::ComputeLimit;

const WAITS: u64 = 1 << 61;

fn borrower(streams: usize, ns: u64, limit: ComputeLimit) -> Actor {
    let width = 1000 / u32::try_from(streams.min(4)).unwrap_or(1);
    let kernel = Kernel { width, ..Kernel::new(1, ns) };
    // Each thread has an allowance of its own in each stream.
    let threads = (0..streams).map(|stream| repeat(vec![Act::Launch { stream, kernel }])).collect();
    Actor { processes: vec![(threads, streams)], limit }
}

pub(super) fn run(seconds: u64, report: &mut Report) {
    for (guarantee, most) in [(10, 12), (10, 20), (30, 50), (30, 90)] {
        for streams in [1, 4, 16] {
            for ns in [10 * US, 50 * US, MS] {
                for every_ns in [MS, 2 * MS, 3 * MS, 5 * MS, 10 * MS, 20 * MS, 50 * MS] {
                    let flaps = Flaps {
                        bits: WAITS,
                        on_ns: every_ns / 2,
                        every_ns,
                        from_ns: 0,
                        rate: 1,
                        is_there: false,
                        goes: false,
                    };
                    let page =
                        Page { places: 1, limit: fixed(100 - guarantee), says: Says::Flaps(flaps) };
                    let limit = ComputeLimit::burst(percent(guarantee), percent(most));
                    let got = shares(vec![borrower(streams, ns, limit)], &[page], seconds)[0];
                    let text = format!(
                        "switching: {streams} streams of {ns} ns, {guarantee} to {most} %, beside a page that waits in \
                         half of each {every_ns} ns: {got:.1} %"
                    );
                    report.check(
                        &text,
                        got <= f64::from(most) + 2.0 && got >= f64::from(guarantee) - 2.0,
                    );
                }
            }
        }
    }
}
