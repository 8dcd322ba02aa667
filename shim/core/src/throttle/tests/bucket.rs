//! The bucket's word under any value and any change.

use proptest::prelude::*;

use crate::{sync::Word, throttle::Bucket, units::Share};

const NOW: u64 = 1_000_000_000_000;

fn shares() -> impl Strategy<Value = Share> {
    (100..=10_000_u16).prop_map(|parts| Share::from_parts(parts).unwrap())
}

fn balanced_at(word: u64) -> Word {
    let fresh = Word::default();
    fresh.store(word);
    fresh
}

#[test]
fn a_fresh_bucket_is_full() {
    let word = Word::default();
    let bucket = Bucket::new(&word, Share::from_percent(30).unwrap());
    assert_eq!(bucket.balance(NOW), i64::try_from(bucket.capacity_ns()).unwrap());
    assert_eq!(bucket.quantum_ns(), 6_000_000);
}

#[test]
fn a_small_share_has_a_quantum_that_outlives_a_wake_up() {
    let word = Word::default();
    assert_eq!(Bucket::new(&word, Share::from_percent(1).unwrap()).quantum_ns(), 500_000);
}

#[test]
fn another_share_keeps_the_time_at_which_the_bucket_is_level() {
    let word = balanced_at(NOW);
    let bucket = Bucket::new(&word, Share::from_percent(10).unwrap());
    bucket.charge(1_000_000, NOW);
    let more = bucket.with_share(Share::from_percent(50).unwrap());
    assert_eq!((bucket.balance(NOW), more.balance(NOW)), (-1_000_000, -5_000_000));
    assert_eq!((bucket.balance(NOW + 10_000_000), more.balance(NOW + 10_000_000)), (0, 0));
}

#[test]
fn no_operation_is_so_long_that_its_debt_is_forgiven() {
    let word = balanced_at(NOW);
    let bucket = Bucket::new(&word, Share::from_percent(50).unwrap());
    bucket.charge(1 << 60, NOW);
    assert_eq!(bucket.balance(NOW), -1_800_000_000_000);
}

/// The bucket was full, and holds twice what flows in within a period.
#[test]
fn what_has_flowed_in_since_pays_for_what_is_charged_late() {
    let full_then = |charged_ns, later_ns| {
        let word = Word::default();
        let bucket = Bucket::new(&word, Share::from_percent(50).unwrap());
        bucket.charge_as_of(NOW, charged_ns, NOW + later_ns);
        bucket.balance(NOW + later_ns)
    };
    assert_eq!(full_then(30_000_000, 20_000_000), 0);
    assert_eq!(full_then(200_000_000, 20_000_000), -170_000_000);
    assert_eq!(full_then(200_000_000, 10_000_000_000), 20_000_000);
}

/// A debt of other processes is not forgiven by it.
#[test]
fn what_is_charged_late_comes_on_top_of_a_debt() {
    let word = balanced_at(NOW);
    let bucket = Bucket::new(&word, Share::from_percent(50).unwrap());
    bucket.charge(5_000_000, NOW);
    bucket.charge_as_of(NOW - 900_000_000_000, 1_000_000, NOW);
    assert_eq!(bucket.balance(NOW), -6_000_000);
}

proptest! {
    /// No launch is admitted to an empty bucket; then no window holds more than its bound.
    #[test]
    fn a_window_holds_at_most_the_burst_the_refill_and_one_operation(
        share in shares(),
        steps in prop::collection::vec((0..30_000_000_u64, 1..50_000_000_u64), 1..60),
    ) {
        let word = Word::default();
        let bucket = Bucket::new(&word, share);
        let mut admitted = Vec::new();
        let mut now = NOW;
        for (passes, cost) in steps {
            now += passes;
            if bucket.balance(now) > 0 {
                bucket.charge(cost, now);
                admitted.push((now, cost));
            }
        }
        for first in 0..admitted.len() {
            let (start, mut sum) = (admitted[first].0, 0);
            for &(end, cost) in &admitted[first..] {
                prop_assert!(sum <= bucket.capacity_ns() + share.of(end - start));
                sum += cost;
            }
        }
    }

    #[test]
    fn a_refund_gives_back_the_charge_and_never_more(
        share in shares(),
        before in 0..4_000_000_000_u64,
        cost in 0..2_000_000_000_u64,
    ) {
        let word = balanced_at(NOW - 2_000_000_000 + before);
        let bucket = Bucket::new(&word, share);
        let balance = bucket.balance(NOW);
        bucket.charge(cost, NOW);
        bucket.refund(cost);
        prop_assert!((balance - 2..=balance).contains(&bucket.balance(NOW)));
    }

    /// And on a word of another clock it begins at a balance of zero.
    #[test]
    fn a_charge_that_is_counted_anew_is_that_of_the_other_share(
        one in shares(), other in shares(),
        before in 0..2_000_000_000_u64,
        cost in 0..100_000_000_u64,
    ) {
        let word = balanced_at(NOW - 10_000_000 + before);
        let [first, second] = [one, other].map(|share| Bucket::new(&word, share));
        first.charge(cost, NOW);
        let charged = word.load();
        second.charge_anew(cost, one, NOW);
        let takes_up = |bucket: &Bucket<'_>| bucket.takes_up(cost);
        prop_assert_eq!(word.load(), charged - takes_up(&first) + takes_up(&second));
        first.charge_anew(cost, other, NOW);
        prop_assert_eq!(word.load(), charged);
        let foreign = balanced_at(u64::MAX - before);
        Bucket::new(&foreign, other).charge_anew(0, one, NOW);
        prop_assert_eq!(foreign.load(), NOW);
    }

    #[test]
    fn parts_of_a_charge_come_to_the_whole(
        share in shares(),
        costs in prop::collection::vec(0..100_000_000_u64, 1..20),
    ) {
        let word = balanced_at(NOW);
        let bucket = Bucket::new(&word, share);
        costs.iter().for_each(|&cost| bucket.charge(cost, NOW));
        let owed = u64::try_from(-bucket.balance(NOW)).unwrap();
        let sum: u64 = costs.iter().sum();
        // A charge rounds up, by less than a nanosecond of wall time each.
        prop_assert!(sum <= owed + 1 && owed <= sum + costs.len() as u64);
    }

    #[test]
    fn it_holds_what_it_should_when_it_said(
        share in shares(),
        owed in 0..1_000_000_000_u64,
        wanted in 1..500_000_u64,
    ) {
        let word = balanced_at(NOW);
        let bucket = Bucket::new(&word, share);
        bucket.charge(owed, NOW);
        let at = bucket.holds_at(wanted, NOW);
        prop_assert!(bucket.balance(at) >= i64::try_from(wanted).unwrap());
        prop_assert!(bucket.balance(at - 100) < i64::try_from(wanted).unwrap());
    }

    /// Whatever the word holds: the time of a foreign clock, or what a bug left.
    #[test]
    fn any_word_and_any_time_are_bounded(
        share in shares(),
        found in any::<u64>(),
        now in any::<u64>(),
        cost in any::<u64>(),
    ) {
        const TWO_HOURS: i64 = 7_200_000_000_000;
        let word = balanced_at(found);
        let bucket = Bucket::new(&word, share);
        prop_assert!(bucket.balance(now) <= i64::try_from(bucket.capacity_ns()).unwrap());
        prop_assert!(bucket.balance(now) >= -TWO_HOURS);
        bucket.charge(cost, now);
        prop_assert!(bucket.balance(now) >= -TWO_HOURS);
        bucket.refund(cost);
        let _ = bucket.holds_at(bucket.quantum_ns(), now);
    }
}
