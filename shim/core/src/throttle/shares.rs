//! The buckets of a process: that of its container, and one of its own where its share is smaller.
//!
//! Processes of one container may bring different shares. The shared word counts in wall time, so all of them must count
//! with one share, or the time that a process with 5 % uses would keep one with 90 % away for eighteen times as long. They
//! count with the largest share in use, which each tells in a word beside the bucket's; a process with a smaller one has a
//! bucket of its own besides, and a launch needs both.
//!
//! ```text
//! Word   time of the latest notice >> 20:48   share in parts:16      zero: there never was one
//! ```
//!
//! A notice that nobody renews is forgotten: its process has ended, or has nothing to launch.

use super::Bucket;
use crate::{sync::Word, units::Share};

/// What the launches of a process are taken out of.
#[derive(Debug)]
pub(super) struct Shares<'a> {
    /// The container's, at the largest share in use.
    shared: Bucket<'a>,
    /// Where that share is told.
    largest: Option<&'a Word>,
    /// The time at which this process's own bucket is level.
    own: Word,
    share: Share,
    told_at: u64,
}

/// How often the largest share is told, and after what time nobody believes it any more.
const TELL_NS: u64 = 250_000_000;
const FORGET_NS: u64 = 2_000_000_000;
/// Times are kept in units of 2^20 ns.
const UNIT_BITS: u32 = 20;
const SHARE_BITS: u32 = 16;

impl<'a> Shares<'a> {
    /// Of a process with the share that its bucket is seen with.
    pub(super) fn new(shared: Bucket<'a>) -> Self {
        let (largest, own, share, told_at) = (None, Word::default(), shared.share(), 0);
        Self { shared, largest, own, share, told_at }
    }

    /// The same, of a container whose processes tell their shares in this word.
    pub(super) fn told_in(self, largest: Option<&'a Word>) -> Self {
        Self { largest, ..self }
    }

    /// The share of this process.
    pub(super) const fn share(&self) -> Share {
        self.share
    }

    /// The largest share in use in the container.
    pub(super) const fn largest(&self) -> Share {
        self.shared.share()
    }

    /// The share of this process is another one from now on.
    pub(super) fn set_share(&mut self, share: Share) {
        (self.share, self.told_at) = (share, 0);
        self.shared = self.shared.with_share(share);
    }

    /// Finds out which share is the largest in use, and tells this one if that is it.
    pub(super) fn follow(&mut self, now: u64) {
        let Some(word) = self.largest.filter(|_| now.saturating_sub(self.told_at) >= TELL_NS)
        else {
            return;
        };
        self.told_at = now;
        let found = word.load();
        let larger = larger_in(found, self.share, now);
        if larger.is_none() {
            let notice = (now >> UNIT_BITS) << SHARE_BITS | u64::from(self.share.parts());
            // Who was faster is believed at the next look.
            let _ = word.replace(found, notice);
        }
        self.shared = self.shared.with_share(larger.unwrap_or(self.share));
    }

    /// What one launch of a period is about worth.
    pub(super) fn quantum_ns(&self) -> u64 {
        self.own().quantum_ns()
    }

    /// What may be saved up at most.
    pub(super) fn cap_ns(&self) -> u64 {
        self.own().cap_ns()
    }

    /// What may be spent now; below zero, what is owed.
    pub(super) fn level(&self, now: u64) -> i64 {
        let shared = self.shared.level(now);
        self.smaller().map_or(shared, |own| own.level(now).min(shared))
    }

    /// When so much may be spent, if nobody charges or refunds.
    pub(super) fn holds_at(&self, ns: u64, now: u64) -> u64 {
        let shared = self.shared.holds_at(ns, now);
        self.smaller().map_or(shared, |own| own.holds_at(ns, now).max(shared))
    }

    /// Takes `ns`, into debt if need be.
    pub(super) fn charge(&self, ns: u64, now: u64) {
        self.shared.charge(ns, now);
        self.own().charge(ns, now);
    }

    /// Takes what another process of the container owed since `then`.
    pub(super) fn charge_as_of(&self, then: u64, ns: u64, now: u64) {
        self.shared.charge_as_of(then, ns, now);
    }

    /// Puts back `ns` of what was charged.
    pub(super) fn refund(&self, ns: u64) {
        self.shared.refund(ns);
        self.own().refund(ns);
    }

    /// The wall time in which `ns` flow in.
    pub(super) fn takes_up(&self, ns: u64) -> u64 {
        self.own().takes_up(ns)
    }

    const fn own(&self) -> Bucket<'_> {
        Bucket::new(&self.own, self.share)
    }

    /// This process's own bucket, if it has less than the container.
    fn smaller(&self) -> Option<Bucket<'_>> {
        (self.share < self.shared.share()).then(|| self.own())
    }
}

/// The share that is told, if it is larger than this one and in use.
fn larger_in(word: u64, share: Share, now: u64) -> Option<Share> {
    let told_at = (word >> SHARE_BITS) << UNIT_BITS;
    let is_fresh = now.abs_diff(told_at) < FORGET_NS;
    let parts = u16::try_from(word & ((1 << SHARE_BITS) - 1)).ok()?;
    Share::from_parts(parts).filter(|told| is_fresh && *told > share)
}
