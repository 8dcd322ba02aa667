//! What is lent, as derived from the reports of others.

use crate::{
    throttle::{PeerReport, UsageReport, timeline::turns::Turns},
    units::{ComputeLimit, Share},
};

const MS: u64 = 1_000_000;
const START: u64 = 1_000 * MS;

/// Work done or reserved, how long it was in flight, and since when again.
type Report = (u64, u64, Option<u64>);

const ABSENT: Report = (0, 0, None);

fn percent(percent: u16) -> Option<ComputeLimit> {
    Share::from_percent(percent).map(ComputeLimit::fixed)
}

fn shown(turns: &mut Turns, ms: u64, other: Report) {
    let (work, there, since) = other;
    let since = since.map(|since| START + since * MS);
    let (limit, report) = (percent(50), UsageReport::new(work * MS, there * MS, since));
    let peer = PeerReport { page: 7, limit, key: 7, report };
    turns.look([peer].into_iter(), UsageReport::default(), START + ms * MS);
}

fn available(turns: &Turns, ms: u64) -> u16 {
    turns.available(START + ms * MS).map_or(0, Share::percent)
}

fn borrower() -> Turns {
    let mut turns = Turns::new(START);
    let share = Share::from_percent(30).expect("a share");
    turns.set_limit(ComputeLimit::burst(share, Share::FULL));
    turns
}

#[test]
fn what_an_idle_container_leaves_is_lent_until_it_works() {
    let mut turns = borrower();
    assert_eq!(available(&turns, 0), 30, "no other has been looked for");
    shown(&mut turns, 0, ABSENT);
    assert_eq!(available(&turns, 0), 99);
    shown(&mut turns, 5, (1, 0, Some(5)));
    assert_eq!(available(&turns, 5), 50, "it works, and has its 50");
    shown(&mut turns, 6, (1, 1, None));
    assert_eq!(available(&turns, 6), 50, "it has just ended");
    shown(&mut turns, 14, (1, 1, None));
    assert_eq!(available(&turns, 14), 50, "it ended lately");
    shown(&mut turns, 17, (1, 1, None));
    assert_eq!(available(&turns, 17), 99);
}

/// It made no call since, so its page says that it works.
#[test]
fn a_container_that_has_done_what_it_reported_is_idle() {
    let mut turns = borrower();
    shown(&mut turns, 0, ABSENT);
    shown(&mut turns, 1, (2, 0, Some(1)));
    shown(&mut turns, 2, (2, 0, Some(1)));
    assert_eq!(available(&turns, 2), 50);
    for ms in 3..20 {
        shown(&mut turns, ms, (2, 0, Some(1)));
    }
    assert_eq!(available(&turns, 19), 99);
}

/// A process can use up its descriptors, or stop the thread that looks.
#[test]
fn what_was_not_seen_lately_is_not_lent() {
    let mut turns = borrower();
    shown(&mut turns, 0, ABSENT);
    assert_eq!((available(&turns, 9), available(&turns, 10)), (99, 30));
    turns.set_sees_all(false);
    shown(&mut turns, 11, ABSENT);
    assert_eq!(available(&turns, 11), 30);
}
