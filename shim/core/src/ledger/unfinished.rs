//! Work that is out: what a process that dies in the middle of it has not paid for.
//!
//! While a process has work on a device whose end it has not seen, its account holds the time up to which that work
//! is paid for:
//!
//! ```text
//! Word   time >> 10:48   generation of the claim:16      zero: nothing is out
//! ```
//!
//! Only the owner of a slot writes it, and a later owner's word replaces it. Reaping leaves it alone: a process with
//! a compute limit looks for the words of dead processes, and the one that exchanges such a word for zero charges for
//! it, once.

use super::device::DeviceIndex;
use super::layout::Ledger;
use super::slot::{Identity, Slot};
use super::word::Fact;

/// Times are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;

impl Ledger {
    /// Records that `slot` has work in flight on `device` that is paid for up to this time; without one, that it has
    /// none.
    pub fn unfinished(&self, slot: Slot, device: DeviceIndex, paid_until_ns: Option<u64>) {
        self.touch(slot, device);
        let Some(account) = self.account(slot.index(), device) else { return };
        let note = |ns: u64| Fact::new((ns >> UNIT_BITS).saturating_add(1), slot.owner()).0;
        account.unfinished.store(paid_until_ns.map_or(0, note));
    }

    /// Takes the dead processes' unfinished work from the accounts of `device`: `owed` is called with the time up to
    /// which each had paid.
    ///
    /// `alive` as for [`claim`](Self::claim). It is asked about those only that have work out, and not about `own`.
    pub fn left_unfinished(
        &self,
        device: DeviceIndex,
        own: Slot,
        alive: &dyn Fn(&Identity) -> bool,
        mut owed: impl FnMut(u64),
    ) {
        for (index, record) in self.claimed() {
            let has_account = record.touched.load() & device.bit() != 0;
            let account = if has_account { self.account(index, device) } else { None };
            let Some(word) = account.map(|account| &account.unfinished) else { continue };
            let note = word.load();
            if note == 0 {
                continue;
            }
            // The word of an earlier claim belongs to a process whose slot was reaped.
            let lives = record.identity().is_some_and(|(owner, identity)| {
                Fact(note).of(owner).is_some() && (index == own.index() || alive(&identity))
            });
            if !lives && word.replace(note, 0).is_ok() {
                owed(Fact(note).value() << UNIT_BITS);
            }
        }
    }

    /// Returns whether the process in the slot at `index` lives; `alive` as for [`claim`](Self::claim).
    pub fn lives(&self, index: usize, own: Slot, alive: &dyn Fn(&Identity) -> bool) -> bool {
        let identity = self.claimed().nth(index).and_then(|(_, record)| record.identity());
        index == own.index() || identity.is_some_and(|(_, identity)| alive(&identity))
    }

    /// Reports that dead processes kept `device` busy for `busy_ns` up to `end_ns`, beyond their own reports.
    pub fn worked_unfinished(&self, device: DeviceIndex, end_ns: u64, busy_ns: u64) {
        if let Some(record) = self.device_at(device) {
            record.worked(end_ns, busy_ns);
        }
    }
}
