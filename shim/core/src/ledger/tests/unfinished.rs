//! The unfinished work of dead processes: found once, whatever process has their slot by now.

use super::{DeviceIndex, Ledger, Slot, claim, ready};

const MS: u64 = 1_000_000;

/// The result of a process for which the processes with these numbers are alive.
fn found(ledger: &Ledger, device: DeviceIndex, own: Slot, living: &[u32]) -> Vec<u64> {
    let mut owed = Vec::new();
    ledger.left_unfinished(device, own, &|who| living.contains(&who.pid), |ns| owed.push(ns / MS));
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
    ledger.left_unfinished(device, ada, &|who| panic!("{who:?}"), |ns| panic!("{ns}"));
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
    ledger.charge(bea, device, super::Kind::Alloc, 6, 10).unwrap();
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
fn boots_are_distinguished() {
    let of = Ledger::boot_of;
    assert_ne!(of(b"3f0e9bd4-0001"), of(b"3f0e9bd4-0003"));
    assert_ne!(of(b""), 0);
}

#[test]
fn a_process_lives_as_long_as_its_slot_and_itself() {
    let (ledger, _, ada) = ready();
    let bea = claim(&ledger, 2);
    let lives = |index, living: &[u32]| ledger.lives(index, ada, &|who| living.contains(&who.pid));
    assert!(lives(ada.index(), &[]), "it asks");
    assert!(lives(bea.index(), &[2]) && !lives(bea.index(), &[]));
    assert!(!lives(bea.index() + 1, &[2]), "no process has it");
}
