//! A pending charge: what is taken for a call of the driver is refunded unless the call succeeds.

use super::Budget;
use crate::allocations::Record;

/// Bytes taken for a call that is under way.
#[must_use = "a charge that is dropped is given back"]
pub(crate) struct Charge {
    pub(super) budget: &'static Budget,
    pub(super) record: Record,
}

impl Charge {
    /// The call has succeeded: the bytes are taken for good, and the record is the caller's to keep.
    pub(crate) fn commit(self) -> Record {
        let record = self.record;
        core::mem::forget(self);
        record
    }

    /// Adds what was taken for the same allocation on the same device.
    pub(crate) fn with(mut self, more: Self) -> Self {
        self.record.bytes = self.record.bytes.saturating_add(more.commit().bytes);
        self
    }

    /// Gives back what exceeds this.
    pub(crate) fn less(mut self, most: u64) -> Self {
        let bytes = self.record.bytes.saturating_sub(most);
        self.budget.refund(Record { bytes, ..self.record });
        self.record.bytes = self.record.bytes.saturating_sub(bytes);
        self
    }

    /// Says how large the allocation is of which this charge pays the part that was not paid before.
    pub(crate) fn completing(mut self, bytes: u64) -> Self {
        self.record.bytes = bytes;
        self
    }

    /// Says which context or pool the memory belongs to.
    pub(crate) fn at_home_in(mut self, home: u64) -> Self {
        self.record.home = home;
        self
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.refund(self.record);
    }
}
