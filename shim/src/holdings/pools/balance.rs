//! The charge for what a pool keeps, brought up to date with what the driver says that the pool has reserved.

use super::reserve::Pool;
use super::{Pools, TRIES, Table, kept};
use crate::budget::Budget;
use crate::budget::device::Device;
use crate::driver::{self, DriverCopy};
use core::sync::atomic::Ordering;
use gpucap_abi::cuda::CUmemoryPool;
use gpucap_core::ledger::{Kind, OverQuota};

impl Pools {
    /// The same as [`balance`](Self::balance), by its handle.
    ///
    /// # Errors
    /// As there.
    pub(super) fn balance_of(
        &self,
        driver: &DriverCopy,
        budget: &'static Budget,
        pool: CUmemoryPool,
    ) -> Result<(), OverQuota> {
        let number = self.table.lock().numbers.get(&pool.address()).copied();
        number.map_or(Ok(()), |number| self.balance(driver, budget, number))
    }

    /// Brings the charge for what the pool with this number keeps up to date.
    ///
    /// # Errors
    /// It holds more than is charged, and that does not fit under the limit.
    pub(super) fn balance(
        &self,
        driver: &DriverCopy,
        budget: &'static Budget,
        number: u64,
    ) -> Result<(), OverQuota> {
        self.balance_by(driver, budget, number, grown(budget))
    }

    /// The same, where `charge` charges for what it holds beyond its charge.
    pub(super) fn balance_by(
        &self,
        driver: &DriverCopy,
        budget: &'static Budget,
        number: u64,
        charge: impl Fn(&Device, u64) -> Result<(), OverQuota>,
    ) -> Result<(), OverQuota> {
        let mut state = self.table.lock().pools.get(&number).and_then(Pool::state);
        for attempt in 1..=TRIES {
            let Some((ordinal, address, changes)) = state else { break };
            let Ok(Some(device)) = budget.device(driver, ordinal) else { break };
            let reserved = driver::cuda::pool_reserved(driver, CUmemoryPool::from_address(address));
            let mut table = self.table.lock();
            let Table { pools, unit, .. } = &mut *table;
            let Some(pool) = pools.get_mut(&number) else { break };
            let is_current = pool.changes == changes;
            if !is_current && attempt < TRIES {
                state = pool.state();
                continue;
            }
            let idle = pool.idle(reserved.ok(), unit);
            return self.adopt_by(pool, idle, is_current, (budget, device), charge);
        }
        Ok(())
    }

    /// Makes the charge for what a pool keeps what the driver has reported.
    ///
    /// # Errors
    /// It holds more than is charged, and that does not fit under the limit.
    pub(super) fn adopt(
        &self,
        pool: &mut Pool,
        idle: Option<u64>,
        (budget, device): (&'static Budget, &Device),
    ) -> Result<(), OverQuota> {
        self.adopt_by(pool, idle, true, (budget, device), grown(budget))
    }

    /// The same, charged by `charge`; where the answer `is_current` no more, the charge is only raised to it.
    fn adopt_by(
        &self,
        pool: &mut Pool,
        idle: Option<u64>,
        is_current: bool,
        (budget, device): (&'static Budget, &Device),
        charge: impl Fn(&Device, u64) -> Result<(), OverQuota>,
    ) -> Result<(), OverQuota> {
        let Some(idle) = idle else {
            self.releasable.store(true, Ordering::Release); // to be asked again
            return Ok(());
        };
        if idle > pool.kept {
            charge(device, idle.saturating_sub(pool.kept))?;
            pool.kept = idle;
            pool.changed();
        } else if is_current && idle < pool.kept {
            budget.refund(kept(device.index, pool.kept.saturating_sub(idle)));
            pool.kept = idle;
            pool.changed();
        }
        self.note_releasable(pool);
        Ok(())
    }
}

/// Charges for what a pool has grown by.
fn grown(budget: &'static Budget) -> impl Fn(&Device, u64) -> Result<(), OverQuota> {
    |device, bytes| {
        budget.charge(device, Kind::Pool, bytes)?.commit();
        Ok(())
    }
}
