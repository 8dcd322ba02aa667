//! The held page, by which the node holds this container back if it had more of a GPU's time than its limit.

use super::mapped_page::{Unresolved, of_node};
use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use gpucap_core::page::held::{HeldPage, PATH};
use gpucap_core::uuid::Uuid;
use once_cell::race::OnceBox;

/// What it says of one GPU.
pub(crate) struct Held {
    page: &'static HeldPage,
    gpu: Uuid,
    /// That it holds the container back was passed on, and not yet that this is over.
    is_held: AtomicBool,
}

/// That of the container; `None` if the node gave it none. Found before the first device is looked at.
///
/// # Errors
/// There is one, and it cannot be used.
pub(crate) fn own() -> Result<Option<&'static HeldPage>, Unresolved> {
    static PAGE: OnceBox<Option<&'static HeldPage>> = OnceBox::new();
    PAGE.get_or_try_init(|| of_node(PATH).map(Box::new)).copied()
}

impl Held {
    /// What the page of the container says of this GPU; `None` if there is no page.
    ///
    /// # Errors
    /// There is one, and it cannot be used.
    pub(crate) fn of(gpu: Uuid) -> Result<Option<Self>, Unresolved> {
        Ok(own()?.map(|page| Self { page, gpu, is_held: AtomicBool::new(false) }))
    }

    /// Passes on until when the container is to have no more of it, by the monotonic clock; once 0, when that is over. `None`
    /// of `hold`: it could not be passed on.
    pub(crate) fn pass_on(&self, now: u64, hold: impl FnOnce(u64) -> Option<()>) {
        let left_ns = self.page.left_ns(self.gpu, sys::unix_time_ns());
        let is_held = left_ns > 0;
        let until = if is_held { now.saturating_add(left_ns) } else { 0 };
        if (is_held || self.is_held.load(Relaxed)) && hold(until).is_some() {
            self.is_held.store(is_held, Relaxed);
        }
    }
}
