//! Many at once: threads live short lives as processes, and die at any access of any call.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

use super::{Identity, Kind, Ledger, Slot, formatted, identity};
use crate::sync::fuse::burn;

const LINES: u32 = 4;
const LIVES: u32 = 4000;
/// What one process holds at most; the limit is what the living may hold together.
const SHARE: u64 = 100;
const LIMIT: u64 = SHARE * LINES as u64;

/// As many processes live as there are threads, and each keeps within its share, so no charge may be refused,
/// whichever died where; and whatever is left in the end, the limit was kept.
#[test]
fn in_a_crowd_of_the_dying_the_limit_holds_and_no_charge_is_refused() {
    let ledger = formatted();
    ledger.device([7; 16]).unwrap();
    let dead: Vec<AtomicBool> = (0..LINES * LIVES).map(|_| AtomicBool::new(false)).collect();
    thread::scope(|scope| {
        for line in 0..LINES {
            let (ledger, dead) = (&ledger, &dead);
            scope.spawn(move || {
                let mut dice = Dice(u64::from(line) + 1);
                for pid in line * LIVES..(line + 1) * LIVES {
                    let steps = u32::try_from(dice.roll(400)).unwrap();
                    burn(steps, || live(ledger, &mut dice, pid, dead));
                    dead[pid as usize].store(true, SeqCst);
                }
            });
        }
    });
    let device = ledger.find_device([7; 16]).unwrap();
    ledger.reap(&|_| false);
    assert_eq!((ledger.used(device), ledger.processes().count()), (0, 0));
    assert!(ledger.peak(device) <= LIMIT);
}

fn live(ledger: &Ledger, dice: &mut Dice, pid: u32, dead: &[AtomicBool]) {
    let alive = |identity: &Identity| !dead[identity.pid as usize].load(SeqCst);
    let device = ledger.find_device([7; 16]).unwrap();
    let slot: Slot = ledger.claim(identity(pid), 0, &alive).unwrap();
    let mut held = 0;
    for _ in 0..dice.roll(20) {
        let bytes = dice.roll(SHARE - held + 1);
        ledger
            .or_reap(
                || ledger.line(slot, device).unwrap().charge(Kind::Alloc, bytes, LIMIT),
                &|| false,
                &alive,
            )
            .unwrap();
        held += bytes;
        assert!(ledger.used(device) <= LIMIT);
        let bytes = dice.roll(held + 1);
        ledger.line(slot, device).unwrap().refund(Kind::Alloc, bytes);
        held -= bytes;
    }
    if dice.roll(2) == 0 {
        super::vacate(ledger, slot);
    }
}

/// Chance that repeats itself.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}
