//! Turns of processes on a device, as derived from their reports.

use proptest::prelude::*;

use crate::{
    throttle::{PeerReport, UsageReport, timeline::turns::Turns},
    units::{ComputeLimit, Share},
};

const MS: u64 = 1_000_000;
pub(super) const START: u64 = 1_000 * MS;

/// A process at some time: its work done or reserved, how long it was present, and since when again.
pub(super) type Process = (u64, u64, Option<u64>);

pub(super) const ABSENT: Process = (0, 0, None);

/// The reports of this process and its peers at each look.
pub(super) fn looks(turns: &mut Turns, looks: &[(u64, Process, &[Process])]) {
    for (ms, own, others) in looks {
        let report = |process: &Process| {
            let (work, there, since) = *process;
            UsageReport::new(work * MS, there * MS, since.map(|since| START + since * MS))
        };
        turns.take_reports(
            others.iter().map(report).zip(0..).map(peer),
            report(own),
            START + ms * MS,
        );
    }
}

fn percent(percent: u16) -> Option<ComputeLimit> {
    Share::from_percent(percent).map(ComputeLimit::fixed)
}

/// A process of the same container.
fn peer((report, key): (UsageReport, u64)) -> PeerReport {
    PeerReport { page: key, limit: None, key, report }
}

/// The milliseconds that were certainly this process's.
fn at_least(turns: &Turns, from: u64, to: u64) -> f64 {
    turns.at_least(START + from * MS, START + to * MS) as f64 / MS as f64
}

/// The milliseconds of this process's from one time to another.
pub(super) fn own(turns: &Turns, from: u64, to: u64) -> f64 {
    turns.of(START + from * MS, START + to * MS) as f64 / MS as f64
}

pub(super) fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.01, "{found}, not {expected}");
}

#[test]
fn all_of_it_without_peer_reports() {
    let mut turns = Turns::new(START);
    close(own(&turns, 0, 40), 40.0);
    looks(&mut turns, &[(0, (40, 0, Some(0)), &[]), (40, (40, 0, Some(0)), &[])]);
    close(own(&turns, 0, 40), 40.0);
}

#[test]
fn half_of_it_beside_one_that_wants_it_all() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[busy])]);
    close(own(&turns, 0, 40), 20.0);
    close(own(&turns, 10, 20), 5.0);
}

#[test]
fn all_but_the_demand_of_a_small_peer() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    // It waited for its turns all the time, and 3 ms are all that it had done.
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[(3, 0, Some(0))])]);
    close(own(&turns, 0, 40), 37.0);
}

#[test]
fn all_but_half_of_the_time_for_which_a_peer_was_present() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[(60, 10, None)])]);
    close(own(&turns, 0, 40), 35.0);
}

#[test]
fn the_least_demands_in_full_and_the_rest_in_equal_parts() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    let others = [busy, (6, 0, Some(0)), busy];
    looks(&mut turns, &[(0, busy, &[ABSENT; 3]), (60, busy, &others)]);
    close(own(&turns, 0, 60), 18.0);
}

#[test]
fn what_a_peer_was_given_while_this_process_was_absent_is_not_given_twice() {
    let mut turns = Turns::new(START);
    let peer = (20, 0, Some(0));
    let looked = [
        (0, ABSENT, &[ABSENT][..]),
        // Alone, it has had its demand done,
        (20, ABSENT, &[peer]),
        // and waits for more.
        (40, (100, 0, Some(20)), &[peer]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 20, 40), 20.0);
}

/// Its events were not looked at in a pause of a second, so it seemed to have had work in flight for all of it.
#[test]
fn a_pause_that_counted_as_presence_is_not_made_up_for_later() {
    let busy = (5_000, 0, Some(0));
    let mut turns = Turns::new(START);
    let looked = [
        (0, busy, &[ABSENT][..]),
        (1_000, busy, &[(500, 0, Some(0))]),
        // It ended after 10 ms, and the next work is in flight since then.
        (1_000, (5_000, 10, Some(1_000)), &[(500, 0, Some(0))]),
        (1_010, (5_000, 10, Some(1_000)), &[(505, 0, Some(0))]),
        (1_030, (5_000, 10, Some(1_000)), &[(515, 0, Some(0))]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 1_010, 1_030), 10.0);
}

