//! What is reserved is taken from the bucket at once, and given back exactly.

use std::sync::Arc;

use proptest::prelude::*;

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{
        Allowance, Bucket, Launch, PeerReport, Permit, Signature, UsageReport,
        admission::{Admission, shares::Shares},
        charging::{Charging, costs::Sample, settlement::Due},
        timeline::{Timeline, stream::StreamId},
    },
    units::{ComputeLimit, Share},
};

/// 1 ms for each launch of unknown length.
const BIG: Signature = Signature::kernel(9, 4096);
const NEW: Signature = Signature::kernel(11, 4096);

/// A sibling at 50 % was charged for all of the time that this process at 5 % measured.
#[test]
fn what_a_sibling_was_charged_does_not_lift_a_smaller_share() {
    let (word, largest) = (Word::default(), Word::default());
    let shares = |percent| {
        let bucket = Bucket::new(&word, Share::from_percent(percent).unwrap());
        Shares::new(bucket).published_in(Some(&largest))
    };
    let (mut sibling, mut process) = (shares(50), shares(5));
    [&mut sibling, &mut process].into_iter().for_each(|shares| shares.follow(0, NOW));
    let full = sibling.balance(NOW);
    process.charge(MS, NOW);
    process.settle(MS, None, Due { since: NOW, own_ns: 100 * MS, ns: 0 }, NOW);
    assert_eq!(sibling.balance(NOW), full, "the container pays for the time once");
    // A full bucket of 5 % holds two times 1 ms.
    assert_eq!(process.balance(NOW), -98_000_000);
}

/// Peers take a process that its limit holds back to want no more.
#[test]
fn a_launch_that_waits_for_the_device_is_not_held_back_by_the_limit() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 50);
    let launch = Launch { first_ns: MS, ..Launch::kernel(BIG) };
    (0..8).for_each(|_| bench.run(launch, MS));
    bench.now += 100 * MS;
    // A full bucket of 20 ms is all in flight: the limit holds back.
    assert!((0..30).filter(|_| bench.launch(launch)).count() < 30);
    assert!(bench.balance() <= 0 && bench.meter.usage_report().is_held_back());
    // None of it has ended when as much has flowed in: the device does not give what the limit would.
    bench.now += 60 * MS;
    assert!(!bench.launch(launch) && bench.balance() > 0);
    assert!(!bench.meter.usage_report().is_held_back());
}

/// What a container with a fixed limit has been given while its work ran counts against it; what may be borrowed does not.
#[test]
fn what_may_be_borrowed_is_not_saved_up_while_work_runs() {
    let left = |limit: ComputeLimit| {
        let word = Word::default();
        let bucket = Bucket::new(&word, limit.share());
        let mut admission = Admission::new(bucket, NOW);
        admission.set_limit(limit, NOW);
        // A full bucket holds 12 ms, and 30 ms flow in.
        let end = NOW + 100 * MS;
        admission.settle(0, Due { since: NOW, own_ns: 100 * MS, ns: 100 * MS }, end);
        bucket.balance(end)
    };
    let share = Share::from_percent(30).unwrap();
    let near = |left: i64, ms: i64| (left - ms * 1_000_000).abs() < 1_000;
    assert!(near(left(ComputeLimit::fixed(share)), 12 + 30 - 100));
    assert!(near(left(ComputeLimit::burst(share, Share::FULL)), 12 - 100));
}

/// The owner waits for what is in flight: the guarantee of 30 % pays for it.
#[test]
fn what_is_in_flight_when_the_owner_comes_back_is_paid_for_by_the_guarantee() {
    let word = Word::default();
    let bucket = Bucket::new(&word, Share::from_percent(30).unwrap());
    let mut admission = Admission::new(bucket, NOW);
    let mut timeline = Timeline::<usize>::new(NOW);
    admission.set_limit(ComputeLimit::burst(bucket.share(), Share::FULL), NOW);
    // Of a full bucket of 12 ms a quantum is left.
    bucket.charge(6 * MS, NOW);
    admission.lend(Some(Share::FULL), NOW);
    let (charging, stream) = (Charging::default(), timeline.register(NOW));
    let launch = Launch { first_ns: MS, ..Launch::kernel(BIG) };
    let permit = admission.admit_unheld(stream, launch, NOW, &timeline, &charging);
    admission.gives_back(Share::from_percent(30), NOW);
    // The launch was 1 ms of it.
    let balance = bucket.balance(NOW);
    assert!((4_999_000..=5_000_000).contains(&balance), "{balance}");
    admission.settle_launch(permit.reserved, Due::default(), NOW);
    assert_eq!(admission.reserved_ns(), 0);
    let balance = bucket.balance(NOW);
    assert!((5_999_000..=6_000_000).contains(&balance), "{balance}");
    admission.gives_back(Share::from_percent(30), NOW);
    assert!(bucket.balance(NOW).abs_diff(balance) < 1_000, "nothing is in flight");
}

