//! The content of the ledger file of a run, read as `include/gpucap.h` describes it.

use crate::{Result, Run, Stop};
use std::fs;

/// Where the devices' lines begin, where they end, and how long each is.
const LINES: std::ops::Range<usize> = 4096..20480;
const LINE: usize = 256;
/// Words of a line.
const TOTAL: usize = 0;
const PEAK: usize = 1;
const BUSY: usize = 9;
const WAITED: usize = 10;
const LAUNCHES: usize = 11;
const BORROWED: usize = 22;

impl Run {
    /// Bytes in use on all devices together.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn bytes_in_use(&self) -> Result<u64> {
        Ok(self.lines()?.iter().map(|line| line[TOTAL] >> 22).sum())
    }

    /// The most bytes that were ever in use on one device.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn peak(&self) -> Result<u64> {
        Ok(self.lines()?.iter().map(|line| line[PEAK]).max().unwrap_or(0))
    }

    /// Nanoseconds for which all devices together were kept busy.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn busy_ns(&self) -> Result<u64> {
        Ok(self.busy_by_device()?.iter().sum())
    }

    /// The same for each device, in the order in which they were first used.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn busy_by_device(&self) -> Result<Vec<u64>> {
        Ok(self.lines()?.iter().map(|line| line[BUSY]).collect())
    }

    /// Nanoseconds that launches waited on all devices.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn waited_ns(&self) -> Result<u64> {
        Ok(self.lines()?.iter().map(|line| line[WAITED]).sum())
    }

    /// Nanoseconds of the busy time of all devices beyond the guarantee.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn borrowed_ns(&self) -> Result<u64> {
        Ok(self.lines()?.iter().map(|line| line[BORROWED]).sum())
    }

    /// Launches on all devices.
    ///
    /// # Errors
    /// If there is no ledger.
    pub fn launches(&self) -> Result<u64> {
        Ok(self.lines()?.iter().map(|line| line[LAUNCHES]).sum())
    }

    /// The lines of all devices, by words.
    fn lines(&self) -> Result<Vec<Vec<u64>>> {
        let path = self.ledger();
        let ledger = fs::read(&path)?;
        let lines =
            ledger.get(LINES).ok_or_else(|| Stop::fail(format!("{}: short", path.display())))?;
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        Ok(lines.chunks(LINE).map(|line| line.chunks(8).map(word).collect()).collect())
    }
}
