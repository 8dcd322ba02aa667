//! Pages are read as they were written, and arbitrary bytes are harmless.

use proptest::prelude::*;

use super::*;
use crate::ledger::{Identity, Ledger};

fn page() -> UsagePage {
    UsagePage {
        magic: Word::default(),
        version: Word::default(),
        high_water: Word::default(),
        _reserved: Default::default(),
        gpus: std::array::from_fn(|_| Default::default()),
        debts: std::array::from_fn(|_| Word::default()),
        users: std::array::from_fn(|_| Word::default()),
        _room: std::array::from_fn(|_| Word::default()),
        seats: std::array::from_fn(|_| std::array::from_fn(|_| Seat::default())),
    }
}

/// The file, as a reader sees it.
fn file(page: &UsagePage) -> Vec<u8> {
    let header = [&page.magic, &page.version, &page.high_water].into_iter().chain(&page._reserved);
    let seats = page.seats.iter().flatten().flat_map(|seat| [&seat.work, &seat.occupied]);
    let debts = page.debts.iter().chain(&page.users).chain(&page._room);
    let words = header.chain(page.gpus.iter().flatten()).chain(debts).chain(seats);
    words.flat_map(|word| word.load().to_le_bytes()).collect()
}

fn read(file: &[u8], gpu: Uuid) -> Option<Vec<(usize, UsageReport)>> {
    let (offset, length) = Header::read(&file[..Header::SIZE])?.seats(gpu)?;
    Some(read_seats(&file[offset..offset + length]).collect())
}

const FIRST: Uuid = Uuid([7; 16]);
const SECOND: Uuid = Uuid([9; 16]);

const NOW: u64 = 1_000_000;

/// Two processes of a ledger that has two devices.
fn taken(page: &UsagePage) -> [OwnSeat<'_>; 3] {
    let ledger = Ledger::zeroed();
    let identity = |pid| Identity { pid_namespace: 1, pid, start_time: 1, image: 1 };
    let slot = |pid| ledger.claim(identity(pid), 0, &|_| true).unwrap();
    let (one, two) = (slot(1), slot(2));
    let [first, second] = [FIRST, SECOND].map(|gpu| ledger.device(gpu.0).unwrap());
    let seat = |device, gpu, slot| page.take(device, gpu, slot, NOW).unwrap();
    [seat(first, FIRST, one), seat(second, SECOND, one), seat(second, SECOND, two)]
}

#[test]
fn users_are_of_a_gpu_and_no_more_than_have_seats() {
    let page = page();
    page.format();
    let _ = taken(&page);
    let ledger = Ledger::zeroed();
    let [first, second] = [FIRST, SECOND].map(|gpu| ledger.device(gpu.0).unwrap());
    let users = |gpu| Header::read(&file(&page)).unwrap().users(gpu);
    assert_eq!([FIRST, SECOND].map(users), [None, None], "as of an earlier version");
    page.set_users(second, || 3);
    assert_eq!([FIRST, SECOND].map(users), [None, Some(3)]);
    page.set_users(first, || usize::MAX);
    assert_eq!([FIRST, SECOND].map(users), [Some(PLACES), Some(3)]);
    assert_eq!(users(Uuid([1; 16])), None);
}

/// One comes while another one counts, and each stores what it has counted.
#[test]
fn the_last_to_publish_has_counted_all() {
    let page = page();
    page.format();
    let _ = taken(&page);
    let device = Ledger::zeroed().device(FIRST.0).unwrap();
    let counts = std::cell::Cell::new(0);
    page.set_users(device, || {
        counts.set(counts.get() + 1);
        if counts.get() == 1 { 1 } else { 2 }
    });
    assert_eq!(Header::read(&file(&page)).unwrap().users(FIRST), Some(2));
}

#[test]
fn debts_are_of_a_gpu() {
    let page = page();
    let _ = taken(&page);
    let ledger = Ledger::zeroed();
    let [first, second] = [FIRST, SECOND].map(|gpu| ledger.device(gpu.0).unwrap());
    page.set_debt(second, 5);
    assert_eq!(page.debts().collect::<Vec<_>>(), [(SECOND, 5)]);
    page.set_debt(first, 7);
    page.set_debt(second, 0);
    assert_eq!(page.debts().collect::<Vec<_>>(), [(FIRST, 7)]);
}

