//! This process's part of its budget: its slot in the ledger, its devices, and what is charged to them.
//!
//! A charge is made before the driver is called and given back unless the call succeeds; there is no shutdown step: a
//! slot is reaped once its owner has died. Knows devices and the ledger, and none of the tables that record what was
//! charged for what.

pub(crate) mod absent;
pub(crate) mod charge;
pub(crate) mod device;
pub(crate) mod growth;
pub(crate) mod price;
pub(crate) mod record;

use crate::budget::device::{Device, Standing};
use crate::container::attendance::Attendance;
use crate::container::live_limits::InForce;
use crate::container::mapped_page::Unresolved;
use crate::container::{held_page, ledger_file, usage_page};
use crate::driver::{self, DriverCopy};
use crate::state::{self, Policy, Problem};
use crate::sys;
use crate::throttle::Gate;
use crate::topology::DriverVariables;
use core::sync::atomic::Ordering;
use gpucap_abi::cuda::CUdevice;
use gpucap_core::ledger::{Ledger, Slot};
use once_cell::race::OnceBox;

/// How many devices one process can use.
const MAX_DEVICES: usize = 64;

/// What a process may use, and uses.
pub(crate) struct Budget {
    /// The limits.
    pub(crate) policy: &'static Policy,
    /// The container's ledger.
    pub(crate) ledger: &'static Ledger,
    /// This process's place in it.
    pub(crate) slot: Slot,
    attendance: Attendance,
    variables: DriverVariables,
    devices: [OnceBox<Standing>; MAX_DEVICES],
}

impl Budget {
    /// Takes a slot in the ledger of these limits.
    ///
    /// # Errors
    /// There is no ledger or no free slot. That may pass.
    pub(crate) fn begin(policy: &'static Policy) -> Result<Self, String> {
        let ledger = ledger_file::ledger(policy)?;
        ledger_file::has_its_clocks(ledger)?;
        // Found where the ledger was, whatever root or user the program takes until it first uses a device; what is
        // wrong with it is reported then.
        if let Some(limits) = &policy.limits {
            drop(InForce::of(limits));
            if limits.has_file() && limits.has_compute() {
                drop(held_page::own());
                let _ = usage_page::own(policy);
            }
        }
        let slot = ledger
            .claim(ledger_file::own_identity()?, sys::boot_time_ns(), &ledger_file::alive)
            .map_err(|_full| "ledger: no place for another process")?;
        // After the claim: a process that is present without a slot would stand in for a dead one.
        let attendance = Attendance::join(ledger, ledger_file::is_by_hook(policy));
        Ok(Self {
            policy,
            ledger,
            slot,
            attendance,
            variables: DriverVariables::read(),
            devices: [const { OnceBox::new() }; MAX_DEVICES],
        })
    }

    /// The device with this CUDA ordinal; `None` if its memory is not limited or there is none.
    ///
    /// # Errors
    /// Its limits cannot be resolved: the process is broken from here on.
    #[inline]
    pub(crate) fn device(
        &self,
        driver: &DriverCopy,
        ordinal: CUdevice,
    ) -> Result<Option<&Device>, &'static Problem> {
        Ok(self.standing(driver, ordinal)?.and_then(|standing| standing.memory.as_ref()))
    }

    /// What holds for the device with this CUDA ordinal; `None` if there is none.
    ///
    /// # Errors
    /// If its limits cannot be enforced: the process is broken from here on, or this call fails for lack of room.
    #[inline]
    pub(crate) fn standing(
        &self,
        driver: &DriverCopy,
        ordinal: CUdevice,
    ) -> Result<Option<&Standing>, &'static Problem> {
        let Ok(index) = usize::try_from(ordinal) else { return Ok(None) };
        let Some(place) = self.devices.get(index) else { return beyond(driver, ordinal) };
        if let Some(standing) = place.get() {
            return Ok(Some(standing));
        }
        self.resolve(driver, ordinal, place)
    }

    #[cold]
    fn resolve<'a>(
        &self,
        driver: &DriverCopy,
        ordinal: CUdevice,
        place: &'a OnceBox<Standing>,
    ) -> Result<Option<&'a Standing>, &'static Problem> {
        match Device::resolve(self.policy, self.ledger, self.slot, driver, ordinal, self.variables)
        {
            Ok(Some(standing)) => Ok(Some(place.get_or_init(|| Box::new(standing)))),
            Ok(None) => Ok(None),
            Err(why) => {
                let problem = match why {
                    Unresolved::Broken(text) => state::break_with(text),
                    Unresolved::ForNow(text) => state::lacking(text),
                };
                problem.report();
                Err(problem)
            }
        }
    }

    /// Bytes of a device that the container's processes hold, without those that have been dead for half a second.
    pub(crate) fn used(&self, device: &Device) -> u64 {
        self.attendance.keep_up();
        self.ledger.used(device.index)
    }

    /// A pool is about to be destroyed: what a device takes from next is asked of the driver.
    pub(crate) fn forget_current_pool(&self, pool: u64) {
        for (_, device) in self.limited() {
            let current = &device.current_pool;
            // Where this fails, it was another pool.
            let _ = current.compare_exchange(pool, 0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// The devices with a compute limit that this process has used.
    pub(crate) fn gates(&self) -> impl Iterator<Item = &Gate> {
        self.devices.iter().filter_map(|place| place.get()?.time.as_ref())
    }

    /// The gate of a device that this process has used; `None` if it has no compute limit.
    pub(crate) fn gate(&self, ordinal: CUdevice) -> Option<&Gate> {
        self.devices.get(usize::try_from(ordinal).ok()?)?.get()?.time.as_ref()
    }

    /// The devices with a memory limit that this process has used, with their ordinals.
    pub(crate) fn limited(&self) -> impl Iterator<Item = (CUdevice, &Device)> {
        let devices = (0..).zip(&self.devices);
        devices.filter_map(|(ordinal, place)| Some((ordinal, place.get()?.memory.as_ref()?)))
    }

    /// Bytes that this process holds of a device.
    pub(crate) fn holds(&self, device: &Device) -> u64 {
        let own = self.ledger.processes().find(|process| process.slot() == self.slot.index());
        own.and_then(|own| own.account(device.index)).map_or(0, |account| account.used)
    }
}

/// What holds for a device that there is no room for here; the driver refuses one that it does not know.
#[cold]
fn beyond<'a>(
    driver: &DriverCopy,
    ordinal: CUdevice,
) -> Result<Option<&'a Standing>, &'static Problem> {
    match driver::cuda::device(driver, ordinal) {
        Some(_) => {
            Err(state::break_with(format!("device {ordinal}: at most {MAX_DEVICES} are limited")))
        }
        None => Ok(None),
    }
}
