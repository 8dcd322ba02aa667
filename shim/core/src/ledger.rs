//! The ledger: what the processes of a container hold of each device, in memory they all share.
//!
//! One sparse file per container, mapped by each process and read in place as a [`Ledger`]:
//!
//! ```text
//! 0        Header    4 KiB        magic, version, size, counts
//! 4096     devices   64 x 256 B   total {bytes, last slot, sequence}, bucket word, UUID, busy time
//! 20480    owners    1024 x 64 B  who has the slot, since when, which devices it touched
//! 86016    accounts     64 x 1024 x 256 B, by device: bytes by kind, peak, refusals, busy time
//! ```
//!
//! Callers: any number of processes at once, with one rule for each: **one thread at a time per slot and device**
//! charges and refunds, and one claim per program image. Any process may reap.
//!
//! Guarantees, if a process is only called dead once it is: the total of a device never exceeds the limit given with a
//! charge; a charge is refused only if it did not fit at that moment; a process that dies between any two
//! instructions leaves only what the next reap removes; no process waits for another (a loop repeats only when
//! another process made progress); with no call in progress, a total is the sum of its accounts. `ledger/account.rs`
//! has the protocol.
//!
//! The bound: a total identifies operations by slot and 12 bits of its sequence. A process that is stopped between
//! reading a total and exchanging it, while one slot makes an exact multiple of 4096 changes and the total comes back
//! to the same byte, takes the new word for the old one. By itself this is harmless. It costs one operation's bytes
//! (the account and the total then differ by them until the file is removed) if, besides, that slot's process dies
//! between its exchange and the store after it, or if the stopped one was emptying a dead process's account that
//! others have emptied since.
//!
//! Zero bytes are a valid ledger that is not formatted yet. No locks, no clock, no files.

mod account;
mod boot;
mod busy;
mod dead;
mod device;
#[cfg(all(test, loom))]
mod models;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;
mod unfinished;
mod view;
mod word;

use std::fmt;
#[cfg(not(any(test, loom)))]
use std::mem::offset_of;

use crate::sync::{Counter, Word};
use account::Step;
pub use busy::BusyWindow;
use busy::Windows;
pub use dead::Count;
pub use device::{DeviceIndex, DeviceView};
pub use slot::{Identity, Slot};
pub use view::{AccountView, ProcessView};

/// How many processes a ledger has room for.
#[cfg(not(any(test, loom)))]
pub const SLOTS: usize = 1024;
/// How many devices a ledger has room for.
#[cfg(not(any(test, loom)))]
pub const DEVICES: usize = 64;
/// Small enough to be full in a test.
#[cfg(any(test, loom))]
pub const SLOTS: usize = if cfg!(loom) { 3 } else { 6 };
/// Small enough to be full in a test.
#[cfg(any(test, loom))]
pub const DEVICES: usize = if cfg!(loom) { 1 } else { 2 };

/// The first word of a formatted ledger.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gpucapLG");
/// The layout that this crate reads and writes.
pub const VERSION: u64 = 1;

/// The ledger of a container.
#[derive(Debug)]
#[repr(C)]
pub struct Ledger {
    header: Header,
    devices: [Device; DEVICES],
    owners: [OwnerRecord; SLOTS],
    accounts: [[Account; SLOTS]; DEVICES],
}

#[derive(Debug)]
#[repr(C)]
struct Header {
    magic: Word,
    version: Word,
    size: Word,
    slots: Word,
    devices: Word,
    /// One more than the highest slot ever claimed: what a reader has to look at.
    high_water: Word,
    /// Raised after a slot was claimed, and before and after one is freed: `dead` owns it.
    changes: Word,
    /// The boot whose times the file has: `boot` owns it.
    boot: Word,
    /// What the living share by which the system counts them; the shim owns it.
    attendance: Word,
    /// When each was last looked at, in ns of CLOCK_MONOTONIC.
    looked: Word,
    _reserved: [Counter; 502],
}

#[derive(Debug, Default)]
#[repr(C)]
struct Device {
    total: Word,
    peak: Counter,
    refusals: Counter,
    _reserved: [Counter; 5],
    // The compute limit's line.
    /// The time, in ns of CLOCK_MONOTONIC, at which the bucket is level: `throttle` owns it.
    bucket: Word,
    busy: Counter,
    waited: Counter,
    launches: Counter,
    /// Its collectives, for the devices that it meets in them: `throttle` owns it.
    collectives: Word,
    /// The largest share in use: `throttle` owns it.
    shares: Word,
    /// The account of its processes: `throttle` owns both.
    covered: Word,
    surplus: Word,
    uuid: [Word; 4],
    _reserved_uuid: [Counter; 4],
    windows: Windows,
}

