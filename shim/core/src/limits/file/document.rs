//! What a limits file says, once it is read: whose limits these are, and those of each GPU.

use super::super::ask::{Ask, lower};
use super::super::device::DeviceFacts;
use super::entry::{Entry, Key, Label, MemoryLimit};
use crate::config::Config;
use crate::units::Share;
use crate::uuid::Uuid;

/// Its path in a container.
pub const PATH: &str = "/.gpucap/limits";
/// The version that is written and read.
pub const VERSION: u32 = 1;
/// A longer file is not ours.
pub const MAX_BYTES: usize = 64 * 1024;

/// What the hook says to the shim.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LimitsFile {
    /// What the limits are from, for people.
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
    pub fn has_compute(&self) -> bool {
        self.entries.iter().any(|entry| entry.core.is_some())
    }

    /// Whether the memory of any device is limited.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.entries.iter().any(|entry| entry.memory != MemoryLimit::NONE)
    }

    /// Whether an entry names another GPU than this one.
    pub(crate) fn names_other(&self, uuid: Uuid) -> bool {
        self.entries.iter().any(|entry| matches!(entry.key, Key::Name(name) if name.uuid != uuid))
    }

    /// Whether an entry names this device as a card.
    pub(crate) fn names_card(&self, uuid: Uuid) -> bool {
        self.entries.iter().any(|entry| entry.key == Key::Name(uuid.gpu()))
    }

    /// What a context costs on this device.
    #[must_use]
    pub fn context_price(&self, device: &DeviceFacts) -> Option<u64> {
        self.matching(device).find_map(|entry| entry.context)
    }

    pub(crate) fn ask(&self, device: &DeviceFacts) -> Ask {
        self.matching(device).fold(Ask::default(), |ask, entry| {
            let memory = entry.memory.of(device.total_bytes);
            ask.lower(Ask { memory, compute: entry.compute(), core_max: None })
        })
    }

    /// The share that is written for this device: of low priority it guarantees nothing.
    pub(crate) fn written_share(&self, device: &DeviceFacts) -> Option<Share> {
        self.matching(device).fold(None, |share, entry| lower(share, entry.core))
    }

    /// The entries that name the device or its card; if there is none, the one for every GPU.
    pub(crate) fn matching(&self, device: &DeviceFacts) -> impl Iterator<Item = &Entry> {
        let named = |entry: &Entry| entry.key.is(device);
        let any = self.entries.iter().any(named);
        self.entries.iter().filter(
            move |entry| {
                if any { named(entry) } else { entry.key == Key::Every }
            },
        )
    }
}
