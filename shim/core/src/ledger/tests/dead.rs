//! Which processes are checked before a refusal, and when.

use super::{claim, formatted, ready};
use crate::ledger::{Count, Kind, OverQuota};
use std::cell::Cell;

#[test]
fn where_the_count_equals_the_slots_no_process_is_checked() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.line(ada, device).unwrap().charge(Kind::Alloc, 8, 10).unwrap();
    let count = Count::default();
    let all_live = || ledger.all_live(&count, &|| Some(2));
    let refused = ledger.or_reap(
        || ledger.line(bea, device).unwrap().charge(Kind::Alloc, 5, 10),
        &all_live,
        &|_| {
            panic!("looked at");
        },
    );
    assert_eq!(refused, Err(OverQuota { requested: 5, used: 8, limit: 10 }));
}

#[test]
fn where_the_count_differs_or_is_unknown_each_process_is_checked() {
    for present in [None, Some(0), Some(1), Some(3)] {
        let (ledger, device, ada) = ready();
        let bea = claim(&ledger, 2);
        ledger.line(ada, device).unwrap().charge(Kind::Alloc, 8, 10).unwrap();
        let (count, looked) = (Count::default(), Cell::new(0));
        let all_live = || ledger.all_live(&count, &|| present);
        let alive = |who: &super::Identity| {
            looked.set(looked.get() + 1);
            who.pid == 2
        };
        ledger
            .or_reap(
                || ledger.line(bea, device).unwrap().charge(Kind::Alloc, 5, 10),
                &all_live,
                &alive,
            )
            .unwrap();
        assert!(looked.get() >= 2, "{present:?}");
    }
}

#[test]
fn what_was_counted_holds_until_a_slot_comes_or_goes() {
    let ledger = formatted();
    let (count, _ada) = (Count::default(), claim(&ledger, 1));
    let are_there = |present| ledger.all_live(&count, &|| Some(present));
    assert!(are_there(1) && !are_there(2));
    let bea = claim(&ledger, 2);
    assert!(are_there(2) && !are_there(1));
    super::vacate(&ledger, bea);
    assert!(are_there(1) && !are_there(2));
    count.forget();
    assert!(are_there(1));
}

#[test]
fn a_slot_that_comes_in_the_meantime_leaves_it_uncertain() {
    let ledger = formatted();
    let (count, _ada) = (Count::default(), claim(&ledger, 1));
    let comes = || {
        claim(&ledger, 2);
        Some(1)
    };
    assert!(!ledger.all_live(&count, &comes));
}

#[test]
fn it_is_time_to_look_once_in_a_period_for_all_together() {
    let ledger = formatted();
    let is_time = |now| ledger.is_time_to_look(now, 100);
    assert!(is_time(1000) && !is_time(1000) && !is_time(1099) && is_time(1100));
    assert!(is_time(5), "a time still to come is none");
    assert!(!is_time(6));
}
