//! A bucket's word of another clock under the model checker: it is exchanged for now, and no charge is lost by that.
//!
//! No preemption bound but where a model states one.

use std::sync::Arc;

use loom::thread;

use super::{COST, NOW, bucket};
use crate::sync::{Word, explore::explore, fuse::burn};

/// Of another boot, or nonsense.
const FOREIGN: u64 = u64::MAX - 5;
const OWED: i64 = -COST.cast_signed();

fn foreign_word() -> [Arc<Word>; 3] {
    let word = Arc::new(Word::default());
    word.store(FOREIGN);
    [Arc::clone(&word), Arc::clone(&word), word]
}

/// Two look, by clock readings of different moments, while a third one charges.
#[test]
fn who_looks_at_a_word_of_another_clock_takes_no_charge_away() {
    explore(Some(3), || {
        let [word, near, far] = foreign_word();
        let looks = thread::spawn(move || bucket(&near).balance(NOW));
        let waits = thread::spawn(move || bucket(&far).holds_at(0, NOW - 2));
        bucket(&word).charge(COST, NOW);
        // Who repairs it says "now" by its own clock reading: two nanoseconds of wall time, one of the share.
        let near = |balance: i64, to: i64| (to..=to + 1).contains(&balance);
        let looked = looks.join().unwrap();
        assert!(near(looked, 0) || near(looked, OWED), "{looked}");
        assert!(waits.join().unwrap() >= NOW - 2);
        assert!(near(bucket(&word).balance(NOW), OWED));
    });
}

/// It dies at any access of the look that repairs.
#[test]
fn a_process_that_dies_in_a_repair_has_repaired_or_not() {
    for steps in 0..3 {
        explore(None, move || {
            let [word, other, _] = foreign_word();
            let dying =
                thread::spawn(move || burn(steps, || bucket(&other).balance(NOW)).is_none());
            bucket(&word).charge(COST, NOW);
            assert!(!dying.join().unwrap() || steps < 2);
            assert_eq!(bucket(&word).balance(NOW), OWED);
            assert_eq!(bucket(&word).balance(NOW + 2 * COST), 0, "it fills");
        });
    }
}

/// As long a debt as there is, charged by one whose clock is ahead, is not taken for a word of another clock by a
/// thread that reads an older one.
#[test]
fn a_debt_beyond_an_older_clock_reading_is_not_forgiven() {
    const AHEAD: u64 = NOW + 5_000_000_000;
    explore(None, || {
        let [word, other, _] = foreign_word();
        let charges = thread::spawn(move || bucket(&other).charge(1 << 60, AHEAD));
        let _ = bucket(&word).balance(NOW);
        charges.join().unwrap();
        assert!(bucket(&word).balance(NOW) < -1_800_000_000_000);
        assert_eq!(bucket(&word).balance(AHEAD), -1_800_000_000_000);
    });
}
