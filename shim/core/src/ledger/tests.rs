//! The ledger's rules one by one; `history` has any order of them, `crowd` many at once, `dead` which processes are
//! checked, `layout` the offsets of the fields.

mod busy;
mod crowd;
mod dead;
mod history;
mod layout;
mod unfinished;

use super::{
    AccountView, DEVICES, DeviceIndex, Full, Identity, Kind, Ledger, OverQuota, ProcessView, SLOTS,
    Slot, Unusable,
    word::{MAX_TOTAL, Op, Owner, Total},
};

const GIB: u64 = 1 << 30;

#[test]
fn a_formatted_ledger_is_usable_and_formatting_it_again_changes_nothing() {
    let ledger = Ledger::zeroed();
    assert_eq!(ledger.check(Ledger::SIZE), Err(Unusable::Magic(0)));
    ledger.format();
    let (device, slot) = (ledger.device([7; 16]).unwrap(), claim(&ledger, 1));
    ledger.line(slot, device).unwrap().charge(Kind::Alloc, 5, 10).unwrap();
    ledger.format();
    assert_eq!(ledger.check(Ledger::SIZE), Ok(()));
    assert_eq!(ledger.used(device), 5);
}

#[test]
fn what_is_not_known_is_refused() {
    let (few, many) = (Ledger::SIZE - 1, Ledger::SIZE + 1);
    let ledger = formatted();
    assert_eq!(ledger.check(few), Err(Unusable::FileBytes(few)));
    assert_eq!(ledger.check(many), Err(Unusable::FileBytes(many)));
    let header = |ledger: &Ledger, spoil: fn(&Ledger)| {
        spoil(ledger);
        // Nor does formatting make another's file ours.
        ledger.format();
        ledger.check(Ledger::SIZE).unwrap_err()
    };
    assert_eq!(header(&formatted(), |l| l.header.magic.store(1)), Unusable::Magic(1));
    assert_eq!(header(&formatted(), |l| l.header.version.store(2)), Unusable::Version(2));
    assert_eq!(header(&formatted(), |l| l.header.size.store(4096)), Unusable::Size(4096));
    assert_eq!(header(&formatted(), |l| l.header.slots.store(9)), Unusable::Slots(9));
    assert_eq!(header(&formatted(), |l| l.header.devices.store(9)), Unusable::Devices(9));
    let text = Unusable::Version(2).to_string();
    assert_eq!(text, "ledger version is 2, known is 1");
}

#[test]
fn another_versions_file_is_not_written_to() {
    let ledger = Ledger::zeroed();
    ledger.header.version.store(2);
    ledger.format();
    assert_eq!((ledger.header.magic.load(), ledger.header.size.load()), (0, 0));
}

#[test]
fn the_limit_is_exact_to_the_byte() {
    let (ledger, device, slot) = ready();
    let charge = |bytes| ledger.line(slot, device).unwrap().charge(Kind::Alloc, bytes, 4 * GIB);
    charge(4 * GIB - 1).unwrap();
    let refusal = OverQuota { requested: 2, used: 4 * GIB - 1, limit: 4 * GIB };
    assert_eq!(charge(2), Err(refusal));
    charge(1).unwrap();
    charge(0).unwrap();
    assert!(charge(1).is_err());
    assert_eq!(ledger.used(device), 4 * GIB);
}

#[test]
fn a_charge_of_nothing_changes_nothing_and_does_not_fit_under_a_limit_that_is_exceeded() {
    let ledger = formatted();
    let (device, slot) = (ledger.device([7; 16]).unwrap(), claim(&ledger, 1));
    ledger.line(slot, device).unwrap().charge(Kind::Pool, 10, 10).unwrap();
    let words = || (ledger.total(device).unwrap().load(), ledger.held(slot.index(), device));
    let before = words();
    assert_eq!(ledger.line(slot, device).unwrap().charge(Kind::Pool, 0, 10), Ok(()));
    let lowered = OverQuota { requested: 0, used: 10, limit: 9 };
    assert_eq!(ledger.line(slot, device).unwrap().charge(Kind::Pool, 0, 9), Err(lowered));
    assert_eq!(words(), before, "not even the count of operations moves");
}

