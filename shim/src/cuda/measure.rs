//! How much of a device a call of the driver has taken, where no argument says it.
//!
//! The driver is asked before and after how much of the device is in use; the growth of the container's ledger in the
//! mean time is the known charge of other calls and does not count. The rest may still belong to another container,
//! so the caller counts it only up to a bound of its own.
//!
//! Calls of several threads overlap. They share one starting point, that of the first; each charges what is beyond it
//! when it ends, and since a charge is in the ledger at once, none is charged what another one was. No lock is held
//! across the driver's call: code is compiled in it, for seconds. Where the driver does not say at the end what is in
//! use, the starting point stays: what was taken is charged with the next measured call.

use crate::budget::charge::Charge;
use crate::budget::device::Device;
use crate::budget::growth::State;
use crate::call::Call;
use crate::driver;
use crate::session::Session;
use core::cell::Cell;
use gpucap_abi::cuda::CuError;
use gpucap_core::ledger::{Kind, OverQuota};
use parking_lot::MutexGuard;

/// One measured call. It ends with the value.
pub(crate) struct Measure<'a> {
    call: &'a Call,
    session: &'static Session,
    device: &'static Device,
    /// Why the driver has not said what has been taken.
    unseen: Cell<Option<CuError>>,
}

impl<'a> Measure<'a> {
    /// Begins to measure the device of the current context. `None` if the driver cannot report its usage.
    ///
    /// # Errors
    /// The driver refuses to report it.
    pub(crate) fn begin(
        call: &'a Call,
        session: &'static Session,
        device: &'static Device,
    ) -> Result<Option<Self>, CuError> {
        let Some((beyond, mut state)) = usage_beyond_ledger(call, session, device)? else {
            return Ok(None);
        };
        if state.under_way == 0 && !state.is_owed {
            state.start = beyond;
        }
        state.under_way = state.under_way.saturating_add(1);
        Ok(Some(Self { call, session, device, unseen: Cell::new(None) }))
    }

    /// Whether anything is known to have been taken since.
    pub(crate) fn has_grown(&self) -> bool {
        self.beyond_ledger().is_some_and(|(beyond, state)| beyond > state.start)
    }

    /// Charges what has been taken since, at most `most`; before that is refused, pools and graphs give back what they
    /// only keep.
    ///
    /// # Errors
    /// It does not fit, or the driver does not say what it is.
    pub(crate) fn charge_or_refuse(&self, most: u64) -> Result<Charge, CuError> {
        let charge = self.call.make_room_for(self.session, self.device, || self.charge(most))?;
        self.unseen.take().map_or(Ok(charge), Err)
    }

    /// The same, as far as it fits.
    pub(crate) fn charge_what_fits(&self, most: u64) -> Option<Charge> {
        self.charge(most).or_else(|over| self.charge(over.limit.saturating_sub(over.used))).ok()
    }

    fn charge(&self, most: u64) -> Result<Charge, OverQuota> {
        let mut seen = self.beyond_ledger();
        let taken = seen.as_ref().map_or(0, |(beyond, state)| beyond.saturating_sub(state.start));
        let bytes = u64::try_from(taken).unwrap_or(0).min(most);
        // Still under the lock: once it is in the ledger, no other thread charges it too.
        let charge = self.session.budget.charge(self.device, Kind::Module, bytes)?;
        seen.iter_mut().for_each(|(_, state)| state.is_owed = false);
        Ok(charge)
    }

    /// What the device holds beyond the ledger. If the driver does not report it, that is left to the next call.
    fn beyond_ledger(&self) -> Option<(i64, MutexGuard<'_, State>)> {
        let unseen = match usage_beyond_ledger(self.call, self.session, self.device) {
            Ok(seen) => return seen,
            Err(error) => error,
        };
        self.unseen.set(Some(unseen));
        self.device.growth.lock().is_owed = true;
        None
    }
}

impl Drop for Measure<'_> {
    fn drop(&mut self) {
        let mut state = self.device.growth.lock();
        state.under_way = state.under_way.saturating_sub(1);
    }
}

/// The device's usage beyond the ledger. Read again, a few times, if the ledger has changed in between.
fn usage_beyond_ledger<'d>(
    call: &Call,
    session: &Session,
    device: &'d Device,
) -> Result<Option<(i64, MutexGuard<'d, State>)>, CuError> {
    let charged = || session.budget.ledger.used(device.index).cast_signed();
    let mut tries = 0..8u8;
    loop {
        let before = charged();
        let Some(used) = driver::cuda::needed::used_bytes(call.driver)? else { return Ok(None) };
        let state = device.growth.lock();
        if charged() == before || tries.next().is_none() {
            return Ok(Some((used.cast_signed().saturating_sub(before), state)));
        }
    }
}
