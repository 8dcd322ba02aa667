//! The usage page: what the processes of a container publish for all other processes that use the same GPUs.
//!
//! One small file per container. Only the container's own processes write it; the processes of every container of the
//! node read it. These containers do not trust one another, so each has a file of its own that no other container can
//! write, and the file names no program, no container and no amount of memory.
//!
//! ```text
//! 0      magic, version, one more than the highest seat ever taken, 5 reserved words
//! 64     64 x 16 B: the GPU (two halves of its UUID), by its device index in the container's ledger
//! 1088   64 x 8 B: until when the container is in debt there, in ns since 1970, by device index
//! 1600   64 x 8 B: how many of the container's processes use it, by device index; 0: not known
//! 4096   64 x 64 x 16 B, by device index and then by slot of the ledger: the usage report of a process for a device
//! ```
//!
//! A reader never maps the file, since its writer may truncate it; it copies what it needs. [`Header`] and
//! [`read_seats`] accept any bytes. Each word is read whole; the two words of a seat may be from two moments, which
//! is harmless. A process beyond the 64th publishes nothing. The node publishes pages of its own for processes without
//! reports ([`sampled`]).

pub mod excess;
pub mod held;
pub mod sampled;
pub mod share;

use crate::ledger::{DeviceIndex, SLOTS, Slot};
use crate::sync::Word;
use crate::throttle::UsageReport;
use crate::uuid::Uuid;

/// Where the hook mounts the container's own page.
pub const PATH: &str = "/.gpucap/page";
/// Where the hook mounts the pages of all containers of the node, the own page among them.
pub const DIRECTORY: &str = "/.gpucap/pages";
/// The first word of a page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gpucapCP");
/// The layout that this crate reads and writes.
pub const VERSION: u64 = 1;
/// A debt that takes less time to be paid for counts for nothing when a container ends: a runtime takes about as long to start
/// the next one. With a second, kernels of 95 ms, one at each start, get 46 % at a limit of 10.
pub const LEAST_DEBT_NS: u64 = 50_000_000;
/// The number of devices and, for each, of processes that a page has room for.
pub const PLACES: usize = 64;

/// The usage page of a container.
#[derive(Debug)]
#[repr(C)]
pub struct UsagePage {
    magic: Word,
    version: Word,
    high_water: Word,
    _reserved: [Word; 5],
    gpus: [[Word; 2]; PLACES],
    debts: [Word; PLACES],
    users: [Word; PLACES],
    _room: [Word; 248],
    seats: [[Seat; PLACES]; PLACES],
}

/// The usage report of one process for one device.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Seat {
    work: Word,
    occupied: Word,
}

const WORD: usize = size_of::<u64>();
const GPUS_AT: usize = 64;
const DEBTS_AT: usize = GPUS_AT + PLACES * 2 * WORD;
const USERS_AT: usize = DEBTS_AT + PLACES * WORD;
const SEATS_AT: usize = 4096;

#[cfg(not(loom))]
const _: () = {
    assert!(std::mem::offset_of!(UsagePage, gpus) == GPUS_AT);
    assert!(std::mem::offset_of!(UsagePage, debts) == DEBTS_AT);
    assert!(std::mem::offset_of!(UsagePage, users) == USERS_AT);
    assert!(std::mem::offset_of!(UsagePage, seats) == SEATS_AT);
    assert!(UsagePage::SIZE == 69_632);
};

impl UsagePage {
    /// The length of the file.
    pub const SIZE: u64 = size_of::<Self>() as u64;

    /// Makes a zeroed file a page. Any number of processes may do this, at the same time and repeatedly.
    pub fn format(&self) {
        for (word, value) in [(&self.version, VERSION), (&self.magic, MAGIC)] {
            // A file of another format is left for `is_known` to refuse.
            let _ = word.replace(0, value);
        }
    }

