//! The shortcut by the count: no refusal counts what a dead process held, whatever processes come or die at the same
//! time.

use std::sync::Arc;

use loom::thread;

use super::{ADA, BEA, CID, NO_PROCESS, at_each_step, audit, charge, charge_or_reap, claim, dead};
use super::{explore, ledgers, process};
use crate::{ledger::Count, sync::Word, sync::fuse::burn};

/// What the system counts: those that have come and have not died.
#[derive(Default)]
struct Present(Word);

impl Present {
    fn come(&self) {
        self.0.add(1);
    }

    fn die(&self) {
        self.0.add(u64::MAX);
    }
}

/// Ada, which is in the way, dies; Cid comes at the same time, so that the count is again the same.
#[test]
fn a_new_process_does_not_stand_in_for_a_dead_one() {
    explore(3, || {
        let [ledger, other] = ledgers();
        let present = Arc::new(Present::default());
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        (present.come(), present.come());
        charge(&ledger, ada, 6).unwrap();
        // Counted before: a remembered count must not be used for longer than it is true.
        let count = Count::default();
        assert!(ledger.all_live(&count, &|| Some(present.0.load())));
        present.die();
        let here = Arc::clone(&present);
        let newcomer = thread::spawn(move || {
            other.claim(process(CID), 0, &dead(NO_PROCESS)).unwrap();
            here.come();
        });
        let all_live = || ledger.all_live(&count, &|| Some(present.0.load()));
        charge_or_reap(&ledger, bea, &all_live, &dead(ADA)).unwrap();
        newcomer.join().unwrap();
        audit(&ledger, 6);
    });
}

/// Ada dies anywhere in a charge; another one reaps at the same time.
#[test]
fn as_soon_as_a_death_is_known_nothing_is_refused_for_it() {
    at_each_step(2, |steps| {
        let [ledger, other] = ledgers();
        let present = Arc::new(Present::default());
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        (present.come(), present.come());
        let there = Arc::clone(&present);
        let dying = thread::spawn(move || {
            let died = burn(steps, || charge(&other, ada, 6)).is_none();
            if died {
                there.die();
                other.reap(&dead(ADA));
            }
            died
        });
        let known_dead = present.0.load() == 1;
        let count = Count::default();
        let all_live = || ledger.all_live(&count, &|| Some(present.0.load()));
        let alive = |who: &crate::ledger::Identity| who.pid != ADA || present.0.load() == 2;
        let answer = charge_or_reap(&ledger, bea, &all_live, &alive);
        assert!(answer.is_ok() || !known_dead);
        let died = dying.join().unwrap();
        // No living process is in doubt for long.
        let living = 2 - u64::from(died);
        assert!(!died || ledger.all_live(&count, &|| Some(living)));
        died
    });
}