#[derive(Debug, Default)]
#[repr(C)]
struct OwnerRecord {
    owner: Word,
    namespace: Word,
    start_time: Word,
    image: Word,
    /// Bit d: the slot has an account of device d. Bits are only ever set, so that readers do not touch (and by
    /// reading, allocate) pages of the file that no process has written.
    touched: Word,
    since: Counter,
    _reserved: [Counter; 2],
}

#[derive(Debug, Default)]
#[repr(C)]
struct Account {
    op: Word,
    amounts: [Word; 2],
    cap: Counter,
    peak: Counter,
    refusals: Counter,
    busy: Counter,
    launches: Counter,
    kinds: [Counter; 15],
    /// Up to when the work that is out is paid for: `unfinished` owns it.
    unfinished: Word,
    windows: Windows,
}

/// The places of version 1, as `include/gpucap.h` has them.
#[cfg(not(any(test, loom)))]
const _: () = {
    assert!(offset_of!(Ledger, devices) == 4096 && size_of::<Device>() == 256);
    assert!(offset_of!(Ledger, owners) == 20480 && size_of::<OwnerRecord>() == 64);
    assert!(offset_of!(Ledger, accounts) == 86016 && size_of::<Account>() == 256);
    assert!(Ledger::SIZE == 16_863_232 && Ledger::BEFORE_ACCOUNTS == 86016);
};

/// What bytes were taken for. For people: the limit counts the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain and pitched allocations.
    Alloc = 0,
    /// Managed memory, in full.
    Managed = 1,
    /// Stream-ordered pools: what they reserve.
    Pool = 2,
    /// Physical memory of the virtual memory interface.
    Vmm = 3,
    /// Arrays and mipmapped arrays.
    Array = 4,
    /// The price of contexts.
    Context = 5,
    /// Loaded modules and libraries.
    Module = 6,
    /// Device heap, stacks and print buffers.
    Heap = 7,
    /// Memory of graphs.
    Graph = 8,
}

impl Kind {
    /// Every kind, in the order of the file.
    pub const ALL: [Self; 9] = [
        Self::Alloc,
        Self::Managed,
        Self::Pool,
        Self::Vmm,
        Self::Array,
        Self::Context,
        Self::Module,
        Self::Heap,
        Self::Graph,
    ];
}

/// A charge that does not fit under the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverQuota {
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes in use by all processes when it was refused.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

/// The table has no room: 64 devices known, or 1024 processes alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Why a file is not a ledger that this version may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The file has another length than a ledger.
    FileBytes(u64),
    /// Not a ledger, or not formatted.
    Magic(u64),
    /// Another version's layout.
    Version(u64),
    /// The header has another size.
    Size(u64),
    /// The header has another number of slots.
    Slots(u64),
    /// The header has another number of devices.
    Devices(u64),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, found, known) = match *self {
            Self::FileBytes(found) => ("file size", found, Ledger::SIZE),
            Self::Magic(found) => {
                return write!(f, "ledger magic is {found:#x}, known is {MAGIC:#x}");
            }
            Self::Version(found) => ("version", found, VERSION),
            Self::Size(found) => ("size", found, Ledger::SIZE),
            Self::Slots(found) => ("number of slots", found, SLOTS as u64),
            Self::Devices(found) => ("number of devices", found, DEVICES as u64),
        };
        write!(f, "ledger {what} is {found}, known is {known}")
    }
}

impl Ledger {
    /// The length of the file.
    pub const SIZE: u64 = size_of::<Self>() as u64;
    /// How much of it comes before the accounts: every process writes there.
    pub const BEFORE_ACCOUNTS: u64 = Self::SIZE - (DEVICES * SLOTS * size_of::<Account>()) as u64;

