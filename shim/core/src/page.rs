//! The card page: what the processes of a container tell everybody else who uses the same cards.
//!
//! One small file per container. Its own processes write it; those of every container of the node read it, who are
//! strangers to each other: so each has a file of its own, on which no other one can write, and nothing in it names a
//! program, a container or how much memory it has.
//!
//! ```text
//! 0      magic, version, one more than the highest seat ever taken, 5 reserved words
//! 64     64 x 16 B: the GPU (two halves of its UUID), by its row in the container's ledger
//! 4096   64 x 64 x 16 B, by row and then by slot of the ledger: what a process tells of a device
//! ```
//!
//! A reader never maps it, since who writes it may shorten it, but copies what it needs: [`Header`] and
//! [`read_seats`] make sense of any bytes. Each word is read whole; the two words of a seat may be of two moments, which
//! is harmless. A process beyond the 64th tells nothing.

pub mod share;

use crate::ledger::{DeviceIndex, Slot};
use crate::sync::Word;
use crate::throttle::UsageReport;
use crate::uuid::Uuid;

/// Where the hook puts the container's own.
pub const PATH: &str = "/.gpucap/page";
/// Where the hook shows those of all containers of the node, the own one among them.
pub const DIRECTORY: &str = "/.gpucap/pages";
/// The first word of a page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gpucapCP");
/// The layout that this crate reads and writes.
pub const VERSION: u64 = 1;
/// How many devices and, for each, processes it has room for.
pub const PLACES: usize = 64;

/// The page.
#[derive(Debug)]
#[repr(C)]
pub struct CardPage {
    magic: Word,
    version: Word,
    high_water: Word,
    _reserved: [Word; 5],
    gpus: [[Word; 2]; PLACES],
    _room: [Word; 376],
    seats: [[Seat; PLACES]; PLACES],
}

/// What a process tells of a device.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Seat {
    work: Word,
    occupied: Word,
}

const WORD: usize = size_of::<u64>();
const SEATS_AT: usize = 4096;

#[cfg(not(loom))]
const _: () = {
    assert!(std::mem::offset_of!(CardPage, gpus) == 64);
    assert!(std::mem::offset_of!(CardPage, seats) == SEATS_AT);
    assert!(CardPage::SIZE == 69_632);
};

impl CardPage {
    /// The length of the file.
    pub const SIZE: u64 = size_of::<Self>() as u64;

    /// Makes a zeroed file a page. Any number of processes may do it at once and again.
    pub fn format(&self) {
        for (word, value) in [(&self.version, VERSION), (&self.magic, MAGIC)] {
            // What says something else already is for `is_known` to refuse.
            let _ = word.replace(0, value);
        }
    }

    /// Whether this is a page that this version understands.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.magic.load() == MAGIC && self.version.load() == VERSION
    }

    /// The seat of a process on a device; `None` if the page has no room for it.
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
        // Who had it before may have died with work out.
        own.publish(UsageReport::default());
        Some(own)
    }

    /// What the processes of this page tell of a device, by slot, as [`read_seats`] reads it out of a file.
    pub fn reports(&self, device: DeviceIndex) -> impl Iterator<Item = (usize, UsageReport)> {
        let taken = usize::try_from(self.high_water.load()).unwrap_or(PLACES);
        let seats = self.seats.get(device.index()).into_iter().flatten().take(taken);
        seats.map(Seat::report).enumerate().filter(|(_, report)| *report != UsageReport::default())
    }
}

impl Seat {
    fn report(&self) -> UsageReport {
        UsageReport { work: self.work.load(), occupied: self.occupied.load() }
    }
}

/// A seat that a process has taken. Its sums go on from those of who had it before: to those who read them the processes
/// of a seat are one, and what the next one does is seen although its own sums begin at nothing.
#[derive(Debug)]
pub struct OwnSeat<'p> {
    seat: &'p Seat,
    before: UsageReport,
    taken_at: u64,
}

impl OwnSeat<'_> {
    /// Tells it to whoever looks.
    pub fn publish(&self, report: UsageReport) {
        let report = report.after(self.before, self.taken_at);
        self.seat.work.store(report.work);
        self.seat.occupied.store(report.occupied);
    }
}

/// The beginning of somebody's page: whether it is one, and of which devices it tells.
#[derive(Debug)]
pub struct Header<'a>(&'a [u8]);

impl<'a> Header<'a> {
    /// How much of the file it needs.
    pub const SIZE: usize = 64 + PLACES * 2 * WORD;

    /// From the first [`SIZE`](Self::SIZE) bytes of the file; `None` if it is no page that this version understands.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let known = word(bytes, 0) == Some(MAGIC) && word(bytes, 1) == Some(VERSION);
        known.then_some(Self(bytes)).filter(|_| bytes.len() >= Self::SIZE)
    }

    /// Where in the file the seats of a device are that may have been taken: offset and length in bytes. `None` if no
    /// process has used that device.
    #[must_use]
    pub fn seats(&self, gpu: Uuid) -> Option<(usize, usize)> {
        let is_it = |row: &usize| {
            let at = 8 + row * 2;
            gpu.halves().into_iter().zip(at..).all(|(half, at)| word(self.0, at) == Some(half))
        };
        let row = (0..PLACES).find(is_it)?;
        let taken = usize::try_from(word(self.0, 2)?).unwrap_or(PLACES).min(PLACES);
        Some((SEATS_AT + row * PLACES * size_of::<Seat>(), taken * size_of::<Seat>()))
    }
}

/// What the processes of a page tell, by slot: those that have told anything.
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
