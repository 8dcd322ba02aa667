//! The time charged for unmeasured launches under the model checker: no order of claims charges less than their union.
//!
//! Two and three processes; no preemption bound.

use std::sync::Arc;

use loom::thread;

use crate::{
    sync::{Word, explore::explore, fuse::burn},
    throttle::charged::claim,
};

/// A multiple of the word's unit, so that nothing is rounded.
const MS: u64 = 1 << 20;

fn word() -> [Arc<Word>; 3] {
    let word = Arc::new(Word::default());
    [Arc::clone(&word), Arc::clone(&word), word]
}

/// Three overlap: the time from 1 to 5 is charged, and what two of them share is charged once if a third one joins them.
#[test]
fn processes_that_claim_at_once_are_charged_for_their_union_at_least() {
    explore(None, || {
        let [near, far, word] = word();
        let first = thread::spawn(move || claim(&near, MS, 3 * MS));
        let second = thread::spawn(move || claim(&far, 2 * MS, 4 * MS));
        let charged = claim(&word, 3 * MS, 5 * MS) + first.join().unwrap() + second.join().unwrap();
        assert!((4 * MS..=5 * MS).contains(&charged), "{charged}");
        assert_eq!(claim(&word, 2 * MS, 4 * MS), 0);
    });
}

/// A process that dies before its claim is written has claimed nothing.
#[test]
fn a_process_that_dies_in_a_claim_has_claimed_or_not() {
    for steps in 0..3 {
        explore(None, move || {
            let [other, _, word] = word();
            let dying = thread::spawn(move || burn(steps, || claim(&other, MS, 3 * MS)).is_some());
            let charged = claim(&word, MS, 3 * MS);
            let lived = dying.join().unwrap();
            assert!(charged == 2 * MS || charged == 0, "{charged}");
            assert!(lived || steps > 1 || charged == 2 * MS, "{charged} after {steps} steps");
        });
    }
}