/// The same, as a process of another container sees it.
#[test]
fn a_pause_of_another_container_is_not_made_up_for_later() {
    let busy = (5_000, 0, Some(0));
    let looked = [
        (0, busy, ABSENT),
        (1_000, busy, (10, 0, Some(0))),
        (1_000, busy, (10, 10, Some(1_000))),
        (1_010, busy, (15, 10, Some(1_000))),
        (1_030, busy, (25, 10, Some(1_000))),
    ];
    let mut turns = Turns::new(START);
    for (ms, own, (work, there, since)) in looked {
        let report = |work: u64, there: u64, since: Option<u64>| {
            UsageReport::new(work * MS, there * MS, since.map(|since| START + since * MS))
        };
        let (limit, page) = (Some(ComputeLimit::fixed(Share::FULL)), 7);
        let peer = PeerReport { page, limit, key: 7, report: report(work, there, since) };
        let (work, there, since) = own;
        turns.take_reports([peer].into_iter(), report(work, there, since), START + ms * MS);
    }
    close(own(&turns, 1_010, 1_030), 10.0);
}

/// It has had more than its part, as after a pause: its earlier demand is no reason to give it anything later.
#[test]
fn a_peer_with_nothing_in_flight_has_nothing_left_to_be_given() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    let looked = [
        (0, busy, &[ABSENT][..]),
        (10, busy, &[(50, 10, None)]),
        // Present again, with nothing more to do.
        (20, busy, &[(50, 10, Some(10))]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 0, 10), 5.0);
    close(own(&turns, 10, 20), 10.0);
}

#[test]
fn what_was_wrong_for_the_time_being_is_made_up_for() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    let looked = [
        (0, busy, &[ABSENT][..]),
        // 50 ms reserved, of which 10 were needed: the work ended long before that was noticed.
        (40, busy, &[(50, 0, Some(0))]),
        (60, busy, &[(10, 15, None)]),
        (80, busy, &[(20, 15, Some(70))]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 0, 40), 20.0);
    close(own(&turns, 40, 60), 20.0);
    // Present again for ten, but reported as present for 25 too many: nothing until that is used up.
    close(own(&turns, 60, 80), 20.0);
}

/// It is seen at one look only: all reported work was done since the previous one.
#[test]
fn a_newcomer_had_what_it_reports() {
    let mut turns = Turns::new(START);
    let looked = [
        (0, ABSENT, &[][..]),
        (40, (20, 0, Some(0)), &[(20, 40, None)][..]),
        // It is known now: none of its work is new.
        (80, (40, 0, Some(0)), &[(20, 40, None)][..]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 0, 40), 20.0);
    close(own(&turns, 40, 80), 40.0);
}

#[test]
fn a_peer_that_is_present_at_the_first_look_did_its_work_before() {
    let mut turns = Turns::new(START);
    let old = (90_000, 90_000, None);
    looks(&mut turns, &[(10, (10, 0, Some(0)), &[old]), (20, (20, 0, Some(0)), &[old])]);
    close(own(&turns, 0, 10), 10.0);
    close(own(&turns, 10, 20), 10.0);
}

#[test]
fn a_peer_can_have_had_at_most_what_it_had_left() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    let looked =
        [(0, busy, &[ABSENT][..]), (10, busy, &[(8, 0, Some(0))]), (20, busy, &[(8, 0, Some(0))])];
    looks(&mut turns, &looked);
    // Half of the first ten, and the rest of the eight later; or all of the eight at once.
    close(own(&turns, 0, 10), 5.0);
    close(own(&turns, 10, 20), 7.0);
    close(at_least(&turns, 0, 10), 2.0);
    close(at_least(&turns, 10, 20), 7.0);
}

