//! What the words of a ledger can reach in a process that uses it: any process of the container can write them.
//!
//! The input says what stands where in a ledger, and then what an honest process does with it: it comes, charges, refunds,
//! launches, looks for the dead and goes. It may be refused everything, but it ends, and nothing passes the limit.

use super::card::Card;
use super::ledger::{RECORD, TargetWord, target, value};
use gpucap_core::ledger::{Count, DEVICES, Identity, Kind, Ledger, SLOTS, Slot};
use gpucap_core::throttle::{Allowance, Bucket, Gang, Launch, Meter, Signature, Verdict};
use gpucap_core::units::{ComputeLimit, Share};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

const NOW: u64 = 1 << 40;
const LIMIT: u64 = 1 << 20;
/// Slots that the input may write: behind them a ledger is as it began.
const WRITTEN: usize = 6;
/// The words of the file that the input or the process can have written.
const HEAD: usize = 86016 / 8;
const BOOK: usize = 256 / 8;
const BOOKS: usize = SLOTS * BOOK;

/// The first byte says how many records are words of the ledger; the bytes behind them are what the process does.
pub fn process(bytes: &[u8]) {
    static MEMORY: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let words = &mut *memory;
    clear(words);
    let Some((&count, rest)) = bytes.split_first() else { return };
    let (records, acts) = rest.split_at(rest.len().min(usize::from(count) * RECORD));
    for record in records.chunks_exact(RECORD) {
        if let TargetWord::Ledger(at) = target(record, WRITTEN) {
            words[at] = value(record);
        }
    }
    // SAFETY: a ledger promises to be words only, valid at any value; there are as many here, and they are ours alone
    // for as long as `memory` is locked.
    let ledger = unsafe { &*words.as_ptr().cast::<Ledger>() };
    live(ledger, acts);
}

/// Zeros, as a new file has.
fn clear(words: &mut Vec<u64>) {
    if words.is_empty() {
        words.resize(usize::try_from(Ledger::SIZE).expect("a size") / 8, 0);
    }
    words[..HEAD].fill(0);
    for device in 0..DEVICES {
        let first = HEAD + device * BOOKS;
        // The process takes the first free slot, and what it reaps are slots that were written.
        words[first..first + (WRITTEN + 1) * BOOK].fill(0);
    }
}

/// The life of a process.
fn live(ledger: &Ledger, acts: &[u8]) {
    ledger.format();
    let _ = ledger.check(Ledger::SIZE);
    let Ok(device) = ledger.device(*b"0123456789abcdef") else { return };
    // Of the others, those with even numbers are dead.
    let me = Identity { pid_namespace: 1, pid: 7, start_time: 2, image: 3 };
    let alive = |other: &Identity| other.pid % 2 == 1;
    ledger.executed(me, || acts.len().is_multiple_of(2));
    let Ok(slot) = ledger.claim(me, NOW, &alive) else { return };
    let Some(word) = ledger.bucket(device) else { return };
    let gang = Gang::new(ledger.words_of_devices(), device.index(), 1);
    let share = Share::from_percent(50).expect("a share");
    let mut meter = Meter::new(Bucket::new(word, share), NOW).among(gang);
    let (stream, allowance, mut now) = (meter.stream(NOW), Arc::<Allowance>::default(), NOW);
    let (count, present) = (Count::default(), Cell::new(1));
    for act in acts.chunks_exact(2) {
        let size = u64::from(act[1]) << (act[0] >> 4);
        now += size << 10;
        match act[0] % 8 {
            // It looks at each slot, so it is done where the input says so.
            0 if size == 0 => ledger.live_in(Ledger::boot_of(b"a boot")),
            0 | 1 => {
                let all_live = || ledger.all_live(&count, &|| Some(present.get()));
                let charged = ledger.or_reap(
                    || ledger.line(slot, device).expect("a line").charge(Kind::Alloc, size, LIMIT),
                    &all_live,
                    &alive,
                );
                assert!(charged.is_err() || ledger.used(device) <= LIMIT, "beyond the limit");
            }
            2 => ledger.line(slot, device).expect("a line").refund(Kind::Alloc, size),
            3 => {
                let launch = Launch::kernel(Signature::kernel(size, 1));
                let launch = if size % 2 == 0 { launch.collective(now) } else { launch };
                let verdict = meter.before_launch(stream, &allowance, launch, now, &mut Card);
                match verdict {
                    Verdict::Admit(permit) => {
                        meter.launched(permit, now, Some([now, now + (size << 10)]), &mut Card);
                    }
                    Verdict::Wait { until, .. } => assert!(until > now, "a wait without an end"),
                }
            }
            4 => {
                let share = Share::from_percent(1 + u16::from(act[1]) % 100).expect("a share");
                let most = Share::from_percent(1 + u16::from(act[1]) / 3).expect("a share");
                let limit = match (act[0] >> 4) % 3 {
                    0 => ComputeLimit::fixed(share),
                    1 => ComputeLimit::burst(share, most),
                    _ => ComputeLimit::low_priority(most),
                };
                meter.set_limit(limit, now);
                meter.settle_finished(now, &mut Card);
                meter.set_shared(size % 2 == 0);
                let _ = meter.watch(now, &mut Card);
            }
            5 => {
                ledger.unfinished(slot, device, (size % 2 == 0).then_some(now));
                ledger.alive_at(slot, device, (size % 3 == 0).then_some(now));
                let meter = RefCell::new(&mut meter);
                let died = |at: usize| {
                    let number = u16::try_from(at).expect("a slot").saturating_add(1);
                    meter.borrow_mut().sibling_died(number);
                };
                let owed = |left| {
                    let owed_ns = meter.borrow_mut().inherit(left, now);
                    ledger.worked_unfinished(device, now, owed_ns);
                };
                ledger.find_dead(device, slot, &alive, |at| at % 2 == 0, died, owed);
            }
            6 => {
                present.set(size);
                let _ = ledger.is_time_to_look(now, size);
                ledger.reap(&alive);
                ledger.line(slot, device).expect("a line").count_refusal();
            }
            _ => ledger.worked(slot, device, now, size << 10),
        }
    }
    leave(ledger, slot, me);
}

/// It ends and is reaped, and holds nothing any more.
fn leave(ledger: &Ledger, slot: Slot, me: Identity) {
    ledger.reap(&|other| *other != me);
    let left = ledger.processes().find(|process| process.slot() == slot.index());
    assert!(left.is_none_or(|process| process.identity.pid != 7), "it is still there");
}