    /// Makes a zeroed file a ledger. Any number of processes may do it at once and again; a word
    /// that says something else already is left as it is, for [`check`](Self::check) to refuse.
    pub fn format(&self) {
        let Header { magic, version, size, slots, devices, .. } = &self.header;
        let constants = [
            (version, VERSION),
            (size, Self::SIZE),
            (slots, SLOTS as u64),
            (devices, DEVICES as u64),
            (magic, MAGIC),
        ];
        for (word, value) in constants {
            if word.replace(0, value).is_err_and(|found| found != value) {
                return;
            }
        }
    }

    /// Whether a file of `file_bytes` bytes is a ledger of this version.
    ///
    /// # Errors
    /// The first thing that is not as this version knows it.
    pub fn check(&self, file_bytes: u64) -> Result<(), Unusable> {
        if file_bytes != Self::SIZE {
            return Err(Unusable::FileBytes(file_bytes));
        }
        let Header { magic, version, size, slots, devices, .. } = &self.header;
        let known = |word: &Word, known: u64, unusable: fn(u64) -> Unusable| match word.load() {
            found if found == known => Ok(()),
            found => Err(unusable(found)),
        };
        known(magic, MAGIC, Unusable::Magic)?;
        known(version, VERSION, Unusable::Version)?;
        known(size, Self::SIZE, Unusable::Size)?;
        known(slots, SLOTS as u64, Unusable::Slots)?;
        known(devices, DEVICES as u64, Unusable::Devices)
    }

    /// Takes `bytes` of `device` for `slot`, if the device's total stays within `cap`.
    ///
    /// A refusal may rest on what dead processes left: see [`charge_or_reap`](Self::charge_or_reap).
    ///
    /// # Errors
    /// It did not fit.
    pub fn charge(
        &self,
        slot: Slot,
        device: DeviceIndex,
        kind: Kind,
        bytes: u64,
        cap: u64,
    ) -> Result<(), OverQuota> {
        self.touch(slot, device);
        let used = self
            .change(slot, device, Step::Up { bytes, cap })
            .map_err(|used| OverQuota { requested: bytes, used, limit: cap })?;
        if let Some(record) = self.device_at(device) {
            record.peak.raise(used);
        }
        if let Some(account) = self.account(slot.index(), device) {
            account.cap.store(cap);
            account.peak.raise(self.held(slot.index(), device));
            if let Some(counter) = account.kinds.get(kind as usize) {
                counter.store(counter.load().saturating_add(bytes));
            }
        }
        Ok(())
    }

    /// Gives back `bytes` of `device`; never more than the slot holds.
    pub fn refund(&self, slot: Slot, device: DeviceIndex, kind: Kind, bytes: u64) {
        // A process that dies in it leaves an operation to be closed, even if nothing was ever held.
        self.touch(slot, device);
        // A way down always fits.
        let _ = self.change(slot, device, Step::Down { bytes });
        let account = self.account(slot.index(), device);
        if let Some(counter) = account.and_then(|account| account.kinds.get(kind as usize)) {
            counter.store(counter.load().saturating_sub(bytes));
        }
    }

    /// Counts a refusal that the program got to see.
    pub fn count_refusal(&self, slot: Slot, device: DeviceIndex) {
        if let Some(record) = self.device_at(device) {
            record.refusals.add(1);
        }
        self.touch(slot, device);
        if let Some(account) = self.account(slot.index(), device) {
            account.refusals.add(1);
        }
    }

    /// Two unused words of the account of `slot`: a process that makes the account's page real writes here first.
    #[must_use]
    pub fn spare(&self, slot: Slot, device: DeviceIndex) -> Option<&[Counter; 2]> {
        self.account(slot.index(), device)?.kinds.last_chunk()
    }

    fn account(&self, index: usize, device: DeviceIndex) -> Option<&Account> {
        self.accounts.get(device.index())?.get(index)
    }

    #[cfg(any(test, loom))]
    pub(crate) fn zeroed() -> Self {
        use std::array::from_fn;
        Self {
            header: Header {
                magic: Word::default(),
                version: Word::default(),
                size: Word::default(),
                slots: Word::default(),
                devices: Word::default(),
                high_water: Word::default(),
                changes: Word::default(),
                boot: Word::default(),
                attendance: Word::default(),
                looked: Word::default(),
                _reserved: from_fn(|_| Counter::default()),
            },
            devices: from_fn(|_| Device::default()),
            owners: from_fn(|_| OwnerRecord::default()),
            accounts: from_fn(|_| from_fn(|_| Account::default())),
        }
    }
}
