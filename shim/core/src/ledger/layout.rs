//! The layout of the file: the ledger as its processes map it, and nothing that they do with it.
//!
//! Version 1, as `include/gpucap.h` has it. Each file beside this one owns the fields that its protocol changes.

#[cfg(not(any(test, loom)))]
use std::mem::offset_of;

use super::windows::Windows;
use crate::sync::{Counter, Word};

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

/// The table has no room: 64 devices known, or 1024 processes alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The ledger of a container.
#[derive(Debug)]
#[repr(C)]
pub struct Ledger {
    pub(super) header: Header,
    pub(super) devices: [Device; DEVICES],
    pub(super) owners: [OwnerRecord; SLOTS],
    pub(super) accounts: [[Account; SLOTS]; DEVICES],
}

#[derive(Debug)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: Word,
    pub(super) version: Word,
    pub(super) size: Word,
    pub(super) slots: Word,
    pub(super) devices: Word,
    /// One more than the highest slot ever claimed: what a reader has to look at.
    pub(super) high_water: Word,
    /// Raised after a slot was claimed, and before and after one is freed: `dead` owns it.
    pub(super) changes: Word,
    /// The boot whose times the file has: `boot` owns it.
    pub(super) boot: Word,
    /// What the living share by which the system counts them; the shim owns it.
    pub(super) attendance: Word,
    /// When each was last looked at, in ns of CLOCK_MONOTONIC.
    pub(super) looked: Word,
    /// The time namespace whose clocks the times are of: `boot` owns it.
    pub(super) clocks: Word,
    pub(super) _reserved: [Counter; 501],
}

#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Device {
    pub(super) total: Word,
    pub(super) peak: Counter,
    pub(super) refusals: Counter,
    pub(super) _reserved: [Counter; 2],
    /// Three more of the account: `throttle` owns them.
    pub(super) covered_besides: [Word; 3],
    // The compute limit's line.
    /// The time, in ns of CLOCK_MONOTONIC, at which the bucket is at zero: `throttle` owns it.
    pub(super) bucket: Word,
    pub(super) busy: Counter,
    pub(super) waited: Counter,
    pub(super) launches: Counter,
    /// Its collectives, for the devices that it meets in them: `throttle` owns it.
    pub(super) collectives: Word,
    /// The largest share in use: `throttle` owns it.
    pub(super) shares: Word,
    /// The time account of its processes: `throttle` owns both.
    pub(super) covered: Word,
    pub(super) surplus: Word,
    pub(super) uuid: [Word; 4],
    /// Two more of the account: `throttle` owns them.
    pub(super) covered_too: [Word; 2],
    pub(super) borrowed: Counter,
    /// Which process has a launch of unknown length in flight: `throttle` owns it.
    pub(super) unknown: Word,
    pub(super) windows: Windows,
}

#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct OwnerRecord {
    pub(super) owner: Word,
    pub(super) namespace: Word,
    pub(super) start_time: Word,
    pub(super) image: Word,
    /// Bit d: the slot has an account of device d. Bits are only ever set, so that readers do not touch (and by
    /// reading, allocate) pages of the file that no process has written.
    pub(super) touched: Word,
    pub(super) since: Counter,
    /// Bit d: the process of the slot uses device d, also before it has anything there.
    pub(super) uses: Word,
    pub(super) _reserved: Counter,
}

#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Account {
    pub(super) op: Word,
    pub(super) amounts: [Word; 2],
    pub(super) cap: Counter,
    pub(super) peak: Counter,
    pub(super) refusals: Counter,
    pub(super) busy: Counter,
    pub(super) launches: Counter,
    pub(super) kinds: [Counter; 14],
    /// When its process was last known to live, and up to when the work that is out is paid for: `unfinished` owns both.
    pub(super) alive: Word,
    pub(super) unfinished: Word,
    pub(super) windows: Windows,
}

/// The places of version 1, as `include/gpucap.h` has them.
#[cfg(not(any(test, loom)))]
const _: () = {
    assert!(offset_of!(Ledger, devices) == 4096 && size_of::<Device>() == 256);
    assert!(offset_of!(Ledger, owners) == 20480 && size_of::<OwnerRecord>() == 64);
    assert!(offset_of!(Ledger, accounts) == 86016 && size_of::<Account>() == 256);
    assert!(Ledger::SIZE == 16_863_232 && Ledger::BEFORE_ACCOUNTS == 86016);
};

impl Ledger {
    /// The length of the file.
    pub const SIZE: u64 = size_of::<Self>() as u64;
    /// How much of it comes before the accounts: every process writes there.
    pub const BEFORE_ACCOUNTS: u64 = Self::SIZE - (DEVICES * SLOTS * size_of::<Account>()) as u64;

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
                clocks: Word::default(),
                _reserved: from_fn(|_| Counter::default()),
            },
            devices: from_fn(|_| Device::default()),
            owners: from_fn(|_| OwnerRecord::default()),
            accounts: from_fn(|_| from_fn(|_| Account::default())),
        }
    }
}
