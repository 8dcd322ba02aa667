//! The held page, by which the node holds this container back if it had more of a GPU's time than its limit.

use super::mapped_page::{Unresolved, of_node};
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use gpucap_core::page::held::{HeldPage, PATH};
use gpucap_core::uuid::Uuid;
use once_cell::race::OnceBox;

/// What it says of one GPU.
pub(crate) struct Held {
    page: &'static HeldPage,
    gpu: Uuid,
    /// The latest that was passed on.
    known: AtomicU64,
}

impl Held {
    /// That of the container; `None` if the node gave it none.
    ///
    /// # Errors
    /// There is one, and it cannot be used.
    pub(crate) fn of(gpu: Uuid) -> Result<Option<Self>, Unresolved> {
        static PAGE: OnceBox<Option<&'static HeldPage>> = OnceBox::new();
        let page = PAGE.get_or_try_init(|| of_node(PATH).map(Box::new))?;
        Ok(page.map(|page| Self { page, gpu, known: AtomicU64::new(0) }))
    }

    /// Until when the container is to have no more of it, by the monotonic clock, 0 if it may; `None` if that is nothing new.
    pub(crate) fn news(&self, now: u64) -> Option<u64> {
        let left_ns = self.page.left_ns(self.gpu, sys::unix_time_ns());
        let until = if left_ns == 0 { 0 } else { now.saturating_add(left_ns) };
        (self.known.swap(until, Relaxed) != until).then_some(until)
    }
}
