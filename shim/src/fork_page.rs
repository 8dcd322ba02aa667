//! The page that a child made by `fork` sees empty: where the session is found, and the epoch of what threads remember.
//!
//! A CUDA context does not survive `fork`, so a child begins a session of its own, with unlocked locks, and its parent's
//! charges stay its parent's. The kernel wipes the page in the child (`MADV_WIPEONFORK`), with no call of ours. What the
//! session is, only [`session`](crate::session) knows.

use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Lives in the page.
#[repr(C)]
pub(crate) struct ForkPage {
    /// The process's session; null before it has begun.
    pub(crate) session: AtomicPtr<c_void>,
    /// 1 while a thread is starting it.
    pub(crate) starting: AtomicU32,
    /// See [`epoch`]; zero before the session.
    epoch: AtomicU64,
}

static PAGE: AtomicPtr<ForkPage> = AtomicPtr::new(core::ptr::null_mut());
/// The latest epoch of this process or of one that it is a child of.
static LATEST_EPOCH: AtomicU64 = AtomicU64::new(0);

/// The number under which threads remember what handles stand for. Another one begins whenever a handle may stand for
/// something else, and with each session: what a thread remembers of the process that this one is a child of is void.
#[inline]
pub(crate) fn epoch() -> u64 {
    found().map_or(0, |page| page.epoch.load(Ordering::Acquire))
}

/// Begins another epoch. One thread at a time: the caller holds a lock of the session, or begins it.
pub(crate) fn begin_epoch() {
    if let Some(page) = found() {
        let before = LATEST_EPOCH.fetch_add(1, Ordering::AcqRel);
        page.epoch.store(before.wrapping_add(1), Ordering::Release);
    }
}

/// The page, if it has been made.
#[inline]
pub(crate) fn found() -> Option<&'static ForkPage> {
    // SAFETY: a published page is never taken down.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// The page, made if need be. `None` if the kernel gives none (Linux 4.14).
pub(crate) fn made() -> Option<&'static ForkPage> {
    if let Some(page) = found() {
        return Some(page);
    }
    let page = sys::page_wiped_on_fork()?;
    let published = PAGE.compare_exchange(
        core::ptr::null_mut(),
        page.cast(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    if published.is_err() {
        sys::unmap_page(page);
    }
    found()
}