/// The peer's container has 30 %, and begins with credit for 200 ms of that.
#[test]
fn no_time_is_certain_beside_work_that_may_take_far_longer_than_reported() {
    let out = UsageReport::new(0, 0, Some(START));
    let look = |turns: &mut Turns, ms: u64, report| {
        let peer = PeerReport { page: 7, limit: percent(30), key: 7, report };
        turns.take_reports(
            [peer].into_iter(),
            UsageReport::new(0, 0, Some(START)),
            START + ms * MS,
        );
    };
    let certain = |is_long| {
        let mut turns = Turns::new(START);
        look(&mut turns, 0, UsageReport::default());
        look(&mut turns, 10, out.with_long(is_long));
        at_least(&turns, 0, 10)
    };
    // It reports no work at all.
    close(certain(false), 10.0);
    close(certain(true), 0.0);
    // The credit ends: it cannot make all time uncertain for ever.
    let mut turns = Turns::new(START);
    (0..=4_000).step_by(10).for_each(|ms| look(&mut turns, ms, out.with_long(true)));
    let part = at_least(&turns, 1_000, 4_000) / 3_000.0;
    assert!((0.6..0.7).contains(&part), "{part}");
}

/// The page reports more work than there is time, on `seats` seats, and more to come.
#[test]
fn a_false_report_gives_away_its_own_containers_share_and_no_more() {
    for (percent, seats, is_long) in
        [(1, 1, false), (1, 64, false), (1, 64, true), (30, 64, false), (30, 64, true)]
    {
        let mut turns = Turns::new(START);
        let limit = self::percent(percent);
        let (mut taken, mut at_most) = (0.0, 0.0);
        for ms in 0..=20_000 {
            let lie = UsageReport::new(4 * ms * MS, 0, Some(START)).with_long(is_long);
            let lies = (0..seats).map(|key| PeerReport { page: 7, limit, key, report: lie });
            turns.take_reports(lies, UsageReport::new(0, 0, Some(START)), START + ms * MS);
            if ms > 0 {
                taken += 1.0 - own(&turns, ms - 1, ms);
                at_most += 1.0 - at_least(&turns, ms - 1, ms);
            }
        }
        let share = f64::from(percent) / 100.0;
        assert!(taken <= 22_700.0 * share * 1.01 + 1.1, "{percent} % on {seats} seats: {taken}");
        assert!(
            at_most <= 22_700.0 * share * 1.01 + 1.1,
            "{percent} % on {seats} seats: {at_most}"
        );
    }
}

/// Each page says that it has work in flight, and reports more than its share of the time.
#[test]
fn a_wait_is_as_long_as_what_counts_of_others_lets_it_be() {
    let mut turns = Turns::new(START);
    let limit = percent(1);
    let mut waits = Vec::new();
    for ms in 0..=20_000 {
        let report = UsageReport::new(ms * MS, 0, Some(START));
        let pages = (0..4).map(|page| PeerReport { page, limit, key: page, report });
        turns.take_reports(pages, UsageReport::new(0, 0, Some(START)), START + ms * MS);
        waits.push(turns.longest_wait_ns());
    }
    let of_one = waits.iter().min().copied();
    assert!(waits.iter().any(|wait| Some(*wait) > of_one), "they count at first");
    assert!(waits[10_000..].iter().all(|wait| Some(*wait) == of_one), "and not for ever");
}

