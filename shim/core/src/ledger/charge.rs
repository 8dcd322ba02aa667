//! Bytes charged to a slot and given back: a change of its account, with what people are shown of it.
//!
//! The change itself is the protocol's, in `account`; the numbers beside it are those of one process, which only that
//! process writes.

use super::account::Step;
use super::device::DeviceIndex;
use super::layout::Ledger;
use super::line::Line;
use super::slot::Slot;
use crate::sync::Counter;

/// What bytes were taken for. For people: the limit counts the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain and pitched allocations.
    Alloc = 0,
    /// Managed memory, in full.
    Managed = 1,
    /// Stream-ordered pools: what they reserve.
    Pool = 2,
    /// Physical memory of the virtual memory interface.
    Vmm = 3,
    /// Arrays and mipmapped arrays.
    Array = 4,
    /// The price of contexts.
    Context = 5,
    /// Loaded modules and libraries.
    Module = 6,
    /// Device heap, stacks and print buffers.
    Heap = 7,
    /// Memory of graphs.
    Graph = 8,
}

impl Kind {
    /// Every kind, in the order of the file.
    pub const ALL: [Self; 9] = [
        Self::Alloc,
        Self::Managed,
        Self::Pool,
        Self::Vmm,
        Self::Array,
        Self::Context,
        Self::Module,
        Self::Heap,
        Self::Graph,
    ];
}

/// A charge that does not fit under the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverQuota {
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes in use by all processes when it was refused.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

impl Ledger {
    /// Two unused words of the account of `slot`: a process that makes the account's page real writes here first.
    #[must_use]
    pub fn spare(&self, slot: Slot, device: DeviceIndex) -> Option<&[Counter; 2]> {
        self.account(slot.index(), device)?.kinds.last_chunk()
    }
}

impl Line<'_> {
    /// Takes `bytes` of the device, if its total stays within `limit`.
    ///
    /// A refusal may rest on what dead processes left: see [`Ledger::or_reap`].
    ///
    /// # Errors
    /// It did not fit.
    #[inline]
    pub fn charge(&self, kind: Kind, bytes: u64, limit: u64) -> Result<(), OverQuota> {
        let over = |used| OverQuota { requested: bytes, used, limit };
        if bytes == 0 {
            // Nothing changes, but a limit that was lowered since may be exceeded.
            return self.fits(limit).map_err(over);
        }
        self.take(kind, bytes, limit).map_err(over)?;
        self.account.cap.store(limit);
        Ok(())
    }

    /// Takes `bytes` of the device, whether they fit its limit or not: they are in use already.
    ///
    /// # Errors
    /// The total would be more than a ledger can hold.
    pub fn hold(&self, kind: Kind, bytes: u64, limit: u64) -> Result<(), OverQuota> {
        let taken = self.take(kind, bytes, u64::MAX);
        self.account.cap.store(limit);
        taken.map_err(|used| OverQuota { requested: bytes, used, limit })
    }

    /// Takes `bytes` if the total stays within `most`. What is in use if not.
    #[inline]
    fn take(&self, kind: Kind, bytes: u64, most: u64) -> Result<(), u64> {
        self.touch();
        let changed = self.change(Step::Up { bytes, limit: most })?;
        self.row.peak.raise(changed.total);
        self.account.peak.raise(changed.held);
        self.count(kind, |held| held.saturating_add(bytes));
        Ok(())
    }

    /// Gives back `bytes` of the device; never more than the slot holds.
    #[inline]
    pub fn refund(&self, kind: Kind, bytes: u64) {
        // A process that dies in it leaves an operation to be closed, even if nothing was ever held.
        self.touch();
        // A way down always fits.
        let _ = self.change(Step::Down { bytes });
        self.count(kind, |held| held.saturating_sub(bytes));
    }

    /// Counts a refusal that the program got to see.
    pub fn count_refusal(&self) {
        self.row.refusals.add(1);
        self.touch();
        self.account.refusals.add(1);
    }

    /// What the account holds of one kind is changed by `change`.
    #[inline]
    fn count(&self, kind: Kind, change: impl FnOnce(u64) -> u64) {
        if let Some(counter) = self.account.kinds.get(kind as usize) {
            counter.store(change(counter.load()));
        }
    }
}
