//! The unfinished work of dead processes: found once, whatever process has their slot by now.

use std::cell::Cell;

use super::{DeviceIndex, Identity, Ledger, Slot, claim, ready};
use crate::throttle::Unfinished;

const MS: u64 = 1_000_000;

/// The result of a process for which the processes with these numbers are alive.
fn found(ledger: &Ledger, device: DeviceIndex, own: Slot, living: &[u32]) -> Vec<u64> {
    let mut owed = Vec::new();
    let alive = |who: &Identity| living.contains(&who.pid);
    ledger.find_dead(
        device,
        own,
        &alive,
        |_| false,
        |_| (),
        |left| owed.push(left.paid_until / MS),
    );
    owed
}

#[test]
fn what_a_dead_process_left_unfinished_is_found_once() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.unfinished(bea, device, Some(7 * MS));
    assert_eq!(found(&ledger, device, ada, &[2]), [0; 0], "it lives");
    assert_eq!(found(&ledger, device, ada, &[]), [7]);
    assert_eq!(found(&ledger, device, ada, &[]), [0; 0]);
}

#[test]
fn a_process_that_has_finished_leaves_nothing_unfinished() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.unfinished(bea, device, Some(7 * MS));
    ledger.unfinished(bea, device, None);
    assert_eq!(found(&ledger, device, ada, &[]), [0; 0]);
}

#[test]
fn the_own_process_is_not_checked() {
    let (ledger, device, ada) = ready();
    ledger.unfinished(ada, device, Some(7 * MS));
    let alive = |who: &Identity| panic!("{who:?}");
    ledger.find_dead(device, ada, &alive, |_| true, |at| panic!("{at}"), |left| panic!("{left:?}"));
}

/// Memory is reaped whenever it is needed; owed time stays until a process with a compute limit looks for it.
#[test]
fn what_was_left_outlives_the_slot() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.unfinished(bea, device, Some(7 * MS));
    assert_eq!(ledger.reap(&|who| who.pid == 1), 1);
    let cid = claim(&ledger, 3);
    assert_eq!(cid.index(), bea.index());
    assert_eq!(found(&ledger, device, ada, &[1, 2, 3]), [7]);
    ledger.unfinished(cid, device, Some(9 * MS));
    assert_eq!(found(&ledger, device, ada, &[1, 3]), [0; 0]);
    let other = ledger.device([8; 16]).unwrap();
    assert_eq!(found(&ledger, other, ada, &[]), [0; 0], "another device's");
    assert_eq!(found(&ledger, device, ada, &[]), [9]);
}

#[test]
fn when_the_dead_last_lived_is_found_with_it() {
    let (ledger, device, ada) = ready();
    let left = |tell: &dyn Fn(Slot)| {
        let bea = claim(&ledger, 2);
        tell(bea);
        ledger.unfinished(bea, device, Some(7 * MS));
        assert_eq!(ledger.reap(&|who| who.pid == 1), 1);
        let mut found = Vec::new();
        ledger.find_dead(device, ada, &|_| false, |_| false, |_| (), |left| found.push(left));
        assert_eq!(found.len(), 1);
        found.first().copied().map(|left: Unfinished| left.alive_at.map(|ns| ns / MS))
    };
    assert_eq!(left(&|_| ()), Some(None));
    assert_eq!(left(&|bea| ledger.alive_at(bea, device, Some(9 * MS))), Some(Some(9)));
    assert_eq!(left(&|_| ()), Some(None), "what an earlier process of the slot said");
    assert_eq!(left(&|bea| ledger.alive_at(bea, device, None)), Some(None));
}

#[test]
fn what_the_dead_did_counts_for_the_device_and_no_process() {
    let (ledger, device, _) = ready();
    ledger.worked_unfinished(device, 9 * MS, 2 * MS);
    assert_eq!(ledger.devices().next().unwrap().busy_ns, 2 * MS);
    assert!(
        ledger.processes().all(|process| process.accounts().all(|account| account.busy_ns == 0))
    );
}

