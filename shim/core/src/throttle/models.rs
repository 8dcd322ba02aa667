//! The bucket and the allowance under the model checker: every order of every access, deaths at every access.
//!
//! Run as the ledger's models are. Threads are processes (of the bucket) or threads (of allowances). There is no
//! preemption bound, but where a model states one: all orders are explored.

mod account;
mod repair;
mod shares;
mod unknown;

use std::sync::Arc;

use loom::thread;

use super::{Allowance, Bucket};
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
        assert_eq!(bucket(&word).balance(NOW), -10_500_000);
    });
}

/// Another process may charge between a process's look and its charge, once: each overdraws by one operation at most.
#[test]
fn what_two_processes_admit_is_the_burst_and_an_operation_each() {
    explore(None, || {
        let word = Arc::new(Word::default());
        let other = Arc::clone(&word);
        let rival = thread::spawn(move || admitted(&other));
        let all = admitted(&word) + rival.join().unwrap();
        assert!(all < bucket(&word).capacity_ns() + 2 * COST, "{all}");
        assert!(bucket(&word).balance(NOW) <= 0);
    });
}

fn admitted(word: &Word) -> u64 {
    let mut sum = 0;
    while bucket(word).balance(NOW) > 0 {
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
            assert_eq!(bucket(&word).balance(NOW), -7_000_000 * charges);
        });
    }
}

/// Launches as many as fit at this cost. Returns what they take.
fn spend_all(allowance: &Allowance, cost_ns: u32) -> u64 {
    std::iter::repeat_with(|| allowance.launch(cost_ns))
        .take_while(|fits| *fits)
        .map(|_| u64::from(cost_ns))
        .sum()
}

/// Whatever a thread takes while the meter looks, revokes and grants again: all of it is found exactly once, and what
/// the grant no longer covered is reported apart.
#[test]
fn what_a_thread_takes_is_found_whatever_the_meter_does_at_the_same_time() {
    explore(None, || {
        let allowance = Arc::new(Allowance::default());
        allowance.open(100, 2);
        let own = Arc::clone(&allowance);
        let owner = thread::spawn(move || spend_all(&own, 40));
        let first = allowance.newly_taken();
        let (second, back) = allowance.close();
        allowance.open(40, 1);
        let spent = owner.join().unwrap();
        let (third, left) = allowance.close();
        let found = first.and(second).and(third);
        assert_eq!(found.ns, spent);
        assert_eq!(found.launches * 40, spent);
        assert_eq!(back + left + found.ns, 140 + found.unreserved_ns);
        // Never more than a grant and what was taken before it; the larger of the two counts.
        assert!(spent <= 80 + 40, "{spent}");
        assert!(!allowance.spend(0));
    });
}

/// A thread that dies between any two accesses has taken the cost of each launch it made, and of one more at most.
/// Its allowance goes on with another thread, and what it had taken is not lost.
#[test]
fn a_thread_that_dies_leaves_an_allowance_that_another_one_can_take_over() {
    for steps in 0..8 {
        explore(None, move || {
            let allowance = Arc::new(Allowance::default());
            allowance.open(100, 4);
            let own = Arc::clone(&allowance);
            let dying = thread::spawn(move || {
                let launched = std::cell::Cell::new(0);
                let life = || {
                    while own.launch(30) {
                        launched.set(launched.get() + 30);
                    }
                };
                let _ = burn(steps, life);
                launched.get()
            });
            let seen = allowance.newly_taken();
            let launched = dying.join().unwrap();
            let next = Arc::clone(&allowance);
            let heir = thread::spawn(move || {
                next.adopt();
                spend_all(&next, 30)
            });
            let more = allowance.newly_taken();
            let spent = launched + heir.join().unwrap();
            let (last, left) = allowance.close();
            let found = seen.and(more).and(last);
            assert!((spent..=spent + 30).contains(&found.ns), "{} {spent}", found.ns);
            assert_eq!((found.unreserved_ns, found.ns + left), (0, 100));
        });
    }
}

/// Three threads of one gate, each with its allowance, and a meter that revokes what is left: the admitted time is
/// what the bucket gave, and what each held when it was revoked.
#[test]
fn what_threads_admit_is_the_burst_and_a_grant_each() {
    const GRANT: u64 = 4_000_000;
    explore(None, || {
        let word = Arc::new(Word::default());
        let allowances = [(); 2].map(|()| Arc::new(Allowance::default()));
        let capacity_ns = bucket(&word).capacity_ns();
        for allowance in &allowances {
            bucket(&word).charge(GRANT, NOW);
            allowance.open(GRANT, 2);
        }
        let threads =
            allowances.clone().map(|own| thread::spawn(move || spend_all(&own, 2_000_000)));
        let mut back = 0;
        for allowance in &allowances {
            let (_, unused_ns) = allowance.close();
            bucket(&word).refund(unused_ns);
            back += unused_ns;
        }
        // What was revoked is granted to others.
        bucket(&word).charge(back, NOW);
        let spent: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        let late: u64 =
            allowances.iter().map(|allowance| allowance.newly_taken().unreserved_ns).sum();
        bucket(&word).charge(late, NOW);
        assert!(spent + back <= 2 * GRANT + late && late <= 2 * GRANT);
        assert!(
            bucket(&word).balance(NOW) + (spent + back).cast_signed()
                <= capacity_ns.cast_signed() + 4
        );
    });
}
