//! What was charged for one allocation, as the tables of what a process holds keep it.
//!
//! It is given back by [`refund`](super::Budget::refund), once.

use gpucap_core::ledger::{DeviceIndex, Kind};

/// What was charged for one allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Bytes charged.
    pub(crate) bytes: u64,
    /// As a number: the context it ends with, or of stream-ordered memory, which outlives every context, the pool that
    /// it came from. 0 if it belongs to neither.
    pub(crate) home: u64,
    /// The device it was charged to.
    pub(crate) device: DeviceIndex,
    /// What it is, for people.
    pub(crate) kind: Kind,
}
