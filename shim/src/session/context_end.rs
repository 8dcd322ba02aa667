//! The end of a context: everything that ends with it is taken out of the tables, and refunded once the driver has
//! ended it. When a primary context has ended is found out here, too.

use crate::budget::device::Primary;
use crate::budget::record::Record;
use crate::driver::call_guard::DriverCallGuard;
use crate::driver::{self, DriverCopy};
use crate::session::Session;
use gpucap_abi::cuda::CUdevice;
use gpucap_core::physical::{Behind, Physical};

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
    for (ordinal, device) in session.budget.limited() {
        // The thread that has the lock looks itself.
        let Some(mut primary) = device.primary.try_lock() else { continue };
        let was_in_doubt = primary.is_in_doubt;
        settle(driver, session, ordinal, &mut primary);
        any |= was_in_doubt && !primary.is_in_doubt;
    }
    any
}

/// Limits that were a context's, by the key that they have now, and the one that they had.
pub(crate) struct PassedLimits {
    context: u64,
    keys: Vec<(u64, u64)>,
}

impl PassedLimits {
    /// The context has not ended: the next value of a limit is set against these.
    pub(crate) fn take_back(self, session: &Session) {
        for (now, before) in self.keys {
            let Some(record) = session.heaps.take(now) else { continue };
            let record = Record { home: self.context, ..record };
            // What a tool has set in the mean time is the limit: the driver keeps one.
            if let Some(newer) = session.heaps.insert(before, record) {
                session.heaps.insert(before, newer);
                session.budget.refund(record);
            }
        }
    }
}

/// Everything that ends with one context, taken out of the tables.
pub(crate) struct Ending {
    context: u64,
    is_own: bool,
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
            is_own: session.contexts.take_own(context),
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
    pub(crate) fn pass_on(mut self, session: &Session, to: u64) -> PassedLimits {
        let all = [&mut self.memory, &mut self.arrays, &mut self.heaps, &mut self.code];
        all.into_iter().flatten().for_each(|(_, record)| record.home = to);
        // The key of a limit has the name in it, which is another context's next. Nothing says that the driver gives back
        // what such a limit takes before the primary context ends: each stays charged.
        let rename = |(key, _): &mut (u64, Record)| {
            let before = core::mem::replace(key, session.contexts.unnamed());
            (*key, before)
        };
        let keys = self.heaps.iter_mut().map(rename).collect();
        let limits = PassedLimits { context: self.context, keys };
        self.undo(session);
        limits
    }

    /// The driver has not.
    pub(crate) fn undo(self, session: &Session) {
        if self.is_own {
            session.contexts.put_back_own(self.context);
        }
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
