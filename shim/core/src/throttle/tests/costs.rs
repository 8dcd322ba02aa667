//! The table of costs.

use proptest::prelude::*;

use crate::throttle::{Costs, Signature, charging::costs::Sample};

const KERNEL: Signature = Signature::kernel(7, 1024);

const fn plain(ns: u64, clean: bool) -> Sample {
    Sample { ns, clean, is_whole: false, is_collective: false, explained: false }
}

fn learn(costs: &Costs, samples: &[u64]) {
    samples.iter().for_each(|&ns| costs.learn(KERNEL, plain(ns, true)));
}

#[test]
fn what_turns_of_others_explain_does_not_move_the_mean() {
    let costs = Costs::default();
    learn(&costs, &[10_000; 4]);
    let foreign = Sample { explained: true, ..plain(2_010_000, true) };
    for _ in 0..20 {
        costs.learn(KERNEL, foreign);
        learn(&costs, &[10_000]);
    }
    assert_eq!(costs.small(KERNEL), Some(10_000));
    // Three in a row are more than chance.
    (0..3).for_each(|_| costs.learn(KERNEL, foreign));
    assert_eq!(costs.estimate(KERNEL), Some(2_010_000));
}

#[test]
fn four_samples_make_a_small_cost() {
    let costs = Costs::default();
    assert_eq!((costs.small(KERNEL), costs.estimate(KERNEL)), (None, None));
    learn(&costs, &[10, 12, 14]);
    assert_eq!((costs.small(KERNEL), costs.estimate(KERNEL)), (None, Some(12)));
    learn(&costs, &[12]);
    assert_eq!(costs.small(KERNEL), Some(12));
}

#[test]
fn big_operations_are_never_small() {
    let costs = Costs::default();
    learn(&costs, &[200_000; 10]);
    assert_eq!(costs.small(KERNEL), None);
}

#[test]
fn functions_and_sizes_have_costs_of_their_own() {
    let costs = Costs::default();
    learn(&costs, &[10; 4]);
    assert_eq!(costs.small(Signature::kernel(7, 4096)), None);
    assert_eq!(costs.small(Signature::kernel(8, 1024)), None);
    assert_eq!(costs.small(Signature::graph(7)), None);
    assert_eq!(costs.small(Signature::kernel(7, 2047)), Some(10), "of one power of two");
}

#[test]
fn one_outlier_barely_moves_the_mean_and_three_replace_it() {
    let costs = Costs::default();
    learn(&costs, &[1000; 15]);
    learn(&costs, &[1_000_000]);
    assert_eq!(costs.small(KERNEL), Some((14 * 1000 + 4000) / 15));
    learn(&costs, &[1_000_000; 2]);
    assert_eq!(costs.estimate(KERNEL), Some(1_000_000));
    learn(&costs, &[10; 3]);
    assert_eq!(costs.estimate(KERNEL), Some(10));
}

/// One in ten takes a hundred times as long, and no other process was there.
#[test]
fn samples_of_a_process_alone_count_in_full() {
    let costs = Costs::default();
    let whole = |ns| costs.learn(KERNEL, Sample { is_whole: true, ..plain(ns, true) });
    for round in 0..600 {
        whole(if round % 10 == 9 { 1_000_000 } else { 10_000 });
    }
    let mean = costs.estimate(KERNEL).unwrap();
    assert!((90_000..130_000).contains(&mean), "109,000 in the mean of all: {mean}");
    // A long one beside others is cut off, and counts for more than before.
    learn(&costs, &[1_000_000]);
    assert_eq!(costs.estimate(KERNEL), Some((mean * 14 + mean * 4) / 15));
}

/// They contain what the host takes between the events: the mean forgets them as soon as any others.
#[test]
fn small_samples_of_a_process_alone_on_an_empty_stream_count_in_full() {
    let costs = Costs::default();
    let whole = |ns| costs.learn(KERNEL, Sample { is_whole: true, ..plain(ns, false) });
    (0..40).for_each(|_| whole(10_000));
    whole(130_000);
    assert_eq!(costs.estimate(KERNEL), Some((14 * 10_000 + 130_000) / 15));
}

#[test]
fn samples_of_an_empty_stream_yield_to_those_of_a_busy_one_for_a_while() {
    let costs = Costs::default();
    learn(&costs, &[1000; 4]);
    let dirty = || costs.learn(KERNEL, plain(2000, false));
    (0..7).for_each(|_| dirty());
    assert_eq!(costs.small(KERNEL), Some(1000));
    dirty();
    assert_eq!(costs.small(KERNEL), Some(1200));
}

#[test]
fn what_changed_is_unknown() {
    let costs = Costs::default();
    learn(&costs, &[10; 4]);
    costs.forget(KERNEL);
    assert_eq!(costs.estimate(KERNEL), None);
}

#[test]
fn thousands_of_signatures_have_their_place() {
    let costs = Costs::default();
    let signature = |function| Signature::kernel(0x7f00_0000_0000 + function * 64, 1 << 16);
    for function in 0..4096 {
        for _ in 0..4 {
            costs.learn(signature(function), plain(100 + function, true));
        }
    }
    let known = |function: &u64| {
        costs.small(signature(*function)).is_some_and(|cost| u64::from(cost) == 100 + function)
    };
    let kept = (0..4096).filter(known).count();
    assert!(kept > 3900, "{kept}");
}

proptest! {
    #[test]
    fn an_estimate_is_within_what_was_measured(samples in prop::collection::vec(0..8_000_000_000_u64, 1..40)) {
        let costs = Costs::default();
        learn(&costs, &samples);
        let cost = costs.estimate(KERNEL).unwrap();
        prop_assert!(samples.iter().min() <= Some(&cost) && Some(&cost) <= samples.iter().max());
    }

    #[test]
    fn no_sample_spoils_the_entry(samples in prop::collection::vec(any::<u64>(), 1..40)) {
        let costs = Costs::default();
        learn(&costs, &samples);
        prop_assert!(costs.estimate(KERNEL).is_some());
        prop_assert_eq!(costs.estimate(Signature::graph(7)), None);
    }
}
