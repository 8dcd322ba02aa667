//! The measured calls of the driver that are under way on a device, and where they began.

use parking_lot::{Mutex, MutexGuard};

/// The measured calls that are under way on a device.
#[derive(Default)]
pub(crate) struct Growth(Mutex<State>);

/// They share one starting point.
#[derive(Default)]
pub(crate) struct State {
    /// How many there are.
    pub(crate) under_way: u32,
    /// What the card held beyond the ledger when the first of them began.
    pub(crate) start: i64,
    /// What has been taken since then could not be seen, and is still to be charged.
    pub(crate) is_owed: bool,
}

impl Growth {
    /// The state, for a look; never across a call of the driver.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
