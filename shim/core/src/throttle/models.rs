//! The bucket and the batch under the model checker: every order of every access, deaths at every access.
//!
//! Run as the ledger's models are. Threads are processes (of the bucket) or threads (of batches). No preemption bound
//! but where a model states one: all orders are explored.

mod repair;
mod shares;

use std::sync::Arc;

use loom::thread;

use super::{Batch, Bucket};
use crate::{
    sync::{Word, explore::explore, fuse::burn},
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
    explore(None, || {
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
    explore(None, || {
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
        explore(None, move || {
            let [word, other] = level_word();
            let dying = thread::spawn(move || burn(steps, || bucket(&other).charge(COST, NOW)));
            bucket(&word).charge(COST, NOW);
            let charges = if dying.join().unwrap().is_some() { 2 } else { 1 };
            assert_eq!(bucket(&word).level(NOW), -7_000_000 * charges);
        });
    }
}

/// As many launches of this cost as fit; what they take.
fn spend_all(batch: &Batch, cost_ns: u32) -> u64 {
    std::iter::repeat_with(|| batch.spend(cost_ns))
        .take_while(|fits| *fits)
        .map(|_| u64::from(cost_ns))
        .sum()
}

/// Whatever a thread takes while the meter looks, calls the rest back and grants anew: all of it is found, once, and what
/// had been given back by then is told apart.
#[test]
fn what_a_thread_takes_is_found_whatever_the_meter_does_meanwhile() {
    explore(None, || {
        let batch = Arc::new(Batch::default());
        batch.open(100, 2);
        let own = Arc::clone(&batch);
        let owner = thread::spawn(move || spend_all(&own, 40));
        let first = batch.look();
        let (second, back) = batch.close();
        batch.open(40, 1);
        let spent = owner.join().unwrap();
        let (third, left) = batch.close();
        let found = first.and(second).and(third);
        assert_eq!(found.ns, spent);
        assert_eq!(found.launches * 40, spent);
        assert_eq!(back + left + found.ns, 140 + found.unreserved_ns);
        // Never more than a grant and what had been taken before it: of both it is the larger that counts.
        assert!(spent <= 80 + 40, "{spent}");
        assert!(!batch.spend(0));
    });
}

/// A thread that dies between any two accesses has taken the cost of each launch that it made, and of one more at most.
/// Its batch goes on with another thread, and what it had taken is not lost.
#[test]
fn a_thread_that_dies_leaves_a_batch_that_another_one_can_take_over() {
    for steps in 0..8 {
        explore(None, move || {
            let batch = Arc::new(Batch::default());
            batch.open(100, 4);
            let own = Arc::clone(&batch);
            let dying = thread::spawn(move || {
                let launched = std::cell::Cell::new(0);
                let life = || {
                    while own.spend(30) {
                        launched.set(launched.get() + 30);
                    }
                };
                let _ = burn(steps, life);
                launched.get()
            });
            let seen = batch.look();
            let launched = dying.join().unwrap();
            let next = Arc::clone(&batch);
            let heir = thread::spawn(move || spend_all(&next, 30));
            let more = batch.look();
            let spent = launched + heir.join().unwrap();
            let (last, left) = batch.close();
            let found = seen.and(more).and(last);
            assert!((spent..=spent + 30).contains(&found.ns), "{} {spent}", found.ns);
            assert_eq!((found.unreserved_ns, found.ns + left), (0, 100));
        });
    }
}

/// Three threads of one gate, each with its batch, and a meter that calls back what is left: what is admitted is what the
/// bucket gave, and what each held when it was called back.
#[test]
fn what_threads_admit_is_the_burst_and_a_grant_each() {
    const GRANT: u64 = 4_000_000;
    explore(None, || {
        let word = Arc::new(Word::default());
        let batches = [(); 2].map(|()| Arc::new(Batch::default()));
        let cap_ns = bucket(&word).cap_ns();
        for batch in &batches {
            bucket(&word).charge(GRANT, NOW);
            batch.open(GRANT, 2);
        }
        let threads = batches.clone().map(|own| thread::spawn(move || spend_all(&own, 2_000_000)));
        let mut back = 0;
        for batch in &batches {
            let (_, unused_ns) = batch.close();
            bucket(&word).refund(unused_ns);
            back += unused_ns;
        }
        // What came back goes to others.
        bucket(&word).charge(back, NOW);
        let spent: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        let late: u64 = batches.iter().map(|batch| batch.look().unreserved_ns).sum();
        bucket(&word).charge(late, NOW);
        assert!(spent + back <= 2 * GRANT + late && late <= 2 * GRANT);
        assert!(
            bucket(&word).level(NOW) + (spent + back).cast_signed() <= cap_ns.cast_signed() + 4
        );
    });
}
