//! Busy time: what each process kept of a device's time, in total and lately.
//!
//! Totals are plain counters; what was lately is in [windows](super::windows), of the device and of each account. All
//! this is for people: no decision rests on it. Times are those of CLOCK_MONOTONIC.

use super::device::DeviceIndex;
use super::layout::{Device, Ledger};
use super::slot::Slot;
use super::view::ProcessView;
use super::windows::BusyWindow;

impl Ledger {
    /// Reports that `slot` kept `device` busy for `busy_ns` up to `end_ns`.
    pub fn worked(&self, slot: Slot, device: DeviceIndex, end_ns: u64, busy_ns: u64) {
        self.touch(slot, device);
        if let Some(record) = self.device_at(device) {
            record.worked(end_ns, busy_ns);
        }
        if let Some(account) = self.account(slot.index(), device) {
            account.busy.add(busy_ns);
            account.windows.spread(end_ns, busy_ns);
        }
    }

    /// Reports that launches on `device` waited `waited_ns` for the bucket.
    pub fn waited(&self, device: DeviceIndex, waited_ns: u64) {
        if let Some(record) = self.device_at(device) {
            record.waited.add(waited_ns);
        }
    }

    /// Reports that `borrowed_ns` of the time for which `device` was kept busy were beyond the guarantee.
    pub fn borrowed(&self, device: DeviceIndex, borrowed_ns: u64) {
        if let Some(record) = self.device_at(device) {
            record.borrowed.add(borrowed_ns);
        }
    }

    /// Reports `launches` that `slot` made on `device`.
    pub fn launched(&self, slot: Slot, device: DeviceIndex, launches: u64) {
        self.touch(slot, device);
        if let Some(record) = self.device_at(device) {
            record.launches.add(launches);
        }
        if let Some(account) = self.account(slot.index(), device) {
            account.launches.add(launches);
        }
    }

    /// The windows of `device` that are settled, the oldest first.
    pub fn busy_windows(
        &self,
        device: DeviceIndex,
        now_ns: u64,
    ) -> impl Iterator<Item = BusyWindow> {
        let windows = self.device_at(device).map(|record| &record.windows);
        windows.into_iter().flat_map(move |windows| windows.settled(now_ns))
    }

    /// The container's share of the device's time lately, in thousandths.
    #[must_use]
    pub fn busy_share(&self, device: DeviceIndex, now_ns: u64) -> u32 {
        BusyWindow::permille_of(self.busy_windows(device, now_ns))
    }

    /// Returns when work on `device` last ended, at most a window late and never after `now_ns`. `None` if no work was
    /// reported.
    #[must_use]
    pub fn last_worked(&self, device: DeviceIndex, now_ns: u64) -> Option<u64> {
        self.device_at(device)?.windows.latest(now_ns)
    }
}

impl Device {
    pub(super) fn worked(&self, end_ns: u64, busy_ns: u64) {
        self.busy.add(busy_ns);
        self.windows.spread(end_ns, busy_ns);
    }
}

impl ProcessView<'_> {
    /// Its windows of `device` that are settled, the oldest first. None if it never touched it.
    pub fn busy_windows(
        &self,
        device: DeviceIndex,
        now_ns: u64,
    ) -> impl Iterator<Item = BusyWindow> {
        let account = self.own_account(device);
        account.into_iter().flat_map(move |account| account.windows.settled(now_ns))
    }

    /// Its share of the device's time lately, in thousandths.
    #[must_use]
    pub fn busy_share(&self, device: DeviceIndex, now_ns: u64) -> u32 {
        BusyWindow::permille_of(self.busy_windows(device, now_ns))
    }
}
