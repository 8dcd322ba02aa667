//! The limits file that the hook puts into a container: `/.gpucap/limits`.
//!
//! ```text
//! gpucap-limits=1                                  version, always first
//! source=annotation                                whose limits these are
//! container=4f6c                                   the id under which the engine knows it
//! open=1                                           only if the administrator chose so
//! GPU_MEM_LIMIT=4GiB                               what the container's own variable said; it is in the limits below
//! gpu=GPU-00112233-4455-6677-8899-aabbccddeeff     what follows is for this GPU
//! mem=4294967296                                   bytes, or 25%; once in each form, and then the lower holds
//! core=30%                                         share of the time
//! context=314572800                                bytes charged for a context
//! gpu=*                                            for any GPU that no other entry names
//! crc32=b05fd8e3                                   of all bytes above, always last
//! ```
//!
//! One `key=value` a line. A key we do not know is passed over, so that a newer hook can add one that
//! only informs; whatever limits more, or changes what a key means, is another version, and a version
//! we do not know is refused. A GPU that is listed without `mem` or `core` may be used without that
//! limit; one that is not listed may not be used at all. A key or GPU that comes twice is refused.

mod entry;
mod parse;
#[cfg(test)]
mod tests;
mod write;

use super::{Ask, DeviceFacts, lower};
use crate::config::Config;
use crate::units::Share;
use crate::uuid::Uuid;

pub use entry::{Entry, Key, Label, MemoryCap};
pub use parse::{ContentError, FileError};

/// Its path in a container.
pub const PATH: &str = "/.gpucap/limits";
/// The version that is written and read.
pub const VERSION: u32 = 1;
/// A longer file is not ours.
pub const MAX_BYTES: usize = 64 * 1024;

/// What the hook says to the shim.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LimitsFile {
    /// The owner of the limits: for people, in `explain`.
    pub source: Label,
    /// The id of the container.
    pub container: Label,
    /// The administrator of the node chose that a shim which cannot work lets the program through.
    pub open: bool,
    /// What the variables of the container said that limit something, as the entries have it in them already: so a
    /// process that merely inherited them says nothing of its own when the node changes a limit.
    pub asked: Config,
    /// The GPUs of the container.
    pub entries: Vec<Entry>,
}

impl LimitsFile {
    /// Whether the container may use `device`.
    #[must_use]
    pub fn lists(&self, device: &DeviceFacts) -> bool {
        self.matching(device).next().is_some()
    }

    /// Whether any GPU has a share of time, be it the whole.
    #[must_use]
    pub fn has_core(&self) -> bool {
        self.entries.iter().any(|entry| entry.core.is_some())
    }

    /// Whether the memory of any device is limited.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.entries.iter().any(|entry| entry.memory != MemoryCap::NONE)
    }

    /// Whether an entry names another GPU than this one.
    pub(super) fn names_other(&self, uuid: Uuid) -> bool {
        self.entries.iter().any(|entry| matches!(entry.key, Key::Name(name) if name.uuid != uuid))
    }

    /// Whether an entry names this device as a card.
    pub(super) fn names_card(&self, uuid: Uuid) -> bool {
        self.entries.iter().any(|entry| entry.key == Key::Name(uuid.gpu()))
    }

    /// What a context costs on this device.
    #[must_use]
    pub fn context_price(&self, device: &DeviceFacts) -> Option<u64> {
        self.matching(device).find_map(|entry| entry.context)
    }

    /// The share of this device's time, if it is limited.
    #[must_use]
    pub fn core(&self, device: &DeviceFacts) -> Option<Share> {
        self.ask(device).core
    }

    pub(super) fn ask(&self, device: &DeviceFacts) -> Ask {
        self.matching(device).fold(Ask::default(), |ask, entry| {
            let memory = entry.memory.of(device.total_bytes);
            Ask { memory: lower(ask.memory, memory), core: lower(ask.core, entry.core) }
        })
    }

    /// The entries that name the device or its card; if there is none, the one for every GPU.
    fn matching(&self, device: &DeviceFacts) -> impl Iterator<Item = &Entry> {
        let named = |entry: &Entry| entry.key.is(device);
        let any = self.entries.iter().any(named);
        self.entries.iter().filter(
            move |entry| {
                if any { named(entry) } else { entry.key == Key::Every }
            },
        )
    }
}
