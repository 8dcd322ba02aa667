//! The accounts and the protocol that moves bytes between an account and its device's total.
//!
//! An account is what one process holds of one device. To change two words at once without a lock:
//!
//! 1. the owner notes the outcome beside its `op` word, in the amount that is not in use;
//! 2. announces the operation: `op` becomes {sequence + 1, open};
//! 3. closes the operation that the total names, if its owner has not done so yet;
//! 4. exchanges the total for {new bytes, own slot, sequence}: here the operation takes effect;
//! 5. closes its own: `op` becomes {sequence, closed}.
//!
//! A process that dies before 4 has done nothing, and one that dies after it is completed by step 3 of the next one,
//! since a total is never replaced before the operation that it names is closed. So an open operation took effect if
//! and only if the total names it. Sequences are used only by operations that take effect and never start over, even
//! when a slot changes hands.
//!
//! Emptying a dead process's account is an operation without an amount to note. Any number of reapers do it together,
//! with atomic exchanges alone: one that stops halfway holds up no other, and one that continues late finds its words
//! replaced.

use super::device::DeviceIndex;
use super::layout::{Account, Ledger};
use super::line::Line;
use super::word::{MAX_TOTAL, Op, Owner, Total};
use crate::sync::Word;

/// A change of an amount.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Upwards, as long as the total stays within the limit.
    Up { bytes: u64, limit: u64 },
    /// Downwards, by what there is at most.
    Down { bytes: u64 },
}

/// What a step has made of both.
pub(super) struct Changed {
    /// The device's total.
    pub(super) total: u64,
    /// What the account holds.
    pub(super) held: u64,
}

impl Step {
    fn bounded(self, held: u64) -> Self {
        match self {
            Self::Up { bytes, limit } => Self::Up { bytes, limit: limit.min(MAX_TOTAL) },
            Self::Down { bytes } => Self::Down { bytes: bytes.min(held) },
        }
    }

    fn of_account(self, held: u64) -> u64 {
        match self {
            Self::Up { bytes, .. } => held.saturating_add(bytes),
            Self::Down { bytes } => held.saturating_sub(bytes),
        }
    }

    fn from(self, total: Total) -> Option<u64> {
        match self {
            Self::Up { bytes, limit } => {
                total.bytes().checked_add(bytes).filter(|&sum| sum <= limit)
            }
            Self::Down { bytes } => Some(total.bytes().saturating_sub(bytes)),
        }
    }
}

impl Account {
    /// The outcome of `op`, which is the word of this account.
    fn outcome(&self, op: Op) -> u64 {
        if op.is_emptying() { 0 } else { self.amount(op.is_odd()).load() }
    }

    /// What the account held before `op`, which is open.
    fn before(&self, op: Op) -> u64 {
        self.amount(!op.is_odd()).load()
    }

    fn amount(&self, odd: bool) -> &Word {
        let [even_amount, odd_amount] = &self.amounts;
        if odd { odd_amount } else { even_amount }
    }

    fn close(&self, op: Op) {
        // Where this fails, another process has closed it.
        let _ = self.op.replace(op.0, op.closed().0);
    }

    /// For a new owner, which has the account to itself: nothing held, nothing counted.
    pub(super) fn open(&self) {
        self.amounts.iter().for_each(|amount| amount.store(0));
        self.op.store(Op(self.op.load()).plain().0);
        // A process that never published work left no windows.
        if self.busy.load() > 0 {
            self.windows.clear();
        }
        let own = [&self.cap, &self.peak, &self.refusals, &self.busy, &self.launches];
        own.into_iter().chain(&self.kinds).for_each(|counter| counter.store(0));
    }
}

