//! The driver of this process: what `cuInit` makes.
//!
//! Made once, never unmade. A child of an initialised process has a driver that refuses everything,
//! like the real one: nothing of its parent's state can be used there.

use crate::state::State;
use gpucap_abi::cuda::{CU_MEM_LOCATION_TYPE_DEVICE, CUmemLocation, CuError, CuResult};
use gpucap_stub_device::catalog::{self, Unit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The driver of a process.
pub(crate) struct Driver {
    /// What CUDA enumerates, by ordinal.
    pub(crate) units: Vec<Unit>,
    state: Mutex<State>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
/// Set in a child of an initialised process.
static ORPHANED: AtomicBool = AtomicBool::new(false);

/// `cuInit`.
pub(crate) fn init(flags: u32) -> CuResult {
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    if ORPHANED.load(Ordering::Relaxed) {
        return Err(CuError::NOT_INITIALIZED);
    }
    let driver = DRIVER.get_or_init(|| {
        // SAFETY: the handler only stores to an atomic. It stays valid: the library is never
        // unloaded while the process could still fork from it, as the real one.
        unsafe { libc::pthread_atfork(None, None, Some(orphan)) };
        let order = std::env::var("CUDA_DEVICE_ORDER").ok();
        let choice = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let settings = gpucap_stub_device::settings();
        let units = catalog::visible(settings, order.as_deref(), choice.as_deref());
        Driver { units, state: Mutex::default() }
    });
    if driver.units.is_empty() { Err(CuError::NO_DEVICE) } else { Ok(()) }
}

unsafe extern "C" fn orphan() {
    ORPHANED.store(true, Ordering::Relaxed);
}

/// The driver, if it was initialised in this process.
pub(crate) fn driver() -> Result<&'static Driver, CuError> {
    let driver = DRIVER.get().filter(|driver| !driver.units.is_empty());
    driver.filter(|_| !ORPHANED.load(Ordering::Relaxed)).ok_or(CuError::NOT_INITIALIZED)
}

/// Everything that changes. Never held while waiting or calling back.
pub(crate) fn state() -> Result<MutexGuard<'static, State>, CuError> {
    Ok(driver()?.state.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ends what ends without a call: memory that only a file had kept which the program has closed since, and destroyed
/// pools whose last allocation was freed behind work that is done now.
pub(crate) fn end_unused() {
    if let Ok(mut state) = state() {
        state.end_unused();
        state.end_pools();
    }
}

/// The place of a unit's memory.
pub(crate) fn location(unit: Unit) -> Result<CUmemLocation, CuError> {
    let place = driver()?.units.iter().position(|known| *known == unit);
    let id = place.and_then(|place| i32::try_from(place).ok()).ok_or(CuError::INVALID_DEVICE)?;
    Ok(CUmemLocation { kind: CU_MEM_LOCATION_TYPE_DEVICE, id })
}

/// The unit of a CUDA ordinal.
pub(crate) fn unit(device: i32) -> Result<Unit, CuError> {
    let units = &driver()?.units;
    let ordinal = usize::try_from(device).map_err(|_| CuError::INVALID_DEVICE)?;
    units.get(ordinal).copied().ok_or(CuError::INVALID_DEVICE)
}
