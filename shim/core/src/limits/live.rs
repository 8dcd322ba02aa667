//! What the node has said about a container's limits since it started: a page that the shim maps.
//!
//! The hook puts it beside the limits file, as `/.gpucap/live`: a file of the host that the container sees on a mount
//! which it cannot write. To change limits (`gpucap limit`), the host writes into the page, and a process that has
//! mapped it sees the change at its next allocation or launch, without polling and without notification.
//!
//! ```text
//! 0     magic, version, 6 reserved words
//! 64    63 x 64 B: the GPU (two halves of its UUID; all ones: any that no other entry names), memory, core, core_max,
//!       priority, 2 reserved
//! ```
//!
//! Each quantity is one word, so no reader sees half a change: memory in bytes; core and core_max in parts of
//! [`Share::DENOMINATOR`], core_max all ones for no more than the share; priority 1 for normal, 2 for low. 0 means that
//! the limits file holds. A value in the page replaces that of the file, and of the variables that the file was made
//! of; a lower limit of the process itself applies to both alike. The GPUs are written before the container starts and
//! never change. An older library reads core alone.

use super::device::DeviceFacts;
use super::file::{Key, LimitsFile};
use crate::config::CorePriority;
use crate::sync::Word;
use crate::units::{ComputeLimit, Share};

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
    core_max: Word,
    priority: Word,
    _reserved: [Word; 2],
}

/// The most of a device's time, as the node says it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Most {
    /// The share: nothing is lent.
    Share,
    /// This much.
    UpTo(Share),
}

/// The word of [`Most::Share`].
const NOTHING_LENT: u64 = u64::MAX;
/// The words of the priorities.
const PRIORITIES: [(CorePriority, u64); 2] = [(CorePriority::Normal, 1), (CorePriority::Low, 2)];

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
            place.set_name(entry.key);
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

    /// The entries for a device, as those of the limits file: the one with its UUID and the one with that of its card, or
    /// the one for any GPU.
    #[must_use]
    pub fn entries(&self, device: &DeviceFacts) -> LiveEntries<'_> {
        let own = self.find(device.uuid.halves());
        let card = device.parent.and_then(|card| self.find(card.halves()));
        let any = if own.is_none() && card.is_none() { self.entry_of(Key::Every) } else { None };
        LiveEntries([own.or(any), card])
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

/// The entries of a page for one device.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveEntries<'a>([Option<&'a LiveEntry>; 2]);

impl<'a> LiveEntries<'a> {
    /// Whether the node has said nothing in them since the container started.
    #[must_use]
    pub fn are_silent(&self) -> bool {
        self.0.iter().flatten().all(|entry| entry.is_silent())
    }

    #[cfg(test)]
    pub(crate) const fn one(entry: &'a LiveEntry) -> Self {
        Self([Some(entry), None])
    }

    #[cfg(test)]
    pub(crate) const fn both(own: &'a LiveEntry, card: &'a LiveEntry) -> Self {
        Self([Some(own), Some(card)])
    }

    /// The entry for what the limits file calls so.
    pub(crate) fn of(self, key: Key) -> Option<&'a LiveEntry> {
        self.0.into_iter().flatten().find(|entry| entry.gpu.each_ref().map(Word::load) == name(key))
    }
}

impl LiveEntry {
    #[cfg(test)]
    pub(crate) fn named(key: Key) -> Self {
        let entry = Self::default();
        entry.set_name(key);
        entry
    }

    fn set_name(&self, key: Key) {
        self.gpu.iter().zip(name(key)).for_each(|(word, half)| word.store(half));
    }

