//! The bucket of a container and a device: one shared word, the time at which the bucket is at zero.
//!
//! ```text
//! balance(now) = min((now - word) * share, capacity)      GPU nanoseconds; below zero is a debt
//! charge(d):  word = max(word, then - capacity / share) + d / share            then: now, or when it should have been
//! ```
//!
//! Time itself refills it: no thread has to, and a dead process cannot stop it. Zero, the word of a fresh ledger, is
//! a full bucket. Each change is one atomic exchange of the word, so a process killed in between leaves it
//! consistent. Divisions round in favour of the limit: a container gets less, never more. Each process applies its
//! own share: the word keeps *when* the bucket is at zero, so a change of the share needs no write, and two processes
//! cannot apply the same change twice.
//!
//! With a bucket for each process in its place, `W13 4 processes x 10 us` misses its bound at 30 %.

use crate::{
    sync::Word,
    units::{Share, signed},
};

/// A view of the shared word with one share.
#[derive(Clone, Copy, Debug)]
pub struct Bucket<'a> {
    word: &'a Word,
    share: Share,
}

/// The period of the bucket: a container that wants more than its share is admitted once per period.
pub(crate) const PERIOD_NS: u64 = 20_000_000;
/// A shorter opening would be lost in the latency of the wake-up.
const LEAST_QUANTUM_NS: u64 = 500_000;
/// The largest debt: beyond it the word saturates.
const HORIZON_NS: u64 = 3_600_000_000_000;

impl<'a> Bucket<'a> {
    /// Returns the bucket of this word for a process with this share.
    #[must_use]
    pub const fn new(word: &'a Word, share: Share) -> Self {
        Self { word, share }
    }

    /// Returns the same bucket with another share.
    #[must_use]
    pub const fn with_share(self, share: Share) -> Self {
        Self { share, ..self }
    }

    /// The share at which it fills.
    #[must_use]
    pub const fn share(&self) -> Share {
        self.share
    }

    /// What the bucket must hold before a launch that found it empty may go.
    #[must_use]
    pub fn quantum_ns(&self) -> u64 {
        self.share.of(PERIOD_NS).max(LEAST_QUANTUM_NS)
    }

    /// The most that it holds: two quanta, so that a late wake-up loses nothing.
    #[must_use]
    pub fn capacity_ns(&self) -> u64 {
        self.quantum_ns().saturating_mul(2)
    }

    /// What may be spent now; negative values are a debt.
    #[must_use]
    pub fn balance(&self, now: u64) -> i64 {
        let since = self.since(now);
        // Both differences are within the horizon, or cut to the time that fills the bucket, so no product overflows.
        let filled = self.share.of(now.saturating_sub(since).min(self.fill_ns()));
        let owed = self.share.of(since.saturating_sub(now));
        signed(filled) - signed(owed)
    }

    /// Takes `ns`; the result may be a debt.
    pub fn charge(&self, ns: u64, now: u64) {
        self.charge_as_of(now, ns, now);
    }

    /// Takes `ns` as if at an earlier time: what has flowed in since then counts against it, even beyond the bucket's
    /// capacity.
    pub fn charge_as_of(&self, then: u64, ns: u64, now: u64) {
        let full_since = then.saturating_sub(self.fill_ns());
        let mut word = self.word.load();
        loop {
            let since = repaired(word, now).max(full_since);
            let until = since.saturating_add(self.takes_up(ns));
            match self.word.replace(word, until.min(now.saturating_add(HORIZON_NS))) {
                Ok(()) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Forgets what has been saved up beyond a quantum.
    pub(crate) fn save_less(&self, now: u64) {
        let then = now.saturating_sub(PERIOD_NS);
        let mut word = self.word.load();
        while word < then
            && let Err(found) = self.word.replace(word, then)
        {
            word = found;
        }
    }

    /// Puts back `ns` of what was charged.
    pub fn refund(&self, ns: u64) {
        let wall = self.takes_up(ns.saturating_add(1)).saturating_sub(self.takes_up(1));
        let mut word = self.word.load();
        while let Err(found) = self.word.replace(word, word.saturating_sub(wall)) {
            word = found;
        }
    }

    /// Counts `ns` that were charged at another share as charged at this one.
    pub(crate) fn charge_anew(&self, ns: u64, before: Share, now: u64) {
        let charged = Self { share: before, ..*self }.takes_up(ns);
        let (charge, most) = (self.takes_up(ns), now.saturating_add(HORIZON_NS));
        let anew =
            |word| repaired(word, now).saturating_sub(charged).saturating_add(charge).min(most);
        let mut word = self.word.load();
        while let Err(found) = self.word.replace(word, anew(word)) {
            word = found;
        }
    }

    /// Returns when the bucket holds `ns`, provided that no other process charges or refunds.
    #[must_use]
    pub fn holds_at(&self, ns: u64, now: u64) -> u64 {
        self.since(now).saturating_add(self.takes_up(ns))
    }

    /// Returns when the bucket was at zero, or will be. A word of another clock is replaced by now: left in place, it
    /// would mean "at zero now" at each call, and the bucket would never fill.
    fn since(&self, now: u64) -> u64 {
        let word = self.word.load();
        let since = repaired(word, now);
        match if since == word { Ok(()) } else { self.word.replace(word, since) } {
            Ok(()) => since,
            Err(found) => repaired(found, now),
        }
    }

    /// The wall time in which an empty bucket fills.
    fn fill_ns(&self) -> u64 {
        self.takes_up(self.capacity_ns())
    }

    /// The wall time in which `ns` flow in, rounded up.
    pub(crate) fn takes_up(&self, ns: u64) -> u64 {
        ns.saturating_mul(u64::from(Share::DENOMINATOR)).div_ceil(u64::from(self.share.parts()))
    }
}

/// Treats a word further ahead than any debt as one of another clock: the bucket is at zero.
pub(crate) fn repaired(word: u64, now: u64) -> u64 {
    // Twice the horizon: a charge by a thread with an older clock reading must still look valid.
    if word > now.saturating_add(2 * HORIZON_NS) { now } else { word }
}
