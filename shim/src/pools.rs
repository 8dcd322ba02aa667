//! Stream-ordered pools: where their memory lives, and what they keep after it was freed.
//!
//! A pool reserves memory from the card and hands it out. By default it gives back what is free at the next
//! synchronisation, and that short while is not counted. A pool with a release threshold keeps it: the difference
//! between what the driver says it has reserved and what our book says is in use is charged for as long as it lasts,
//! and given back (trimmed) before an allocation of this process would be refused for it.
//!
//! What is charged for a pool is what it has handed out, what it is handing out, and what it keeps. Bytes move between
//! the three without leaving the charge: another process must not be granted what the pool still holds. The lock is
//! held for a look-up or a charge, never across a driver call.

use crate::allocations::{ByAddress, Record};
use crate::driver;
use crate::redirect::DriverCopy;
use crate::session::Session;
use gpucap_abi::cuda::{CUdevice, CUmemoryPool};
use gpucap_core::ledger::{DeviceIndex, Kind};
use parking_lot::Mutex;

/// Where a pool's memory lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// On this device.
    Device(CUdevice),
    /// In host memory, or with another process that is charged for it.
    Elsewhere,
}

/// The pools that this process has met.
#[derive(Default)]
pub(crate) struct Pools(Mutex<ByAddress<Pool>>);

/// What is known of one.
pub(crate) struct Pool {
    home: Home,
    /// It has a release threshold.
    keeps: bool,
    /// Bytes handed out.
    live: u64,
    /// Bytes of allocations that are under way.
    pending: u64,
    /// Bytes charged for what it keeps beyond that.
    kept: u64,
}

impl Pools {
    /// Learns where a pool lives, and whether it keeps what is freed.
    pub(crate) fn learn(&self, driver: &DriverCopy, pool: CUmemoryPool, home: Home) {
        self.guess(driver, pool, home);
        if let Some(known) = self.0.lock().get_mut(&pool.address())
            && known.kept == 0
        {
            known.home = home; // it may have been a guess
        }
    }

    /// Takes a pool that we have not met to live somewhere, until we learn better.
    pub(crate) fn guess(&self, driver: &DriverCopy, pool: CUmemoryPool, home: Home) {
        if self.home(pool).is_none() {
            let keeps = driver::cuda::pool_threshold(driver, pool).is_some_and(|bytes| bytes > 0);
            let new = || Pool { home, keeps, live: 0, pending: 0, kept: 0 };
            self.0.lock().entry(pool.address()).or_insert_with(new);
        }
    }

    /// Where a pool lives, if we know.
    pub(crate) fn home(&self, pool: CUmemoryPool) -> Option<Home> {
        self.0.lock().get(&pool.address()).map(|pool| pool.home)
    }

    /// A release threshold has been set, or taken away.
    pub(crate) fn set_keeps(&self, pool: CUmemoryPool, keeps: bool) {
        if let Some(pool) = self.0.lock().get_mut(&pool.address()) {
            pool.keeps = keeps;
        }
    }

    /// An allocation begins. Returns how many of its bytes the pool keeps already, so that they are paid for.
    pub(crate) fn begin(&self, pool: CUmemoryPool, bytes: u64) -> u64 {
        self.0.lock().get_mut(&pool.address()).map_or(0, |pool| {
            let paid = pool.kept.min(bytes);
            pool.kept = pool.kept.saturating_sub(paid);
            pool.pending = pool.pending.saturating_add(bytes);
            paid
        })
    }

    /// An allocation ends, of which [`begin`](Self::begin) said that `paid` bytes were paid for. True if the pool is one
    /// to [`settle`](Self::settle).
    pub(crate) fn end(&self, pool: CUmemoryPool, bytes: u64, paid: u64, succeeded: bool) -> bool {
        self.0.lock().get_mut(&pool.address()).is_some_and(|pool| {
            pool.pending = pool.pending.saturating_sub(bytes);
            if succeeded {
                pool.live = pool.live.saturating_add(bytes);
            } else {
                pool.kept = pool.kept.saturating_add(paid);
            }
            pool.may_keep()
        })
    }

