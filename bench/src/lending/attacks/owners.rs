//! Owners with a fixed share beside one that borrows what no container is guaranteed: they are to have what they have beside the
//! same one with its share fixed, or their guarantee.

use crate::lending::scene::{actor, all};
use crate::lending::side::{KINDS, LOW, SHORT, burst, fixed};
use crate::report::Report;

pub(super) fn run(seconds: u64, report: &mut Report) {
    for owner in KINDS {
        for (share, least) in [(70, 10), (50, 30), (30, 1)] {
            let beside =
                |limit| all(vec![actor(owner, fixed(share)), actor(SHORT, limit)], &[], seconds);
            let usual = beside(fixed(least))[0];
            for (who, limit) in [("one that borrows", burst(least)), ("low priority", LOW)] {
                let got = beside(limit);
                let loss = got[0].loss(share, usual);
                let text = format!(
                    "owners: {owner}, fixed {share}, beside {who}, {least} % guaranteed, with kernels of 10 us: {:.1} %, \
                     beside a fixed {least} % {:.1}, {loss:+.1} points less than its guarantee (allowed 2), the other one \
                     {:.1} %",
                    got[0].share, usual.share, got[1].share
                );
                report.check(&text, loss <= 2.0);
            }
        }
    }
}
