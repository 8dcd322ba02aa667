//! The ledger as people see it: processes, and what each holds of which device.
//!
//! Nothing is locked, so a view of a ledger at work is a little of before and a little of after;
//! each amount by itself was true. A process seen here may be dead and not reaped yet.

use super::charge::Kind;
use super::device::DeviceIndex;
use super::layout::{Account, Ledger};
use super::slot::Identity;

/// A process with a slot.
#[derive(Clone, Copy, Debug)]
pub struct ProcessView<'a> {
    ledger: &'a Ledger,
    index: usize,
    /// Its identity.
    pub identity: Identity,
    /// When it claimed the slot, on the clock of the claim.
    pub since_ns: u64,
}

/// What one process holds of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// The device.
    pub device: DeviceIndex,
    /// Bytes in use.
    pub used: u64,
    /// The same by kind, in the order of [`Kind::ALL`]; may run ahead or behind for a moment.
    pub kinds: [u64; Kind::ALL.len()],
    /// The most bytes it ever had in use.
    pub peak: u64,
    /// Refusals that it got to see.
    pub refusals: u64,
    /// The limit of its latest charge.
    pub limit: u64,
    /// Nanoseconds in which it kept the device busy.
    pub busy_ns: u64,
    /// Launches.
    pub launches: u64,
}

impl Ledger {
    /// Every process with a slot.
    pub fn processes(&self) -> impl Iterator<Item = ProcessView<'_>> {
        self.live().map(|(index, _, identity)| ProcessView {
            ledger: self,
            index,
            identity,
            since_ns: self.owners.get(index).map_or(0, |record| record.since.load()),
        })
    }
}

impl ProcessView<'_> {
    /// The slot's number.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.index
    }

    /// What it holds, device by device.
    pub fn accounts(&self) -> impl Iterator<Item = AccountView> {
        self.ledger.touched(self.index).filter_map(|device| self.account(device))
    }

    /// What it holds of `device`. `None` if the slot never had anything to do with it.
    #[must_use]
    pub fn account(&self, device: DeviceIndex) -> Option<AccountView> {
        let account = self.own_account(device)?;
        Some(AccountView {
            device,
            used: self.ledger.held(self.index, device),
            kinds: Kind::ALL
                .map(|kind| account.kinds.get(kind as usize).map_or(0, crate::sync::Counter::load)),
            peak: account.peak.load(),
            refusals: account.refusals.load(),
            limit: account.cap.load(),
            busy_ns: account.busy.load(),
            launches: account.launches.load(),
        })
    }

    /// Its account of `device`, if its page is real.
    pub(super) fn own_account(&self, device: DeviceIndex) -> Option<&Account> {
        self.ledger.touched(self.index).find(|&touched| touched == device)?;
        self.ledger.account(self.index, device)
    }
}
