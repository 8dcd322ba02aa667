//! Contexts that the application made itself: their prices, and their users.
//!
//! Primary contexts are a device's ([`Primary`]); these are all others. Green contexts have no
//! price of their own: each retains the primary context of its device. What ends with a context, and when a primary one
//! has ended, is here for both.

use crate::allocations::{Allocations, Record};
use crate::device::Primary;
use crate::driver::{self, DriverCopy};
use crate::driver_call_guard::DriverCallGuard;
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
    /// The green contexts.
    greens: Mutex<HashMap<u64, Green>>,
}

impl Contexts {
    /// No contexts.
    pub(crate) fn new() -> Self {
        Self { prices: Allocations::new(), attached: Mutex::default(), greens: Mutex::default() }
    }

    /// Records a new context. Returns the charge of an earlier one with the same handle, whose end was missed.
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

    /// Returns whether a user has attached to it and not detached.
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
        self.greens.lock().insert(green, Green { device, contexts: Vec::new() });
    }

    /// A green context can be used as this context.
    pub(crate) fn derived(&self, green: u64, context: u64) {
        if let Some(green) = self.greens.lock().get_mut(&green)
            && !green.contexts.contains(&context)
        {
            green.contexts.push(context);
        }
    }

    /// Takes a green context out, before the driver ends it: another may be made at its address at once.
    pub(crate) fn take_green(&self, green: u64) -> Option<Green> {
        self.greens.lock().remove(&green)
    }

    /// Puts back what was taken out for an end that did not come.
    pub(crate) fn put_back_green(&self, handle: u64, green: Green) {
        self.greens.lock().insert(handle, green);
    }

    /// The contexts that the green contexts of a device were used as; they end with its primary context.
    pub(crate) fn derived_on(&self, device: CUdevice) -> Vec<u64> {
        let greens = self.greens.lock();
        let here = greens.values().filter(|green| green.device == device);
        here.flat_map(|green| green.contexts.iter().copied()).collect()
    }
}

/// Refunds a primary context that may be over, and what it held, if the driver says that it is. Where it says nothing it
/// is asked again: when the context is retained or released, and before an allocation is refused.
pub(crate) fn settle(
    driver: &DriverCopy,
    session: &Session,
    ordinal: CUdevice,
    primary: &mut Primary,
) {
    if !primary.is_in_doubt {
        return;
    }
    let Some(is_active) = driver::cuda::primary_context_active(driver, ordinal) else { return };
    primary.is_in_doubt = false;
    if !is_active {
        let gone = core::mem::take(primary);
        gone.record.into_iter().for_each(|record| session.budget.refund(record));
        let derived = session.contexts.derived_on(ordinal);
        let contexts = derived.into_iter().chain([gone.context]).filter(|context| *context != 0);
        contexts.for_each(|context| Ending::begin(session, context).refund(session));
    }
}

/// Looks again for primary contexts of which it is not known whether they are over. False if none was.
pub(crate) fn settle_all(driver: &DriverCopy, session: &Session) -> bool {
    let Some(_held) = DriverCallGuard::enter() else { return false };
    let mut any = false;
    for (ordinal, device) in session.budget.capped() {
        // The thread that has the lock looks itself.
        let Some(mut primary) = device.primary.try_lock() else { continue };
        let was_in_doubt = primary.is_in_doubt;
        settle(driver, session, ordinal, &mut primary);
        any |= was_in_doubt && !primary.is_in_doubt;
    }
    any
}

/// A green context: part of a device's multiprocessors. What is made in it lives in the primary context.
pub(crate) struct Green {
    /// Its device.
    pub(crate) device: CUdevice,
    /// The contexts that it was used as.
    pub(crate) contexts: Vec<u64>,
}

/// Everything that ends with one context, taken out of the tables.
pub(crate) struct Ending {
    context: u64,
    price: Option<(u64, Record)>,
    memory: Vec<(u64, Record)>,
    arrays: Vec<(u64, Record)>,
    /// The memory behind the tiles of its sparse arrays.
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
            context,
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
        session.refund_physical(session.with_physical(behind).unwrap_or_default());
        let rest = self.memory.into_iter().chain(self.arrays).chain(self.heaps).chain(self.code);
        self.price.into_iter().chain(rest).for_each(|(_, record)| session.budget.refund(record));
        session.pools.context_ended(&session.budget, self.context);
    }

    /// The context is only a name for another one, which goes on with what it held.
    pub(crate) fn pass_on(mut self, session: &Session, to: u64) {
        let all = [&mut self.memory, &mut self.arrays, &mut self.heaps, &mut self.code];
        all.into_iter().flatten().for_each(|(_, record)| record.home = to);
        self.undo(session);
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