#[test]
fn another_boot_forgets_times_and_no_bytes() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.live_in(5);
    ledger.line(bea, device).unwrap().charge(super::Kind::Alloc, 6, 10).unwrap();
    let tell = || {
        ledger.unfinished(bea, device, Some(7 * MS));
        ledger.bucket(device).unwrap().store(9);
    };
    tell();
    ledger.live_in(5);
    assert_eq!(ledger.bucket(device).unwrap().load(), 9);
    assert_eq!(found(&ledger, device, ada, &[]), [7]);
    tell();
    ledger.live_in(6);
    assert_eq!(ledger.bucket(device).unwrap().load(), 0);
    assert_eq!(found(&ledger, device, ada, &[]), [0; 0]);
    assert_eq!(ledger.used(device), 6);
}

#[test]
fn the_times_are_of_one_time_namespace_until_another_boot() {
    let (ledger, ..) = ready();
    ledger.live_in(5);
    assert!(ledger.keeps_times_of(3) && ledger.keeps_times_of(3) && !ledger.keeps_times_of(4));
    ledger.live_in(5);
    assert!(!ledger.keeps_times_of(4));
    ledger.live_in(6);
    assert!(ledger.keeps_times_of(4) && !ledger.keeps_times_of(3));
}

#[test]
fn boots_are_distinguished() {
    let of = Ledger::boot_of;
    assert_ne!(of(b"3f0e9bd4-0001"), of(b"3f0e9bd4-0003"));
    assert_ne!(of(b""), 0);
}

#[test]
fn of_those_that_show_something_the_dead_are_found() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    let dead = |shows: usize, living: &[u32]| {
        let (asked, mut found) = (Cell::new(0), Vec::new());
        let alive = |who: &Identity| {
            asked.set(asked.get() + 1);
            living.contains(&who.pid)
        };
        let owed = |left| panic!("{left:?}");
        ledger.find_dead(device, ada, &alive, |at| at == shows, |at| found.push(at), owed);
        (found, asked.get())
    };
    assert_eq!(dead(bea.index(), &[2]), (vec![], 1));
    assert_eq!(dead(bea.index(), &[]), (vec![bea.index()], 1));
    assert_eq!(dead(ada.index(), &[]), (vec![], 0), "it asks itself");
    assert_eq!(ledger.reap(&|who| who.pid == 1), 1);
    assert_eq!(dead(bea.index(), &[2]), (vec![bea.index()], 0), "no process has it");
}

/// A later process of the slot lives: what its report says is its own.
#[test]
fn who_left_work_is_dead_and_who_has_its_slot_lives() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.unfinished(bea, device, Some(7 * MS));
    assert_eq!(ledger.reap(&|who| who.pid == 1), 1);
    let cid = claim(&ledger, 3);
    assert_eq!(cid.index(), bea.index());
    let (mut died, mut owed) = (Vec::new(), Vec::new());
    let alive = |who: &Identity| who.pid == 3;
    ledger.find_dead(
        device,
        ada,
        &alive,
        |_| true,
        |at| died.push(at),
        |left| owed.push(left.paid_until / MS),
    );
    assert_eq!((died, owed), (vec![], vec![7]));
}

/// One whose thread looks after it owes what ran while it was known to live, and until its next note: it may be stopped.
#[test]
fn all_that_is_in_flight_is_unfinished() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    let all = || -> Vec<u64> {
        ledger.all_unfinished(device).map(|left| (left.owed(30 * MS) + MS / 2) / MS).collect()
    };
    assert_eq!(all(), [0; 0]);
    ledger.unfinished(ada, device, Some(9 * MS));
    ledger.unfinished(bea, device, Some(7 * MS));
    assert_eq!(all(), [21, 23]);
    ledger.alive_at(bea, device, Some(12 * MS));
    assert_eq!(all(), [21, 15]);
    ledger.unfinished(bea, device, None);
    assert_eq!(all(), [21]);
}

#[test]
fn a_process_uses_a_device_before_it_has_anything_there() {
    let (ledger, device, _ada) = ready();
    let other = ledger.device([9; 16]).unwrap();
    let bea = claim(&ledger, 2);
    let users = |ledger: &Ledger| [device, other].map(|device| ledger.users(device));
    assert_eq!(users(&ledger), [0, 0]);
    ledger.uses(bea, device);
    ledger.uses(bea, device);
    ledger.uses(bea, other);
    assert_eq!(users(&ledger), [1, 1]);
    assert_eq!(ledger.reap(&|who| who.pid == 1), 1);
    assert_eq!(users(&ledger), [0, 0]);
    let cid = claim(&ledger, 3);
    assert_eq!(
        (cid.index(), users(&ledger)),
        (bea.index(), [0, 0]),
        "another process has the slot"
    );
}