    /// The driver has taken an allocation back. True if the pool keeps the bytes, which then stay charged.
    pub(crate) fn freed(&self, pool: CUmemoryPool, bytes: u64) -> bool {
        self.0.lock().get_mut(&pool.address()).is_some_and(|pool| {
            pool.live = pool.live.saturating_sub(bytes);
            if pool.keeps {
                pool.kept = pool.kept.saturating_add(bytes);
            }
            pool.keeps
        })
    }

    /// Brings the charge for what a pool keeps up to date. If it does not fit under the cap, the pool gives it back.
    pub(crate) fn settle(
        &self,
        driver: &DriverCopy,
        session: &'static Session,
        pool: CUmemoryPool,
    ) {
        if !self.balance(driver, session, pool) {
            driver::cuda::trim_pool(driver, pool);
            self.balance(driver, session, pool);
        }
    }

    /// Makes every pool give back what it only keeps. False if there was nothing.
    pub(crate) fn give_back(&self, driver: &DriverCopy, session: &'static Session) -> bool {
        let keeping = |(address, pool): (&u64, &Pool)| (pool.kept > 0).then_some(*address);
        let pools: Vec<u64> = self.0.lock().iter().filter_map(keeping).collect();
        for address in &pools {
            let pool = CUmemoryPool::from_address(*address);
            driver::cuda::trim_pool(driver, pool);
            self.balance(driver, session, pool);
        }
        !pools.is_empty()
    }

    /// Takes a pool out, before the driver destroys it: another may be made at its address at once.
    pub(crate) fn take(&self, pool: CUmemoryPool) -> Option<Pool> {
        self.0.lock().remove(&pool.address())
    }

    /// Puts back what was taken out for a destruction that did not come.
    pub(crate) fn put_back(&self, pool: CUmemoryPool, taken: Pool) {
        self.0.lock().insert(pool.address(), taken);
    }

    /// The pool that was taken out is gone, and with it what it kept.
    pub(crate) fn gone(driver: &DriverCopy, session: &Session, pool: &Pool) {
        if let Home::Device(ordinal) = pool.home
            && let Ok(Some(device)) = session.device(driver, ordinal)
        {
            session.refund(kept(device.index, pool.kept));
        }
    }

    /// False if what the pool keeps does not fit under the cap.
    fn balance(&self, driver: &DriverCopy, session: &'static Session, pool: CUmemoryPool) -> bool {
        let concerned = |pool: &Pool| pool.may_keep().then_some(pool.home);
        let home = self.0.lock().get(&pool.address()).and_then(concerned);
        let Some(Home::Device(ordinal)) = home else { return true };
        let Ok(Some(device)) = session.device(driver, ordinal) else { return true };
        let Some(reserved) = driver::cuda::pool_reserved(driver, pool) else { return true };
        let mut pools = self.0.lock();
        let Some(pool) = pools.get_mut(&pool.address()) else { return true };
        let used = pool.live.saturating_add(pool.pending);
        let idle = if pool.keeps { reserved.saturating_sub(used) } else { 0 };
        if idle <= pool.kept {
            session.refund(kept(device.index, pool.kept.saturating_sub(idle)));
        } else {
            match session.charge(device, Kind::Pool, idle.saturating_sub(pool.kept)) {
                Ok(charge) => drop(charge.commit()),
                Err(_) => return false,
            }
        }
        pool.kept = idle;
        true
    }
}

impl Pool {
    /// Whether anything is charged for what it keeps, or may have to be.
    fn may_keep(&self) -> bool {
        self.keeps || self.kept > 0
    }
}

fn kept(device: DeviceIndex, bytes: u64) -> Record {
    Record { bytes, home: 0, device, kind: Kind::Pool }
}