impl Line<'_> {
    /// Whether the device's total is within `limit`.
    ///
    /// # Errors
    /// The total, which is not.
    #[inline]
    pub(super) fn fits(&self, limit: u64) -> Result<(), u64> {
        let used = Total(self.row.total.load()).bytes();
        if used <= limit { Ok(()) } else { Err(used) }
    }

    /// Makes one `step` in the account and in the device's total.
    ///
    /// # Errors
    /// The total at the moment when the step did not fit.
    #[inline]
    pub(super) fn change(&self, step: Step) -> Result<Changed, u64> {
        let (total, account) = (&self.row.total, self.account);
        let closed = Op(account.op.load());
        let op = closed.next();
        let held = account.outcome(closed);
        let step = step.bounded(held);
        let mut seen = Total(total.load());
        if step.from(seen).is_none() {
            return Err(seen.bytes());
        }
        let held = step.of_account(held);
        account.amount(op.is_odd()).store(held);
        account.op.store(op.0);
        let used = loop {
            let Some(used) = step.from(seen) else {
                // It was never in the total, so no one has closed it and it can be taken back.
                account.op.store(closed.0);
                return Err(seen.bytes());
            };
            let next = Total::new(used, self.index, op);
            // If the last operation was of this account, it is closed: only its latest is open, which is this one.
            let replaced = if seen.index() == self.index {
                total.replace(seen.0, next.0).map_err(Total)
            } else {
                self.ledger.replace_total(self.device, seen, next)
            };
            match replaced {
                Ok(()) => break used,
                Err(now) => seen = now,
            }
        };
        account.op.store(op.closed().0);
        Ok(Changed { total: used, held })
    }
}

impl Ledger {
    /// Brings the account of the slot at `index` to zero, while `owner` has the slot.
    ///
    /// For the owner when it leaves, and for any process once the owner is dead.
    pub(super) fn empty(&self, index: usize, device: DeviceIndex, owner: Owner) {
        let (Some(total), Some(account)) = (self.total(device), self.account(index, device)) else {
            return;
        };
        loop {
            let op = Op(account.op.load());
            let seen = Total(total.load());
            if op.is_open() && seen.names(index, op) {
                account.close(op);
            } else if op.is_open() && op.is_emptying() {
                self.take_out(index, device, op, seen);
            } else {
                let next = if op.is_open() {
                    // Announced and never done: its place in the sequence is still to be used.
                    op.emptying()
                } else if account.outcome(op) == 0 {
                    return;
                } else {
                    op.next().emptying()
                };
                if !self.owned_by(index, owner) {
                    return;
                }
                // Where this fails, another reaper did it.
                let _ = account.op.replace(op.0, next.0);
            }
        }
    }

    /// One attempt at the emptying `op`, on top of `seen`.
    fn take_out(&self, index: usize, device: DeviceIndex, op: Op, seen: Total) {
        let Some(account) = self.account(index, device) else { return };
        // Read after `seen`. If the operation is open now and `seen` is the total when replaced,
        // then it has not taken effect yet and the amount is the one before it.
        if Op(account.op.load()) != op {
            return;
        }
        let left = seen.bytes().saturating_sub(account.before(op));
        if self.replace_total(device, seen, Total::new(left, index, op)).is_ok() {
            account.close(op);
        }
    }

    /// Replaces the total, after closing the operation that it names.
    pub(super) fn replace_total(
        &self,
        device: DeviceIndex,
        seen: Total,
        next: Total,
    ) -> Result<(), Total> {
        let Some(total) = self.total(device) else { return Err(seen) };
        // The total of a device that is new names the first slot, which may have no account: reading it would take memory.
        if self.has_account(seen.index(), device)
            && let Some(account) = self.account(seen.index(), device)
        {
            let op = Op(account.op.load());
            if op.is_open() && seen.names(seen.index(), op) {
                // The total holds twelve bits of the sequence, the account all of them. Read after the account, the
                // total shows that the operation is this one and no earlier one.
                let now = Total(total.load());
                if now != seen {
                    return Err(now);
                }
                account.close(op);
            }
        }
        total.replace(seen.0, next.0).map_err(Total)
    }

    /// What the slot at `index` holds of `device`.
    pub(super) fn held(&self, index: usize, device: DeviceIndex) -> u64 {
        let (Some(total), Some(account)) = (self.total(device), self.account(index, device)) else {
            return 0;
        };
        let op = Op(account.op.load());
        let done = !op.is_open() || Total(total.load()).names(index, op);
        if done { account.outcome(op) } else { account.before(op) }
    }

    pub(super) fn total(&self, device: DeviceIndex) -> Option<&Word> {
        Some(&self.device_at(device)?.total)
    }

    /// The account of the slot at `index`.
    pub(super) fn account(&self, index: usize, device: DeviceIndex) -> Option<&Account> {
        self.accounts.get(device.index())?.get(index)
    }
}
