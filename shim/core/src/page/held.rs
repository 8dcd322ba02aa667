//! The held page: until when a container is to have no more of a GPU's time, by the driver's samples of it
//! ([`excess`](super::excess)), or because the one before it in its place owed that.
//!
//! The hook makes one for each container that has a usage page, and puts it there as `/.gpucap/held`: a file of the host on a
//! mount that the container can only read. A process maps it where it finds its ledger, so nothing that the process or its
//! container does later (no descriptor left, another root directory) keeps what the node writes from being seen.
//!
//! ```text
//! 0     magic, version, 2 reserved words
//! 32    127 x 32 B: the GPU (two halves of its UUID), two times in ns since 1970: by samples, and by an earlier debt
//! ```
//!
//! The time is the same in each time namespace. The node writes the first one again as it comes to differ, by its clock being
//! set, too. The second one is written once, before the container starts: what the container in whose place it is owed when
//! that ended. One process of the node writes; an entry is taken by a GPU once, and free as long as its UUID is zero.

use super::excess::MOST_HELD_NS;
use crate::sync::Word;
use crate::uuid::Uuid;

/// Its path in a container.
pub const PATH: &str = "/.gpucap/held";
/// What follows the name of a usage page in the name of its held page on the host.
pub const SUFFIX: &str = ".held";
/// The first word of a page that has been laid out.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gpucapHD");
/// The layout that this crate reads and writes.
pub const VERSION: u64 = 1;
/// How many GPUs it has room for.
pub const ENTRIES: usize = 127;

/// The page.
#[derive(Debug)]
#[repr(C)]
pub struct HeldPage {
    magic: Word,
    version: Word,
    _reserved: [Word; 2],
    entries: [Entry; ENTRIES],
}

#[derive(Debug, Default)]
#[repr(C)]
struct Entry {
    gpu: [Word; 2],
    until: Word,
    debt: Word,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<HeldPage>() == 4096);

/// What a free entry has for a GPU.
const FREE: [u64; 2] = [0; 2];
/// On how many GPUs a debt may be kept. A container's word is taken for most of them, so others have room beside those.
pub const MOST_DEBTS: usize = 64;
const _: () = assert!(MOST_DEBTS < ENTRIES);
/// How far off a time of the node may be: its clock may have been set by a little in the mean time. One that is farther off is
/// of another clock.
pub const FARTHEST_NS: u64 = MOST_HELD_NS + 60_000_000_000;

impl HeldPage {
    /// The length of the file.
    pub const SIZE: u64 = size_of::<Self>() as u64;

    /// Makes a zeroed file a page; one that is a page already stays as it is.
    pub fn format(&self) {
        self.version.store(VERSION);
        self.magic.store(MAGIC);
    }

    /// Whether this is a page that this version understands.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.magic.load() == MAGIC && self.version.load() == VERSION
    }

    /// Says until when these GPUs are not to be had by the samples, in ns since 1970; every other one may be. `false`: there
    /// is no room for some of them.
    #[must_use]
    pub fn write(&self, until: &[(Uuid, u64)]) -> bool {
        let of = |entry: &Entry| until.iter().find(|(gpu, _)| gpu.halves() == entry.gpu());
        let time = |entry| of(entry).map_or(0, |(_, until)| *until);
        self.entries.iter().for_each(|entry| entry.until.store(time(entry)));
        let add = |&&(gpu, until): &&(Uuid, u64)| self.add(gpu, |entry| entry.until.store(until));
        until.iter().filter(add).count() == until.len()
    }

    /// Says until when these GPUs are not to be had because of an earlier debt: [`MOST_DEBTS`] of them at most.
    pub fn write_debts(&self, until: &[(Uuid, u64)]) {
        for &(gpu, until) in until.iter().take(MOST_DEBTS) {
            let _ = self.add(gpu, |entry| entry.debt.store(until));
        }
    }

    /// Writes into the entry of a GPU, which gets one. `false`: there is no room.
    fn add(&self, gpu: Uuid, write: impl Fn(&Entry)) -> bool {
        if let Some(entry) = self.find(gpu.halves()) {
            write(entry);
            return true;
        }
        let Some(free) = self.find(FREE) else { return false };
        // Last the name, so that a reader that finds it finds the time.
        write(free);
        free.gpu.iter().zip(gpu.halves()).for_each(|(word, half)| word.store(half));
        true
    }

    /// Returns for how long from `now_ns` since 1970 a GPU is not to be had; 0 if it may be. A time that is farther off than
    /// any that the node writes is one of another clock: it does not count.
    #[must_use]
    pub fn left_ns(&self, gpu: Uuid, now_ns: u64) -> u64 {
        self.find(gpu.halves()).map_or(0, |entry| entry.left_ns(now_ns))
    }

    /// The GPUs that are not to be had, and for how long from `now_ns` since 1970.
    pub fn held(&self, now_ns: u64) -> impl Iterator<Item = (Uuid, u64)> {
        self.left(now_ns, Entry::left_ns)
    }

    /// The same by the samples alone.
    pub fn held_by_samples(&self, now_ns: u64) -> impl Iterator<Item = (Uuid, u64)> {
        self.left(now_ns, |entry, now_ns| left_ns(&entry.until, now_ns))
    }

    fn left(
        &self,
        now_ns: u64,
        left_ns: fn(&Entry, u64) -> u64,
    ) -> impl Iterator<Item = (Uuid, u64)> {
        let taken = self.entries.iter().take_while(|entry| entry.gpu() != FREE);
        let left = taken.map(move |entry| (Uuid::of_halves(entry.gpu()), left_ns(entry, now_ns)));
        left.filter(|(_, left_ns)| *left_ns > 0)
    }

    /// The entry of a GPU. Behind the first free one there is none.
    fn find(&self, gpu: [u64; 2]) -> Option<&Entry> {
        let mut entries = self.entries.iter().map(|entry| (entry.gpu(), entry));
        let found = entries.find(|(of, _)| *of == gpu || *of == FREE);
        found.filter(|(of, _)| *of == gpu).map(|(_, entry)| entry)
    }
}

