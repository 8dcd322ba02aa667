//! Addresses of device memory, with real memory behind them where the host allows.
//!
//! One large mapping without reserved memory: a page becomes real when it is copied to, so
//! that what is copied in can be copied out. Where the host refuses such a mapping, addresses are
//! only numbers and copies move nothing. The first API has 32-bit addresses; those are always only
//! numbers.

use std::collections::HashMap;
use std::ops::Range;

/// Every allocation starts at a multiple of this, as on the real driver.
const ALIGNMENT: u64 = 512;
const PAGE: u64 = 4096;
/// Sizes to try, largest first.
const SIZES: [u64; 3] = [1 << 42, 1 << 37, 1 << 33];
/// Addresses of the first API.
const LOW: Range<u64> = 0x1000_0000..0xf000_0000;
/// Addresses that are only numbers.
const HOLLOW: Range<u64> = 0x4000_0000_0000..0x4f00_0000_0000;

/// Hands out address ranges.
pub(crate) struct Arena {
    real: Region,
    hollow: Region,
    low: Region,
}

/// A range that is handed out from the bottom; what comes back is reused for the same size.
struct Region {
    all: Range<u64>,
    next: u64,
    free: HashMap<(u64, u64), Vec<u64>>,
}

impl Default for Arena {
    fn default() -> Self {
        Self { real: Region::new(reserve()), hollow: Region::new(HOLLOW), low: Region::new(LOW) }
    }
}

impl Arena {
    /// A range of `bytes` bytes at a multiple of `alignment`.
    pub(crate) fn take(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        self.real.take(bytes, alignment).or_else(|| self.hollow.take(bytes, alignment))
    }

    /// A range whose addresses fit into 32 bits.
    pub(crate) fn take_low(&mut self, bytes: u64) -> Option<u64> {
        self.low.take(bytes, ALIGNMENT)
    }

    /// Takes a range back.
    pub(crate) fn give(&mut self, address: u64, bytes: u64, alignment: u64) {
        for region in [&mut self.real, &mut self.hollow, &mut self.low] {
            if region.all.contains(&address) {
                region.give(address, bytes, alignment);
            }
        }
    }

    /// Gives the host's memory behind the whole pages of a range back: they read as zeros. Which pages.
    pub(crate) fn wipe(&mut self, address: u64, bytes: u64) -> Option<Range<u64>> {
        if !self.is_real(address) {
            return None;
        }
        // Only whole pages; their peers may belong to others.
        let (start, end) = (address.next_multiple_of(PAGE), (address + bytes) / PAGE * PAGE);
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        // SAFETY: the range lies in the arena's own mapping, and its block is being forgotten or set to
        // zeros.
        let code =
            unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        (code == 0).then_some(start..end)
    }

    /// Whether there is real memory behind an address.
    pub(crate) fn is_real(&self, address: u64) -> bool {
        self.real.all.contains(&address)
    }
}

impl Region {
    fn new(all: Range<u64>) -> Self {
        Self { next: all.start, all, free: HashMap::new() }
    }

    fn take(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        let alignment = alignment.max(ALIGNMENT);
        let size = bytes.checked_next_multiple_of(alignment)?;
        if let Some(address) = self.free.get_mut(&(size, alignment)).and_then(Vec::pop) {
            return Some(address);
        }
        let address = self.next.checked_next_multiple_of(alignment)?;
        let end = address.checked_add(size).filter(|end| *end <= self.all.end)?;
        self.next = end;
        Some(address)
    }

    fn give(&mut self, address: u64, bytes: u64, alignment: u64) {
        let alignment = alignment.max(ALIGNMENT);
        let size = bytes.next_multiple_of(alignment);
        self.free.entry((size, alignment)).or_default().push(address);
    }
}

/// The large mapping; an empty range if the host refuses every size.
fn reserve() -> Range<u64> {
    for size in SIZES {
        let Ok(length) = usize::try_from(size) else { continue };
        // SAFETY: a new private mapping; it replaces nothing, and is never unmapped.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address != libc::MAP_FAILED {
            // SAFETY: the range was mapped in the line above. Device memory is no part of a core
            // dump.
            unsafe { libc::madvise(address, length, libc::MADV_DONTDUMP) };
            return address as u64..address as u64 + size;
        }
    }
    0..0
}
