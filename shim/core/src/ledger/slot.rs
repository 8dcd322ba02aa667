//! Slots: the owner of a place in the ledger, and how a slot is claimed and reaped.
//!
//! A slot is free, being claimed, or live. While it is being claimed its owner holds nothing, so any process that
//! needs a slot may take it over without asking whether that process is alive; each fact about an owner carries the
//! claim's generation, so later writes of the former claimer are never taken for those of the new one. Live slots are
//! freed by any process that knows that the owner is dead or has executed another program, and only after each of
//! their accounts is at zero.

use super::device::DeviceIndex;
use super::layout::{Full, Ledger, OwnerRecord};
use super::word::{Fact, Owner};
use crate::sync::Word;

/// The identity of a process. Two processes with the same identity never lived at the same time.
///
/// The ledger keeps 22 bits of the pid, which is what Linux has, and 48 bits of each other value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The inode of the pid namespace in which `pid` counts.
    pub pid_namespace: u64,
    /// The process, as it sees itself.
    pub pid: u32,
    /// Clock ticks from boot to the start of the process, from `/proc`.
    pub start_time: u64,
    /// A word that differs between a process and what it executes, and that the process itself can change: the start of its
    /// stack. 0 is unknown.
    pub image: u64,
}

/// A claimed place in the ledger. It means nothing in another process, nor after a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    index: u16,
    owner: Owner,
}

impl Slot {
    /// The slot's number.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.index)
    }

    pub(super) fn owner(self) -> Owner {
        self.owner
    }
}

impl Ledger {
    /// Takes a slot for the process `identity`, with all its accounts at zero.
    ///
    /// If no slot is free, those of dead processes are reaped: `alive` returns whether another process still runs, and must
    /// return true where it cannot know.
    ///
    /// # Errors
    /// Every slot belongs to a living process.
    pub fn claim(
        &self,
        identity: Identity,
        now_ns: u64,
        alive: &dyn Fn(&Identity) -> bool,
    ) -> Result<Slot, Full> {
        let me = identity.kept();
        for attempt in 0..4 {
            if attempt == 1 {
                self.reap(alive);
            }
            let slot = (0..).zip(&self.owners).find_map(|(index, record)| {
                let found = Owner(record.owner.load());
                let available = found.is_free() || attempt > 1 && found.is_claiming();
                let owner = available.then(|| self.take(index, record, found, me)).flatten()?;
                Some(Slot { index, owner })
            });
            if let Some(slot) = slot {
                self.open(slot, now_ns);
                self.header.changes.add(1);
                return Ok(slot);
            }
        }
        Err(Full)
    }

    /// Gives back what this process held before it executed another program. `has_executed` is asked only if there is
    /// anything, and must return false where it cannot know.
    pub fn executed(&self, identity: Identity, has_executed: impl FnOnce() -> bool) {
        let me = identity.kept();
        let is_earlier =
            |other: &Identity| *other != me && Identity { image: me.image, ..*other } == me;
        if self.live().any(|(_, _, other)| is_earlier(&other)) && has_executed() {
            self.reap(&|other| !is_earlier(other));
        }
    }

    /// Gives back what the dead hold. Returns how many slots that freed.
    ///
    /// `alive` as for [`claim`](Self::claim): it must say yes of the caller and where in doubt.
    pub fn reap(&self, alive: &dyn Fn(&Identity) -> bool) -> usize {
        self.live()
            .filter(|(_, _, identity)| !alive(identity))
            .filter(|&(index, owner, _)| self.vacate(index, owner))
            .count()
    }

    /// The live slots: number, owner word, identity.
    pub(super) fn live(&self) -> impl Iterator<Item = (usize, Owner, Identity)> {
        self.claimed().filter_map(|(index, record)| {
            let (owner, identity) = record.identity()?;
            Some((index, owner, identity))
        })
    }

    /// The slots that were ever claimed.
    pub(super) fn claimed(&self) -> impl Iterator<Item = (usize, &OwnerRecord)> {
        let high_water = usize::try_from(self.header.high_water.load()).unwrap_or(usize::MAX);
        self.owners.iter().enumerate().take(high_water)
    }

    /// Whether other processes have a slot too; dead ones keep theirs until they are found.
    pub fn has_others(&self, own: Slot) -> bool {
        self.claimed().any(|(index, record)| index != own.index() && record.identity().is_some())
    }

