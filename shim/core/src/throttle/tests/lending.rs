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
    shows(turns, ms, UsageReport::new(work * MS, there * MS, since));
}

fn shows(turns: &mut Turns, ms: u64, report: UsageReport) {
    let limit = percent(50);
    let peer = PeerReport { page: 7, limit, key: 7, report };
    turns.take_reports([peer].into_iter(), UsageReport::default(), START + ms * MS);
}

/// To a launch that is short.
fn available(turns: &Turns, ms: u64) -> u16 {
    available_to(turns, 0, ms)
}

fn available_to(turns: &Turns, launch_ms: u64, ms: u64) -> u16 {
    turns.available(launch_ms * MS, START + ms * MS).map_or(0, Share::percent)
}

fn borrower() -> Turns {
    let mut turns = Turns::new(START);
    let share = Share::from_percent(30).expect("a share");
    turns.set_limit(ComputeLimit::burst(share, Share::FULL));
    turns
}

/// One that lived too briefly to find out would be lent what the other one is short of.
#[test]
fn a_new_process_takes_who_works_for_nearly_short() {
    let look = |first: u64, work: u64| {
        let mut turns = borrower();
        for (at, work) in [(first, 4), (first + 1, 4 + work), (first + 3, 4 + work)] {
            let report = UsageReport::new(work * MS, at * MS, Some(START));
            shows(&mut turns, at, report.with_waiting(true));
        }
        available(&turns, first + 3)
    };
    // The time from its first use of the device to its first launch is not known to be of the other one.
    for first in [0, 5, 100] {
        assert_eq!(look(first, 1), 30, "it has done less than its 50 % since");
        assert_eq!(look(first, 3), 50, "it has done more");
    }
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
    shown(&mut turns, 7, (1, 1, None));
    assert_eq!(available(&turns, 7), 99);
}

#[test]
fn a_long_launch_is_lent_nothing_before_a_pause_of_its_length() {
    let mut turns = borrower();
    shown(&mut turns, 0, (1, 0, Some(0)));
    shown(&mut turns, 1, (1, 1, None));
    shown(&mut turns, 20, (1, 1, None));
    assert_eq!((available_to(&turns, 19, 20), available_to(&turns, 20, 20)), (99, 50));
}

/// Nothing of it shows work: what it launched was short, and its turn has not come.
#[test]
fn a_container_that_waits_keeps_its_guarantee() {
    for notice in [UsageReport::with_waiting, UsageReport::with_held_back] {
        let mut turns = borrower();
        let report = UsageReport::new(MS, MS, None);
        shows(&mut turns, 0, notice(report, true));
        shows(&mut turns, 9_999, notice(report, true));
        assert!((30..=50).contains(&available(&turns, 9_999)));
        shows(&mut turns, 10_001, notice(report, true));
        assert_eq!(available(&turns, 10_001), 99, "it may have been killed in its call");
        shows(&mut turns, 10_002, UsageReport::new(2 * MS, MS, None).with_waiting(true));
        assert_eq!(available(&turns, 10_002), 50, "there is news of it");
    }
}

/// It has work all the time, is guaranteed 50 %, and gets a part of that.
#[test]
fn nothing_is_lent_while_an_active_container_gets_less_than_its_guarantee() {
    let mut turns = borrower();
    let mut work_us = 0;
    let mut goes_on = |turns: &mut Turns, ms: std::ops::Range<u64>, us: u64, is_held: bool| {
        for at in ms {
            work_us += us;
            let report = UsageReport::new(work_us * 1_000, 0, Some(START));
            shows(turns, at, report.with_held_back(is_held));
        }
    };
    goes_on(&mut turns, 0..100, 500, false);
    assert_eq!(available(&turns, 99), 50, "it has its share");
    goes_on(&mut turns, 100..200, 100, false);
    assert_eq!(available(&turns, 199), 30, "it has a fifth of it");
    goes_on(&mut turns, 200..300, 900, false);
    assert_eq!(available(&turns, 299), 50, "it has caught up");
    goes_on(&mut turns, 300..400, 100, false);
    goes_on(&mut turns, 400..401, 0, true);
    assert_eq!(available(&turns, 400), 50, "its own limit holds it back");
}

#[test]
fn low_priority_runs_while_others_are_held_back() {
    let mut turns = borrower();
    turns.set_limit(ComputeLimit::low_priority(Share::FULL));
    shown(&mut turns, 0, ABSENT);
    let work = UsageReport::new(5 * MS, 0, Some(START + MS));
    shows(&mut turns, 1, work);
    let part = |turns: &Turns, ms| turns.available(0, START + ms * MS);
    assert_eq!(part(&turns, 1), None);
    shows(&mut turns, 2, work.with_held_back(true));
    assert_eq!(part(&turns, 2), None, "its work is on the device still");
    let ended = UsageReport::new(5 * MS, MS, None);
    shows(&mut turns, 3, ended.with_held_back(true));
    assert_eq!(available(&turns, 3), 50);
    shows(&mut turns, 4, ended.with_held_back(true).with_waiting(true));
    assert_eq!(part(&turns, 4), None, "another thread of it waits for work");
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

#[test]
fn what_may_be_long_and_was_killed_ends() {
    let mut turns = borrower();
    let killed = UsageReport::new(MS, 0, Some(START)).with_long(true);
    for second in 0..30 {
        shows(&mut turns, second * 1_000, killed);
    }
    assert_eq!(available(&turns, 29_000), 99);
}
