//! The protocol under the model checker: every order of every access, deaths at every access.
//!
//! ```text
//! RUSTFLAGS='--cfg loom' CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
//!     cargo test --release -p gpucap-core --lib ledger::models
//! ```
//!
//! Threads are processes. Each model runs twice (`sync::explore` says why), and states its preemption
//! bound: how often, in one execution, a process is stopped in the middle for as long as the others like.

mod attendance;
mod beginnings;
mod busy;
mod dead;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use loom::thread;

use super::{DeviceIndex, Full, Identity, Kind, Ledger, OverQuota, Slot};
use crate::sync::{self, Word, fuse::burn};

const LIMIT: u64 = 10;
const ADA: u32 = 1;
const BEA: u32 = 2;
const CID: u32 = 3;
const NO_PROCESS: u32 = 0;

#[test]
fn of_two_charges_that_fit_one_by_one_only_one_is_taken() {
    explore(4, || {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        let second = thread::spawn(move || charge(&other, bea, 6).is_ok());
        let first = charge(&ledger, ada, 6).is_ok();
        assert!(first ^ second.join().unwrap());
        audit(&ledger, 6);
    });
}

#[test]
fn two_charges_that_fit_together_are_both_taken() {
    explore(4, || {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        let second = thread::spawn(move || charge(&other, bea, 5).unwrap());
        charge(&ledger, ada, 5).unwrap();
        second.join().unwrap();
        audit(&ledger, LIMIT);
    });
}

#[test]
fn refunds_and_charges_of_two_processes_add_up() {
    explore(3, || {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        charge(&ledger, ada, 4).unwrap();
        let second = thread::spawn(move || {
            charge(&other, bea, 5).unwrap();
            refund(&other, bea, 2);
        });
        refund(&ledger, ada, 3);
        charge(&ledger, ada, 1).unwrap();
        second.join().unwrap();
        audit(&ledger, 5);
    });
}

#[test]
fn three_processes_at_the_limit_agree() {
    explore(2, || {
        let [ledger, other, third] = ledgers();
        let slots = [ADA, BEA, CID].map(|pid| claim(&ledger, pid));
        let [ada, bea, cid] = slots;
        let second = thread::spawn(move || u64::from(charge(&other, bea, 4).is_ok()));
        let third = thread::spawn(move || u64::from(charge(&third, cid, 4).is_ok()));
        let taken = u64::from(charge(&ledger, ada, 4).is_ok());
        assert_eq!(taken + second.join().unwrap() + third.join().unwrap(), 2);
        audit(&ledger, 8);
    });
}

/// A process dies at any access while another one charges; then it is reaped.
fn dying_beside_a_charge(last_act: fn(&Ledger, Slot)) {
    at_each_step(3, move |steps| {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        charge(&ledger, ada, 4).unwrap();
        let dying = thread::spawn(move || burn(steps, || last_act(&other, ada)).is_none());
        charge(&ledger, bea, 5).unwrap();
        let died = dying.join().unwrap();
        ledger.reap(&dead(ADA));
        audit(&ledger, 5);
        died
    });
}

#[test]
fn a_charge_that_dies_leaves_nothing_after_the_reap() {
    dying_beside_a_charge(|ledger, ada| charge(ledger, ada, 1).unwrap());
}

#[test]
fn a_refund_that_dies_leaves_nothing_after_the_reap() {
    dying_beside_a_charge(|ledger, ada| refund(ledger, ada, 3));
}

#[test]
fn an_emptying_that_dies_is_completed_by_the_reap() {
    dying_beside_a_charge(|ledger, ada| vacate(ledger, ada));
}

/// A process dies anywhere in a charge; as soon as that is known, what it held is there for others.
#[test]
fn nothing_is_refused_for_the_sake_of_the_dead() {
    at_each_step(3, |steps| {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        let grave = Arc::new(Word::default());
        let tomb = Arc::clone(&grave);
        let dying = thread::spawn(move || {
            let died = burn(steps, || charge(&other, ada, 6)).is_none();
            grave.store(u64::from(died));
            died
        });
        let known_dead = tomb.load() == 1;
        let alive = |identity: &Identity| identity.pid != ADA || tomb.load() == 0;
        let answer = charge_or_reap(&ledger, bea, &|| false, &alive);
        assert!(answer.is_ok() || !known_dead);
        let died = dying.join().unwrap();
        if died {
            ledger.reap(&dead(ADA));
            audit(&ledger, if answer.is_ok() { 6 } else { 0 });
        }
        died
    });
}

