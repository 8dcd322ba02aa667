//! The bucket and the batch under the model checker: every order of every access, deaths at every access.
//!
//! Run as the ledger's models are. Threads are processes (of the bucket) or threads (of a batch). No preemption bound:
//! all orders are explored.

use std::sync::Arc;

use loom::thread;

use super::{Batch, Bucket};
use crate::{
    sync::{Word, fuse::burn},
    units::Share,
};

const NOW: u64 = 1_000_000_000_000;
const COST: u64 = 7_000_000;

fn bucket(word: &Word) -> Bucket<'_> {
    Bucket::new(word, Share::ONE_HALF)
}

/// A bucket that owes and holds nothing.
fn level_word() -> [Arc<Word>; 2] {
    let word = Arc::new(Word::default());
    word.store(NOW);
    [Arc::clone(&word), word]
}

#[test]
fn no_charge_and_no_refund_is_lost() {
    loom::model(|| {
        let [word, other] = level_word();
        let rival = thread::spawn(move || {
            bucket(&other).charge(COST, NOW);
            bucket(&other).refund(COST / 2);
        });
        bucket(&word).charge(COST, NOW);
        rival.join().unwrap();
        assert_eq!(bucket(&word).level(NOW), -10_500_000);
    });
}

/// Who looks before charging can be overtaken once: each process overdraws by one operation at most.
#[test]
fn what_two_processes_admit_is_the_burst_and_an_operation_each() {
    loom::model(|| {
        let word = Arc::new(Word::default());
        let other = Arc::clone(&word);
        let rival = thread::spawn(move || admitted(&other));
        let all = admitted(&word) + rival.join().unwrap();
        assert!(all < bucket(&word).cap_ns() + 2 * COST, "{all}");
        assert!(bucket(&word).level(NOW) <= 0);
    });
}

fn admitted(word: &Word) -> u64 {
    let mut sum = 0;
    while bucket(word).level(NOW) > 0 {
        bucket(word).charge(COST, NOW);
        sum += COST;
    }
    sum
}

#[test]
fn a_process_that_dies_in_a_charge_has_charged_or_not() {
    for steps in 0..4 {
        loom::model(move || {
            let [word, other] = level_word();
            let dying = thread::spawn(move || burn(steps, || bucket(&other).charge(COST, NOW)));
            bucket(&word).charge(COST, NOW);
            let charges = if dying.join().unwrap().is_some() { 2 } else { 1 };
            assert_eq!(bucket(&word).level(NOW), -7_000_000 * charges);
        });
    }
}

/// Whatever a launch takes while the meter closes the batch, it is counted once.
#[test]
fn what_is_spent_and_what_is_left_are_what_was_granted() {
    loom::model(|| {
        let batch = Arc::new(Batch::default());
        batch.open(100, 2);
        let (near, far) = (Arc::clone(&batch), Arc::clone(&batch));
        let first = thread::spawn(move || u64::from(near.spend(40)) * 40);
        let second = thread::spawn(move || {
            let spent = far.spend(70);
            if spent {
                far.put_back(70);
            }
        });
        let (left, _) = batch.close();
        let spent = first.join().unwrap();
        second.join().unwrap();
        // What came too late to be put back stays spent.
        assert!([100, 30].contains(&(left + spent)), "{left} {spent}");
        assert!(!batch.spend(0));
    });
}