/// In every other millisecond the page reports much work and no time; in the others it takes the work back, and has
/// a launch that may be long.
#[test]
fn work_that_is_taken_back_gives_no_credit_for_the_notice() {
    let mut turns = Turns::new(START);
    let limit = percent(10);
    let mut at_most = 0.0;
    for ms in 0..=20_000 {
        let present = ms / 2 * MS;
        let report = match ms % 2 {
            0 => UsageReport::new(8_000 * MS, present, Some(START + ms * MS)),
            _ => UsageReport::new(0, present, Some(START + (ms - 1) * MS)).with_long(true),
        };
        let peer = PeerReport { page: 7, limit, key: 7, report };
        turns.take_reports(
            [peer].into_iter(),
            UsageReport::new(0, 0, Some(START)),
            START + ms * MS,
        );
        if ms > 0 {
            at_most += 1.0 - at_least(&turns, ms - 1, ms);
        }
    }
    assert!(at_most <= 22_700.0 * 0.1 * 1.01 + 1.1, "{at_most}");
}

/// A container may use at once what it has not used, as with a kernel longer than its share of a while.
#[test]
fn a_peer_that_was_idle_may_run_for_long() {
    let mut turns = Turns::new(START);
    let limit = percent(30);
    let look = |turns: &mut Turns, ms: u64, report| {
        let peer = PeerReport { page: 7, limit, key: 1, report };
        turns.take_reports(
            [peer].into_iter(),
            UsageReport::new(0, 0, Some(START)),
            START + ms * MS,
        );
    };
    (0..=300).for_each(|ms| look(&mut turns, ms * 10, UsageReport::default()));
    let kernel = UsageReport::new(900 * MS, 0, Some(START + 3_000 * MS));
    (301..=500).for_each(|ms| look(&mut turns, ms * 10, kernel));
    close(own(&turns, 3_000, 5_000), 1_100.0);
}

#[test]
fn one_that_is_gone_takes_nothing() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (10, busy, &[busy]), (20, busy, &[])]);
    close(own(&turns, 0, 10), 5.0);
    close(own(&turns, 10, 20), 10.0);
}

/// Long after a time its turns are kept at lower resolution, but are kept.
#[test]
fn what_is_long_ago_is_remembered() {
    let mut turns = Turns::new(START);
    let busy = (1_000_000, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT])]);
    (1..5_000).for_each(|ms| looks(&mut turns, &[(ms, busy, &[(ms, 0, Some(0))])]));
    close(own(&turns, 0, 4_900), 2_450.0);
    close(own(&turns, 4_990, 4_998), 4.0);
}

proptest! {
    /// Whatever they publish: this process's part is never more than the time passed, nor negative.
    #[test]
    fn any_words_are_harmless(
        report in prop::collection::vec((any::<[u64; 2]>(), any::<[u64; 2]>(), 0_u64..50 * MS), 1..40),
        from in 0_u64..2_000 * MS,
        length in 0_u64..500 * MS,
    ) {
        let mut turns = Turns::new(START);
        let mut now = START;
        for (first, second, passed) in report {
            now += passed;
            let words = [first, second].map(|[work, occupied]| UsageReport { work, occupied });
            turns.take_reports(words.into_iter().zip(0..).map(peer), words[0], now);
        }
        let from = START + from;
        prop_assert!(turns.of(from, from + length) <= length);
        prop_assert!(turns.at_least(from, from + length) <= turns.of(from, from + length) + 1);
        prop_assert!(turns.part(length / 2, from, from + length) <= length / 2);
    }
}

/// A process that has launched something and never calls the driver again leaves such a report behind.
#[test]
fn unmeasured_work_of_the_own_container_is_deducted_from_nothing() {
    let mut turns = Turns::new(START);
    let idle = (10_000, 0, Some(0));
    looks(
        &mut turns,
        &[(1_000, (0, 0, Some(1_000)), &[idle]), (1_200, (0, 0, Some(1_000)), &[idle])],
    );
    close(own(&turns, 1_000, 1_200), 200.0);
    let newcomer = (10_000, 0, Some(1_300));
    looks(&mut turns, &[(1_500, (0, 0, Some(1_000)), &[idle, newcomer])]);
    close(own(&turns, 1_200, 1_500), 300.0);
}
