//! Pages whose bits come and go, at any pace: two honest containers beside them, and one of low priority.

use crate::lending::scene::{Actor, MS, US, actor, shares};
use crate::lending::side::{LOW, SHORT, burst, fixed, percent};
use crate::report::Report;
use crate::simulator::{Flaps, Page, Says};
use gpucap_core::units::ComputeLimit;

const OUT: u64 = 1 << 63;
const LONG: u64 = 1 << 62;
const WAITS: u64 = 1 << 61;
const HELD: u64 = 1 << 60;

/// Two fixed at 20 %, one of 30 to 60 %, and one of low priority.
fn actors(bounded: ComputeLimit, low: ComputeLimit) -> Vec<Actor> {
    vec![
        actor("W8 10 us, sync", fixed(20)),
        actor("W4 4 streams x 50 us", fixed(20)),
        actor(SHORT, bounded),
        actor("W3 8 ms graph decode", low),
    ]
}

pub(super) fn run(seconds: u64, report: &mut Report) {
    let bounded = ComputeLimit::burst(percent(30), percent(60));
    let usual = shares(actors(bounded, LOW), &[], seconds);
    let with_fixed = shares(actors(fixed(30), fixed(1)), &[], seconds);
    let text = format!("flapping: {usual:.1?} without a page, {with_fixed:.1?} with fixed limits");
    report.check(
        &text,
        usual
            .iter()
            .zip([20.0, 20.0, 30.0])
            .zip(&with_fixed)
            .all(|((got, of), fixed)| *got >= fixed.min(of) - 2.0),
    );
    for (who, limit) in [("30 to 100", burst(30)), ("low", LOW)] {
        for (name, bits) in [("WAITS", WAITS), ("HELD", HELD), ("all", OUT | LONG | WAITS | HELD)] {
            for every_ns in [100 * US, MS, 4 * MS, 10 * MS, 20 * MS] {
                for (places, rate, goes) in [(64, 400, false), (1, 100, true)] {
                    let is_there = bits & OUT != 0;
                    let on_ns = every_ns / 2;
                    let flaps = Flaps { bits, on_ns, every_ns, from_ns: 0, rate, is_there, goes };
                    let page = Page { places, limit, says: Says::Flaps(flaps) };
                    let got = shares(actors(bounded, LOW), &[page], seconds.min(6));
                    let text = format!(
                        "flapping: a page of {who} with {places} places, {name} each {every_ns} ns, {rate} % of work, \
                         goes {goes}: fixed 20 {:.1}, fixed 20 {:.1}, 30 to 60 {:.1}, low {:.1}",
                        got[0], got[1], got[2], got[3]
                    );
                    // Or as much as without the page.
                    let least = [20.0, 20.0, 30.0]
                        .iter()
                        .zip(&usual)
                        .map(|(of, usual)| usual.min(*of) - 2.0);
                    let holds = got.iter().zip(least).all(|(got, least)| *got >= least)
                        && got.iter().zip([22.0, 22.0, 62.0]).all(|(got, most)| *got <= most);
                    report.check(&text, holds);
                }
            }
        }
    }
}
