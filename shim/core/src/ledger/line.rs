//! One process's line for one device: where a charge finds everything that it changes.
//!
//! Found once, since each charge and each refund needs the same three places of a file of 16 MiB. It is valid for as
//! long as the slot is the process's own; like the slot, it means nothing after a fork.

use super::device::DeviceIndex;
use super::layout::{Account, Device, Ledger, OwnerRecord};
use super::slot::Slot;

/// The account of a slot on a device, with what is beside it.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) device: DeviceIndex,
    /// The number of the slot.
    pub(super) index: usize,
    pub(super) row: &'a Device,
    pub(super) account: &'a Account,
    owner: &'a OwnerRecord,
}

impl Ledger {
    /// The line of `slot` for `device`.
    #[must_use]
    pub fn line(&self, slot: Slot, device: DeviceIndex) -> Option<Line<'_>> {
        let index = slot.index();
        Some(Line {
            ledger: self,
            device,
            index,
            row: self.device_at(device)?,
            account: self.account(index, device)?,
            owner: self.owners.get(index)?,
        })
    }
}

impl Line<'_> {
    /// Notes that the slot has an account of the device.
    pub(super) fn touch(&self) {
        if self.owner.touched.load() & self.device.bit() == 0 {
            self.owner.touched.set(self.device.bit());
        }
    }
}
