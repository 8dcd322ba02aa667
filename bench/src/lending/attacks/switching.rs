//! A borrower whose accomplice makes what is lent come and go: what it reserves at one share is not to come back at
//! another.

use crate::lending::scene::{Actor, MS, US, shares};
use crate::lending::side::{fixed, percent};
use crate::report::Report;
use crate::simulator::program::{Act, Kernel, repeat};
use crate::simulator::workloads::Threads;
use crate::simulator::workloads::workload;
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
    for (guarantee, most) in [(10, 20), (30, 90)] {
        for streams in [4, 16] {
            for ns in [10 * US, 50 * US] {
                for every_ns in [MS, 3 * MS, 10 * MS, 50 * MS] {
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
    honest(seconds, report);
}

type Kind = (&'static str, fn() -> Vec<Threads>);

/// Honest ones: the page takes what was free, and nothing of the guarantee.
fn honest(seconds: u64, report: &mut Report) {
    let threads = |count: usize| -> Threads {
        let kernel = Kernel { width: 250, ..Kernel::new(1, 50 * US) };
        let one = |stream| repeat(vec![Act::Launch { stream, kernel }]);
        ((0..count).map(one).collect(), count)
    };
    let kinds: [Kind; 3] = [
        ("W1 10 us kernels", workload("W1 10 us kernels").processes),
        ("W4 4 streams x 50 us", workload("W4 4 streams x 50 us").processes),
        ("W12 4 threads x 20 us", workload("W12 4 threads x 20 us").processes),
    ];
    for every_ns in [MS / 2, MS, 2 * MS, 5 * MS] {
        let (bits, on_ns, from_ns, rate) = (WAITS, every_ns / 2, 0, 1);
        let flaps = Flaps { bits, on_ns, every_ns, from_ns, rate, is_there: false, goes: false };
        let page = Page { places: 1, limit: fixed(70), says: Says::Flaps(flaps) };
        let mut one = |kind: &str, processes: &dyn Fn() -> Vec<Threads>| {
            let get =
                |limit| shares(vec![Actor { processes: processes(), limit }], &[page], seconds)[0];
            let (usual, lent) =
                (get(fixed(30)), get(ComputeLimit::burst(percent(30), percent(90))));
            let text = format!(
                "switching: {kind}, 30 to 90 %, beside a page of fixed 70 that waits in half of each {every_ns} ns: \
                 {lent:.1} % (at least 28), {usual:.1} % with its share fixed"
            );
            report.check(&text, lent >= 28.0);
        };
        for (kind, processes) in kinds {
            one(kind, &processes);
        }
        one("8 threads with a stream each", &|| vec![threads(8)]);
    }
}
