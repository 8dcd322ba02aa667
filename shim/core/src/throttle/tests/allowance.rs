//! Allowances: one thread's by itself, and as the meter grants them.

use std::sync::Arc;

use super::desk::{Bench, KERNEL, MS};
use crate::{
    sync::Word,
    throttle::{Allowance, Launch, allowance::Taken},
};

const fn taken(ns: u64, launches: u64) -> Taken {
    Taken { ns, unreserved_ns: 0, launches }
}

#[test]
fn nothing_fits_a_closed_allowance() {
    let allowance = Allowance::default();
    assert!(!allowance.launch(0));
    allowance.open(100, 2);
    assert_eq!(allowance.close(), (taken(0, 0), 100));
    assert!(!allowance.launch(1));
    assert_eq!(allowance.close(), (taken(0, 0), 0), "it was closed");
}

#[test]
fn launches_fit_while_there_is_room_and_a_place() {
    let allowance = Allowance::default();
    allowance.open(100, 3);
    assert!(
        allowance.launch(60)
            && !allowance.launch(41)
            && allowance.launch(40)
            && allowance.launch(0)
    );
    assert!(!allowance.launch(0), "three places were taken");
    assert_eq!(allowance.close(), (taken(100, 3), 0));
}

#[test]
fn what_is_taken_is_seen_once() {
    let allowance = Allowance::default();
    allowance.open(100, 3);
    assert!(allowance.launch(60));
    assert_eq!(allowance.newly_taken(), taken(60, 1));
    assert_eq!(allowance.newly_taken(), taken(0, 0));
    assert!(allowance.launch(30));
    assert_eq!(allowance.close(), (taken(30, 1), 10));
}

#[test]
fn a_launch_that_the_driver_refused_gives_its_cost_back() {
    let allowance = Allowance::default();
    allowance.open(100, 3);
    assert!(allowance.spend(60));
    allowance.refused(60);
    assert!(allowance.launch(90));
    assert_eq!(allowance.close(), (taken(90, 2), 10));
}

#[test]
fn what_comes_back_too_late_makes_no_later_launch_free() {
    let allowance = Allowance::default();
    allowance.open(100, 3);
    assert!(allowance.spend(60));
    assert_eq!(allowance.close(), (taken(0, 0), 100));
    assert_eq!(allowance.all_taken(), Taken { unreserved_ns: 60, ..taken(60, 1) });
    allowance.refused(60);
    assert!(!allowance.launch(0), "the allowance stays closed");
    allowance.open(100, 3);
    assert!(allowance.launch(50));
    assert_eq!(allowance.newly_taken(), taken(50, 1));
    assert!(allowance.launch(50));
    assert_eq!(allowance.close(), (taken(50, 1), 0), "all of the grant is accounted for");
}

#[test]
fn a_launch_that_took_its_cost_as_the_grant_ended_is_found_later() {
    let allowance = Allowance::default();
    allowance.open(100, 3);
    let late = allowance.after(60).unwrap();
    assert_eq!(allowance.close(), (taken(0, 0), 100));
    allowance.take(late);
    allowance.returned(60);
    assert!(!allowance.launch(0), "the allowance is closed");
    assert_eq!(allowance.newly_taken(), Taken { unreserved_ns: 60, ..taken(60, 1) });
    allowance.open(100, 3);
    assert!(allowance.launch(100));
    assert_eq!(allowance.close(), (taken(100, 1), 0));
}

#[test]
fn a_launch_that_took_its_cost_as_a_grant_began_took_it_out_of_that() {
    let allowance = Allowance::default();
    allowance.open(100, 3);
    let late = allowance.after(60).unwrap();
    assert_eq!(allowance.close(), (taken(0, 0), 100));
    allowance.open(50, 3);
    allowance.take(late);
    allowance.returned(60);
    assert!(!allowance.launch(0), "more is taken than was granted");
    assert_eq!(allowance.close(), (Taken { unreserved_ns: 10, ..taken(60, 1) }, 0));
}

/// Sums wrap around after two years of launches.
#[test]
fn sums_go_around_the_end_of_the_range() {
    let allowance = Allowance::default();
    let near = u64::MAX - (50 << 8);
    for sum in [1 << 62, 2 << 62, 3 << 62, near] {
        allowance.take(sum);
        allowance.returned(60);
        allowance.close();
    }
    allowance.open(100, 3);
    assert!(allowance.launch(80) && !allowance.launch(21) && allowance.launch(20));
    assert!(allowance.after(0).is_some_and(|sum| sum < near));
    assert_eq!(allowance.close(), (taken(100, 2), 0));
}

/// A thread that comes to the meter closes only its own allowance.
#[test]
fn threads_that_share_a_stream_have_an_allowance_each_and_one_mark_ends_their_batch() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    let first = std::mem::take(&mut bench.allowance);
    assert!(first.launch(10_000) && first.launch(10_000));
    let before = bench.meter.totals();
    bench.now += 2 * 10_000;
    bench.run(Launch::kernel(KERNEL), 10_000);
    let second = Arc::clone(&bench.allowance);
    assert!(first.launch(10_000) && second.launch(10_000));
    bench.now += 2 * 10_000;
    bench.run(Launch::kernel(KERNEL), 10_000);
    let after = bench.meter.totals();
    assert_eq!(after.busy_ns - before.busy_ns, 6 * 10_000);
    assert_eq!(after.launches - before.launches, 6);
    bench.meter.stream_destroyed(bench.stream, bench.now);
    assert!(!first.launch(1) && !second.launch(1));
}

/// Its grant had been revoked by then.
#[test]
fn a_launch_that_took_its_cost_as_the_gate_closed_is_charged() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    let late = bench.allowance.after(10_000).unwrap();
    bench.bucket.charge(500 * MS, bench.now);
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    let (balance, before) = (bench.balance(), bench.meter.totals());
    bench.allowance.take(late);
    bench.meter.stream_destroyed(bench.stream, bench.now);
    let after = bench.meter.totals();
    assert_eq!(balance - bench.balance(), 10_000);
    assert_eq!((after.busy_ns - before.busy_ns, after.launches - before.launches), (10_000, 1));
}
