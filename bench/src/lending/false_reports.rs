//! Two honest containers beside pages with false reports: neither gets less than its guarantee, nor more than it may have.

use super::side::{LOW, MS, SHORT, burst, fixed, percent, side, side_by_side};
use crate::report::Report;
use crate::simulator::{Page, Says, Setup};
use gpucap_core::units::ComputeLimit;

pub(super) fn run(seconds: u64, report: &mut Report) {
    let bounded = ComputeLimit::burst(percent(30), percent(60));
    for (who, limit) in [("fixed at 30 %", fixed(30)), ("30 to 100 %", burst(30)), ("low", LOW)] {
        for (what, places, says) in [
            ("64 places at 4 x the clock", 64, Says::Busy(400)),
            ("1 place at the clock", 1, Says::Busy(100)),
            ("64 places, nothing in flight", 64, Says::Unseen(400)),
            ("64 places, now and then", 64, Says::Now(5 * MS)),
            ("idle places", 64, Says::Nothing),
            ("up and down by an hour", 8, Says::Swings),
            ("the largest number", 8, Says::Most),
            ("waits for nothing", 1, Says::Waits),
            ("held back with nothing", 1, Says::HeldBack),
        ] {
            let sides = [side("W4 4 streams x 50 us", fixed(30)), side(SHORT, bounded)];
            let page = Page { places, limit, says };
            let cells = side_by_side(&sides, &[page], seconds, &Setup::default());
            let shares = [0, 1].map(|at| cells.get(at).map_or(0.0, |cell| cell.share));
            let text = format!(
                "a page of {who}, {what}: 30 fixed gets {:.1} %, 30 to 60 {:.1} %",
                shares[0], shares[1]
            );
            let [one, two] = shares;
            report.check(&text, (28.0..=32.0).contains(&one) && (28.0..=62.0).contains(&two));
        }
    }
}
