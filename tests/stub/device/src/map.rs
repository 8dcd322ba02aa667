//! Memory that all processes share: a file, mapped for the life of the process.
//!
//! The only place that maps anything. What lies in the file, and who may touch it when, is its user's to know.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Maps a file as a `T`, for good.
///
/// # Safety
/// The file is as long as a `T` and is never shortened; every content that a process may give it is a valid `T`.
///
/// # Errors
/// It cannot be mapped.
pub(crate) unsafe fn shared<T>(file: &File) -> std::io::Result<&'static T> {
    // SAFETY: a new mapping of a file of this length; it replaces nothing.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<T>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the mapping is as large as a `T`, page-aligned, and never unmapped; its content is the caller's promise.
    Ok(unsafe { &*address.cast::<T>() })
}