/// The driver holds it already: it does not have to fit, and the limit stays the process's.
#[test]
fn what_is_held_already_is_charged_beyond_the_limit_and_leaves_the_limit_as_it_is() {
    let (ledger, device, slot) = ready();
    let line = ledger.line(slot, device).unwrap();
    line.charge(Kind::Alloc, 8, 10).unwrap();
    line.hold(Kind::Graph, 5, 10).unwrap();
    assert_eq!((ledger.used(device), account(&ledger, 0).limit), (13, 10));
    let refusal = OverQuota { requested: MAX_TOTAL, used: 13, limit: 10 };
    assert_eq!(line.hold(Kind::Graph, MAX_TOTAL, 10), Err(refusal));
    assert_eq!(ledger.used(device), 13);
}

#[test]
fn no_number_overflows() {
    let (ledger, device, slot) = ready();
    let charge = |bytes| ledger.line(slot, device).unwrap().charge(Kind::Alloc, bytes, u64::MAX);
    assert!(charge(u64::MAX).is_err());
    charge(MAX_TOTAL).unwrap();
    assert_eq!(charge(1).unwrap_err().used, MAX_TOTAL);
    assert!(charge(u64::MAX).is_err());
    ledger.line(slot, device).unwrap().refund(Kind::Alloc, u64::MAX);
    assert_eq!((ledger.used(device), account(&ledger, 0).used), (0, 0));
}

#[test]
fn a_refund_gives_back_what_there_is_and_never_bytes_of_another() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.line(ada, device).unwrap().charge(Kind::Alloc, 3, 10).unwrap();
    ledger.line(bea, device).unwrap().charge(Kind::Alloc, 5, 10).unwrap();
    ledger.line(ada, device).unwrap().refund(Kind::Alloc, 4);
    assert_eq!((ledger.used(device), account(&ledger, 0).used), (5, 0));
}

#[test]
fn each_process_applies_its_own_limit_to_the_usage_of_all() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    ledger.line(ada, device).unwrap().charge(Kind::Alloc, 8, 10).unwrap();
    assert!(ledger.line(bea, device).unwrap().charge(Kind::Alloc, 1, 5).is_err());
    ledger.line(bea, device).unwrap().charge(Kind::Alloc, 1, 9).unwrap();
}

#[test]
fn a_process_is_seen_with_bytes_by_kind_peak_and_refusals() {
    let (ledger, device, slot) = ready();
    ledger.line(slot, device).unwrap().charge(Kind::Alloc, 6, 10).unwrap();
    ledger.line(slot, device).unwrap().charge(Kind::Context, 2, 10).unwrap();
    ledger.line(slot, device).unwrap().refund(Kind::Alloc, 5);
    ledger.line(slot, device).unwrap().count_refusal();
    let mut kinds = [0; Kind::ALL.len()];
    (kinds[0], kinds[5]) = (1, 2);
    let seen = AccountView {
        device,
        used: 3,
        kinds,
        peak: 8,
        refusals: 1,
        limit: 10,
        busy_ns: 0,
        launches: 0,
    };
    let process = ledger.processes().next().unwrap();
    assert_eq!((process.slot(), process.identity, process.since_ns), (0, identity(1), 77));
    assert_eq!(process.accounts().collect::<Vec<_>>(), [seen]);
    assert_eq!((ledger.peak(device), ledger.refusals(device)), (8, 1));
}

#[test]
fn a_kinds_number_is_its_place_in_the_list() {
    assert!(Kind::ALL.iter().enumerate().all(|(place, &kind)| place == kind as usize));
}

