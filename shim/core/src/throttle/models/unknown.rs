//! Launches of unknown length under the model checker: one at a time of a container's processes is in flight.
//!
//! Two processes, each with one such launch; no preemption bound.

use std::sync::Arc;

use loom::thread;

use super::NOW;
use crate::{
    sync::{Word, explore::explore, fuse::burn},
    throttle::admission::unknown::UnknownLaunches,
};

/// A refusal at the first time has ended at the second one.
const LATER: u64 = NOW + 20_000_000;
const MUCH_LATER: u64 = LATER + 600_000_000;

fn of(process: u16, word: &Word) -> UnknownLaunches<'_> {
    let mut launches = UnknownLaunches::new(Some(word), process);
    launches.set_shared(true);
    launches
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

/// A process dies at any access, launched or not: what it leaves refuses others for [half a second](MUCH_LATER) at most,
/// and what another one has noted since is that one's.
#[test]
fn a_death_holds_up_no_other_for_long() {
    for steps in 0..=6 {
        explore(None, move || {
            let word = Arc::new(Word::default());
            let first = Arc::clone(&word);
            let dies = thread::spawn(move || {
                burn(steps, || {
                    let mut launches = of(1, &first);
                    launches.begin(NOW);
                    launches.launched();
                    launches.end();
                });
            });
            let mut second = of(2, &word);
            let goes = second.begin(NOW);
            dies.join().unwrap();
            let goes_later = second.begin(LATER) || second.begin(MUCH_LATER);
            assert!(goes || goes_later);
            second.launched();
            assert!(!of(3, &word).begin(MUCH_LATER), "the second one's is noted");
        });
    }
}