    /// Notes that the process of `slot` uses `device`, also before it has or does anything there.
    pub fn uses(&self, slot: Slot, device: DeviceIndex) {
        if let Some(record) = self.owners.get(slot.index()) {
            record.uses.set(device.bit());
        }
    }

    /// How many processes use `device`; dead ones count until they are reaped.
    #[must_use]
    pub fn users(&self, device: DeviceIndex) -> usize {
        let uses = |record: &OwnerRecord| record.uses.load() & device.bit() != 0;
        let owners = self.claimed().filter(|(_, record)| record.identity().is_some());
        owners.filter(|(_, record)| uses(record)).count()
    }

    /// The devices of which the slot at `index` has an account.
    pub(super) fn touched(&self, index: usize) -> impl Iterator<Item = DeviceIndex> {
        let touched = self.owners.get(index).map_or(0, |record| record.touched.load());
        DeviceIndex::all().filter(move |device| touched & device.bit() != 0)
    }

    /// Whether the slot at `index` has an account of `device`.
    pub(super) fn has_account(&self, index: usize, device: DeviceIndex) -> bool {
        self.owners.get(index).is_some_and(|record| record.touched.load() & device.bit() != 0)
    }

    /// Notes that `slot` has an account of `device`.
    pub(super) fn touch(&self, slot: Slot, device: DeviceIndex) {
        if let Some(line) = self.line(slot, device) {
            line.touch();
        }
    }

    /// Whether `owner` still has the slot.
    pub(super) fn owned_by(&self, index: usize, owner: Owner) -> bool {
        self.owners.get(index).is_some_and(|record| record.owner.load() == owner.0)
    }

    /// One attempt to make a slot ours.
    fn take(&self, index: u16, record: &OwnerRecord, found: Owner, me: Identity) -> Option<Owner> {
        let claim = found.claimed(me.pid);
        record.owner.replace(found.0, claim.0).ok()?;
        self.header.high_water.raise(u64::from(index).saturating_add(1));
        let stored = record.store_if_claimed(&record.namespace, me.pid_namespace, claim)
            && record.store_if_claimed(&record.start_time, me.start_time, claim)
            && record.store_if_claimed(&record.image, me.image, claim);
        let live = claim.live();
        (stored && record.owner.replace(claim.0, live.0).is_ok()).then_some(live)
    }

    /// Makes a slot's accounts ready for its new owner.
    fn open(&self, slot: Slot, now_ns: u64) {
        if let Some(record) = self.owners.get(slot.index()) {
            record.since.store(now_ns);
            record.uses.store(0);
        }
        for device in self.touched(slot.index()) {
            if let Some(account) = self.account(slot.index(), device) {
                account.open();
            }
        }
    }

    /// Empties a slot's accounts and frees it. False if `owner` has it no longer.
    pub(super) fn vacate(&self, index: usize, owner: Owner) -> bool {
        self.touched(index).for_each(|device| self.empty(index, device, owner));
        self.header.changes.add(1);
        let freed = self
            .owners
            .get(index)
            .is_some_and(|record| record.owner.replace(owner.0, owner.free().0).is_ok());
        self.header.changes.add(1);
        freed
    }
}

impl Identity {
    /// What of it the ledger keeps.
    fn kept(self) -> Self {
        Self {
            pid_namespace: Fact::kept(self.pid_namespace),
            pid: self.pid,
            start_time: Fact::kept(self.start_time),
            image: Fact::kept(self.image),
        }
    }
}

impl OwnerRecord {
    /// Writes a fact of `claim`. False if the slot has been taken over since.
    fn store_if_claimed(&self, word: &Word, value: u64, claim: Owner) -> bool {
        loop {
            let found = word.load();
            // Read after the word: a later claim's fact is seen only with that claim.
            if self.owner.load() != claim.0 {
                return false;
            }
            if word.replace(found, Fact::new(value, claim).0).is_ok() {
                return true;
            }
        }
    }

    /// The owner of the slot, if it is live.
    pub(super) fn identity(&self) -> Option<(Owner, Identity)> {
        let owner = Owner(self.owner.load());
        let fact = |word: &Word| Fact(word.load()).of(owner);
        if !owner.is_live() {
            return None;
        }
        let identity = Identity {
            pid_namespace: fact(&self.namespace)?,
            pid: owner.pid(),
            start_time: fact(&self.start_time)?,
            image: fact(&self.image)?,
        };
        Some((owner, identity))
    }
}