#[test]
fn a_reaped_slot_is_empty_for_its_next_owner() {
    let (ledger, device, slot) = ready();
    ledger.line(slot, device).unwrap().charge(Kind::Pool, 6, 10).unwrap();
    ledger.line(slot, device).unwrap().count_refusal();
    vacate(&ledger, slot);
    assert_eq!((ledger.used(device), ledger.processes().count()), (0, 0));
    let next = claim(&ledger, 2);
    assert_eq!(next.index(), slot.index());
    let found = account(&ledger, 0);
    assert_eq!((found.kinds, found.peak, found.refusals, found.limit), ([0; 9], 0, 0, 0));
}

#[test]
fn a_full_table_takes_the_slots_of_the_dead_only() {
    let ledger = formatted();
    let all: Vec<Slot> = (0u32..).take(SLOTS).map(|pid| claim(&ledger, pid)).collect();
    assert_eq!(ledger.claim(identity(99), 0, &|_| true), Err(Full));
    let slot = ledger.claim(identity(99), 0, &|other| other.pid != 3).unwrap();
    assert_eq!(slot.index(), all[3].index());
    assert_eq!(ledger.processes().count(), SLOTS);
}

#[test]
fn a_table_with_free_slots_is_not_searched_for_the_dead() {
    let ledger = formatted();
    claim(&ledger, 1);
    ledger.claim(identity(2), 0, &|_| panic!("asked")).unwrap();
}

#[test]
fn a_new_image_of_a_process_gives_back_what_the_old_one_held() {
    let (ledger, device, slot) = ready();
    ledger.line(slot, device).unwrap().charge(Kind::Alloc, 6, 10).unwrap();
    let image = Identity { image: 2, ..identity(1) };
    ledger.executed(identity(1), || panic!("asked"));
    for other in [identity(2), Identity { start_time: 2, ..image }] {
        ledger.executed(other, || panic!("asked"));
    }
    ledger.executed(image, || false);
    assert_eq!(ledger.used(device), 6, "it only says that its stack is another one");
    ledger.executed(image, || true);
    ledger.claim(image, 0, &|_| true).unwrap();
    let seen: Vec<Identity> = ledger.processes().map(|process| process.identity).collect();
    assert_eq!((seen, ledger.used(device)), (vec![image], 0));
}

#[test]
fn equal_pids_of_two_namespaces_or_two_lives_are_two_processes() {
    let (ledger, device, slot) = ready();
    ledger.line(slot, device).unwrap().charge(Kind::Alloc, 6, 10).unwrap();
    ledger.claim(Identity { pid_namespace: 2, ..identity(1) }, 0, &|_| true).unwrap();
    ledger.claim(Identity { start_time: 2, ..identity(1) }, 0, &|_| true).unwrap();
    assert_eq!((ledger.used(device), ledger.processes().count()), (6, 3));
}

#[test]
fn a_slot_that_went_to_another_process_is_not_emptied_for_its_former_owner() {
    let (ledger, device, ada) = ready();
    ledger.reap(&|_| false);
    let bea = claim(&ledger, 2);
    ledger.line(bea, device).unwrap().charge(Kind::Alloc, 6, 10).unwrap();
    vacate(&ledger, ada);
    assert_eq!((bea.index(), ledger.used(device)), (ada.index(), 6));
}

#[test]
fn devices_are_found_by_uuid_also_if_words_of_it_are_zero() {
    let ledger = formatted();
    let (zero, mut one) = ([0; 16], [0; 16]);
    one[15] = 1;
    assert_eq!(ledger.find_device(zero), None);
    let rows = [ledger.device(zero).unwrap(), ledger.device(one).unwrap()];
    assert_eq!(rows.map(DeviceIndex::index), [0, 1]);
    assert_eq!(ledger.device(zero), Ok(rows[0]));
    assert_eq!(ledger.find_device(one), Some(rows[1]));
    assert_eq!(ledger.devices().map(|seen| seen.uuid).collect::<Vec<_>>(), [zero, one]);
    assert_eq!((rows.len(), ledger.device([9; 16])), (DEVICES, Err(Full)));
}

