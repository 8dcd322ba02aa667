//! How a file begins, under the model checker: its format, and the rows of its devices.

use std::sync::Arc;

use loom::thread;

use super::{Ledger, at_each_step};
use crate::{ledger::Unusable, sync::fuse::burn};

#[test]
fn formatting_twice_at_once_or_after_a_death_makes_one_ledger() {
    at_each_step(3, |steps| {
        let ledger = Arc::new(Ledger::zeroed());
        let other = Arc::clone(&ledger);
        let dying = thread::spawn(move || burn(steps, || other.format()).is_none());
        assert!(matches!(ledger.check(Ledger::SIZE), Ok(()) | Err(Unusable::Magic(0))));
        ledger.format();
        assert_eq!(ledger.check(Ledger::SIZE), Ok(()));
        dying.join().unwrap()
    });
}

/// One row here, so of two devices one finds the table full, also if the other one dies.
#[test]
fn a_row_belongs_to_one_device() {
    at_each_step(3, |steps| {
        let near = Arc::new(Ledger::zeroed());
        let far = Arc::clone(&near);
        // The two differ in the third word only.
        let uuid = |byte| [1, 1, 1, 1, 2, 2, 2, 2, byte, 3, 3, 3, 4, 4, 4, 4];
        let dying = thread::spawn(move || burn(steps, || far.device(uuid(7))));
        let mine = near.device(uuid(8));
        let theirs = dying.join().unwrap();
        match theirs {
            Some(theirs) => assert!(mine.is_ok() ^ theirs.is_ok()),
            None => assert_eq!(mine.is_ok(), near.device(uuid(7)).is_err()),
        }
        assert_eq!(near.devices().count(), 1);
        theirs.is_none()
    });
}
