//! Single pages of this process's address space: what may be done with them, and one that a fork wipes.
//!
//! What is asked about a page changes nothing in it, but for [`can_be_written`], whose caller owns the place.

use core::ffi::c_void;

/// The bytes of a page: 4096 on x86-64; on arm64 the kernel is built for 4, 16 or 64 KiB.
pub(crate) fn page_size() -> u64 {
    // SAFETY: reads what the kernel passed to the loader when the program began.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// All memory of this machine, in bytes.
pub(crate) fn memory_of_machine() -> u64 {
    // SAFETY: asks the kernel for a number.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(page_size())
}

/// Makes the pages of a range writable, or read-only again; never executable. `start` is that of a page. False if the
/// kernel refuses.
pub(crate) fn protect(start: u64, bytes: u64, writable: bool) -> bool {
    let Ok(bytes) = usize::try_from(bytes) else { return false };
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: `redirect::patch` passes pages of a loaded object that hold data only.
    unsafe { libc::mprotect(start as *mut c_void, bytes, protection) == 0 }
}

/// What system calls are given that concern one page, of whatever size: they round up to whole ones.
pub(super) const ONE_PAGE: usize = 1;

/// Whether the page at this address is mapped.
pub(crate) fn is_mapped(page: u64) -> bool {
    // SAFETY: asks about a page, and starts nothing for one without a file to be written to.
    unsafe { libc::msync(page as *mut c_void, ONE_PAGE, libc::MS_ASYNC) == 0 }
}

/// Whether a place in a map of a file has memory, or could be given some: 16 bytes of it are written. Where a store would
/// be a SIGBUS, since the file system is full, the kernel's own answer is an error.
pub(crate) fn can_be_written(place: *mut libc::timespec) -> bool {
    // SAFETY: the caller owns the 16 bytes; the system call as such, since the C library's function stores by itself.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, place) == 0 }
}

/// A page that a child made by `fork` sees as zeros, whichever way the fork was made (`MADV_WIPEONFORK`, Linux 4.14).
/// Never taken down. `None` if there is no memory or the kernel does not know the advice.
pub(crate) fn page_wiped_on_fork() -> Option<*mut c_void> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { libc::mmap(core::ptr::null_mut(), ONE_PAGE, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page mapped just now.
    if unsafe { libc::madvise(page, ONE_PAGE, libc::MADV_WIPEONFORK) } != 0 {
        unmap_page(page);
        return None;
    }
    Some(page)
}

/// Unmaps a page of [`page_wiped_on_fork`] that was never published.
pub(crate) fn unmap_page(page: *mut c_void) {
    // SAFETY: the caller owns the page and drops its only pointer.
    unsafe { libc::munmap(page, ONE_PAGE) };
}
