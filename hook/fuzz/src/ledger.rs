//! What a container's ledger and its page of live limits can reach in `status`, `metrics`, `explain` and `limit`.
//!
//! A ledger is 16 MiB, of which a file of a few hundred bytes says what to write where: records of twelve bytes, each a
//! place and a word. They are applied to a ledger with two honest processes, and taken back afterwards.

use gpucap_core::ledger::{DEVICES, Identity, Kind, Ledger, SLOTS};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::live::{ENTRIES, LivePage};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A structure of atomic words, and the same words one by one.
struct Memory<T: 'static> {
    whole: &'static T,
    words: &'static [AtomicU64],
}

/// A record: what kind of place, which one, the word in it, and what to write there.
pub(crate) const RECORD: usize = 12;
/// How many words the header has, and where the parts behind it begin, in words: the shape of the file, which its tests
/// hold.
const HEADER: usize = 16;
const DEVICES_AT: usize = 4096 / 8;
const OWNERS_AT: usize = 20480 / 8;
const BOOKS_AT: usize = 86016 / 8;

/// What to write into a ledger, which is then read as the host reads it.
pub fn ledger(bytes: &[u8]) {
    let (memory, live) = &*memories();
    let written: Vec<(&AtomicU64, u64)> = bytes
        .chunks_exact(RECORD)
        .filter_map(|record| {
            let (target, value) = (target(record, SLOTS), value(record));
            let word = match target {
                TargetWord::Ledger(at) => memory.words.get(at),
                TargetWord::Live(at) => live.words.get(at % live.words.len()),
            }?;
            Some((word, word.swap(value, Relaxed)))
        })
        .collect();
    read_ledger(memory.whole);
    read_live(live.whole);
    // The first value of a word that was written twice is written last.
    written.iter().rev().for_each(|(word, before)| word.store(*before, Relaxed));
}

/// Everything that `status` reads.
fn read_ledger(ledger: &Ledger) {
    const NOW: u64 = 1 << 40;
    let _ = ledger.check(Ledger::SIZE);
    let devices: Vec<_> = ledger.devices().collect();
    assert!(devices.len() <= DEVICES, "{} devices", devices.len());
    for device in &devices {
        let _ = ledger.busy_share(device.device, NOW);
        let _ = ledger.bucket(device.device).map(|word| word.load());
        assert!(ledger.find_device(device.uuid).is_some(), "a device that is not found");
    }
    let mut processes = 0;
    for process in ledger.processes() {
        processes += 1;
        for account in process.accounts() {
            let _ = process.busy_share(account.device, NOW);
            assert_eq!(process.account(account.device), Some(account), "another account");
        }
    }
    assert!(processes <= SLOTS, "{processes} processes");
}

/// Everything that `limit` and `status` read.
fn read_live(page: &LivePage) {
    if page.is_known() {
        for entry in &LimitsFile::default().entries {
            let _ = page.entry_of(entry.key).map(|entry| (entry.memory(), entry.core()));
        }
        let every = page.entry_of("*".parse().expect("a key"));
        let _ = every.map(|entry| (entry.memory(), entry.core()));
    }
    assert!(LivePage::SIZE >= ENTRIES as u64 * 8, "shorter than its entries");
}

/// Where a record writes.
pub(crate) enum TargetWord {
    /// The word of this number of the ledger.
    Ledger(usize),
    /// The word of this number of the page of live limits.
    Live(usize),
}

/// Where a record writes; of slots, one of the first `slots`.
pub(crate) fn target(record: &[u8], slots: usize) -> TargetWord {
    let index = usize::from(u16::from_le_bytes([record[1], record[2]]));
    let word = usize::from(record[3]);
    TargetWord::Ledger(match record[0] % 5 {
        0 => word % HEADER,
        1 => DEVICES_AT + index % DEVICES * 32 + word % 32,
        2 => OWNERS_AT + index % slots * 8 + word % 8,
        3 => BOOKS_AT + (index / SLOTS * SLOTS + index % slots) * 32 + word % 32,
        _ => return TargetWord::Live(index),
    })
}

/// What a record writes.
pub(crate) fn value(record: &[u8]) -> u64 {
    record.get(4..RECORD).and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes)
}

type Both = (Memory<Ledger>, Memory<LivePage>);

/// The memories, made once; one look at a time.
fn memories() -> MutexGuard<'static, Both> {
    static MEMORIES: OnceLock<Mutex<Both>> = OnceLock::new();
    let made = MEMORIES.get_or_init(|| Mutex::new((honest(), zeroed(LivePage::SIZE))));
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A ledger with two processes, of which each holds something.
fn honest() -> Memory<Ledger> {
    let memory: Memory<Ledger> = zeroed(Ledger::SIZE);
    memory.whole.format();
    for pid in [7, 8] {
        let owner = Identity { pid_namespace: 1, pid, start_time: 2, image: 0x7ffd_0000_1000 };
        let slot = memory.whole.claim(owner, 3, &|_| true).expect("a slot");
        for uuid in [*b"0123456789abcdef", *b"fedcba9876543210"] {
            let device = memory.whole.device(uuid).expect("a device");
            memory
                .whole
                .line(slot, device)
                .expect("a line")
                .charge(Kind::Alloc, 4096, 8192)
                .expect("charged");
        }
    }
    memory
}

fn zeroed<T>(bytes: u64) -> Memory<T> {
    let count = usize::try_from(bytes / 8).expect("a size");
    let words: &'static [AtomicU64] =
        (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    assert_eq!(size_of::<T>(), size_of_val(words), "not made of words");
    // SAFETY: ledger and live page promise to be atomic words only, valid at any value; there are as many here as they
    // have, as was just seen, and they are never freed.
    let whole = unsafe { &*words.as_ptr().cast::<T>() };
    Memory { whole, words }
}
