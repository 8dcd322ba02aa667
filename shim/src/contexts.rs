//! Contexts that the application made itself: what they cost, and who still uses them.
//!
//! Primary contexts are a device's ([`Primary`](crate::device::Primary)); these are all others. Green contexts have no
//! price of their own: each retains the primary context of its device.

use crate::allocations::{Allocations, Record};
use crate::session::Session;
use gpucap_abi::cuda::CUdevice;
use gpucap_core::physical::{Behind, Physical};
use parking_lot::Mutex;
use std::collections::HashMap;

/// The contexts of a process.
pub(crate) struct Contexts {
    /// What is charged for each.
    pub(crate) prices: Allocations,
    /// How often `cuCtxAttach` has been called on each, less `cuCtxDetach`.
    attached: Mutex<HashMap<u64, u64>>,
    /// The device of each green context.
    greens: Mutex<HashMap<u64, CUdevice>>,
}

impl Contexts {
    /// No contexts.
    pub(crate) fn new() -> Self {
        Self { prices: Allocations::new(), attached: Mutex::default(), greens: Mutex::default() }
    }

    /// A context has been made. Returns what was charged for an earlier one of the same handle, whose end we missed.
    pub(crate) fn made(&self, context: u64, price: Record) -> Option<Record> {
        self.attached.lock().remove(&context);
        self.prices.insert(context, price)
    }

    /// One more user.
    pub(crate) fn attach(&self, context: u64) {
        let mut attached = self.attached.lock();
        let users = attached.entry(context).or_default();
        *users = users.saturating_add(1);
    }

    /// Whether somebody has attached to it who has not detached.
    pub(crate) fn is_attached(&self, context: u64) -> bool {
        self.attached.lock().get(&context).is_some_and(|users| *users > 0)
    }

    /// One user less.
    pub(crate) fn detach(&self, context: u64) {
        if let Some(users) = self.attached.lock().get_mut(&context) {
            *users = users.saturating_sub(1);
        }
    }

    /// A green context has been made on a device.
    pub(crate) fn made_green(&self, green: u64, device: CUdevice) {
        self.greens.lock().insert(green, device);
    }

    /// The device of a green context.
    pub(crate) fn device_of_green(&self, green: u64) -> Option<CUdevice> {
        self.greens.lock().get(&green).copied()
    }

    /// A green context has ended.
    pub(crate) fn ended_green(&self, green: u64) {
        self.greens.lock().remove(&green);
    }
}

/// Everything that ends with one context, taken out of the tables.
pub(crate) struct Ending {
    price: Option<(u64, Record)>,
    memory: Vec<(u64, Record)>,
    arrays: Vec<(u64, Record)>,
    /// What is behind the tiles of those of its arrays that are sparse.
    tiles: Vec<Behind>,
    heaps: Vec<(u64, Record)>,
    code: Vec<(u64, Record)>,
}

impl Ending {
    /// Takes a context out of the tables, before the driver ends it.
    pub(crate) fn begin(session: &Session, context: u64) -> Self {
        let arrays = session.arrays.take_context(context);
        let tiles = session.with_physical(|physical| {
            arrays.iter().map(|(array, _)| physical.take_array(*array)).collect()
        });
        Self {
            price: session.contexts.prices.take(context).map(|record| (context, record)),
            memory: session.memory.take_context(context),
            arrays,
            tiles: tiles.unwrap_or_default(),
            heaps: session.heaps.take_context(context),
            code: session.code.take_context(context),
        }
    }

    /// The driver has ended it.
    pub(crate) fn refund(self, session: &Session) {
        let behind = |physical: &mut Physical<Record>| -> Vec<Record> {
            self.tiles.into_iter().flat_map(|tiles| physical.array_ended(tiles)).collect()
        };
        let behind = session.with_physical(behind).unwrap_or_default();
        behind.into_iter().for_each(|record| session.refund(record));
        let rest = self.memory.into_iter().chain(self.arrays).chain(self.heaps).chain(self.code);
        self.price.into_iter().chain(rest).for_each(|(_, record)| session.refund(record));
    }

    /// The driver has not.
    pub(crate) fn undo(self, session: &Session) {
        session.contexts.prices.put_back(self.price.into_iter().collect());
        session.memory.put_back(self.memory);
        session.arrays.put_back(self.arrays);
        session.with_physical(|physical| {
            self.tiles.into_iter().for_each(|tiles| physical.put_back(tiles));
        });
        session.heaps.put_back(self.heaps);
        self.code.into_iter().for_each(|(owner, record)| session.code.add(owner, record));
    }
}
