//! Whose turn it was.

use proptest::prelude::*;

use crate::throttle::turns::{Told, Turns};

const MS: u64 = 1_000_000;
const START: u64 = 1_000 * MS;

/// A process as it was at some time: what it has had done or reserved, how long it was there, and since when again.
type Process = (u64, u64, Option<u64>);

const ABSENT: Process = (0, 0, None);

/// What this process and its neighbours are like when it looks, at such times.
fn looks(turns: &mut Turns, looks: &[(u64, Process, &[Process])]) {
    for (ms, own, others) in looks {
        let told = |process: &Process| {
            let (work, there, since) = *process;
            Told::new(work * MS, there * MS, since.map(|since| START + since * MS))
        };
        turns.look((0..).zip(others.iter().map(told)), told(own), START + ms * MS);
    }
}

/// Milliseconds of this process's from one to another.
fn own(turns: &Turns, from: u64, to: u64) -> f64 {
    turns.of(START + from * MS, START + to * MS) as f64 / MS as f64
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.01, "{found}, not {expected}");
}

#[test]
fn all_of_it_while_nobody_tells() {
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
fn all_but_what_a_small_neighbour_wanted() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    // It waited for its turns all the time, and 3 ms are all it had done.
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[(3, 0, Some(0))])]);
    close(own(&turns, 0, 40), 37.0);
}

#[test]
fn all_but_half_of_the_time_for_which_a_neighbour_was_there() {
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
fn what_a_neighbour_was_given_while_this_process_was_away_is_not_given_twice() {
    let mut turns = Turns::new(START);
    let neighbour = (20, 0, Some(0));
    let looked = [
        (0, ABSENT, &[ABSENT][..]),
        // Alone, it has had done what it wanted,
        (20, ABSENT, &[neighbour]),
        // and waits for more.
        (40, (100, 0, Some(20)), &[neighbour]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 20, 40), 20.0);
}

/// It has had more than its part, as after a pause: what it wanted then is no reason to give it anything later.
#[test]
fn a_neighbour_with_nothing_out_has_nothing_left_to_be_given() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    let looked = [
        (0, busy, &[ABSENT][..]),
        (10, busy, &[(50, 10, None)]),
        // There again, with nothing more to do.
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
        // 50 ms reserved, of which 10 were needed: it had been done long before it noticed.
        (40, busy, &[(50, 0, Some(0))]),
        (60, busy, &[(10, 15, None)]),
        (80, busy, &[(20, 15, Some(70))]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 0, 40), 20.0);
    close(own(&turns, 40, 60), 20.0);
    // There again for ten, but told to have been for 25 too many: nothing until that is used up.
    close(own(&turns, 60, 80), 20.0);
}

#[test]
fn another_process_in_the_same_seat_is_another_one() {
    let mut turns = Turns::new(START);
    let busy = (10_000, 0, Some(0));
    let looked = [
        (0, busy, &[(90_000, 90_000, None)][..]),
        (10, busy, &[(0, 0, None)]),
        (20, busy, &[(50, 0, Some(10))]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 0, 10), 10.0);
    close(own(&turns, 10, 20), 5.0);
}

#[test]
fn one_that_is_gone_takes_nothing() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (10, busy, &[busy]), (20, busy, &[])]);
    close(own(&turns, 0, 10), 5.0);
    close(own(&turns, 10, 20), 10.0);
}

#[test]
fn long_operations_are_cut_down_and_short_ones_are_not() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[busy])]);
    assert_eq!(turns.own(START, START + 100_000, false), 100_000);
    assert_eq!(turns.own(START, START + 20 * MS, false), 10 * MS);
    // Waited for, it had the rest of a turn to itself before anybody else had one.
    assert_eq!(turns.own(START, START + 2 * MS, true), 2 * MS);
    assert_eq!(turns.own(START, START + 20 * MS, true), 10 * MS + MS / 2);
    assert!(turns.explain(START, START + 2 * MS));
}

/// Cut down to a part, it would look like a small one, and be charged as that for good.
#[test]
fn what_is_shorter_than_a_turn_takes_what_it_took() {
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[busy])]);
    for (took, alone) in [(300_000, 300_000), (2 * MS, 2 * MS), (20 * MS, 10 * MS)] {
        assert_eq!(turns.alone(START, START + took, false), alone);
    }
}

/// Long after a time, it is told less exactly, and still told.
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
    /// Whatever they tell: no more than passed is ever this process's, nor less than nothing.
    #[test]
    fn any_words_are_harmless(
        told in prop::collection::vec((any::<[u64; 2]>(), any::<[u64; 2]>(), 0_u64..50 * MS), 1..40),
        from in 0_u64..2_000 * MS,
        length in 0_u64..500 * MS,
    ) {
        let mut turns = Turns::new(START);
        let mut now = START;
        for (first, second, passed) in told {
            now += passed;
            let words = [first, second].map(|[work, occupied]| Told { work, occupied });
            turns.look((0..).zip(words), words[0], now);
        }
        let from = START + from;
        prop_assert!(turns.of(from, from + length) <= length);
        prop_assert!(turns.own(from, from + length, true) <= length);
        prop_assert!(turns.part(length / 2, from, from + length) <= length / 2);
    }
}
