//! What the node has said about a container's limits since it started: a page that the shim maps.
//!
//! The hook puts it beside the limits file, as `/.gpucap/live`: a file of the host that the container sees on a mount
//! which it cannot write. To change limits (`gpucap limit`), the host writes into the page, and a process that has
//! mapped it sees the change at its next allocation or launch, without polling and without notification.
//!
//! ```text
//! 0     magic, version, 6 reserved words
//! 64    63 x 64 B: the GPU (two halves of its UUID; all ones: any that no other entry names), memory, core, 4 reserved
//! ```
//!
//! Each quantity is one word, so no reader sees half a change: memory in bytes, core in parts of
//! [`Share::DENOMINATOR`]; 0 means that the limits file holds. A value in the page replaces that of the file, and of
//! the variables that the file was made of; a lower limit of the process itself applies to both alike. The GPUs are
//! written before the container starts and never change.

use super::device::DeviceFacts;
use super::file::{Key, LimitsFile};
use crate::sync::Word;
use crate::units::Share;

/// Its path in a container.
pub const PATH: &str = "/.gpucap/live";
/// The first word of a page that has been laid out.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gpucapLV");
/// The layout that this crate reads and writes.
pub const VERSION: u64 = 1;
/// How many GPUs it has room for.
pub const ENTRIES: usize = 63;

/// The page.
#[derive(Debug)]
#[repr(C)]
pub struct LivePage {
    magic: Word,
    version: Word,
    _reserved: [Word; 6],
    entries: [LiveEntry; ENTRIES],
}

/// What it says about one GPU.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LiveEntry {
    gpu: [Word; 2],
    memory: Word,
    core: Word,
    _reserved: [Word; 4],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<LivePage>() == 4096 && size_of::<LiveEntry>() == 64);

/// The limits file lists more GPUs than a page has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl LivePage {
    /// The length of the file.
    pub const SIZE: u64 = size_of::<Self>() as u64;

    /// Makes a zeroed file the page of these limits.
    ///
    /// # Errors
    /// There are too many GPUs. Nothing has been written.
    pub fn lay_out(&self, limits: &LimitsFile) -> Result<(), TooMany> {
        if limits.entries.len() > ENTRIES {
            return Err(TooMany);
        }
        for (place, entry) in self.entries.iter().zip(&limits.entries) {
            place.gpu.iter().zip(name(entry.key)).for_each(|(word, half)| word.store(half));
        }
        self.version.store(VERSION);
        self.magic.store(MAGIC);
        Ok(())
    }

    /// Whether this is a page that this version understands.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.magic.load() == MAGIC && self.version.load() == VERSION
    }

    /// The entry for a device: the one with its UUID, with that of its card, or the one for any GPU.
    #[must_use]
    pub fn entry(&self, device: &DeviceFacts) -> Option<&LiveEntry> {
        self.find(device.uuid.halves())
            .or_else(|| self.find(device.parent?.halves()))
            .or_else(|| self.find(name(Key::Every)))
    }

    /// The entry for what the limits file calls so.
    #[must_use]
    pub fn entry_of(&self, key: Key) -> Option<&LiveEntry> {
        self.find(name(key))
    }

    fn find(&self, gpu: [u64; 2]) -> Option<&LiveEntry> {
        self.entries.iter().find(|entry| entry.gpu.each_ref().map(Word::load) == gpu)
    }
}

impl LiveEntry {
    /// Bytes of memory, if the node has said something since the container started.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        Some(self.memory.load()).filter(|bytes| *bytes != 0)
    }

    /// Share of the time, if the node has said something since the container started.
    #[must_use]
    pub fn core(&self) -> Option<Share> {
        u16::try_from(self.core.load()).ok().and_then(Share::from_parts)
    }

    /// Says how many bytes hold from now on; `None`: what the limits file says.
    pub fn set_memory(&self, bytes: Option<u64>) {
        self.memory.store(bytes.unwrap_or(0));
    }

    /// Says which share holds from now on; `None`: what the limits file says.
    pub fn set_core(&self, share: Option<Share>) {
        self.core.store(share.map_or(0, |share| share.parts().into()));
    }
}

/// How the page calls a GPU. Nought is a place without one.
fn name(key: Key) -> [u64; 2] {
    match key {
        Key::Every => [u64::MAX; 2],
        Key::Name(name) => name.uuid.halves(),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::config::Slices;
    use crate::limits::file::Entry;
    use crate::uuid::Uuid;

    fn page() -> LivePage {
        let entries = std::array::from_fn(|_| LiveEntry::default());
        LivePage {
            magic: Word::default(),
            version: Word::default(),
            _reserved: std::array::from_fn(|_| Word::default()),
            entries,
        }
    }

    fn card(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    fn facts(uuid: Uuid, parent: Option<Uuid>) -> DeviceFacts {
        DeviceFacts { uuid, parent, index: None, total_bytes: 1 << 30, slices: Slices::Seven }
    }

    fn laid_out(keys: &[Key]) -> LivePage {
        let entries = keys.iter().map(|key| Entry::new(*key)).collect();
        let page = page();
        page.lay_out(&LimitsFile { entries, ..LimitsFile::default() }).expect("room");
        page
    }

    #[test]
    fn zeros_are_no_page() {
        assert!(!page().is_known());
        assert!(page().entry(&facts(card(0), None)).is_some_and(|entry| entry.memory().is_none()));
    }

    #[test]
    fn a_page_that_says_nothing_leaves_the_file() {
        let page = laid_out(&[Key::Every]);
        let entry = page.entry(&facts(card(1), None)).expect("any");
        assert!(page.is_known());
        assert_eq!((entry.memory(), entry.core()), (None, None));
    }

    #[test]
    fn a_device_has_its_own_entry_or_its_cards_or_that_of_any() {
        let page = laid_out(&[Key::Every, Key::Name(card(1).gpu()), Key::Name(card(2).gpu())]);
        for (number, key) in (1..).zip([Key::Every, Key::Name(card(1).gpu())]) {
            page.entry_of(key).expect("laid out").set_memory(Some(number));
        }
        let memory = |device| page.entry(&device).and_then(LiveEntry::memory);
        assert_eq!(memory(facts(card(1), None)), Some(2));
        assert_eq!(memory(facts(card(9), Some(card(1)))), Some(2));
        assert_eq!(memory(facts(card(2), None)), None);
        assert_eq!(memory(facts(card(9), None)), Some(1));
    }

    #[test]
    fn what_is_taken_back_is_the_files_again() {
        let page = laid_out(&[Key::Every]);
        let entry = page.entry_of(Key::Every).expect("laid out");
        entry.set_core(Share::from_parts(3000));
        assert_eq!(entry.core().map(Share::parts), Some(3000));
        entry.set_core(None);
        assert_eq!(entry.core(), None);
    }

    #[test]
    fn a_share_that_is_none_says_nothing() {
        let page = laid_out(&[Key::Every]);
        let entry = page.entry_of(Key::Every).expect("laid out");
        for parts in [1, 99, 10_001, u64::MAX] {
            entry.core.store(parts);
            assert_eq!(entry.core(), None, "{parts}");
        }
    }

    #[test]
    fn too_many_gpus_are_refused_whole() {
        let keys: Vec<Key> = (1..=64).map(|number| Key::Name(card(number).gpu())).collect();
        let entries = keys.iter().map(|key| Entry::new(*key)).collect();
        let page = page();
        assert_eq!(page.lay_out(&LimitsFile { entries, ..LimitsFile::default() }), Err(TooMany));
        assert!(!page.is_known());
    }
}
