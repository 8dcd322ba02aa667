//! Devices that meet: a collective spins on one device until its peers have arrived on the others.
//!
//! Independent buckets bring such programs to a standstill. The device that arrives first spins while the other is
//! held back, is charged for that, and is then held back for longer in turn while the other one spins. So the devices
//! on which a container has lately launched collectives are throttled as a gang:
//!
//! * no launch but a collective goes while one of them is in debt, so that the slowest sets the pace and none arrives
//!   early for long;
//! * a device with fewer collectives in flight than another one is waited for: its launches go at once, and are paid
//!   for afterwards.
//!
//! Without it, `W14 all-reduce` misses its bound at 30 %.
//!
//! One word per device, beside its bucket's, publishes this to the other processes. The value left by a dead process
//! expires after a while, and is replaced by that of a later process. A device whose share is all of its time is not
//! held back, and takes no part.
//!
//! ```text
//! Word   time of the latest change >> 10:48   collectives in flight:16      zero: none so far
//! ```

use std::collections::VecDeque;

use super::bucket::repaired;
use crate::{
    sync::Word,
    throttle::charging::time_account::{self, TimeAccount},
};

/// The words that a device shares with the processes of its container: of its bucket, its collectives, their shares, and
/// their time account.
#[derive(Clone, Copy, Debug)]
pub struct DeviceWords<'a> {
    bucket: &'a Word,
    collectives: &'a Word,
    shares: &'a Word,
    unknown: &'a Word,
    account: TimeAccount<'a>,
}

impl<'a> DeviceWords<'a> {
    /// Takes these words: bucket, collectives, shares, and those of the time account.
    #[must_use]
    pub const fn new(words: [&'a Word; DEVICE_WORDS]) -> Self {
        let [bucket, collectives, shares, unknown, account @ ..] = words;
        Self { bucket, collectives, shares, unknown, account: TimeAccount::new(account) }
    }

    /// Its bucket's word.
    #[must_use]
    pub const fn bucket(&self) -> &'a Word {
        self.bucket
    }
}

/// How many words a device has.
pub const DEVICE_WORDS: usize = 4 + time_account::WORDS;

/// One device of a container, its collectives, and the other devices.
#[derive(Debug)]
pub struct Gang<'a> {
    devices: Vec<DeviceWords<'a>>,
    own: usize,
    /// The number of this process among those of the container.
    process: u16,
    /// Collectives that were admitted and whose end has not been seen.
    in_flight: usize,
    /// When the latest collectives ended, in order.
    ended: VecDeque<u64>,
    /// The time account of a device that is not listed.
    alone: [Word; time_account::WORDS],
}

/// A device no longer meets the others this long after its latest collective. No step of a program limited to a small
/// share takes longer.
const LATELY_NS: u64 = 10_000_000_000;
/// A collective in flight on another device may have ended since that was published: it did when the own one ended.
/// This many ends are remembered: a stream has room for no more launches.
const ENDS: usize = 1024;
/// Times are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;
const COUNT_BITS: u32 = 16;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

impl<'a> Gang<'a> {
    /// Makes the gang of a container's devices; the meter's own is at index `own`.
    #[must_use]
    pub fn new(devices: Vec<DeviceWords<'a>>, own: usize, process: u16) -> Self {
        Self {
            devices,
            own,
            process,
            in_flight: 0,
            ended: VecDeque::new(),
            alone: Default::default(),
        }
    }

    /// Makes the gang of a device that meets no others.
    #[must_use]
    pub fn alone() -> Self {
        Self::new(Vec::new(), 0, 0)
    }

    /// The word in which the processes of this device publish their shares.
    pub(crate) fn shares(&self) -> Option<&'a Word> {
        self.devices.get(self.own).map(|device| device.shares)
    }

    /// The word of launches of unknown length, and what this process is called in it.
    pub(crate) fn unknown(&self) -> Option<&'a Word> {
        self.devices.get(self.own).map(|device| device.unknown)
    }

    pub(crate) const fn process(&self) -> u16 {
        self.process
    }

    /// The account of the processes of this device.
    pub(crate) fn account(&self) -> TimeAccount<'_> {
        let alone = TimeAccount::new(self.alone.each_ref());
        self.devices.get(self.own).map_or(alone, |device| device.account)
    }

    /// Records that a collective was admitted.
    pub(crate) fn begins(&mut self, now: u64) {
        self.in_flight += 1;
        self.publish(now);
    }

    /// Records that one ended at `end`, or that its end will never be seen.
    pub(crate) fn ends(&mut self, end: u64, now: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.ended.len() == ENDS {
            self.ended.pop_front();
        }
        self.ended.push_back(end);
        self.publish(now);
    }

    /// Returns whether this device meets any other.
    pub(crate) fn meets(&self, now: u64) -> bool {
        self.others(now).next().is_some()
    }

    /// Returns whether another device has more collectives in flight than this one.
    pub(crate) fn is_waited_for(&self, now: u64) -> bool {
        self.others(now).any(|device| {
            let (then, out) = device.collectives();
            let ended_since = || self.ended.iter().rev().take_while(|end| **end > then).count();
            out > self.in_flight && out > self.in_flight.saturating_add(ended_since())
        })
    }

    /// Returns when the last of the devices that this one meets is out of debt; zero if it meets none.
    pub(crate) fn out_of_debt_at(&self, now: u64) -> u64 {
        self.others(now).map(|device| repaired(device.bucket.load(), now)).max().unwrap_or(0)
    }

    fn publish(&self, now: u64) {
        if let Some(device) = self.devices.get(self.own) {
            let out = u64::try_from(self.in_flight).unwrap_or(COUNT).min(COUNT);
            device.collectives.store((now >> UNIT_BITS) << COUNT_BITS | out);
        }
    }

    /// The devices that this one meets.
    fn others(&self, now: u64) -> impl Iterator<Item = &DeviceWords<'a>> {
        let own = self.own;
        let meets = self.devices.get(own).is_some_and(|device| device.has_met_lately(now));
        let devices = if meets { self.devices.as_slice() } else { &[] };
        let others = devices.iter().enumerate().filter(move |(place, _)| *place != own);
        others.map(|(_, device)| device).filter(move |device| device.has_met_lately(now))
    }
}

impl DeviceWords<'_> {
    /// Returns when the device last published its collectives, and how many were in flight then.
    fn collectives(&self) -> (u64, usize) {
        let word = self.collectives.load();
        ((word >> COUNT_BITS) << UNIT_BITS, usize::try_from(word & COUNT).unwrap_or(0))
    }

    fn has_met_lately(&self, now: u64) -> bool {
        let (then, _) = self.collectives();
        then != 0 && now.abs_diff(then) < LATELY_NS
    }
}
