//! One loaded copy of a driver library: where it is, and the addresses of its own functions.
//!
//! The redirect fills a copy in when it first sees it; from then on hooks and handlers reach the driver by these
//! addresses alone. Nothing here knows a hook, or which functions there are.

use super::rows::RowsByAddress;
use crate::orders::Span;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use gpucap_abi::arg::Written;

/// How many copies of one driver library a process may load: the usual one, and further ones by `dlmopen`.
pub(crate) const COPIES: usize = 4;

/// The original of a row, as its handler sees it: to be called at most once.
pub(crate) trait Next<E>: FnOnce() -> Result<Written, E> {}

impl<E, F: FnOnce() -> Result<Written, E>> Next<E> for F {}

/// One loaded copy of a driver library.
pub(crate) struct DriverCopy {
    /// Where it is, if this entry is not free.
    pub(crate) span: Span,
    /// Where its first page is.
    pub(crate) start: AtomicU64,
    /// How many libraries this entry has stood for.
    pub(crate) filled: AtomicUsize,
    /// The program may unload it.
    pub(crate) may_go: AtomicBool,
    /// The driver's own functions, one per row; 0 where this driver does not have it, or the row is not wanted.
    pub(crate) originals: &'static [AtomicUsize],
    /// Which of them is at an address.
    pub(crate) by_address: &'static RowsByAddress,
    /// Functions that handlers call, by the order of their names; 0 where this driver does not have it.
    pub(crate) extras: &'static [AtomicUsize],
}
