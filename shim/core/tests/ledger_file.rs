//! The ledger as a file has it: in zeroed memory, at its full size, byte for byte.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use gpucap_core::ledger::{DEVICES, Full, Identity, Kind, Ledger, MAGIC, SLOTS};

/// A zeroed ledger, and its memory word by word.
fn ledger() -> (&'static Ledger, &'static [AtomicU64]) {
    let words = usize::try_from(Ledger::SIZE / 8).unwrap();
    let memory: &'static [AtomicU64] =
        (0..words).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    // SAFETY: the ledger promises to be atomic words only, valid at any value and aligned as they
    // are; there are as many here as it has, and they are never freed.
    let ledger = unsafe { &*memory.as_ptr().cast::<Ledger>() };
    ledger.format();
    (ledger, memory)
}

fn identity(pid: u32) -> Identity {
    Identity { pid_namespace: 0xf000_0002, pid, start_time: 1000, image: 0x7ffd_0000_1230 }
}

#[test]
fn one_claim_and_one_charge_write_these_words_and_no_others() {
    let (ledger, memory) = ledger();
    let uuid = *b"0123456789abcdef";
    let device = ledger.device(uuid).unwrap();
    let slot = ledger.claim(identity(77), 9, &|_| true).unwrap();
    ledger.line(slot, device).unwrap().charge(Kind::Managed, 4096, 8192).unwrap();

    let written: Vec<(usize, u64)> = memory
        .iter()
        .enumerate()
        .map(|(index, word)| (index * 8, word.load(Relaxed)))
        .filter(|&(_, word)| word != 0)
        .collect();
    let header = [
        (0, MAGIC),
        (8, 1),
        (16, 16_863_232),
        (24, 1024),
        (32, 64),
        (40, /* high water */ 1),
        (48, /* changes */ 1),
    ];
    let device = [
        (4096, /* total: bytes, slot, sequence */ 4096 << 22 | 1),
        (4104, /* peak */ 4096),
        (4224, 1 << 63 | 0x3031_3233),
        (4232, 1 << 63 | 0x3435_3637),
        (4240, 1 << 63 | 0x3839_6162),
        (4248, 1 << 63 | 0x6364_6566),
    ];
    let owner = [
        (20480, /* generation, pid, live */ 1 << 24 | 77 << 2 | 2),
        (20488, 0xf000_0002 << 16 | 1),
        (20496, 1000 << 16 | 1),
        (20504, 0x7ffd_0000_1230 << 16 | 1),
        (20512, /* devices touched */ 1),
        (20520, /* since */ 9),
    ];
    let account = [
        (86016, /* sequence 1, closed */ 1 << 2),
        (86032, /* the odd amount */ 4096),
        (86040, /* cap */ 8192),
        (86048, /* peak */ 4096),
        (86088, /* managed */ 4096),
    ];
    let expected = [&header[..], &device, &owner, &account].concat();
    assert_eq!(written, expected);
}

#[test]
fn work_writes_the_counters_and_the_place_of_its_window() {
    let (ledger, memory) = ledger();
    let device = ledger.device([7; 16]).unwrap();
    let slot = ledger.claim(identity(77), 9, &|_| true).unwrap();
    ledger.worked(slot, device, 3 << 27 | 2000, 1500);
    ledger.launched(slot, device, 4);
    ledger.waited(device, 6);
    let at = |place: usize| memory[place / 8].load(Relaxed);
    let device =
        [/* busy */ 4168, /* waited */ 4176, /* launches */ 4184, 4288 + 3 * 8];
    assert_eq!(device.map(at), [1500, 6, 4, 3 << 32 | 1500]);
    let account = [/* busy */ 86064, /* launches */ 86072, 86208 + 3 * 8];
    assert_eq!(account.map(at), [1500, 4, 3 << 32 | 1500]);
}

#[test]
fn the_last_slot_and_the_last_device_have_the_last_account() {
    let (ledger, memory) = ledger();
    let row = |byte| ledger.device([byte; 16]);
    let last = (0..64).map(|byte| row(byte).unwrap()).max().unwrap();
    assert_eq!((last.index(), row(64)), (DEVICES - 1, Err(Full)));
    let claim = |pid| ledger.claim(identity(pid), 0, &|_| true);
    let slots: Vec<_> = (0..1024).map(|pid| claim(pid).unwrap()).collect();
    let slot = slots[SLOTS - 1];
    assert_eq!((slot.index(), claim(1024)), (SLOTS - 1, Err(Full)));
    ledger.line(slot, last).unwrap().charge(Kind::Alloc, 5, 5).unwrap();
    let account = 86016 + (63 * 1024 + 1023) * 256;
    assert_eq!(memory[account / 8].load(Relaxed), 1 << 2);
    assert_eq!(ledger.reap(&|_| false), SLOTS);
    assert_eq!(ledger.used(last), 0);
}

/// Pages that were never written are not read either: a read makes a page of a sparse file real.
#[test]
fn what_no_process_wrote_is_not_needed() {
    let (ledger, memory) = ledger();
    ledger.device([1; 16]).unwrap();
    ledger.claim(identity(1), 0, &|_| true).unwrap();
    // Accounts with nonsense: a reader of them would act on it.
    memory[86016 / 8..].iter().for_each(|word| word.store(3 << 20, Relaxed));
    assert_eq!(ledger.reap(&|_| true), 0);
    assert!(ledger.processes().all(|process| process.accounts().next().is_none()));
    assert_eq!(ledger.reap(&|_| false), 1);
    assert_eq!(ledger.used(ledger.find_device([1; 16]).unwrap()), 0);
}

/// The total of a new device is zero, as if its latest change had been of the first slot.
#[test]
fn a_first_charge_reads_no_account_of_another_process() {
    let (ledger, memory) = ledger();
    ledger.claim(identity(1), 0, &|_| true).unwrap();
    let slot = ledger.claim(identity(2), 0, &|_| true).unwrap();
    let device = ledger.device([1; 16]).unwrap();
    // What would be the operation that the total names, and open: one that reads it would close it.
    let op = &memory[86016 / 8];
    op.store(4096 << 2 | 1, Relaxed);
    ledger.line(slot, device).unwrap().charge(Kind::Alloc, 5, 10).unwrap();
    assert_eq!((ledger.used(device), op.load(Relaxed)), (5, 4096 << 2 | 1));
}
