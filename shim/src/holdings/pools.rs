//! Stream-ordered pools: where their memory lives, and what they hold of the card.
//!
//! A pool reserves memory from the card, hands it out, and keeps what is freed at least until the next
//! synchronisation. What is charged for a pool is what it has handed out, what it is handing out, and what it keeps.
//! Bytes move between the three without leaving the charge: a free refunds nothing, and an allocation first takes from
//! what is kept. Only the driver's own number of reserved bytes brings the charge down: it is asked for after each
//! allocation, after a synchronisation that may have released something, and after a trim; and before an allocation of
//! this process is refused, every pool that keeps something is trimmed.
//!
//! The table's lock is held for a look-up or a charge, never across a driver call; that of [`Handles`] is. Another thread
//! may change a pool while the driver answers, so an answer is only used if its count of changes has not moved.

mod balance;
mod frees;
mod reserve;

use crate::budget::Budget;
use crate::budget::device::Device;
use crate::budget::record::Record;
use crate::driver::{self, DriverCopy};
use crate::holdings::allocations::{ByAddress, NO_ADDRESS};
use crate::holdings::handles::Handles;
use crate::sys::Short;
use core::sync::atomic::{AtomicBool, Ordering};
pub(crate) use frees::ContextStream;
use gpucap_abi::cuda::{CUcontext, CUmemoryPool, CUstream};
use gpucap_core::ledger::{DeviceIndex, Kind, OverQuota};
pub(crate) use reserve::{Asked, Home};
use reserve::{Pool, Unit};

/// The pools that this process has met.
#[derive(Default)]
pub(crate) struct Pools {
    /// Held while a pool is used, and while handles change their meaning.
    pub(crate) handles: Handles,
    table: Short<Table>,
    /// A synchronisation may release something.
    releasable: AtomicBool,
}

#[derive(Default)]
struct Table {
    /// By number: records of what was taken from a pool have it, and no other pool ever does.
    pools: ByAddress<Pool>,
    /// The number of each that is not destroyed, by address.
    numbers: ByAddress<u64>,
    /// How many there have been.
    made: u64,
    /// In which steps the driver's pools grow.
    unit: Unit,
}

impl Table {
    /// A pool that is not destroyed, and in which steps pools grow.
    fn known(&mut self, pool: CUmemoryPool) -> Option<(&mut Pool, &mut Unit)> {
        let number = self.numbers.get(&pool.address())?;
        Some((self.pools.get_mut(number)?, &mut self.unit))
    }
}

/// How often a driver's answer is asked for again because the pool has changed in between.
const TRIES: u32 = 8;

impl Pools {
    /// Learns where a pool lives, and from which size on it gives back what is freed.
    pub(crate) fn learn(&self, driver: &DriverCopy, pool: CUmemoryPool, home: Home) {
        self.guess(driver, pool, home);
        if let Some((known, _)) = self.table.lock().known(pool)
            && known.is_empty()
        {
            known.home = home; // it may have been a guess
        }
    }

    /// Takes a pool that we have not met to live somewhere, until we learn better.
    pub(crate) fn guess(&self, driver: &DriverCopy, pool: CUmemoryPool, home: Home) {
        if self.home(pool).is_none() {
            let threshold = driver::cuda::pool_threshold(driver, pool).unwrap_or(0);
            let tells = driver::cuda::pool_reserved(driver, pool);
            let mut table = self.table.lock();
            let Table { pools, numbers, made, .. } = &mut *table;
            numbers.entry(pool.address()).or_insert_with(|| {
                let number = NO_ADDRESS | *made;
                *made = made.saturating_add(1);
                pools.insert(number, Pool::new([number, pool.address()], home, threshold, tells));
                number
            });
        }
    }

    /// Where a pool lives, if we know.
    pub(crate) fn home(&self, pool: CUmemoryPool) -> Option<Home> {
        self.table.lock().known(pool).map(|(known, _)| known.home)
    }

    /// A release threshold has been set.
    pub(crate) fn set_threshold(&self, pool: CUmemoryPool, threshold: u64) {
        if let Some((known, _)) = self.table.lock().known(pool) {
            known.threshold = threshold;
            self.note_releasable(known);
        }
    }

    /// Returns what the driver reserves for an allocation, as far as the steps in which pools grow are known.
    pub(crate) fn padded(&self, bytes: u64) -> u64 {
        self.table.lock().unit.padded(bytes)
    }

    /// An allocation on a device begins; what has to be charged for it. `is_tight`: there was no room for all that the
    /// pool might grow by, and what pools only kept has been trimmed.
    pub(crate) fn begin(
        &self,
        pool: CUmemoryPool,
        device: DeviceIndex,
        bytes: u64,
        is_tight: bool,
    ) -> Asked {
        let mut table = self.table.lock();
        let Some((known, unit)) = table.known(pool) else { return Asked::of_unknown(bytes) };
        known.device = Some(device);
        known.begin(bytes, is_tight, *unit)
    }