impl Entry {
    fn gpu(&self) -> [u64; 2] {
        self.gpu.each_ref().map(Word::load)
    }

    fn left_ns(&self, now_ns: u64) -> u64 {
        left_ns(&self.until, now_ns).max(left_ns(&self.debt, now_ns))
    }
}

/// For how long it is until then.
fn left_ns(until: &Word, now_ns: u64) -> u64 {
    let left_ns = until.load().saturating_sub(now_ns);
    if left_ns <= FARTHEST_NS { left_ns } else { 0 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn empty() -> HeldPage {
        HeldPage {
            magic: Word::default(),
            version: Word::default(),
            _reserved: Default::default(),
            entries: core::array::from_fn(|_| Entry::default()),
        }
    }

    fn uuid(number: usize) -> Uuid {
        Uuid([u8::try_from(number).expect("few"); 16])
    }

    #[test]
    fn each_gpu_has_a_time() {
        let page = empty();
        assert!(!page.is_known());
        page.format();
        assert!(page.is_known());
        let left = || [1, 2, 3, 4].map(|gpu| page.left_ns(uuid(gpu), 100));
        // The second is of another clock, the third is past, and the fourth has none.
        assert!(page.write(&[(1, 105), (2, u64::MAX), (3, 99)].map(|(gpu, at)| (uuid(gpu), at))));
        assert_eq!(left(), [5, 0, 0, 0]);
        assert_eq!(page.held(100).collect::<Vec<_>>(), [(uuid(1), 5)]);
        assert!(page.write(&[(4, 103), (3, 101)].map(|(gpu, at)| (uuid(gpu), at))));
        assert_eq!(left(), [0, 0, 1, 3]);
        assert!(page.write(&[]));
        assert_eq!(left(), [0; 4]);
    }

    /// A container may have named any GPUs in its page.
    #[test]
    fn earlier_debts_count_beside_samples_and_leave_them_room() {
        let page = empty();
        let debts: Vec<_> = (1..=ENTRIES).map(|gpu| (uuid(gpu), 9)).collect();
        page.write_debts(&debts);
        assert_eq!(page.held(0).count(), MOST_DEBTS);
        assert!(page.write(&[(uuid(1), 5), (uuid(2), 20), (uuid(ENTRIES), 7)]));
        assert_eq!([1, 2, 3, ENTRIES].map(|gpu| page.left_ns(uuid(gpu), 1)), [8, 19, 8, 6]);
        let sampled = page.held_by_samples(1);
        assert_eq!(
            sampled.collect::<Vec<_>>(),
            [(1, 4), (2, 19), (ENTRIES, 6)].map(|(gpu, left)| (uuid(gpu), left))
        );
        assert!(page.write(&[]));
        assert_eq!([1, 2, ENTRIES].map(|gpu| page.left_ns(uuid(gpu), 1)), [8, 8, 0]);
    }

    #[test]
    fn gpus_for_which_there_is_no_room_are_named() {
        let page = empty();
        let all: Vec<_> = (1..=ENTRIES).map(|gpu| (uuid(gpu), 7)).collect();
        assert!(page.write(&all));
        assert!(!page.write(&[(uuid(ENTRIES + 1), 7), (uuid(ENTRIES), 9)]));
        assert_eq!([1, ENTRIES, ENTRIES + 1].map(|gpu| page.left_ns(uuid(gpu), 0)), [0, 9, 0]);
    }

    proptest! {
        #[test]
        fn any_content_is_harmless(words: [[u64; 4]; 8], gpu: [u8; 16]) {
            let page = empty();
            for (entry, [first, second, until, _]) in page.entries.iter().zip(words) {
                entry.gpu[0].store(first);
                entry.gpu[1].store(second);
                entry.until.store(until);
            }
            let [first, second, ..] = words[0];
            let named = u128::from(first) << 64 | u128::from(second);
            for gpu in [Uuid(gpu), Uuid(named.to_be_bytes())] {
                prop_assert!(page.left_ns(gpu, 0) <= FARTHEST_NS);
                prop_assert!(page.write(&[(gpu, 5)]));
                prop_assert_eq!(page.left_ns(gpu, 2), 3);
            }
        }
    }
}
