//! The shares of a container's processes under the model checker: the largest in use, and who has less.
//!
//! Two processes, one with 50 % and one with 10 %, on one bucket; no preemption bound.

use std::sync::Arc;

use loom::thread;

use super::{COST, NOW, level_word};
use crate::{
    sync::{Word, explore::explore, fuse::burn},
    throttle::{Bucket, admission::shares::Shares},
    units::Share,
};

/// After so long a share is published again.
const LATER: u64 = NOW + 300_000_000;
/// After so long a notice that was not renewed is forgotten.
const MUCH_LATER: u64 = LATER + 3_000_000_000;

fn of<'a>(percent: u16, bucket: &'a Word, largest: &'a Word) -> Shares<'a> {
    let share = Share::from_percent(percent).unwrap();
    Shares::new(Bucket::new(bucket, share)).published_in(Some(largest))
}

/// The shared balance, as the process with the larger share sees it.
fn balance(bucket: &Word, now: u64) -> i64 {
    Bucket::new(bucket, Share::from_percent(50).unwrap()).balance(now)
}

/// Both begin at once and charge. Who has less may count with its own share until it has seen the larger one: that
/// takes more out of the bucket, never less. From its next look on it is exact, whichever had been faster.
#[test]
fn the_largest_share_in_use_is_what_all_count_with_from_the_second_look_on() {
    explore(None, || {
        let ([bucket, other], largest) = (level_word(), Arc::new(Word::default()));
        let seen = Arc::clone(&largest);
        let small = thread::spawn(move || {
            let mut small = of(10, &other, &seen);
            small.follow(0, NOW);
            small.charge(COST, NOW);
            assert_eq!(small.share().percent(), 10);
        });
        let mut large = of(50, &bucket, &largest);
        large.follow(0, NOW);
        large.charge(COST, NOW);
        small.join().unwrap();
        let owed = -COST.cast_signed();
        let taken = balance(&bucket, NOW);
        assert!(taken == 2 * owed || taken == 6 * owed, "{taken}");
        large.follow(0, LATER);
        let mut small = of(10, &bucket, &largest);
        small.follow(0, LATER);
        assert_eq!(largest.load() & 0xffff, 5000, "a process with less does not publish it");
        bucket.store(LATER);
        small.charge(COST, LATER);
        assert_eq!(balance(&bucket, LATER), owed);
        assert_eq!(small.balance(LATER), owed, "the own bucket holds too");
    });
}

/// Both renew at once, over and over: what the word says is a notice of one of them, and a process with the
/// larger share never counts with the smaller one.
#[test]
fn a_process_with_the_largest_share_never_counts_with_a_smaller_one() {
    explore(None, || {
        let ([bucket, other], largest) = (level_word(), Arc::new(Word::default()));
        let seen = Arc::clone(&largest);
        let small = thread::spawn(move || {
            let mut small = of(10, &other, &seen);
            [NOW, LATER].into_iter().for_each(|now| small.follow(0, now));
        });
        let mut large = of(50, &bucket, &largest);
        for now in [NOW, LATER] {
            large.follow(0, now);
            bucket.store(now);
            large.charge(COST, now);
            assert_eq!(balance(&bucket, now), -COST.cast_signed());
        }
        small.join().unwrap();
        assert!([1000, 5000].contains(&(largest.load() & 0xffff)));
    });
}

/// It dies at any access of its look: the word is whole, and the share of the dead is forgotten after a while.
#[test]
fn a_share_of_a_process_that_died_is_forgotten() {
    for steps in 0..4 {
        explore(None, move || {
            let ([bucket, other], largest) = (level_word(), Arc::new(Word::default()));
            let seen = Arc::clone(&largest);
            let dying = thread::spawn(move || {
                let mut large = of(50, &other, &seen);
                burn(steps, || large.follow(0, NOW)).is_none()
            });
            let mut small = of(10, &bucket, &largest);
            small.follow(0, NOW);
            assert_eq!(dying.join().unwrap(), steps < 2);
            small.follow(0, MUCH_LATER);
            bucket.store(MUCH_LATER);
            small.charge(COST, MUCH_LATER);
            // With no process beside it, its own share is the largest.
            assert_eq!(balance(&bucket, MUCH_LATER), -5 * COST.cast_signed());
            assert_eq!(small.balance(MUCH_LATER), -COST.cast_signed());
        });
    }
}