#[test]
fn devices_are_charged_apart() {
    let (ledger, device, slot) = ready();
    let other = ledger.device([8; 16]).unwrap();
    ledger.line(slot, device).unwrap().charge(Kind::Alloc, 6, 10).unwrap();
    ledger.line(slot, other).unwrap().charge(Kind::Alloc, 9, 10).unwrap();
    assert_eq!((ledger.used(device), ledger.used(other)), (6, 9));
    vacate(&ledger, slot);
    assert_eq!((ledger.used(device), ledger.used(other)), (0, 0));
}

/// The sequence in the total goes round every 4096 operations; nothing is lost there.
#[test]
fn a_sequence_goes_round_unnoticed() {
    let (ledger, device, ada) = ready();
    let bea = claim(&ledger, 2);
    for _ in 0..5000 {
        ledger.line(ada, device).unwrap().charge(Kind::Alloc, 6, 10).unwrap();
        assert!(ledger.line(bea, device).unwrap().charge(Kind::Alloc, 5, 10).is_err());
        ledger.line(ada, device).unwrap().refund(Kind::Alloc, 6);
        ledger.line(bea, device).unwrap().charge(Kind::Alloc, 5, 10).unwrap();
        ledger.line(bea, device).unwrap().refund(Kind::Alloc, 5);
    }
    assert_eq!(ledger.used(device), 0);
}

/// A process that slept since it read a total does not close the operation 4096 later, which looks the same.
#[test]
fn an_old_total_closes_nothing() {
    let (ledger, device, ada) = ready();
    ledger.line(ada, device).unwrap().charge(Kind::Alloc, 6, 10).unwrap();
    let (total, account) = (&ledger.devices[0].total, &ledger.accounts[0][0]);
    let old = Total(total.load());
    let later = Op((1 + 4096) << 2).emptying();
    account.op.store(later.0);
    total.store(Total::new(6, 0, Op(4096 << 2)).0);
    assert!(ledger.replace_total(device, old, old).is_err());
    assert_eq!(Op(account.op.load()), later);
}

#[test]
fn words_say_what_was_put_into_them() {
    let op = Op(0).next().next();
    let total = Total::new(MAX_TOTAL, 1023, op);
    assert_eq!((total.bytes(), total.index()), (MAX_TOTAL, 1023));
    assert!(total.names(1023, op) && !total.names(1022, op) && !total.names(1023, op.next()));
    let owner = Owner(u64::MAX).free().claimed(u32::MAX).live();
    assert_eq!(owner.pid(), (1 << 22) - 1);
    assert!(owner.is_live() && owner.free().is_free());
    assert_ne!(owner.free().claimed(5), owner.free().claimed(5).free().claimed(5));
}

fn formatted() -> Ledger {
    let ledger = Ledger::zeroed();
    ledger.format();
    ledger
}

/// A ledger with one device and process 1.
fn ready() -> (Ledger, DeviceIndex, Slot) {
    let ledger = formatted();
    let (device, slot) = (ledger.device([7; 16]).unwrap(), claim(&ledger, 1));
    (ledger, device, slot)
}

fn identity(pid: u32) -> Identity {
    Identity { pid_namespace: 0xf000_0001, pid, start_time: 1000, image: 0x7ffd_1234_5670 }
}

fn claim(ledger: &Ledger, pid: u32) -> Slot {
    ledger.claim(identity(pid), 77, &|_| true).unwrap()
}

/// Empties the slot and frees it, as a reap does once its owner is dead.
fn vacate(ledger: &Ledger, slot: Slot) {
    ledger.vacate(slot.index(), slot.owner());
}

/// The only account of the process in slot `index`.
fn account(ledger: &Ledger, index: usize) -> AccountView {
    let process = ledger.processes().find(|process| process.slot() == index).unwrap();
    process.accounts().next().unwrap()
}
