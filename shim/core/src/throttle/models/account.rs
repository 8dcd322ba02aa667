//! The account of a container under the model checker: no order of its processes covers less than the union of their
//! time, or charges less or more than the smaller sum.
//!
//! Two and three processes; each model states its preemption bound.

use std::sync::Arc;

use loom::thread;

use crate::{
    sync::{Word, explore::explore, fuse::burn},
    throttle::charging::time_account::{TimeAccount, WORDS},
};

/// A multiple of the word's unit, so that nothing is rounded.
const MS: u64 = 1 << 20;

type Words = [Word; WORDS];

/// The words of an account, for each of three processes.
fn words() -> [Arc<Words>; 3] {
    let words = Arc::new(Words::default());
    [Arc::clone(&words), Arc::clone(&words), words]
}

fn cover(words: &Words, start: u64, end: u64) -> u64 {
    TimeAccount::new(words.each_ref()).cover(start, end)
}

fn charge(words: &Words, work_ns: u64, covered_ns: u64) -> u64 {
    TimeAccount::new(words.each_ref()).charge(work_ns, covered_ns)
}

/// Three overlap: the time from 1 to 5 is covered, and what two of them share counts once if a third one joins them.
#[test]
fn processes_that_cover_at_once_cover_their_union_at_least() {
    explore(Some(3), || {
        let [near, far, words] = words();
        let first = thread::spawn(move || cover(&near, MS, 3 * MS));
        let second = thread::spawn(move || cover(&far, 2 * MS, 4 * MS));
        let sum = cover(&words, 3 * MS, 5 * MS) + first.join().unwrap() + second.join().unwrap();
        assert!((4 * MS..=5 * MS).contains(&sum), "{sum}");
        assert_eq!(cover(&words, 2 * MS, 4 * MS), 0);
    });
}

/// A process that dies before its time is written has covered nothing.
#[test]
fn a_process_that_dies_has_covered_its_time_or_not() {
    // Each word is read, and one written.
    let all = u32::try_from(WORDS).unwrap();
    for steps in 0..=all {
        explore(None, move || {
            let [other, _, words] = words();
            let dying = thread::spawn(move || burn(steps, || cover(&other, MS, 3 * MS)).is_some());
            let sum = cover(&words, MS, 3 * MS);
            let lived = dying.join().unwrap();
            assert!(sum == 2 * MS || sum == 0, "{sum}");
            assert!(lived || steps >= all || sum == 2 * MS, "{sum} after {steps} steps");
        });
    }
}

/// Their sums are 6 ms of work and 5 ms of covered time.
#[test]
fn processes_that_charge_at_once_are_charged_the_smaller_sum() {
    explore(None, || {
        let [near, far, words] = words();
        let first = thread::spawn(move || charge(&near, 3 * MS, MS));
        let second = thread::spawn(move || charge(&far, MS, 4 * MS));
        let due = charge(&words, 2 * MS, 0) + first.join().unwrap() + second.join().unwrap();
        assert_eq!(due, 5 * MS);
    });
}
