//! Coming to what the system counts the processes by: all come to the same, and no process is certain that should not be.
//!
//! The system is one word for each thing that it counts by: how many are there. What no process is at is gone for good.

use std::sync::Arc;

use loom::thread;

use super::{ADA, BEA, CID, NO_PROCESS, at_each_step, claim, dead, explore, ledgers, process};
use crate::{
    ledger::{Count, Ledger},
    sync::{Word, fuse::burn},
};

/// What there is to be counted by, under the numbers from 1.
#[derive(Default)]
struct System {
    there: [Word; 4],
    made: Word,
}

/// At what a process is, if it is at anything: the system takes it away with the process.
#[derive(Default)]
struct At(std::cell::Cell<u64>);

impl System {
    fn word(&self, name: u64) -> &Word {
        &self.there[usize::try_from(name - 1).unwrap()]
    }

    fn join(&self, at: &At, name: u64) -> Option<u64> {
        loop {
            let there = self.word(name).load();
            if there == 0 {
                return None;
            }
            if self.word(name).replace(there, there + 1).is_ok() {
                at.0.set(name);
                return Some(name);
            }
        }
    }

    fn begin(&self, at: &At, publish: &dyn Fn(u64) -> bool) -> Option<u64> {
        let name = loop {
            let made = self.made.load();
            if self.made.replace(made, made + 1).is_ok() {
                break made + 1;
            }
        };
        // Its maker is in it from the beginning.
        at.0.set(name);
        self.word(name).add(1);
        if publish(name) {
            return Some(name);
        }
        self.leave(at);
        None
    }

    /// What the system does of itself when a process ends.
    fn leave(&self, at: &At) {
        let name = at.0.replace(0);
        if name != 0 && self.word(name).load() != 0 {
            self.word(name).add(u64::MAX);
        }
    }

    fn come(&self, ledger: &Ledger, at: &At) -> Option<u64> {
        ledger.attend(|name| self.join(at, name), |publish| self.begin(at, publish))
    }

    /// Whether a process that came to `name` is certain that all live.
    fn all_live(&self, ledger: &Ledger, name: u64) -> bool {
        let count = Count::default();
        ledger.attendance() == name && ledger.all_live(&count, &|| Some(self.word(name).load()))
    }
}

/// Two come to a new ledger at once: to the same, by which both are counted.
#[test]
fn two_that_come_at_once_are_counted_by_the_same() {
    explore(3, || {
        let [ledger, other] = ledgers();
        let near = Arc::new(System::default());
        let far = Arc::clone(&near);
        let bea = thread::spawn(move || {
            claim(&other, BEA);
            far.come(&other, &At::default()).unwrap()
        });
        claim(&ledger, ADA);
        let name = near.come(&ledger, &At::default()).unwrap();
        // At any moment, whatever the other one is at: who is certain counts all slots.
        let _ = near.all_live(&ledger, name);
        assert_eq!(bea.join().unwrap(), name);
        assert!(near.all_live(&ledger, name));
    });
}

/// Ada, the only one, dies at any access of her coming; Bea comes at the same time, and then Cid. As long as Ada's slot is
/// there no process is certain, and afterwards all are.
#[test]
fn who_dies_while_it_comes_leaves_the_others_in_doubt_until_it_is_reaped() {
    at_each_step(2, |steps| {
        let [ledger, other] = ledgers();
        let near = Arc::new(System::default());
        let far = Arc::clone(&near);
        claim(&ledger, ADA);
        let dying = thread::spawn(move || {
            let at = At::default();
            let died = burn(steps, || far.come(&other, &at)).is_none();
            // Also of one that came: it lives no longer than this.
            far.leave(&at);
            died
        });
        claim(&ledger, BEA);
        let name = near.come(&ledger, &At::default()).unwrap();
        let died = dying.join().unwrap();
        assert!(!near.all_live(&ledger, name), "Ada is dead");
        assert_eq!(ledger.reap(&dead(ADA)), 1);
        assert!(near.all_live(&ledger, name), "Bea is there");
        ledger.claim(process(CID), 0, &dead(NO_PROCESS)).unwrap();
        assert!(!near.all_live(&ledger, name), "Cid has not come yet");
        assert_eq!(near.come(&ledger, &At::default()), Some(name));
        assert!(near.all_live(&ledger, name));
        died
    });
}

/// Two whose clock readings differ a little look at once: one of them looks at all, the other one relies on it.
#[test]
fn of_two_that_come_to_look_one_does() {
    explore(4, || {
        const NOW: u64 = 1_000_000;
        let [ledger, other] = ledgers();
        let late = thread::spawn(move || other.is_time_to_look(NOW + 4, 100));
        let looks = ledger.is_time_to_look(NOW, 100);
        assert!(looks ^ late.join().unwrap());
    });
}
