//! Busy time put into the ledger file of a run, as `include/gpucap.h` describes it.

use crate::{Result, Run, Stop};
use std::fs::File;
use std::os::unix::fs::FileExt;

const DEVICES: u64 = 4096;
const OWNERS: u64 = 20480;
const BOOKS: u64 = 86016;
const SLOTS: u64 = 1024;
/// Where the windows are in a device's line and in a book.
const WINDOWS: u64 = 192;
const WINDOW_BITS: u32 = 27;

impl Run {
    /// The window under way on the ledger's clock.
    #[must_use]
    pub fn window() -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is writable, and the clock exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        (time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()) >> WINDOW_BITS
    }

    /// Says that the first device was busy for this many thousandths of each of the latest eight windows, and the process
    /// for as many. Gives the latest of them: readers see what was said until two windows after it.
    ///
    /// # Errors
    /// If there is no ledger, or the process is not in it.
    pub fn set_busy(&self, pid: u32, device_permille: u64, process_permille: u64) -> Result<u64> {
        let ledger =
            File::options().read(true).write(true).open(self.directory().join("ledger"))?;
        let slot = slot_of(&ledger, pid)?;
        let present = Self::window();
        for window in present - 7..=present {
            for (line, permille) in
                [(DEVICES, device_permille), (BOOKS + slot * 256, process_permille)]
            {
                let busy_ns = (permille << WINDOW_BITS) / 1000;
                let word = (window & u64::from(u32::MAX)) << 32 | busy_ns;
                ledger.write_all_at(&word.to_le_bytes(), line + WINDOWS + window % 8 * 8)?;
            }
        }
        Ok(present)
    }
}

/// The slot of a living process.
fn slot_of(ledger: &File, pid: u32) -> Result<u64> {
    for slot in 0..SLOTS {
        let mut owner = [0; 8];
        ledger.read_exact_at(&mut owner, OWNERS + slot * 64)?;
        let owner = u64::from_le_bytes(owner);
        if owner & 3 == 2 && owner >> 2 & 0x3f_ffff == u64::from(pid) {
            return Ok(slot);
        }
    }
    Err(Stop::fail(format!("process {pid} has no slot in the ledger")))
}
