//! Launches of unknown length under the model checker: one at a time of a container's processes is in flight.
//!
//! Two processes, each with one such launch, and a third one that may find the first one dead; no preemption bound.

use std::sync::Arc;

use loom::thread;

use super::NOW;
use crate::{
    sync::{Word, explore::explore, fuse::burn},
    throttle::admission::unknown::UnknownLaunches,
};

fn of(process: u16, word: &Word) -> UnknownLaunches<'_> {
    UnknownLaunches::new(Some(word), process)
}

/// Both begin at once: one of them goes, and the other one when that has ended.
#[test]
fn of_two_that_begin_at_once_one_goes() {
    explore(None, || {
        let word = Arc::new(Word::default());
        let other = Arc::clone(&word);
        let rival = thread::spawn(move || of(2, &other).begin(NOW));
        let mut first = of(1, &word);
        let goes = first.begin(NOW);
        assert!(goes != rival.join().unwrap());
        first.end();
        assert_eq!(of(3, &word).begin(NOW), goes, "only its own end is noted");
    });
}

/// A process dies at any access; another one, that finds it dead, does not remove what a third one has noted since.
#[test]
fn a_death_removes_its_own_notice_alone() {
    for steps in 0..=4 {
        explore(None, move || {
            let word = Arc::new(Word::default());
            let first = Arc::clone(&word);
            let dies = thread::spawn(move || {
                burn(steps, || {
                    let mut launches = of(1, &first);
                    launches.begin(NOW);
                    launches.end();
                });
                of(2, &first).died(1);
            });
            let goes = of(3, &word).begin(NOW);
            dies.join().unwrap();
            assert_eq!(of(4, &word).begin(NOW), !goes);
        });
    }
}