/// It was admitted when the owner paused.
#[test]
fn a_launch_of_unknown_length_is_paid_for_by_who_works_when_it_ends() {
    let paid = |limit: ComputeLimit, comes_back: bool, due_ns| {
        let word = Word::default();
        let mut admission = Admission::new(Bucket::new(&word, limit.share()), NOW);
        let (mut timeline, charging) = (Timeline::<usize>::new(NOW), Charging::default());
        let (stream, allowance) = (timeline.register(NOW), Arc::default());
        admission.set_limit(limit, NOW);
        admission.lend(Some(Share::FULL), NOW);
        // Nothing is saved up.
        let full = Bucket::new(&word, Share::FULL);
        full.charge(u64::try_from(full.balance(NOW)).unwrap(), NOW);
        let launch = Launch::kernel(BIG);
        let permit = admission.admit(stream, &allowance, launch, NOW, &mut timeline, &charging);
        if comes_back {
            admission.gives_back(limit.guaranteed(), NOW);
            // It pauses again.
            admission.lend(Some(Share::FULL), NOW);
        }
        let due = Due { since: NOW, own_ns: due_ns, ns: due_ns };
        admission.settle_launch(permit.reserved, due, NOW);
        Bucket::new(&word, Share::FULL).holds_at(0, NOW) - NOW
    };
    let ms = |limit, comes_back, ms| paid(limit, comes_back, ms * MS).div_ceil(MS);
    let burst = ComputeLimit::burst(Share::from_percent(10).unwrap(), Share::FULL);
    assert_eq!((ms(burst, false, 1_000), ms(burst, true, 1_000)), (1_000, 10_000));
    let low = ComputeLimit::low_priority(Share::FULL);
    assert_eq!((ms(low, false, 1_000), ms(low, true, 80)), (1_000, 80));
    assert_eq!(ms(low, true, 1_000), 80 + 920 * 25, "the owner makes up for 80 ms");
}

/// All that it may borrow, beside a container that is idle.
fn borrower(word: &Word) -> Bench<'_> {
    let mut process = Bench::new(word, 30);
    process.meter.set_limit(ComputeLimit::burst(process.bucket.share(), Share::FULL), NOW);
    let idle = PeerReport {
        page: 7,
        limit: Share::from_percent(50).map(ComputeLimit::fixed),
        key: 7,
        report: UsageReport::default(),
    };
    process.meter.take_reports([idle].into_iter(), NOW);
    process
}

/// Of another process, or with a page of it that says so.
#[test]
fn what_is_lent_to_a_container_is_in_flight_once_whatever_its_processes() {
    let word = Word::default();
    let (mut first, mut second) = (borrower(&word), borrower(&word));
    assert!(first.launch(Launch::kernel(BIG)));
    assert!(!second.launch(Launch::kernel(KERNEL)), "it is not known how long the first one takes");

    let word = Word::default();
    let mut process = borrower(&word);
    let sibling = |report| PeerReport { page: 1, limit: None, key: 1, report };
    let in_flight = sibling(UsageReport::new(2 * MS, 0, Some(NOW)));
    process.meter.take_reports([sibling(UsageReport::default())].into_iter(), NOW + MS);
    process.meter.take_reports([in_flight].into_iter(), NOW + 2 * MS);
    process.now = NOW + 2 * MS;
    assert!(!process.launch(Launch::kernel(KERNEL)), "the owner would wait for both");
}

/// Beside a sibling with 2 ms in flight, 1 ms more than the owner may have to wait for. `KERNEL` takes 10 us, `BIG` 2 ms.
#[test]
fn a_short_launch_goes_beside_a_long_one_of_a_sibling_and_a_long_one_does_not() {
    let beside = |in_flight_ns: u64| {
        let word = Word::default();
        let mut process = borrower(&word);
        process.run(Launch::kernel(KERNEL), 10_000);
        process.run(Launch::kernel(BIG), 2 * MS);
        let sibling = |ns, since| {
            let report = UsageReport::new(ns, 0, since);
            PeerReport { page: 1, limit: None, key: 1, report }
        };
        process.meter.take_reports([sibling(0, None)].into_iter(), process.now);
        process.now += 100 * MS;
        let begun = sibling(in_flight_ns, Some(process.now));
        process.meter.take_reports([begun].into_iter(), process.now);
        [KERNEL, BIG].map(|function| process.ask(Launch::kernel(function)).is_some())
    };
    assert_eq!(beside(2 * MS), [true, false]);
    assert_eq!(beside(MS), [false, false], "there is no room");
}

#[test]
fn a_launch_waits_for_a_sibling_that_was_held_back_before() {
    let word = Word::default();
    let mut process = borrower(&word);
    process.run(Launch::kernel(KERNEL), 10_000);
    let held = UsageReport::new(MS, 0, None).with_held_back(true);
    let sibling = PeerReport { page: 1, limit: None, key: 1, report: held };
    let mut goes = |ms: u64| {
        process.now = NOW + ms * MS;
        process.meter.take_reports([sibling].into_iter(), process.now);
        process.ask(Launch::kernel(KERNEL)).is_some()
    };
    assert!(goes(1), "it has just begun to wait");
    assert!(goes(10));
    assert!(!goes(12) && !goes(13), "it is its turn");
    assert!(goes(15), "it waits for something else");
    assert!(goes(10_020), "it may have been stopped");
}