#[test]
fn reports_are_read_by_device_and_process() {
    let page = page();
    page.format();
    assert!(page.is_known());
    let report = [1, 2, 3].map(|n| UsageReport { work: n * 100, occupied: n * 10 });
    taken(&page).into_iter().zip(report).for_each(|(seat, report)| seat.publish(report));
    let file = file(&page);
    assert_eq!(file.len() as u64, UsagePage::SIZE);
    assert_eq!(read(&file, FIRST), Some(vec![(0, report[0])]));
    assert_eq!(read(&file, SECOND), Some(vec![(0, report[1]), (1, report[2])]));
    assert_eq!(read(&file, Uuid([1; 16])), None);
    let ledger = Ledger::zeroed();
    for gpu in [FIRST, SECOND] {
        let device = ledger.device(gpu.0).unwrap();
        assert_eq!(Some(page.reports(device).collect()), read(&file, gpu));
    }
}

/// Whatever process had the seat before, and however it ended: the work of the next one is seen, and nothing else.
#[test]
fn the_sums_of_a_seat_go_on_from_one_process_to_the_next() {
    const OUT: u64 = 1 << 63;
    let page = page();
    page.format();
    let report = |page: &UsagePage| read(&file(page), FIRST).unwrap();
    let [seat, ..] = taken(&page);
    // It died with work in flight since 400,000 ns.
    seat.publish(UsageReport { work: 500, occupied: OUT | 600_000 });
    let [seat, ..] = taken(&page);
    assert_eq!(report(&page), [(0, UsageReport { work: 500, occupied: 400_000 })]);
    seat.publish(UsageReport { work: 20, occupied: 30 });
    assert_eq!(report(&page), [(0, UsageReport { work: 520, occupied: 400_030 })]);
    seat.publish(UsageReport { work: 20, occupied: OUT | 1_000_000 });
    assert_eq!(report(&page), [(0, UsageReport { work: 520, occupied: OUT | 600_000 })]);
}

#[test]
fn a_full_page_has_no_seat() {
    let page = page();
    taken(&page);
    page.high_water.store(u64::MAX);
    page.format();
    let file = file(&page);
    let (_, length) = Header::read(&file).unwrap().seats(FIRST).unwrap();
    assert_eq!(length, PLACES * 16);
}

#[test]
fn a_page_of_another_version_is_none() {
    let page = page();
    page.version.store(VERSION + 1);
    page.format();
    assert!(!page.is_known());
    assert!(Header::read(&file(&page)).is_none());
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..3000), known: bool) {
        let mut bytes = bytes;
        if known && bytes.len() >= 16 {
            bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
            bytes[8..16].copy_from_slice(&VERSION.to_le_bytes());
        }
        if let Some((offset, length)) = Header::read(&bytes).and_then(|header| header.seats(Uuid([0; 16]))) {
            prop_assert!((offset + length) as u64 <= UsagePage::SIZE);
        }
        prop_assert!(read_seats(&bytes).count() <= bytes.len() / 16);
    }
}

#[test]
fn the_report_of_a_dead_process_says_nothing_of_the_present() {
    let page = page();
    let ledger = Ledger::zeroed();
    let device = ledger.device(FIRST.0).unwrap();
    let identity = Identity { pid_namespace: 1, pid: 1, start_time: 1, image: 1 };
    let slot = ledger.claim(identity, 0, &|_| true).unwrap();
    let seat = page.take(device, FIRST, slot, NOW).unwrap();
    let report = UsageReport::new(7, 5, Some(NOW)).with_waiting(true).with_held_back(true);
    seat.publish(report);
    page.end(device, slot.index(), report, NOW + 2);
    let reports: Vec<_> = page.reports(device).collect();
    let ended = UsageReport::new(7, 7, None);
    assert_eq!(reports, [(0, ended)], "what it has done stays");
    page.end(device, PLACES, report, NOW);
    let next = page.take(device, FIRST, slot, NOW + 3).unwrap();
    next.publish(UsageReport::new(0, 0, Some(NOW + 3)));
    page.end(device, slot.index(), report, NOW + 4);
    let reports: Vec<_> = page.reports(device).map(|(_, report)| report.is_in_flight()).collect();
    assert_eq!(reports, [true], "another process has published");
}
