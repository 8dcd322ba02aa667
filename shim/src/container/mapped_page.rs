//! Pages that this process maps, and only reads: what the node says to a container as long as that runs, and a user to a run.
//!
//! Mapped once per process and never unmapped; after that what is written there is seen by reading a word, and nothing that
//! the process does later keeps it from that. A page of the node is believed only where the container cannot write it, like
//! the limits file.

use crate::sys::{self, File};
use core::ffi::c_void;
use gpucap_core::errno::Errno;
use gpucap_core::limits::live::LivePage;
use gpucap_core::page::held::HeldPage;
use std::ffi::CString;

/// Why the limits of a device cannot be enforced, in one line.
pub(crate) enum Unresolved {
    /// They cannot be known.
    Broken(String),
    /// Something that is needed is not available: a descriptor, memory, room to record usage. That may change.
    ForNow(String),
}

impl<T: Into<String>> From<T> for Unresolved {
    fn from(text: T) -> Self {
        Self::Broken(text.into())
    }
}

/// A type that may be mapped.
///
/// # Safety
/// It is made of atomic words alone: every content is valid, and other processes may write to it.
pub(super) unsafe trait Words: Sized {
    /// Whether this is a page that this version understands.
    fn is_known(&self) -> bool;
}

// SAFETY: as its module says, and a test of the layout holds.
unsafe impl Words for LivePage {
    fn is_known(&self) -> bool {
        Self::is_known(self)
    }
}

// SAFETY: the same.
unsafe impl Words for HeldPage {
    fn is_known(&self) -> bool {
        Self::is_known(self)
    }
}

/// A page of the node at this path; `None` if there is none, or only the empty file on which the hook could not mount it.
///
/// # Errors
/// There is one, and it cannot be used.
pub(super) fn of_node<T: Words>(path: &str) -> Result<Option<&'static T>, Unresolved> {
    let _errno = sys::Errno::keep();
    let failed = |what: &str| format!("limits: {path} {what}");
    let name = CString::new(path).map_err(|_| failed("is no path"))?;
    let file = match File::open(&name, libc::O_RDONLY | libc::O_NONBLOCK) {
        Ok(file) => file,
        Err(libc::ENOENT) => return Ok(None),
        Err(error) => return Err(cannot(path, "opened", error)),
    };
    if !sys::on_read_only_mount(&name) {
        return Err(failed("can be written by the container").into());
    }
    if matches!(file.owner_and_size(), Ok((_, 0))) {
        return Ok(None);
    }
    // The node does not shorten it.
    map(&file, path, |_| true).map(Some)
}

/// Maps the page with which the file at this path begins, that is shortened by none but who may end this process anyhow.
/// `may_own` is asked for its owner.
///
/// # Errors
/// It cannot be used.
pub(super) fn map<T: Words>(
    file: &File,
    path: &str,
    may_own: impl Fn(u32) -> bool,
) -> Result<&'static T, Unresolved> {
    let failed = |what: &str| Unresolved::Broken(format!("limits: {path} {what}"));
    let size = size_of::<T>() as u64;
    match file.owner_and_size() {
        Ok((owner, _)) if !may_own(owner) => {
            return Err(failed(&format!("belongs to user {owner}")));
        }
        Ok((_, bytes)) if bytes >= size => {}
        _ => return Err(failed("has not the size of a page")),
    }
    let map: *mut c_void = file.map_to_read(size).map_err(|error| cannot(path, "mapped", error))?;
    // SAFETY: the mapping is page-aligned, as long as the structure and never taken down; the caller promises that the file
    // stays as long as that. `Words` promises that every content is valid, and we only load.
    let page = unsafe { &*map.cast::<T>() };
    if page.is_known() { Ok(page) } else { Err(failed("is not a page of this version")) }
}

/// Why a page cannot be opened or mapped.
pub(super) fn cannot(path: &str, be: &str, error: i32) -> Unresolved {
    let text = format!("limits: {path} cannot be {be}: {}", Errno(error));
    if is_lack(error) { Unresolved::ForNow(text) } else { Unresolved::Broken(text) }
}

/// Whether this error says only that too much is in use at the moment, or that a process has a lease on the file.
pub(super) const fn is_lack(error: i32) -> bool {
    matches!(error, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN)
}