    /// An allocation has not come about; what was charged for it is given back.
    pub(crate) fn failed(&self, asked: Asked) {
        if let Some(known) = self.table.lock().pools.get_mut(&asked.pool) {
            known.failed(asked);
        }
    }

    /// An allocation on a device has succeeded, and its charge is the pool's from here on: brings that up to date.
    ///
    /// # Errors
    /// The pool has grown by more than was charged, and that does not fit, even after all pools were trimmed.
    pub(crate) fn succeeded(
        &self,
        driver: &DriverCopy,
        (budget, device): (&'static Budget, &Device),
        pool: CUmemoryPool,
        asked: Asked,
    ) -> Result<(), OverQuota> {
        // Asked beforehand: the answer holds if nothing has changed since the allocation began.
        let reserved = asked.is_known().then(|| driver::cuda::pool_reserved(driver, pool).ok());
        let mut table = self.table.lock();
        let Table { pools, unit, .. } = &mut *table;
        let Some(known) = pools.get_mut(&asked.pool) else { return Ok(()) };
        let is_current = known.is_as_begun(asked);
        known.succeeded(asked);
        let adopted = reserved.filter(|_| is_current).map(|reserved| {
            let idle = known.idle(reserved, unit);
            self.adopt(known, idle, (budget, device))
        });
        drop(table);
        adopted.unwrap_or_else(|| self.balance_of(driver, budget, pool)).or_else(|_| {
            self.give_back(driver, budget);
            self.balance_of(driver, budget, pool)
        })
    }

    /// Returns whether the driver has taken memory from a pool for an allocation that was to be recorded only: it has
    /// reserved more than is charged. Otherwise what the allocation may have taken is remembered.
    pub(crate) fn is_taken(&self, driver: &DriverCopy, pool: CUmemoryPool, bytes: u64) -> bool {
        for attempt in 1..=TRIES {
            let asked = self.table.lock().known(pool).map(|(known, _)| known.changes);
            let reserved = driver::cuda::pool_reserved(driver, pool).unwrap_or(0);
            let mut table = self.table.lock();
            let Some((known, _)) = table.known(pool) else { break };
            if asked == Some(known.changes) || attempt == TRIES {
                return known.is_taken(reserved, bytes);
            }
        }
        false
    }

    /// The driver has taken an allocation back, which is free from a point of a stream on. False if the pool is not
    /// known: then nothing keeps the bytes.
    pub(crate) fn freed(
        &self,
        driver: &DriverCopy,
        budget: &Budget,
        pool: u64,
        bytes: u64,
        from: Option<ContextStream>,
    ) -> bool {
        let mut table = self.table.lock();
        let Some(known) = table.pools.get_mut(&pool) else { return false };
        known.freed(bytes, from);
        self.note_releasable(known);
        if known.is_destroyed {
            drop(table);
            self.release_destroyed(driver, budget);
        }
        true
    }

    /// A stream, an event or a context (this one) has been waited for: pools above their thresholds may have released
    /// memory, and the last of a destroyed one may be free.
    #[inline]
    pub(crate) fn synchronised(
        &self,
        driver: &DriverCopy,
        budget: &'static Budget,
        context: Option<CUcontext>,
    ) {
        if self.releasable.load(Ordering::Relaxed) {
            self.release(driver, budget, context);
        }
    }

    #[cold]
    fn release(&self, driver: &DriverCopy, budget: &'static Budget, context: Option<CUcontext>) {
        self.releasable.store(false, Ordering::Release);
        let mut table = self.table.lock();
        if let Some(context) = context {
            table.pools.values_mut().for_each(|pool| pool.frees.context_done(context.address()));
        }
        let releasing = |(number, pool): (&u64, &Pool)| {
            (pool.may_release() && !pool.is_ending).then_some(*number)
        };
        let releasing: Vec<u64> = table.pools.iter().filter_map(releasing).collect();
        drop(table);
        self.release_destroyed(driver, budget);
        for number in releasing {
            // What is charged on top here is another thread's allocation, which sees to it itself.
            let _ = self.balance(driver, budget, number);
        }
    }

    /// A context has ended, and all work in it.
    pub(crate) fn context_ended(&self, budget: &Budget, context: u64) {
        let mut table = self.table.lock();
        table.pools.values_mut().for_each(|pool| pool.frees.context_done(context));
        drop(table);
        self.refund_over(budget);
    }

    /// A stream is about to end: its work goes on, and another stream may have its handle next.
    pub(crate) fn stream_ends(&self, stream: CUstream) {
        let mut table = self.table.lock();
        table.pools.values_mut().for_each(|pool| pool.frees.stream_ends(stream.address()));
    }

    /// Refunds destroyed pools of which everything has been freed and all work is done.
    fn release_destroyed(&self, driver: &DriverCopy, budget: &Budget) {
        let table = self.table.lock();
        let ending = table.pools.iter().filter(|(_, pool)| pool.is_destroyed && pool.may_release());
        let streams =
            |(number, pool): (&u64, &Pool)| (*number, pool.frees.streams().collect::<Vec<_>>());
        let ending: Vec<_> = ending.map(streams).collect();
        drop(table);
        for (number, streams) in ending {
            let is_idle = |freed: &ContextStream| {
                let stream = freed.stream();
                stream.is_some_and(|(context, stream)| {
                    driver::cuda::stream::is_idle(driver, context, stream)
                })
            };
            let done: Vec<ContextStream> = streams.into_iter().filter(is_idle).collect();
            if let Some(pool) = self.table.lock().pools.get_mut(&number) {
                done.into_iter().for_each(|stream| pool.frees.done(stream));
                self.note_releasable(pool);
            }
        }
        self.refund_over(budget);
    }

    fn refund_over(&self, budget: &Budget) {
        let over: Vec<_> = {
            let mut table = self.table.lock();
            table.pools.extract_if(|_, pool| pool.is_over()).collect()
        };
        for (_, pool) in over {
            if let Some(device) = pool.device {
                budget.refund(kept(device, pool.kept));
            }
        }
    }

    /// Brings the charge for a pool down to what the driver says it holds.
    pub(crate) fn settle(&self, driver: &DriverCopy, budget: &'static Budget, pool: CUmemoryPool) {
        if self.balance_of(driver, budget, pool).is_err() {
            driver::cuda::trim_pool(driver, pool);
            let _ = self.balance_of(driver, budget, pool); // what does not fit now fits when it is next asked
        }
    }

    /// Makes every pool give back what it only keeps. False if there was nothing.
    pub(crate) fn give_back(&self, driver: &DriverCopy, budget: &'static Budget) -> bool {
        let keeping =
            |(number, pool): (&u64, &Pool)| pool.keeps().then_some((*number, pool.address));
        let table = self.table.lock();
        let pools: Vec<(u64, u64)> = table.pools.iter().filter_map(keeping).collect();
        let is_any = !pools.is_empty() || table.pools.values().any(|pool| pool.is_destroyed);
        drop(table);
        for (number, address) in pools {
            driver::cuda::trim_pool(driver, CUmemoryPool::from_address(address));
            let _ = self.balance(driver, budget, number);
        }
        self.release_destroyed(driver, budget);
        is_any
    }

    /// Takes a pool out, before the driver destroys it: another may be made at its address at once. Returns its number, to
    /// which belongs what is still allocated from it.
    pub(crate) fn end(
        &self,
        driver: &DriverCopy,
        budget: &'static Budget,
        pool: CUmemoryPool,
    ) -> Option<u64> {
        let number = *self.table.lock().numbers.get(&pool.address())?;
        // Afterwards it can be asked nothing any more: what stays is in use, or freed behind work that is not done.
        driver::cuda::trim_pool(driver, pool);
        let _ = self.balance_by(driver, budget, number, |device, bytes| {
            budget.charge_held(device, Kind::Pool, bytes).commit();
            Ok(())
        });
        let mut table = self.table.lock();
        table.numbers.remove(&pool.address());
        table.pools.get_mut(&number)?.is_ending = true;
        Some(number)
    }

    /// The driver has destroyed a pool that was taken out.
    pub(crate) fn ended(&self, driver: &DriverCopy, budget: &Budget, number: u64) {
        if let Some(pool) = self.table.lock().pools.get_mut(&number) {
            pool.is_destroyed = true;
            pool.lose_unseen();
            self.note_releasable(pool);
        }
        self.release_destroyed(driver, budget);
    }

    /// The driver has not destroyed a pool: it goes on, with what has been freed in the mean time.
    pub(crate) fn go_on(&self, pool: CUmemoryPool, number: u64) {
        let mut table = self.table.lock();
        let anew = table.numbers.insert(pool.address(), number);
        // Met anew in the mean time: what was charged for it under that number is charged for it still.
        let anew = anew.and_then(|number| table.pools.remove(&number)).map_or(0, |it| it.kept);
        if let Some(known) = table.pools.get_mut(&number) {
            known.is_ending = false;
            known.kept = known.kept.saturating_add(anew);
            known.changed();
            self.note_releasable(known);
        }
    }

    fn note_releasable(&self, pool: &Pool) {
        if pool.may_release() {
            self.releasable.store(true, Ordering::Release);
        }
    }
}

fn kept(device: DeviceIndex, bytes: u64) -> Record {
    Record { bytes, home: 0, device, kind: Kind::Pool }
}
