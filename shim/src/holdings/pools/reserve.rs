//! One pool's account: what it has handed out, what it is handing out, what it keeps; and in which steps pools grow.
//!
//! Pure bookkeeping, no driver and no ledger: `super` asks the driver and charges. The sum of the three is what is
//! charged for the pool at every moment.

#[cfg(test)]
mod tests;

use super::frees::{ContextStream, Frees};
use gpucap_abi::cuda::{CUdevice, CuError};
use gpucap_core::ledger::DeviceIndex;

/// Where a pool's memory lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// On this device.
    Device(CUdevice),
    /// In host memory, or with another process that is charged for it.
    Elsewhere,
}

/// What is known of a pool.
pub(super) struct Pool {
    /// No other pool of the process ever has it.
    number: u64,
    /// Its handle, as long as it is not destroyed.
    pub(super) address: u64,
    pub(super) home: Home,
    /// The device that is charged, once something has been.
    pub(super) device: Option<DeviceIndex>,
    /// Reserved bytes beyond this go back at a synchronisation.
    pub(super) threshold: u64,
    /// The driver reports how much it has reserved.
    tells: bool,
    /// The driver is destroying it, or has: it can be asked nothing any more.
    pub(super) is_ending: bool,
    /// The driver has destroyed it. What it holds goes when all of it is free.
    pub(super) is_destroyed: bool,
    /// Bytes handed out.
    live: u64,
    /// Bytes of allocations that are under way, and how many of these it had kept.
    pending: u64,
    pending_paid: u64,
    /// Bytes charged for what it keeps beyond that.
    pub(super) kept: u64,
    /// How often any of these has changed.
    pub(super) changes: u64,
    /// Something was freed since it kept nothing.
    has_freed: bool,
    /// Bytes that may be in use for allocations which were to be recorded only.
    unseen: u64,
    /// Where work may be under way after which memory of it is free.
    pub(super) frees: Frees,
}

/// What an allocation takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// The number of the pool; 0 if it is not known.
    pub(crate) pool: u64,
    /// Its size.
    bytes: u64,
    /// The part that the pool keeps already, so that it is charged for.
    paid: u64,
    /// What the pool may reserve beyond it, as pools grow in steps.
    padding: u64,
    /// How often the pool had changed once the allocation had begun; `None` if the pool is not known.
    changes: Option<u64>,
}

impl Asked {
    /// An allocation from a pool that is not known.
    pub(super) const fn of_unknown(bytes: u64) -> Self {
        Self { pool: 0, bytes, paid: 0, padding: 0, changes: None }
    }

    /// Whether the pool is known.
    pub(super) const fn is_known(self) -> bool {
        self.changes.is_some()
    }

    /// What has to be charged before the driver is asked.
    pub(crate) const fn charge(self) -> u64 {
        self.bytes.saturating_sub(self.paid).saturating_add(self.padding)
    }
}

/// In which steps the driver's pools grow.
///
/// Reserves are multiples of the step, so the greatest power of two that has divided all of them is an upper bound of a
/// step that is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    bytes: u64,
    /// A reserve has been larger than its use without anything having been freed.
    is_seen: bool,
}

impl Default for Unit {
    fn default() -> Self {
        Self { bytes: 32 << 20, is_seen: false } // the largest that drivers are known to use
    }
}

impl Unit {
    /// What is reserved beyond `used` if it is in use.
    fn padding(self, used: u64) -> u64 {
        used.checked_next_multiple_of(self.bytes).map_or(0, |whole| whole.saturating_sub(used))
    }

    /// Bytes and padding, if pools have been seen to reserve any.
    pub(super) fn padded(self, bytes: u64) -> u64 {
        bytes.saturating_add(if self.is_seen { self.padding(bytes) } else { 0 })
    }

    fn learn(&mut self, reserved: u64, is_padded: bool) {
        let divides = 1u64.checked_shl(reserved.trailing_zeros()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.min(divides);
        self.is_seen |= is_padded;
    }
}

impl Pool {
    /// A pool that is met now; `reserved` is what the driver says that it holds. Only one that does not know the question
    /// never tells.
    pub(super) fn new(
        [number, address]: [u64; 2],
        home: Home,
        threshold: u64,
        reserved: Result<u64, CuError>,
    ) -> Self {
        Self {
            number,
            address,
            home,
            device: None,
            threshold,
            tells: reserved != Err(CuError::INVALID_VALUE),
            is_ending: false,
            is_destroyed: false,
            live: 0,
            pending: 0,
            pending_paid: 0,
            kept: 0,
            changes: 0,
            has_freed: reserved != Ok(0),
            unseen: 0,
            frees: Frees::default(),
        }
    }

    /// The device that it lives on, its handle, and how often it has changed: what the driver then says of it holds as long as that has
    /// not moved. `None` if the driver cannot be asked, or is not to be.
    pub(super) fn state(&self) -> Option<(CUdevice, u64, u64)> {
        match self.home {
            Home::Device(ordinal) if !self.is_ending => Some((ordinal, self.address, self.changes)),
            _ => None,
        }
    }

