//! Memory in whole pages of our own, large ones where there are any.
//!
//! Zero at first, given back when dropped. What is as large as a large page begins at a place where one fits, and the
//! kernel is advised to take some: a table of a million entries then misses the translation of its addresses no more
//! often than one of a hundred. Not from the program's allocator, which would neither know nor do so.

use core::ffi::c_void;
use core::ptr::NonNull;

/// The pages, as pairs of numbers.
pub(crate) struct Pages {
    start: NonNull<[u64; 2]>,
    /// Pairs.
    length: usize,
}

/// What x86-64 has between a page and a gigabyte.
const LARGE: usize = 2 << 20;
const PAIR: usize = size_of::<[u64; 2]>();

// SAFETY: plain memory that belongs to the value.
unsafe impl Send for Pages {}

impl Pages {
    /// None at all.
    pub(crate) const fn none() -> Self {
        Self { start: NonNull::dangling(), length: 0 }
    }

    /// Pages for `length` pairs of zeros; `None` if there is no memory.
    pub(crate) fn of_zeros(length: usize) -> Option<Self> {
        let bytes = length.checked_mul(PAIR)?;
        if bytes < LARGE {
            return Some(Self { start: NonNull::new(map(bytes)?.cast())?, length });
        }
        let spacious = map(bytes.checked_add(LARGE)?)?;
        let before = spacious.align_offset(LARGE);
        let start = spacious.wrapping_byte_add(before);
        unmap(spacious, before);
        unmap(start.wrapping_byte_add(bytes), LARGE.wrapping_sub(before));
        // SAFETY: pages mapped just now; whether the advice is taken shows in nothing but time.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        Some(Self { start: NonNull::new(start.cast())?, length })
    }
}

impl AsRef<[[u64; 2]]> for Pages {
    fn as_ref(&self) -> &[[u64; 2]] {
        // SAFETY: mapped, aligned to a page, and as long as `of_zeros` made it; or of no length.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl AsMut<[[u64; 2]]> for Pages {
    fn as_mut(&mut self) -> &mut [[u64; 2]] {
        // SAFETY: as above, and the value is borrowed alone.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        unmap(self.start.as_ptr().cast(), self.length.wrapping_mul(PAIR));
    }
}

fn map(bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let address = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address.cast())
}

fn unmap(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: pages of this table that are no longer referenced.
        unsafe { libc::munmap(start.cast::<c_void>(), bytes) };
    }
}