    /// Whether this is a page that this version understands.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.magic.load() == MAGIC && self.version.load() == VERSION
    }

    /// Returns the seat of a process on a device; `None` if the page has no room for it.
    #[must_use]
    pub fn take(
        &self,
        device: DeviceIndex,
        gpu: Uuid,
        slot: Slot,
        now: u64,
    ) -> Option<OwnSeat<'_>> {
        let seat = self.seats.get(device.index())?.get(slot.index())?;
        let words = self.gpus.get(device.index())?;
        words.iter().zip(gpu.halves()).for_each(|(word, half)| word.store(half));
        self.high_water.raise(slot.index() as u64 + 1);
        let own = OwnSeat { seat, before: seat.report(), taken_at: now };
        // The seat's previous process may have died with work in flight.
        own.publish(UsageReport::default());
        Some(own)
    }

    /// Publishes until when the container is in debt on a device, in ns since 1970; 0: it is not. The node reads it when the
    /// container has ended ([`debts`](Self::debts)).
    pub fn set_debt(&self, device: DeviceIndex, until: u64) {
        if let Some(debt) = self.debts.get(device.index()) {
            debt.store(until);
        }
    }

    /// Publishes how many processes of the container use a device: `count` returns it. Processes that do so at the same time
    /// end with a number that one of them has counted after all stores of the others.
    pub fn set_users(&self, device: DeviceIndex, count: impl Fn() -> usize) {
        let Some(users) = self.users.get(device.index()) else { return };
        let mut counted = count();
        // Others come, but not for ever.
        for _ in 0..SLOTS {
            users.store(counted as u64);
            let again = count();
            if again == counted {
                return;
            }
            counted = again;
        }
    }

    /// Returns on which GPUs the container is in debt, and until when, in ns since 1970.
    pub fn debts(&self) -> impl Iterator<Item = (Uuid, u64)> {
        let debts = self.gpus.iter().zip(&self.debts).map(|(gpu, debt)| (gpu, debt.load()));
        let in_debt = debts.filter(|(_, until)| *until > 0);
        in_debt.map(|(gpu, until)| (Uuid::of_halves(gpu.each_ref().map(Word::load)), until))
    }

    /// Returns the usage reports of a device's processes by slot, as [`read_seats`] decodes them from a file.
    pub fn reports(&self, device: DeviceIndex) -> impl Iterator<Item = (usize, UsageReport)> {
        let taken = usize::try_from(self.high_water.load()).unwrap_or(PLACES);
        let seats = self.seats.get(device.index()).into_iter().flatten().take(taken);
        seats.map(Seat::report).enumerate().filter(|(_, report)| *report != UsageReport::default())
    }

    /// Ends what a dead process's report, as it was found, says of the present. If another process has its place by now
    /// and has published, nothing changes.
    pub fn end(&self, device: DeviceIndex, slot: usize, found: UsageReport, now: u64) {
        let seat = self.seats.get(device.index()).and_then(|seats| seats.get(slot));
        if let Some(seat) = seat {
            let _ = seat.occupied.replace(found.occupied, found.ended(now).occupied);
        }
    }
}

impl Seat {
    fn report(&self) -> UsageReport {
        UsageReport { work: self.work.load(), occupied: self.occupied.load() }
    }
}

/// A seat that a process has taken. Its sums continue those of the seat's previous process: for readers all processes
/// of a seat are one, and the work of the next one is visible although its own sums begin at zero.
#[derive(Debug)]
pub struct OwnSeat<'p> {
    seat: &'p Seat,
    before: UsageReport,
    taken_at: u64,
}

impl OwnSeat<'_> {
    /// Publishes this process's report.
    pub fn publish(&self, report: UsageReport) {
        let report = report.after(self.before, self.taken_at);
        self.seat.work.store(report.work);
        self.seat.occupied.store(report.occupied);
    }
}

/// The beginning of a page: whether it is valid, and for which devices it has reports.
#[derive(Debug)]
pub struct Header<'a>(&'a [u8]);

impl<'a> Header<'a> {
    /// The number of bytes of the file that it needs.
    pub const SIZE: usize = USERS_AT + PLACES * WORD;

    /// Decodes the first [`SIZE`](Self::SIZE) bytes of a file; `None` if they are not a page of a supported version.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let known = word(bytes, 0) == Some(MAGIC) && word(bytes, 1) == Some(VERSION);
        known.then_some(Self(bytes)).filter(|_| bytes.len() >= Self::SIZE)
    }

    /// Returns the offset and length in bytes of the seats of a device that may have been taken; `None` if no
    /// process has used that device.
    #[must_use]
    pub fn seats(&self, gpu: Uuid) -> Option<(usize, usize)> {
        let row = self.row(gpu)?;
        let taken = usize::try_from(word(self.0, 2)?).unwrap_or(PLACES).min(PLACES);
        Some((SEATS_AT + row * PLACES * size_of::<Seat>(), taken * size_of::<Seat>()))
    }

    /// Returns how many processes of the container use a device and may have a seat; `None` if that is not known, as of a
    /// container with an earlier version.
    #[must_use]
    pub fn users(&self, gpu: Uuid) -> Option<usize> {
        let users = word(self.0, USERS_AT / WORD + self.row(gpu)?)?;
        (users > 0).then(|| usize::try_from(users).unwrap_or(PLACES).min(PLACES))
    }

    fn row(&self, gpu: Uuid) -> Option<usize> {
        let is_it = |row: &usize| {
            let at = GPUS_AT / WORD + row * 2;
            gpu.halves().into_iter().zip(at..).all(|(half, at)| word(self.0, at) == Some(half))
        };
        (0..PLACES).find(is_it)
    }
}

/// Returns the published reports of a page by slot, without empty seats.
pub fn read_seats(bytes: &[u8]) -> impl Iterator<Item = (usize, UsageReport)> {
    let report = |seat: &[u8]| Some(UsageReport { work: word(seat, 0)?, occupied: word(seat, 1)? });
    let seats = bytes.chunks_exact(size_of::<Seat>()).enumerate();
    let seats = seats.filter_map(move |(slot, seat)| Some((slot, report(seat)?)));
    seats.filter(|(_, report)| *report != UsageReport::default())
}

fn word(bytes: &[u8], place: usize) -> Option<u64> {
    let at = place * WORD;
    let word = bytes.get(at..at + WORD)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

#[cfg(all(test, not(loom)))]
mod tests;