proptest! {
    /// Whatever was lent when work was reserved, and is lent when it ends: what is due is all that stays charged.
    #[test]
    fn what_is_lent_in_between_neither_adds_to_a_charge_nor_takes_from_it(
        lends in prop::collection::vec((0..5_u8, 1..3_000_000_u64), 1..40),
    ) {
        let word = Word::default();
        let bucket = Bucket::new(&word, Share::from_percent(30).unwrap());
        let mut admission = Admission::new(bucket, NOW);
        let timeline = Timeline::<usize>::new(NOW);
        admission.set_limit(ComputeLimit::burst(bucket.share(), Share::FULL), NOW);
        let (charging, stream) = (Charging::default(), StreamId(0));
        let full = bucket.balance(NOW);
        let mut permits: Vec<Permit> = Vec::new();
        for (act, ns) in lends {
            match act {
                0 => admission.lend(Share::from_percent(30), NOW),
                1 => admission.lend(Share::from_percent(60), NOW),
                2 => admission.lend(Share::from_percent(99), NOW),
                3 => {
                    let launch = Launch { first_ns: ns, ..Launch::kernel(BIG) };
                    permits.push(admission.admit_unheld(stream, launch, NOW, &timeline, &charging));
                }
                _ => permits.pop().into_iter().for_each(|permit| {
                    admission.forget_launch(permit.reserved, NOW, NOW);
                    admission.settle_launch(permit.reserved, Due::default(), NOW);
                }),
            }
        }
        permits.into_iter().for_each(|permit| admission.release_launch(permit.reserved, NOW));
        // Each conversion is rounded.
        prop_assert!(bucket.balance(NOW).abs_diff(full) < 1_000);
    }

    #[test]
    fn all_that_is_reserved_is_replaced_by_what_is_due(
        acts in prop::collection::vec((0..4_u8, 0..3_usize, 0..2_000_000_u64), 1..60),
    ) {
        let word = Word::default();
        let bucket = Bucket::new(&word, Share::from_percent(50).unwrap());
        let mut admission = Admission::new(bucket, NOW);
        let mut timeline = Timeline::<usize>::new(NOW);
        let (charging, stream) = (Charging::default(), timeline.register(NOW));
        // A small one, after which there is an allowance, and a long one; the third is never measured.
        for (signature, ns) in [(KERNEL, 10_000), (BIG, 3 * MS)] {
            let sample =
                Sample { ns, clean: true, is_whole: false, is_collective: false, explained: false };
            (0..4).for_each(|_| charging.costs().learn(signature, sample));
        }
        let allowance: Arc<Allowance> = Arc::default();
        let (full, mut due_ns) = (bucket.balance(NOW), 0_i64);
        let mut permits: Vec<Permit> = Vec::new();
        for (act, which, ns) in acts {
            let launch = Launch::kernel([KERNEL, BIG, NEW][which]);
            let permit = (!permits.is_empty()).then(|| permits.remove(0));
            let reserved = permit.map(|permit| permit.reserved);
            match act {
                // Given back, or settled at whatever it took.
                0 => reserved.into_iter().for_each(|reserved| {
                    admission.forget_launch(reserved, NOW, NOW);
                    admission.release_launch(reserved, NOW);
                }),
                1 => reserved.into_iter().for_each(|reserved| {
                    admission.forget_launch(reserved, NOW, NOW);
                    admission.settle_launch(reserved, Due { since: NOW, own_ns: ns, ns }, NOW);
                    due_ns += i64::try_from(ns).unwrap();
                }),
                _ => {
                    permits.extend(reserved.map(|reserved| Permit {
                        stream, reserved, batch_ns: 0, waited: false, events: true,
                    }));
                    let balance = bucket.balance(NOW);
                    let has_unmeasured = permits.iter().any(|permit| permit.reserved.unmeasured);
                    match admission.waits_until(launch, NOW, &mut timeline, &charging) {
                        Some(until) => prop_assert!(until > NOW && (balance < full || has_unmeasured)),
                        None => permits.push(admission.admit(
                            stream, &allowance, launch, NOW, &mut timeline, &charging,
                        )),
                    }
                }
            }
            let of_permits: u64 = permits.iter().map(|permit| permit.reserved.ns).sum();
            prop_assert!(admission.reserved_ns() >= of_permits);
            let charged_ns = due_ns + i64::try_from(admission.reserved_ns()).unwrap();
            prop_assert_eq!(full - bucket.balance(NOW), charged_ns);
            if ns % 3 == 0 {
                // Nothing was taken out of the allowance.
                admission.close_allowances(NOW, &mut timeline);
                prop_assert_eq!(admission.reserved_ns(), of_permits);
            }
            // Of launches of unknown length one is in flight.
            prop_assert!(permits.iter().filter(|permit| permit.reserved.unmeasured).count() <= 1);
        }
    }
}