/// The dead process is in the way of a charge, and another process removes it first.
#[test]
fn no_refusal_stands_while_another_reaps() {
    explore(3, || {
        let [ledger, other] = ledgers();
        let (ada, bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        charge(&ledger, ada, 6).unwrap();
        let reaper = thread::spawn(move || other.reap(&dead(ADA)));
        let alive = dead(ADA);
        charge_or_reap(&ledger, bea, &|| false, &alive).unwrap();
        reaper.join().unwrap();
        audit(&ledger, 6);
    });
}

/// A process died at any access; of two reapers and a charger none undoes another's work.
#[test]
fn two_reapers_take_out_the_dead_once() {
    let mut after = 0;
    while alive_after(after) {
        explore(2, move || {
            let [ledger, other, third] = ledgers();
            let bea = dying_charge(&ledger, after);
            let first = thread::spawn(move || other.reap(&dead(ADA)));
            let second = thread::spawn(move || charge(&third, bea, 2).unwrap());
            let reaped = ledger.reap(&dead(ADA));
            assert_eq!(reaped + first.join().unwrap(), 1);
            second.join().unwrap();
            audit(&ledger, 5);
        });
        after += 1;
    }
}

/// A reaper stalls anywhere while another one reaps and gives the slot to a new process.
#[test]
fn a_late_reaper_does_no_harm_to_the_slots_next_owner() {
    let mut after = 0;
    while alive_after(after) {
        explore(2, move || {
            let [ledger, other] = ledgers();
            dying_charge(&ledger, after);
            let late = thread::spawn(move || other.reap(&dead(ADA)));
            ledger.reap(&dead(ADA));
            let cid = claim(&ledger, CID);
            charge(&ledger, cid, 2).unwrap();
            refund(&ledger, cid, 1);
            late.join().unwrap();
            audit(&ledger, 4);
        });
        after += 1;
    }
}

/// A process dies anywhere in a charge, its reaper anywhere in the reap, beside a charger.
#[test]
fn a_reaper_that_dies_is_completed_by_the_next() {
    let mut after = 0;
    while alive_after(after) {
        at_each_step(2, move |steps| {
            let [ledger, other] = ledgers();
            let bea = dying_charge(&ledger, after);
            let reaper = thread::spawn(move || burn(steps, || other.reap(&dead(ADA))).is_none());
            charge(&ledger, bea, 2).unwrap();
            let died = reaper.join().unwrap();
            ledger.reap(&dead(ADA));
            audit(&ledger, 5);
            died
        });
        after += 1;
    }
}

/// The process executes another program: others see the old image dead while the new one claims.
#[test]
fn a_new_image_and_a_reaper_of_the_old_one_do_not_meet() {
    explore(3, || {
        let [ledger, other] = ledgers();
        let ada = claim(&ledger, ADA);
        charge(&ledger, ada, 4).unwrap();
        let reaper = thread::spawn(move || other.reap(&|identity| identity.image == 2));
        let again = Identity { image: 2, ..process(ADA) };
        ledger.executed(again, || true);
        let slot = ledger.claim(again, 0, &dead(NO_PROCESS)).unwrap();
        charge(&ledger, slot, 3).unwrap();
        reaper.join().unwrap();
        audit(&ledger, 3);
        assert_eq!(ledger.processes().count(), 1);
    });
}

/// A claim that dies anywhere costs no slot: the table is full only of the living.
#[test]
fn a_claim_that_dies_keeps_no_slot() {
    at_each_step(2, |steps| {
        let [ledger, other] = ledgers();
        let (_ada, _bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        let dying = thread::spawn(move || {
            burn(steps, || other.claim(process(CID), 0, &dead(NO_PROCESS)).unwrap()).is_none()
        });
        let died = dying.join().unwrap();
        let dan = ledger.claim(process(4), 0, &dead(CID));
        assert_eq!(ledger.processes().count(), 3);
        assert!(dan.is_ok());
        died
    });
}

/// Two claim the last slot, which a dead process was claiming.
#[test]
fn of_two_claims_for_one_slot_one_wins_and_both_learn_it() {
    explore(2, || {
        let [ledger, other] = ledgers();
        let (_ada, _bea) = (claim(&ledger, ADA), claim(&ledger, BEA));
        // Enough accesses to begin a claim, not enough to complete it.
        assert!(burn(12, || ledger.claim(process(9), 0, &dead(NO_PROCESS))).is_none());
        let rival = thread::spawn(move || other.claim(process(4), 0, &dead(NO_PROCESS)));
        let mine = ledger.claim(process(5), 0, &dead(NO_PROCESS));
        let winner = match (mine, rival.join().unwrap()) {
            (Ok(_), Err(Full)) => 5,
            (Err(Full), Ok(_)) => 4,
            both => panic!("{both:?}"),
        };
        let last = ledger.processes().last().unwrap();
        assert_eq!((last.slot(), last.identity), (2, process(winner)));
    });
}

/// Two claim while a third slot's owner is dead.
#[test]
fn claims_and_reaps_give_a_slot_to_one_process() {
    explore(1, || {
        let [ledger, other, third] = ledgers();
        let ada = claim(&ledger, ADA);
        charge(&ledger, ada, 4).unwrap();
        let reaper = thread::spawn(move || other.reap(&dead(ADA)));
        let rival = thread::spawn(move || {
            let slot = third.claim(process(BEA), 0, &dead(ADA)).unwrap();
            charge(&third, slot, 3).unwrap();
            slot.index()
        });
        let slot = ledger.claim(process(CID), 0, &dead(ADA)).unwrap();
        charge(&ledger, slot, 3).unwrap();
        reaper.join().unwrap();
        assert_ne!(slot.index(), rival.join().unwrap());
        ledger.reap(&dead(ADA));
        audit(&ledger, 6);
    });
}

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    sync::explore::explore(Some(preemptions), model);
}

/// Explores `model` for each number of steps until it returns that none died.
fn at_each_step(preemptions: usize, model: impl Fn(u32) -> bool + Sync + Send + Copy + 'static) {
    let died = Arc::new(AtomicBool::new(true));
    let mut steps = 0;
    while died.swap(false, Relaxed) {
        let died = Arc::clone(&died);
        explore(preemptions, move || {
            if model(steps) {
                died.store(true, Relaxed);
            }
        });
        steps += 1;
    }
    assert!(steps > 3, "the fuse never burnt");
}

fn ledgers<const N: usize>() -> [Arc<Ledger>; N] {
    let ledger = Arc::new(Ledger::zeroed());
    ledger.device([7; 16]).unwrap();
    std::array::from_fn(|_| Arc::clone(&ledger))
}

fn process(pid: u32) -> Identity {
    Identity { pid_namespace: 1, pid, start_time: 100, image: 1 }
}

/// All live but one.
fn dead(pid: u32) -> impl Fn(&Identity) -> bool {
    move |identity| identity.pid != pid
}

fn claim(ledger: &Ledger, pid: u32) -> Slot {
    ledger.claim(process(pid), 0, &dead(NO_PROCESS)).unwrap()
}

fn charge(ledger: &Ledger, slot: Slot, bytes: u64) -> Result<(), OverQuota> {
    let answer = ledger.line(slot, DeviceIndex::FIRST).unwrap().charge(Kind::Alloc, bytes, LIMIT);
    assert!(ledger.used(DeviceIndex::FIRST) <= LIMIT);
    answer
}

fn charge_or_reap(
    ledger: &Ledger,
    slot: Slot,
    all_live: &dyn Fn() -> bool,
    alive: &dyn Fn(&Identity) -> bool,
) -> Result<(), OverQuota> {
    ledger.or_reap(
        || ledger.line(slot, DeviceIndex::FIRST).unwrap().charge(Kind::Alloc, 6, LIMIT),
        all_live,
        alive,
    )
}

fn vacate(ledger: &Ledger, slot: Slot) {
    ledger.vacate(slot.index(), slot.owner());
}

fn refund(ledger: &Ledger, slot: Slot, bytes: u64) {
    ledger.line(slot, DeviceIndex::FIRST).unwrap().refund(Kind::Alloc, bytes);
}

/// Ada (slot 0) dies `after` some accesses of a second charge; Bea (slot 1) holds 3.
fn dying_charge(ledger: &Ledger, after: u32) -> Slot {
    let (ada, bea) = (claim(ledger, ADA), claim(ledger, BEA));
    charge(ledger, bea, 3).unwrap();
    charge(ledger, ada, 2).unwrap();
    burn(after, || charge(ledger, ada, 3));
    bea
}

/// Whether a process dies of `after` accesses in [`dying_charge`].
fn alive_after(after: u32) -> bool {
    let died = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&died);
    explore(0, move || {
        let [ledger] = ledgers();
        let ada = claim(&ledger, ADA);
        charge(&ledger, ada, 2).unwrap();
        done.store(burn(after, || charge(&ledger, ada, 3)).is_none(), Relaxed);
    });
    died.load(Relaxed)
}

/// No process is active: the total is the sum of the accounts, and it is `used`.
fn audit(ledger: &Ledger, used: u64) {
    let sum: u64 =
        ledger.processes().flat_map(|p| p.accounts().map(|b| b.used).collect::<Vec<_>>()).sum();
    assert_eq!((ledger.used(DeviceIndex::FIRST), sum), (used, used));
}
