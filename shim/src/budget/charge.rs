//! What is taken from a budget for a call of the driver, and refunded unless the call succeeds.
//!
//! A [`Charge`] is pending until it is committed; its [`Record`] is then the caller's, to be refunded when the driver has
//! freed what it is for. One operation at a time on each device: a process has one line there.

use super::Budget;
use super::device::Device;
use super::record::Record;
use crate::container::ledger_file;
use crate::log;
use gpucap_core::config::LogLevel;
use gpucap_core::ledger::{Kind, OverQuota};
use gpucap_core::units::Bytes;

/// Bytes taken for a call that is under way.
#[must_use = "a charge that is dropped is given back"]
pub(crate) struct Charge {
    budget: &'static Budget,
    record: Record,
}

impl Charge {
    /// The call has succeeded: the bytes are taken for good, and the record is the caller's to keep.
    #[inline]
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

impl Budget {
    /// Takes bytes from a device's memory limit. A charge that is dropped without [`Charge::commit`] is given back.
    ///
    /// # Errors
    /// It does not fit, even after everything that dead processes held has come back.
    #[inline]
    pub(crate) fn charge(
        &'static self,
        device: &Device,
        kind: Kind,
        bytes: u64,
    ) -> Result<Charge, OverQuota> {
        let limit = device.memory_limit();
        let charge = || device.line.lock().charge(kind, bytes, limit);
        self.ledger.or_reap(charge, &|| self.attendance.all_live(), &ledger_file::alive)?;
        Ok(Charge { budget: self, record: Record { bytes, home: 0, device: device.index, kind } })
    }

    /// Charges for what the driver holds already and what cannot be given back, whether it fits or not: the limit is full
    /// until it has gone.
    pub(crate) fn charge_held(&'static self, device: &Device, kind: Kind, bytes: u64) -> Charge {
        let held = device.line.lock().hold(kind, bytes, device.memory_limit());
        // What the ledger has no room for is not given back either.
        let bytes = if held.is_ok() { bytes } else { 0 };
        Charge { budget: self, record: Record { bytes, home: 0, device: device.index, kind } }
    }

    /// Counts a refusal that the application sees, and logs the first one.
    pub(crate) fn refused(&self, device: &Device, over: &OverQuota) {
        static LOGGED: log::Once = log::Once::new();
        device.line.lock().count_refusal();
        if LOGGED.first() {
            let (limit, used, request) =
                (Bytes(over.limit), Bytes(over.used), Bytes(over.requested));
            self.policy.log(
                LogLevel::Warn,
                format_args!(
                    "memory: allocation refused limit={limit} used={used} request={request}; later refusals are counted, not logged"
                ),
            );
        }
    }

    /// Gives the bytes of a record back.
    #[inline]
    pub(crate) fn refund(&self, record: Record) {
        if record.bytes == 0 {
            return;
        }
        if let Some((_, device)) = self.limited().find(|(_, device)| device.index == record.device)
        {
            device.line.lock().refund(record.kind, record.bytes);
        }
    }
}
