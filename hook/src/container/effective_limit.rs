//! What a container may use of each GPU: what it was given when it started, and what holds now.
//!
//! The limits file says the former; the page that `gpucap limit` writes says the latter, as far as the host has said
//! anything since. What a process asks of itself by variables of its own is not known here: it only lowers
//! (`gpucap_core::limits`).

use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Key, MemoryLimit};
use gpucap_core::limits::live::{LiveEntry, LivePage};
use gpucap_core::units::{Amount, Bytes, ComputeLimit};
use gpucap_core::uuid::{Kind, Uuid};

/// Memory and time of one GPU.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Limit {
    /// Of its memory.
    pub(crate) memory: MemoryLimit,
    /// Of its time. `None`: not limited.
    pub(crate) core: Option<ComputeLimit>,
}

/// One GPU of a container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct EffectiveLimit {
    /// As the limits file calls it.
    pub(crate) gpu: Key,
    /// What holds.
    pub(crate) now: Limit,
    /// What it was given when it started.
    pub(crate) at_start: Limit,
}

impl EffectiveLimit {
    /// All GPUs of a container.
    pub(crate) fn all(limits: &LimitsFile, page: Option<&LivePage>) -> Vec<Self> {
        let place = |entry: &Entry| page.and_then(|page| page.entry_of(entry.key));
        limits.entries.iter().map(|entry| Self::of(entry, place(entry))).collect()
    }

    /// One of them.
    pub(crate) fn of(entry: &Entry, page: Option<&LiveEntry>) -> Self {
        let at_start = Limit { memory: entry.memory, core: entry.compute() };
        // As in the library: what was not limited when it started is not limited later.
        let memory = page.and_then(LiveEntry::memory).filter(|_| entry.memory != MemoryLimit::NONE);
        let time = page.zip(entry.core).zip(at_start.core);
        let core = time.and_then(|((page, share), started)| page.compute(share, started));
        let now = Limit {
            memory: memory.map_or(entry.memory, |bytes| Amount::Bytes(Bytes(bytes)).into()),
            core: core.or(at_start.core),
        };
        Self { gpu: entry.key, now, at_start }
    }

    /// Returns the limit of this device: that of the entry that names it, else that of the entry for all unnamed
    /// GPUs. Without either, only named GPUs are allowed, so this device is a MIG instance that is limited under the
    /// name of its GPU. The ledger does not record which GPU it is on, so a limit is found only if all GPUs have the
    /// same.
    pub(crate) fn find(all: &[Self], uuid: Uuid) -> Option<Self> {
        let named =
            |effective: &&Self| matches!(effective.gpu, Key::Name(name) if name.uuid == uuid);
        let any = |effective: &&Self| effective.gpu == Key::Every;
        let found = all.iter().find(named).or_else(|| all.iter().find(any)).copied();
        found.or_else(|| Self::of_card(all, uuid))
    }

    fn of_card(all: &[Self], instance: Uuid) -> Option<Self> {
        let is_card = |gpu| matches!(gpu, Key::Name(name) if name.kind == Kind::Gpu);
        let mut cards = all.iter().filter(|effective| is_card(effective.gpu));
        let first = *cards.next()?;
        let same =
            |effective: &Self| (effective.now, effective.at_start) == (first.now, first.at_start);
        cards.all(same).then_some(Self { gpu: Key::Name(instance.mig()), ..first })
    }

