//! Which kernels are collectives: their peers on other devices spin until they run, so they are hardly held back. The
//! dependencies between kernels are not visible; collectives are recognised by their names.
//!
//! The driver is asked once for each handle, not at each measured launch. A handle may be that of another function
//! once its code has been unloaded, so everything is forgotten then. A table of fixed size without a lock: a handle
//! that was replaced by another is asked for again.

use crate::driver::DriverCopy;
use crate::driver::cuda::time as driver;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};
use gpucap_abi::cuda::CUfunction;
use gpucap_core::table::spread;

/// What is known about the names of functions.
pub(crate) struct Collectives([AtomicU64; 1 << PLACES_BITS]);

const PLACES_BITS: u32 = 8;
/// Set beside the handle, which is an address of the program's half.
const COLLECTIVE: u64 = 1 << 63;

impl Default for Collectives {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; 1 << PLACES_BITS])
    }
}

impl Collectives {
    /// Returns whether a function is a collective.
    pub(crate) fn is_collective(&self, copy: &DriverCopy, function: CUfunction) -> bool {
        let handle = function.address();
        let place = spread(handle) >> (u64::BITS - PLACES_BITS);
        let place = usize::try_from(place).ok().and_then(|place| self.0.get(place));
        let known = place.map_or(0, |place| place.load(Ordering::Relaxed));
        if known & !COLLECTIVE == handle {
            return known & COLLECTIVE != 0;
        }
        let is_ours = |name: &CStr| name.to_bytes().starts_with(b"nccl");
        // A driver that does not answer is asked again.
        let Some(answer) = driver::with_name(copy, function, is_ours) else { return false };
        if let Some(place) = place {
            place.store(handle | if answer { COLLECTIVE } else { 0 }, Ordering::Relaxed);
        }
        answer
    }

    /// Forgets everything: code is about to be unloaded.
    pub(crate) fn forget(&self) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }
}
