//! Contexts that the application made itself: their prices, and their users.
//!
//! Primary contexts are a device's ([`Primary`](crate::budget::device::Primary)); these are all others. Green contexts have no
//! price of their own: each retains the primary context of its device. What ends with a context is in
//! [`context_end`](crate::session::context_end).

use crate::budget::record::Record;
use crate::holdings::allocations::{Allocations, NO_ADDRESS};
use crate::holdings::handles::Handles;
use core::sync::atomic::{AtomicU64, Ordering};
use gpucap_abi::cuda::CUdevice;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

/// The contexts of a process.
pub(crate) struct Contexts {
    /// Those that have not ended.
    own: Mutex<HashSet<u64>>,
    /// What is charged for each.
    pub(crate) prices: Allocations,
    /// How often `cuCtxAttach` has been called on each, less `cuCtxDetach`.
    attached: Mutex<HashMap<u64, u64>>,
    /// Held while a user is added or taken off, across the driver's call.
    pub(crate) counting: Handles,
    /// The green contexts.
    greens: Mutex<HashMap<u64, Green>>,
    /// How many numbers have been given out that are no names.
    unnamed: AtomicU64,
}

impl Contexts {
    /// No contexts.
    pub(crate) fn new() -> Self {
        Self {
            own: Mutex::default(),
            prices: Allocations::new(),
            attached: Mutex::default(),
            counting: Handles::default(),
            greens: Mutex::default(),
            unnamed: AtomicU64::new(0),
        }
    }

    /// Records a new context, and its price if it has one. Returns the charge of an earlier one with the same handle,
    /// whose end was missed.
    pub(crate) fn made(&self, context: u64, price: Option<Record>) -> Option<Record> {
        self.attached.lock().remove(&context);
        self.own.lock().insert(context);
        price.and_then(|price| self.prices.insert(context, price))
    }

    /// Returns whether the application has made this context. Others end with the primary context of their device.
    pub(crate) fn is_own(&self, context: u64) -> bool {
        self.own.lock().contains(&context)
    }

    /// Takes out a context that the driver is about to end. Returns whether it was there.
    pub(crate) fn take_own(&self, context: u64) -> bool {
        self.own.lock().remove(&context)
    }

    /// Puts back what was taken out for an end that did not come.
    pub(crate) fn put_back_own(&self, context: u64) {
        self.own.lock().insert(context);
    }

    /// One more user.
    pub(crate) fn attach(&self, context: u64) {
        let mut attached = self.attached.lock();
        let users = attached.entry(context).or_default();
        *users = users.saturating_add(1);
    }

    /// One user less. False if there is no other one.
    pub(crate) fn detach(&self, context: u64) -> bool {
        let mut attached = self.attached.lock();
        let users = attached.get_mut(&context).filter(|users| **users > 0);
        users.map(|users| *users = users.saturating_sub(1)).is_some()
    }

    /// A number that no context has as its name.
    pub(crate) fn unnamed(&self) -> u64 {
        NO_ADDRESS | self.unnamed.fetch_add(1, Ordering::Relaxed)
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

/// A green context: part of a device's multiprocessors. What is made in it lives in the primary context.
pub(crate) struct Green {
    /// Its device.
    pub(crate) device: CUdevice,
    /// The contexts that it was used as.
    pub(crate) contexts: Vec<u64>,
}
