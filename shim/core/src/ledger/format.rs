//! Whether a file is a ledger, and how a zeroed file becomes one.

use std::fmt;

use super::layout::{DEVICES, Header, Ledger, SLOTS};
use crate::sync::Word;

/// The first word of a formatted ledger.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gpucapLG");
/// The layout that this crate reads and writes.
pub const VERSION: u64 = 1;

/// Why a file is not a ledger that this version may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The file has another length than a ledger.
    FileBytes(u64),
    /// Not a ledger, or not formatted.
    Magic(u64),
    /// Another version's layout.
    Version(u64),
    /// The header has another size.
    Size(u64),
    /// The header has another number of slots.
    Slots(u64),
    /// The header has another number of devices.
    Devices(u64),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, found, known) = match *self {
            Self::FileBytes(found) => ("file size", found, Ledger::SIZE),
            Self::Magic(found) => {
                return write!(f, "ledger magic is {found:#x}, known is {MAGIC:#x}");
            }
            Self::Version(found) => ("version", found, VERSION),
            Self::Size(found) => ("size", found, Ledger::SIZE),
            Self::Slots(found) => ("number of slots", found, SLOTS as u64),
            Self::Devices(found) => ("number of devices", found, DEVICES as u64),
        };
        write!(f, "ledger {what} is {found}, known is {known}")
    }
}

impl Ledger {
    /// Makes a zeroed file a ledger. Any number of processes may do it at once and again; a word
    /// that says something else already is left as it is, for [`check`](Self::check) to refuse.
    pub fn format(&self) {
        let Header { magic, version, size, slots, devices, .. } = &self.header;
        let constants = [
            (version, VERSION),
            (size, Self::SIZE),
            (slots, SLOTS as u64),
            (devices, DEVICES as u64),
            (magic, MAGIC),
        ];
        for (word, value) in constants {
            if word.replace(0, value).is_err_and(|found| found != value) {
                return;
            }
        }
    }

    /// Whether a file of `file_bytes` bytes is a ledger of this version.
    ///
    /// # Errors
    /// The first thing that is not as this version knows it.
    pub fn check(&self, file_bytes: u64) -> Result<(), Unusable> {
        if file_bytes != Self::SIZE {
            return Err(Unusable::FileBytes(file_bytes));
        }
        let Header { magic, version, size, slots, devices, .. } = &self.header;
        let known = |word: &Word, known: u64, unusable: fn(u64) -> Unusable| match word.load() {
            found if found == known => Ok(()),
            found => Err(unusable(found)),
        };
        known(magic, MAGIC, Unusable::Magic)?;
        known(version, VERSION, Unusable::Version)?;
        known(size, Self::SIZE, Unusable::Size)?;
        known(slots, SLOTS as u64, Unusable::Slots)?;
        known(devices, DEVICES as u64, Unusable::Devices)
    }
}