    /// Whether nothing else has changed it since this allocation began.
    pub(super) fn is_as_begun(&self, asked: Asked) -> bool {
        asked.changes == Some(self.changes) && self.state().is_some()
    }

    /// Whether nothing is charged for it.
    pub(super) const fn is_empty(&self) -> bool {
        self.live == 0 && self.pending == 0 && self.kept == 0
    }

    /// An allocation begins. What the pool keeps pays for one that fits into it. For a larger one the pool grows, by
    /// the whole of it unless the driver can put it together; but where there is no room for that (`is_tight`), and what
    /// could be trimmed has been, what is kept can only be memory that the allocation uses again.
    pub(super) fn begin(&mut self, bytes: u64, is_tight: bool, unit: Unit) -> Asked {
        let paid = if is_tight || bytes <= self.kept { self.kept.min(bytes) } else { 0 };
        self.kept = self.kept.saturating_sub(paid);
        // Without what is charged for others that are under way: should one of those fail, its charge goes, and with it what
        // would have paid for a part of the step.
        let held = self.live.saturating_add(self.kept).saturating_add(self.pending_paid);
        let used = held.saturating_add(bytes);
        self.pending = self.pending.saturating_add(bytes);
        self.pending_paid = self.pending_paid.saturating_add(paid);
        self.changed();
        let grows = paid < bytes && (unit.is_seen || !is_tight);
        let padding = if grows { unit.padding(used) } else { 0 };
        Asked { pool: self.number, bytes, paid, padding, changes: Some(self.changes) }
    }

    /// The driver has refused an allocation, or we have.
    pub(super) fn failed(&mut self, asked: Asked) {
        self.no_longer_pending(asked);
        self.kept = self.kept.saturating_add(asked.paid);
        self.changed();
    }

    const fn no_longer_pending(&mut self, asked: Asked) {
        self.pending = self.pending.saturating_sub(asked.bytes);
        self.pending_paid = self.pending_paid.saturating_sub(asked.paid);
    }

    pub(super) fn succeeded(&mut self, asked: Asked) {
        self.no_longer_pending(asked);
        self.live = self.live.saturating_add(asked.bytes);
        self.kept = self.kept.saturating_add(asked.padding);
        self.changed();
    }

    /// An allocation is free, from a point of a stream on if there is one.
    pub(super) fn freed(&mut self, bytes: u64, from: Option<ContextStream>) {
        self.live = self.live.saturating_sub(bytes);
        self.kept = self.kept.saturating_add(bytes);
        self.has_freed = true;
        from.into_iter().for_each(|stream| self.frees.add(stream));
        self.changed();
    }

    /// What the driver has reserved beyond what is in use. `None` if it does not say: then nothing is known to have come
    /// back. A driver that never says is taken to reserve nothing beyond.
    pub(super) fn idle(&mut self, reserved: Option<u64>, unit: &mut Unit) -> Option<u64> {
        let reserved = match reserved {
            Some(reserved) => reserved,
            None if self.tells => return None,
            None => self.used(),
        };
        let idle = reserved.saturating_sub(self.used());
        if reserved > 0 {
            unit.learn(reserved, idle > 0 && !self.has_freed);
        }
        if idle == 0 {
            self.frees.clear();
            self.has_freed = false;
            self.unseen = 0;
        }
        Some(idle)
    }

    /// Whether an allocation that was to be recorded has been carried out: the reserve is larger than what is charged. One
    /// that was carried out from what is kept is not seen.
    pub(super) fn is_taken(&mut self, reserved: u64, bytes: u64) -> bool {
        let is_taken = reserved > self.charged();
        if !is_taken && self.kept > 0 {
            self.unseen = self.unseen.saturating_add(bytes);
        }
        is_taken
    }

    /// It ends, and what it keeps has been trimmed: what is left may be in use at addresses that are not known, and stays
    /// charged as long as the process lives.
    pub(super) fn lose_unseen(&mut self) {
        let lost = self.unseen.min(self.kept);
        self.kept = self.kept.saturating_sub(lost);
        self.live = self.live.saturating_add(lost);
        self.unseen = 0;
    }

    /// Whether it may hold anything that is not in use.
    pub(super) const fn keeps(&self) -> bool {
        self.kept > 0 && !self.is_ending
    }

    /// Whether a synchronisation may release something of it.
    pub(super) const fn may_release(&self) -> bool {
        if self.is_destroyed {
            self.live == 0 && self.pending == 0
        } else {
            self.kept > 0 && self.charged() > self.threshold
        }
    }

    /// Whether it was destroyed, and all of it is free.
    pub(super) fn is_over(&self) -> bool {
        self.is_destroyed && self.live == 0 && self.pending == 0 && self.frees.is_empty()
    }

    const fn used(&self) -> u64 {
        self.live.saturating_add(self.pending)
    }

    /// What is charged for it.
    const fn charged(&self) -> u64 {
        self.used().saturating_add(self.kept)
    }

    /// What the driver has said before holds no more.
    pub(super) const fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }
}
