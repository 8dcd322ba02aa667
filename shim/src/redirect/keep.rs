//! Which copies of the driver stay loaded, and which are gone.
//!
//! A library of the program's own namespace is never unloaded once it is redirected: the shim calls it by itself. One in
//! a namespace of its own (`dlmopen`) is the program's to unload, since a namespace that is never left is one of the
//! sixteen that glibc has. Its entry is freed when the next library is redirected, before that can come to lie where the
//! old one was.
//!
//! The loader's lock is not held between the redirect and the end of [`keep`]: another thread may close the library in
//! between, so nothing of the object is used here but a copy of its name.

use super::elf::{Object, byte};
use super::patch::Libraries;
use crate::driver::{COPIES, DriverCopy};
use crate::sys;
use core::ffi::c_char;
use core::sync::atomic::Ordering;

/// Keeps a library that was redirected, if it is in the program's namespace, by this `dlopen`.
pub(super) fn keep(copy: &DriverCopy, name: &Name, dlopen: usize) {
    if !copy.may_go.load(Ordering::Relaxed) {
        // Where another thread has closed it, there is none of this name, or a new one elsewhere.
        let kept = sys::never_unload(dlopen, name.as_ptr());
        copy.may_go.store(kept != Some(copy.span.base()), Ordering::Relaxed);
    }
}

/// Returns the copies that the program could unload, and has. For a caller without the loader's lock.
pub(super) fn gone(libraries: &Libraries) -> [Option<GoneCopy>; 2 * COPIES] {
    let mut copies = libraries.0.iter().flat_map(|library| library.copies).filter_map(|copy| {
        // First: an entry that is filled in at the same time stands for another library.
        let filled = copy.filled.load(Ordering::Acquire);
        let may_be = copy.span.base() != 0 && copy.may_go.load(Ordering::Relaxed);
        let start = copy.start.load(Ordering::Relaxed);
        let is_gone = may_be && sys::object_at(start) != Some(start);
        is_gone.then_some(GoneCopy { copy, filled })
    });
    core::array::from_fn(|_| copies.next())
}

/// A copy of the driver that was unloaded.
pub(super) struct GoneCopy {
    copy: &'static DriverCopy,
    filled: usize,
}

impl GoneCopy {
    /// Frees its entry, unless that stands for another library by now. Under the loader's lock.
    pub(super) fn forget(&self) {
        if self.copy.filled.load(Ordering::Relaxed) == self.filled {
            self.copy.span.publish(0, [0, 0]);
        }
    }
}

/// `PATH_MAX` of Linux.
const LONGEST_NAME: usize = 4096;

/// The name of an object, for use once the object may be gone.
pub(super) struct Name([u8; LONGEST_NAME]);

impl Default for Name {
    fn default() -> Self {
        Self([0; LONGEST_NAME])
    }
}

impl Name {
    /// Copies it; a name that is longer than a path can be is cut, and is then that of no object.
    pub(super) fn copy(&mut self, object: &Object) {
        let Some((end, places)) = self.0.split_last_mut() else { return };
        *end = 0;
        for (index, place) in places.iter_mut().enumerate() {
            *place = byte(object.name.cast(), index);
            if *place == 0 {
                return;
            }
        }
    }

    /// As a C string.
    pub(super) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}
