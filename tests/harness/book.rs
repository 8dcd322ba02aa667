//! What stands in the ledger file of a run, read as `include/gpucap.h` describes it to everybody.

use crate::{Result, Run, Stop};
use std::fs;

/// Where the devices' lines begin, where they end, and how long each is.
const LINES: std::ops::Range<usize> = 4096..20480;
const LINE: usize = 256;

impl Run {
    /// Bytes in use on all devices together.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn booked(&self) -> Result<u64> {
        Ok(self.lines()?.into_iter().map(|(total, _)| total >> 22).sum())
    }

    /// The most bytes that were ever in use on one device.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn peak(&self) -> Result<u64> {
        Ok(self.lines()?.into_iter().map(|(_, peak)| peak).max().unwrap_or(0))
    }

    /// The first two words of each line.
    fn lines(&self) -> Result<Vec<(u64, u64)>> {
        let path = self.directory().join("ledger");
        let ledger = fs::read(&path)?;
        let lines =
            ledger.get(LINES).ok_or_else(|| Stop::fail(format!("{}: short", path.display())))?;
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        Ok(lines.chunks(LINE).map(|line| (word(&line[..8]), word(&line[8..16]))).collect())
    }
}
