//! Work that is out: what a process that dies in the middle of it has not paid for.
//!
//! While a process has work on a device whose end it has not seen, its account holds the time up to which that work
//! is paid for:
//!
//! ```text
//! Word   time >> 10:48   generation of the claim:16      zero: nothing is out
//! ```
//!
//! and another word of the same kind the time at which the process was last known to live, if a thread of it sees to that
//! (zero: none does). When it died is not known: no process may have been there to see it.
//!
//! Only the owner of a slot writes them, and a later owner's words replace them. Reaping leaves them alone: a process with
//! a compute limit looks for the first words of dead processes, and the one that exchanges such a word for zero charges for
//! it, once.

use super::device::DeviceIndex;
use super::layout::Ledger;
use super::slot::{Identity, Slot};
use super::word::Fact;
use crate::sync::Word;
use crate::throttle::Unfinished;

/// Times are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;

/// The word for this time, of this claim.
fn note(slot: Slot, ns: u64) -> u64 {
    Fact::new((ns >> UNIT_BITS).saturating_add(1), slot.owner()).0
}

/// What both words say, if they are of one claim.
fn unfinished(note: u64, alive: u64) -> Unfinished {
    let [paid_until, alive_at] = [note, alive].map(|word| Fact(word).value() << UNIT_BITS);
    let alive_at = (alive != 0 && Fact(alive).is_of_one_with(Fact(note))).then_some(alive_at);
    Unfinished { paid_until, alive_at }
}

impl Ledger {
    /// Records that `slot` has work in flight on `device` that is paid for up to this time; without one, that it has
    /// none.
    pub fn unfinished(&self, slot: Slot, device: DeviceIndex, paid_until_ns: Option<u64>) {
        self.touch(slot, device);
        let Some(account) = self.account(slot.index(), device) else { return };
        account.unfinished.store(paid_until_ns.map_or(0, |ns| note(slot, ns)));
    }

    /// Records that the process of `slot`, which uses `device`, lives now, or that nothing sees to that from here on.
    pub fn alive_at(&self, slot: Slot, device: DeviceIndex, now_ns: Option<u64>) {
        self.touch(slot, device);
        let Some(account) = self.account(slot.index(), device) else { return };
        account.alive.store(now_ns.map_or(0, |ns| note(slot, ns)));
    }

    /// Finds the dead processes that have work out on `device`, or whose slots `shows` names. `died` is called with the
    /// index of the slot of each. Its unfinished work is taken from its account: `owed` is called with it.
    ///
    /// `alive` as for [`claim`](Self::claim). It is asked once about each of those, and not about `own`.
    pub fn find_dead(
        &self,
        device: DeviceIndex,
        own: Slot,
        alive: &dyn Fn(&Identity) -> bool,
        shows: impl Fn(usize) -> bool,
        mut died: impl FnMut(usize),
        mut owed: impl FnMut(Unfinished),
    ) {
        for (index, record) in self.claimed() {
            let has_account = self.has_account(index, device);
            let account = if has_account { self.account(index, device) } else { None };
            let word = account.map(|account| &account.unfinished);
            let note = word.map_or(0, |word| word.load());
            if note == 0 && !shows(index) {
                continue;
            }
            let identity = record.identity();
            let lives = index == own.index()
                || identity.as_ref().is_some_and(|(_, identity)| alive(identity));
            if !lives {
                died(index);
            }
            // The word of an earlier claim belongs to a process whose slot was reaped.
            let is_its_own = identity.is_some_and(|(owner, _)| Fact(note).of(owner).is_some());
            let is_left = note != 0 && !(lives && is_its_own);
            let alive = account.map_or(0, |account| account.alive.load());
            if is_left && word.is_some_and(|word| word.replace(note, 0).is_ok()) {
                owed(unfinished(note, alive));
            }
        }
    }

    /// The work in flight on `device` of each process, living or dead, as if it died now.
    pub fn all_unfinished(&self, device: DeviceIndex) -> impl Iterator<Item = Unfinished> {
        let has_account = move |index: &usize| self.has_account(*index, device);
        let slots = self.claimed().map(|(index, _)| index).filter(has_account);
        let accounts = slots.filter_map(move |index| self.account(index, device));
        let words = accounts.map(|account| [&account.unfinished, &account.alive].map(Word::load));
        words.filter(|[note, _]| *note != 0).map(|[note, alive]| unfinished(note, alive))
    }

    /// Reports that dead processes kept `device` busy for `busy_ns` up to `end_ns`, beyond their own reports.
    pub fn worked_unfinished(&self, device: DeviceIndex, end_ns: u64, busy_ns: u64) {
        if let Some(record) = self.device_at(device) {
            record.worked(end_ns, busy_ns);
        }
    }
}