    /// Bytes that it may hold, if that is a number of bytes: of how many bytes a percentage is one, a ledger does not
    /// say.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self.now.memory {
            MemoryLimit { bytes: Some(bytes), part: None } => Some(bytes.0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpucap_core::config::CorePriority;
    use gpucap_core::limits::live::Most;
    use gpucap_core::units::Share;

    const GIB: u64 = 1 << 30;

    fn share(percent: u16) -> Option<Share> {
        Share::from_percent(percent)
    }

    fn fixed(percent: u16) -> Option<ComputeLimit> {
        share(percent).map(ComputeLimit::fixed)
    }

    fn memory(bytes: u64) -> MemoryLimit {
        Amount::Bytes(Bytes(bytes)).into()
    }

    fn entry(key: Key, bytes: u64, percent: u16) -> Entry {
        Entry { memory: memory(bytes), core: share(percent), ..Entry::new(key) }
    }

    #[test]
    fn what_the_host_has_said_since_holds_now() {
        let page = LiveEntry::default();
        let started = entry(Key::Every, GIB, 30);
        let at_start = Limit { memory: memory(GIB), core: fixed(30) };
        assert_eq!(EffectiveLimit::of(&started, None).now, at_start);
        assert_eq!(EffectiveLimit::of(&started, Some(&page)).now, at_start);
        page.set_memory(Some(2 * GIB));
        let effective = EffectiveLimit::of(&started, Some(&page));
        assert_eq!(
            (effective.bytes(), effective.now.core, effective.at_start),
            (Some(2 * GIB), fixed(30), at_start)
        );
        page.set_core(share(60));
        assert_eq!(EffectiveLimit::of(&started, Some(&page)).now.core, fixed(60));
        page.set_core_max(share(90).map(Most::UpTo));
        let now = EffectiveLimit::of(&started, Some(&page)).now.core;
        assert_eq!(now.map(|it| it.to_string()).as_deref(), Some("60% (to 90%)"));
        page.set_priority(Some(CorePriority::Low));
        let now = EffectiveLimit::of(&started, Some(&page)).now.core;
        assert_eq!(now.map(|it| it.to_string()).as_deref(), Some("low (to 90%)"));
    }

    #[test]
    fn what_was_not_limited_is_not_limited_later() {
        let page = LiveEntry::default();
        page.set_memory(Some(GIB));
        page.set_core(share(60));
        let effective = EffectiveLimit::of(&Entry::new(Key::Every), Some(&page));
        assert_eq!(effective.now, Limit::default());
    }

    #[test]
    fn a_device_has_what_names_it_or_what_is_for_any() {
        let uuid = |number| Uuid([number; 16]);
        let limits = LimitsFile {
            entries: vec![entry(Key::Name(uuid(1).gpu()), GIB, 10), entry(Key::Every, 2 * GIB, 20)],
            ..LimitsFile::default()
        };
        let all = EffectiveLimit::all(&limits, None);
        let of = |number| {
            EffectiveLimit::find(&all, uuid(number)).and_then(|effective| effective.bytes())
        };
        assert_eq!((of(1), of(2)), (Some(GIB), Some(2 * GIB)));
    }

    #[test]
    fn an_instance_has_what_its_card_has_if_no_other_card_has_more_or_less() {
        let uuid = |number| Uuid([number; 16]);
        let effective =
            |entries| EffectiveLimit::all(&LimitsFile { entries, ..LimitsFile::default() }, None);
        let card = |number, bytes| entry(Key::Name(uuid(number).gpu()), bytes, 10);
        let instance = |all: &[EffectiveLimit]| EffectiveLimit::find(all, uuid(9));
        let found = instance(&effective(vec![card(1, GIB), card(2, GIB)])).expect("a limit");
        assert_eq!((found.gpu, found.bytes()), (Key::Name(uuid(9).mig()), Some(GIB)));
        assert_eq!(instance(&effective(vec![card(1, GIB), card(2, 2 * GIB)])), None);
        // Another instance is no card.
        let other = entry(Key::Name(uuid(3).mig()), GIB, 10);
        assert_eq!(instance(&effective(vec![other])), None);
        let both = effective(vec![other, card(1, 2 * GIB)]);
        assert_eq!(instance(&both).and_then(|effective| effective.bytes()), Some(2 * GIB));
    }

    #[test]
    fn a_percentage_is_no_number_of_bytes() {
        let part = MemoryLimit { part: share(25), ..memory(GIB) };
        assert_eq!(
            EffectiveLimit::of(&Entry { memory: part, ..Entry::new(Key::Every) }, None).bytes(),
            None
        );
    }
}
