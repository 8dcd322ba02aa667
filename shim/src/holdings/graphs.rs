//! Memory of graphs: what executable graphs will allocate, and what the driver keeps of it.
//!
//! A graph with allocations gets its memory when it is launched, where nothing can be refused any more; so it is charged
//! when it is made executable, by the sum of its allocations. That is a bound: allocations that follow one another in a
//! graph may share memory. After a graph has ended, the driver keeps its memory until it is trimmed, and allocations
//! that were not freed live on: what the driver says graphs hold stays charged, and is trimmed before an allocation of
//! this process would be refused for it.

use crate::budget::Budget;
use crate::budget::charge::Charge;
use crate::budget::record::Record;
use crate::driver::{self, DriverCopy};
use crate::holdings::allocations::ByAddress;
use crate::holdings::handles::Handles;
use crate::holdings::pools::Pools;
use gpucap_abi::cuda::{CUdevice, CUgraphExec};
use gpucap_core::ledger::Kind;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// The graphs of a process.
#[derive(Default)]
pub(crate) struct Graphs {
    /// Held while a graph is made executable, and while one ends.
    pub(crate) handles: Handles,
    memory: Mutex<GraphMemory>,
}

#[derive(Default)]
struct GraphMemory {
    /// What each executable graph will allocate, by device.
    executables: ByAddress<Needs>,
    devices: BTreeMap<CUdevice, Account>,
}

/// How often a driver's answer is asked for again because graphs have changed in between.
const TRIES: u32 = 8;

/// Bytes by device.
pub(crate) type Needs = BTreeMap<CUdevice, u64>;

#[derive(Default)]
struct Account {
    /// The needs of all executable graphs.
    live: u64,
    /// Bytes charged: those, what the driver keeps of earlier ones, and what it reserves beyond both.
    charged: u64,
    /// How often either has changed: what the driver has said since holds as long as this has not moved.
    changes: u64,
}

impl Account {
    const fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }
}

impl Graphs {
    /// A graph has been made executable, and its needs have been charged.
    pub(crate) fn made(
        &self,
        exec: CUgraphExec,
        needs: Needs,
        charges: impl Iterator<Item = (CUdevice, Charge)>,
    ) {
        let mut memory = self.memory.lock();
        for (device, bytes) in &needs {
            let account = memory.devices.entry(*device).or_default();
            account.live = account.live.saturating_add(*bytes);
            account.changed();
        }
        for (device, charge) in charges {
            let account = memory.devices.entry(device).or_default();
            account.charged = account.charged.saturating_add(charge.commit().bytes);
            account.changed();
        }
        memory.executables.insert(exec.address(), needs);
    }

    /// Takes an executable graph out, before the driver destroys it: another may be made at its address at once.
    pub(crate) fn take(&self, exec: CUgraphExec) -> Option<Needs> {
        let mut memory = self.memory.lock();
        let needs = memory.executables.remove(&exec.address())?;
        for (device, bytes) in &needs {
            let account = memory.devices.entry(*device).or_default();
            account.live = account.live.saturating_sub(*bytes);
            account.changed();
        }
        Some(needs)
    }

    /// Puts back what was taken out for a destruction that did not come.
    pub(crate) fn put_back(&self, exec: CUgraphExec, needs: Needs) {
        let mut memory = self.memory.lock();
        for (device, bytes) in &needs {
            let account = memory.devices.entry(*device).or_default();
            account.live = account.live.saturating_add(*bytes);
            account.changed();
        }
        memory.executables.insert(exec.address(), needs);
    }

    /// Refunds what graphs hold no longer: at most what the driver says they hold, and what is still to be launched,
    /// stays charged. What they hold beyond the charge is charged.
    pub(crate) fn settle(
        &self,
        driver: &DriverCopy,
        budget: &'static Budget,
        pools: &Pools,
        ordinal: CUdevice,
    ) {
        let Ok(Some(device)) = budget.device(driver, ordinal) else { return };
        let Some((reserved, mut memory)) = self.reserved(driver, ordinal) else { return };
        let account = memory.devices.entry(ordinal).or_default();
        account.changed();
        if reserved > account.charged {
            let more = reserved.saturating_sub(account.charged);
            budget.charge_held(device, Kind::Graph, more).commit();
            account.charged = reserved;
        }
        let most = pools.padded(reserved.saturating_add(account.live));
        let bytes = account.charged.saturating_sub(most);
        account.charged = account.charged.saturating_sub(bytes);
        budget.refund(Record { bytes, home: 0, device: device.index, kind: Kind::Graph });
    }

    /// What the driver has reserved for graphs on a device, and the table in which that still holds: another thread may
    /// launch and end a graph, or trim, while the driver answers. `None` if it does so again and again: it looks itself.
    fn reserved(
        &self,
        driver: &DriverCopy,
        device: CUdevice,
    ) -> Option<(u64, MutexGuard<'_, GraphMemory>)> {
        let changes = |memory: &GraphMemory| memory.devices.get(&device).map(|of| of.changes);
        let mut asked = changes(&self.memory.lock());
        for _ in 0..TRIES {
            let reserved = driver::cuda::graphs_reserved(driver, device)?;
            let memory = self.memory.lock();
            let changed = changes(&memory);
            if changed == asked {
                return Some((reserved, memory));
            }
            asked = changed;
        }
        None
    }

    /// Makes graphs give back what they only keep. False if there was nothing.
    pub(crate) fn give_back(
        &self,
        driver: &DriverCopy,
        budget: &'static Budget,
        pools: &Pools,
    ) -> bool {
        let keeping = |(device, account): (&CUdevice, &Account)| {
            (account.charged > account.live).then_some(*device)
        };
        let devices: Vec<CUdevice> =
            self.memory.lock().devices.iter().filter_map(keeping).collect();
        for device in &devices {
            driver::cuda::trim_graphs(driver, *device);
            self.settle(driver, budget, pools, *device);
        }
        !devices.is_empty()
    }
}