    /// Bytes of memory, if the node has said something since the container started.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        Some(self.memory.load()).filter(|bytes| *bytes != 0)
    }

    /// Share of the time, if the node has said something since the container started.
    #[must_use]
    pub fn core(&self) -> Option<Share> {
        share(self.core.load())
    }

    /// Most of the time, if the node has said something since the container started.
    #[must_use]
    pub fn core_max(&self) -> Option<Most> {
        match self.core_max.load() {
            NOTHING_LENT => Some(Most::Share),
            parts => share(parts).map(Most::UpTo),
        }
    }

    /// Priority, if the node has said something since the container started.
    #[must_use]
    pub fn priority(&self) -> Option<CorePriority> {
        let held = self.priority.load();
        PRIORITIES.iter().find(|(_, word)| *word == held).map(|&(priority, _)| priority)
    }

    /// Whether the node has said nothing since the container started.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.memory().is_none() && !self.says_time()
    }

    fn says_time(&self) -> bool {
        self.core().is_some() || self.core_max().is_some() || self.priority().is_some()
    }

    /// The limit of the time that holds where the file has `started`, and says `share` with it; `None` if the node has
    /// said nothing of time since the container started.
    #[must_use]
    pub fn compute(&self, share: Share, started: ComputeLimit) -> Option<ComputeLimit> {
        if !self.says_time() {
            return None;
        }
        let share = self.core().unwrap_or(share);
        let most = match self.core_max() {
            Some(Most::UpTo(most)) => most,
            None if started.borrows() => started.most(),
            Some(Most::Share) | None => share,
        };
        let is_low = self.priority().map_or_else(
            || started.guaranteed().is_none(),
            |priority| priority == CorePriority::Low,
        );
        Some(if is_low {
            ComputeLimit::low_priority(most)
        } else {
            ComputeLimit::burst(share, most)
        })
    }

    /// Says how many bytes hold from now on; `None`: what the limits file says.
    pub fn set_memory(&self, bytes: Option<u64>) {
        self.memory.store(bytes.unwrap_or(0));
    }

    /// Says which share holds from now on; `None`: what the limits file says.
    pub fn set_core(&self, share: Option<Share>) {
        self.core.store(share.map_or(0, |share| share.parts().into()));
    }

    /// Says which most holds from now on; `None`: what the limits file says.
    pub fn set_core_max(&self, most: Option<Most>) {
        self.core_max.store(match most {
            None => 0,
            Some(Most::Share) => NOTHING_LENT,
            Some(Most::UpTo(most)) => most.parts().into(),
        });
    }

    /// Says which priority holds from now on; `None`: what the limits file says.
    pub fn set_priority(&self, priority: Option<CorePriority>) {
        let word = |priority| PRIORITIES.iter().find(|(own, _)| *own == priority);
        self.priority.store(priority.and_then(word).map_or(0, |&(_, word)| word));
    }
}

fn share(parts: u64) -> Option<Share> {
    u16::try_from(parts).ok().and_then(Share::from_parts)
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
        assert!(page().entries(&facts(card(0), None)).are_silent());
    }

    #[test]
    fn a_page_that_says_nothing_leaves_the_file() {
        let page = laid_out(&[Key::Every]);
        let entries = page.entries(&facts(card(1), None));
        assert!(page.is_known() && entries.of(Key::Every).is_some() && entries.are_silent());
    }

    #[test]
    fn a_device_has_its_own_entry_and_its_cards_or_that_of_any() {
        let [one, two] = [card(1), card(2)].map(|card| Key::Name(card.gpu()));
        let instance = Key::Name(card(3).mig());
        let page = laid_out(&[Key::Every, one, two, instance]);
        let has = |device: DeviceFacts| {
            let entries = page.entries(&device);
            [Key::Every, one, two, instance].map(|key| entries.of(key).is_some())
        };
        assert_eq!(has(facts(card(1), None)), [false, true, false, false]);
        assert_eq!(has(facts(card(9), Some(card(1)))), [false, true, false, false]);
        assert_eq!(has(facts(card(3), Some(card(2)))), [false, false, true, true]);
        assert_eq!(has(facts(card(9), None)), [true, false, false, false]);
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
    fn what_the_node_says_of_time_is_one_limit_with_the_file() {
        let percent = |number| Share::from_percent(number).expect("a share");
        let (fixed, lent) =
            (ComputeLimit::fixed(percent(30)), ComputeLimit::burst(percent(30), percent(80)));
        let low = ComputeLimit::low_priority(percent(80));
        let said = |core, most, priority, started| {
            let entry = LiveEntry::default();
            entry.set_core(Share::from_percent(core));
            entry.set_core_max(most);
            entry.set_priority(priority);
            entry.compute(percent(30), started).map(|limit| limit.to_string())
        };
        let normal = Some(CorePriority::Normal);
        let is_low = Some(CorePriority::Low);
        for (said, expected) in [
            (said(0, None, None, lent), None),
            (said(40, None, None, fixed), Some("40%")),
            (said(40, None, None, lent), Some("40% (to 80%)")),
            (said(90, None, None, lent), Some("90%")),
            (said(0, Some(Most::Share), None, lent), Some("30%")),
            (said(20, Some(Most::Share), None, lent), Some("20%")),
            (said(0, Some(Most::UpTo(Share::FULL)), None, fixed), Some("30% (to 100%)")),
            (said(0, None, is_low, fixed), Some("low (to 30%)")),
            (said(0, None, is_low, lent), Some("low (to 80%)")),
            (said(20, None, None, low), Some("low (to 80%)")),
            (said(20, None, normal, low), Some("20% (to 80%)")),
            (said(20, Some(Most::Share), normal, low), Some("20%")),
        ] {
            assert_eq!(said.as_deref(), expected);
        }
    }

    #[test]
    fn words_that_are_none_say_nothing() {
        let entry = LiveEntry::default();
        for word in [3, 99, 10_001, u64::MAX - 1] {
            entry.core_max.store(word);
            entry.priority.store(word);
            assert_eq!((entry.core_max(), entry.priority()), (None, None), "{word}");
            assert!(entry.is_silent());
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
