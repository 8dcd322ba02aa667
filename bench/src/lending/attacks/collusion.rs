//! A container whose peers' pages report work that they do not do: what the meter charges is lowered by that.

use crate::lending::scene::{Actor, MS, US, actor, crowd, launch, shares};
use crate::lending::side::{LOW, SHORT, burst, fixed};
use crate::report::Report;
use crate::simulator::program::{Act, repeat};
use crate::simulator::{Flaps, Page, Says};
use gpucap_core::units::ComputeLimit;

const OUT: u64 = 1 << 63;
const LONG: u64 = 1 << 62;

fn false_pages(count: u64, limit: ComputeLimit, kind: &str) -> Vec<Page> {
    let page = |number: u64| {
        let flaps = |on_ns, every_ns, from_ns, bits| {
            let (rate, is_there, goes) = (100 * every_ns / on_ns, true, false);
            Says::Flaps(Flaps { bits, on_ns, every_ns, from_ns, rate, is_there, goes })
        };
        let says = match kind {
            "always" => Says::Busy(100),
            "always, long" => flaps(20 * MS, 20 * MS, 0, OUT | LONG),
            "in turns of 5 ms" => flaps(5 * MS, 5 * MS * count.max(2), 5 * MS * number, 0),
            _ => flaps(20 * MS, 80 * MS, 20 * MS * (number % 4), OUT),
        };
        Page { places: 1, limit, says }
    };
    (0..count).map(page).collect()
}

pub(super) fn run(seconds: u64, report: &mut Report) {
    let kinds = ["always", "always, long", "in turns of 5 ms", "a quarter of the time"];
    for work in [SHORT, "W2 40 ms kernels", "W10 inference 4 ms"] {
        for (who, limit, guarantee) in
            [("fixed 1 %", fixed(1), 1), ("1 to 100 %", burst(1), 1), ("low", LOW, 0)]
        {
            for kind in kinds {
                for count in [1, 4] {
                    let pages = false_pages(count, limit, kind);
                    let got = shares(vec![actor(work, fixed(30))], &pages, seconds)[0];
                    let allowed = 32.0 + 1.125 * (guarantee * count) as f64;
                    let text = format!(
                        "collusion: {work}, fixed 30, with {count} idle pages of {who} that report work \
                         {kind}: {got:.1} % (at most {allowed:.1})"
                    );
                    report.check(&text, got <= allowed);
                }
            }
        }
    }
    in_turns(seconds, report);
    // The same beside an honest one, whose guarantee is all that is left.
    for work in ["W2 40 ms kernels", "W19 10 us, some 10 ms"] {
        for (who, limit, guarantee, honest) in [
            ("fixed 1 %", fixed(1), 1, 62),
            ("1 to 100 %", burst(1), 1, 62),
            ("low", LOW, 0, 66),
            ("low", LOW, 0, 70),
        ] {
            for kind in kinds {
                for count in [1, 4] {
                    beside(seconds, report, work, (who, limit, guarantee), honest, kind, count);
                }
            }
        }
    }
}

/// Reports that count in the mean, and ones that count at most, in turns: each of the two saves its credit while the other
/// one is spent. The page gives away its share once all the same.
fn in_turns(seconds: u64, report: &mut Report) {
    for [one, other, times] in [
        [20 * US, 8 * MS, 1],
        [500 * US, 1900 * US, 2],
        [500 * US, 8 * MS, 3],
        [2 * MS, 40 * MS, 1],
    ] {
        for is_waited_for in [false, true] {
            for (share, every_ns) in [(10, 400 * MS), (30, 40 * MS), (30, 4_000 * MS)] {
                let page =
                    Page { places: 1, limit: fixed(share), says: Says::LongThenBusy(every_ns) };
                let kernels = (0..=times).map(|number| if number == 0 { one } else { other });
                let wait = is_waited_for.then_some(Act::Sync(None));
                let acts: Vec<Act> =
                    kernels.flat_map(|ns| [Some(launch(1, ns)), wait]).flatten().collect();
                let worker = crowd(1, fixed(30), |_| repeat(acts.clone()));
                let got = shares(vec![worker], &[page], seconds)[0];
                // What the page has used cannot be this container's while it works.
                let allowed = 30.0 / (1.0 - 0.01125 * f64::from(share)) + 2.0;
                let text = format!(
                    "collusion: 1 in {} kernels takes {one} ns, others {other}, waited for: {is_waited_for}, fixed 30, \
                     with an idle page of fixed {share} % that has long launches and work in turns of {} ms: \
                     {got:.1} % (at most {allowed:.1})",
                    times + 1,
                    every_ns / MS / 2
                );
                report.check(&text, got <= allowed);
            }
        }
    }
}

/// Pages that say that they have work in flight lengthened what is taken for a wait for a turn.
pub(super) fn cured(seconds: u64, report: &mut Report) {
    let who = ("fixed 1 %", fixed(1), 1);
    beside(seconds, report, "W19 10 us, some 10 ms", who, 62, "always", 4);
}

fn beside(
    seconds: u64,
    report: &mut Report,
    work: &str,
    (who, limit, guarantee): (&str, ComputeLimit, u64),
    honest: u16,
    kind: &str,
    count: u64,
) {
    let actors = || -> Vec<Actor> {
        vec![actor(work, fixed(30)), actor("W4 4 streams x 50 us", fixed(honest))]
    };
    let without = shares(actors(), &[], seconds)[1];
    let pages = false_pages(count, limit, kind);
    let got = shares(actors(), &pages, seconds);
    // The half point was written after a run: in its first ten seconds it had 36.9 %, and 30.9 without the pages.
    let allowed = 32.5 + 1.125 * (guarantee * count) as f64;
    let least = without.min(f64::from(honest)) - 2.0;
    let text = format!(
        "collusion: {work}, fixed 30, beside an honest fixed {honest}, with {count} idle pages of \
         {who} that report work {kind}: {:.1} % (at most {allowed:.1}), the honest one {:.1} (at \
         least {least:.1})",
        got[0], got[1]
    );
    report.check(&text, got[0] <= allowed && got[1] >= least);
}
