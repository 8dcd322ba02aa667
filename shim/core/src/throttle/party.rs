//! Devices that meet: a collective spins on one device until its peers have come on the others.
//!
//! Buckets that know nothing of each other make such programs stand still. Whoever comes first spins for as long as the
//! other one is held back, pays for that, is held back for longer in turn, and the other one spins. So devices on which
//! the container has launched collectives lately go together:
//!
//! * no launch goes while one of them is in debt, so that the slowest sets the pace and nobody comes early for long;
//! * who has fewer collectives out than another one is waited for: his launches go at once, and are paid for afterwards.
//!
//! One word per device, beside its bucket's, tells the other processes. What is left in it by a process that died is
//! forgotten after a while, and a later one's takes its place. A device whose share is all of its time is not held
//! back, and takes no part.
//!
//! ```text
//! Word   time of the latest change >> 10:48   collectives out:16      zero: there never was one
//! ```

use std::collections::VecDeque;

use super::bucket::repaired;
use crate::sync::Word;

/// What a device shows to the processes of its container: the words of its bucket, of its collectives, and of their shares.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    bucket: &'a Word,
    collectives: &'a Word,
    shares: &'a Word,
}

impl<'a> Seat<'a> {
    /// The device with these words.
    #[must_use]
    pub const fn new(bucket: &'a Word, collectives: &'a Word, shares: &'a Word) -> Self {
        Self { bucket, collectives, shares }
    }

    /// Its bucket's word.
    #[must_use]
    pub const fn bucket(&self) -> &'a Word {
        self.bucket
    }
}

/// One device's place among those of its container, and its collectives.
#[derive(Debug)]
pub struct Party<'a> {
    seats: Vec<Seat<'a>>,
    own: usize,
    /// Collectives that were admitted and whose end nobody has seen.
    out: usize,
    /// When the latest of the others ended, the last one last.
    ended: VecDeque<u64>,
}

/// So long after its latest collective a device does not meet the others any more. No step of a program that is held to
/// a small share takes longer.
const LATELY_NS: u64 = 10_000_000_000;
/// What was out on another device when it told of it may have ended since: it did together with one's own. So many ends
/// are remembered: a stream has room for no more launches.
const ENDS: usize = 1024;
/// Times are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;
const COUNT_BITS: u32 = 16;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

impl<'a> Party<'a> {
    /// The container's devices, of which the meter's is the one at `own`.
    #[must_use]
    pub const fn new(seats: Vec<Seat<'a>>, own: usize) -> Self {
        Self { seats, own, out: 0, ended: VecDeque::new() }
    }

    /// A device that meets no others.
    #[must_use]
    pub const fn alone() -> Self {
        Self::new(Vec::new(), 0)
    }

    /// Where the processes on this device tell their shares.
    pub(super) fn shares(&self) -> Option<&'a Word> {
        self.seats.get(self.own).map(|seat| seat.shares)
    }

    /// A collective is admitted.
    pub(super) fn begins(&mut self, now: u64) {
        self.out += 1;
        self.tell(now);
    }

    /// One ended at `end`, or will never be seen to.
    pub(super) fn ends(&mut self, end: u64, now: u64) {
        self.out = self.out.saturating_sub(1);
        if self.ended.len() == ENDS {
            self.ended.pop_front();
        }
        self.ended.push_back(end);
        self.tell(now);
    }

    /// Whether this device meets any other.
    pub(super) fn meets(&self, now: u64) -> bool {
        self.others(now).next().is_some()
    }

    /// Whether another device has more collectives out than this one.
    pub(super) fn is_waited_for(&self, now: u64) -> bool {
        self.others(now).any(|seat| {
            let (then, out) = seat.collectives();
            let ended_since = || self.ended.iter().rev().take_while(|end| **end > then).count();
            out > self.out && out > self.out.saturating_add(ended_since())
        })
    }

    /// When the last of the devices that this one meets is out of debt; zero if it meets none.
    pub(super) fn level_at(&self, now: u64) -> u64 {
        self.others(now).map(|seat| repaired(seat.bucket.load(), now)).max().unwrap_or(0)
    }

    fn tell(&self, now: u64) {
        if let Some(seat) = self.seats.get(self.own) {
            let out = u64::try_from(self.out).unwrap_or(COUNT).min(COUNT);
            seat.collectives.store((now >> UNIT_BITS) << COUNT_BITS | out);
        }
    }

    /// The devices that this one meets.
    fn others(&self, now: u64) -> impl Iterator<Item = &Seat<'a>> {
        let own = self.own;
        let meets = self.seats.get(own).is_some_and(|seat| seat.has_met_lately(now));
        let seats = if meets { self.seats.as_slice() } else { &[] };
        let others = seats.iter().enumerate().filter(move |(place, _)| *place != own);
        others.map(|(_, seat)| seat).filter(move |seat| seat.has_met_lately(now))
    }
}

impl Seat<'_> {
    /// When the device told of its collectives, and how many were out then.
    fn collectives(&self) -> (u64, usize) {
        let word = self.collectives.load();
        ((word >> COUNT_BITS) << UNIT_BITS, usize::try_from(word & COUNT).unwrap_or(0))
    }

    fn has_met_lately(&self, now: u64) -> bool {
        let (then, _) = self.collectives();
        then != 0 && now.abs_diff(then) < LATELY_NS
    }
}
