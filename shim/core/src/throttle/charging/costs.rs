//! The measured cost of the launches of each signature: a table of fixed size that launches read without a lock.
//!
//! ```text
//! entry   tag:20  trust:3  doubts:2  samples:6  cost in ns:33      one word; zero is an empty place
//! ```
//!
//! The table is eight-way set associative, and a set is one cache line. Readers see an entry either before or after a
//! change. Only the meter writes, under its caller's lock. A newcomer to a full set replaces an entry: that signature
//! is then unknown again, which costs a few measured launches and no accuracy.

use std::sync::Arc;

use crate::{
    sync::Counter,
    throttle::signature::{Launch, Signature},
};

/// An operation whose cost is at least this is measured each time and charged its own measurement.
pub(crate) const BIG_NS: u64 = 200_000;

/// The costs of the launches of one device; a clone is the same table.
#[derive(Clone, Debug)]
pub struct Costs {
    lines: Arc<[Line]>,
}

/// The entries of one set: a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([Counter; WAYS]);

const WAYS: usize = 8;
const LINES: usize = 1024;

impl Default for Costs {
    fn default() -> Self {
        Self { lines: std::iter::repeat_with(Default::default).take(LINES).collect() }
    }
}

impl Costs {
    /// Returns the cost of a launch that may be taken out of an allowance: measured often enough, and small. Any
    /// other launch goes to the meter.
    #[inline]
    #[must_use]
    pub fn small(&self, signature: Signature) -> Option<u32> {
        let entry = Entry(self.place(signature)?.load());
        if entry.samples() >= ENOUGH_SAMPLES && entry.cost() < BIG_NS {
            u32::try_from(entry.cost()).ok()
        } else {
            None
        }
    }

    /// Returns what to charge for a launch that nothing will measure: the mean of the latest measurements, or a guess.
    #[must_use]
    pub fn guess(&self, signature: Signature) -> u64 {
        self.estimate(signature).unwrap_or(Launch::FIRST_NS)
    }

    /// Returns the mean of the latest measurements; `None` if there are none.
    pub(crate) fn estimate(&self, signature: Signature) -> Option<u64> {
        self.place(signature).map(|place| Entry(place.load()).cost())
    }

    /// Adds a measurement to the mean.
    pub(crate) fn learn(&self, signature: Signature, sample: Sample) {
        let place = self.place(signature).or_else(|| self.newcomer(signature));
        if let Some(place) = place {
            place.store(Entry(place.load()).after(signature, sample).0);
        }
    }

    /// Forgets a signature that now stands for something else.
    pub(crate) fn forget(&self, signature: Signature) {
        if let Some(place) = self.place(signature) {
            place.store(0);
        }
    }

    #[inline]
    fn place(&self, signature: Signature) -> Option<&Counter> {
        self.line(signature).find(|place| Entry(place.load()).is_of(signature))
    }

    /// Returns an empty place, or the place of the entry to replace, chosen by the signature's hash.
    fn newcomer(&self, signature: Signature) -> Option<&Counter> {
        let empty = self.line(signature).find(|place| place.load() == 0);
        let place = empty.or_else(|| self.line(signature).next())?;
        place.store(0);
        Some(place)
    }

    /// Returns the places of a signature, beginning with the most likely one.
    #[inline]
    fn line(&self, signature: Signature) -> impl Iterator<Item = &Counter> {
        // Three disjoint groups of bits: the line, the place in it, the tag.
        #[allow(clippy::cast_possible_truncation)]
        let (line, first) = (signature.0 as usize % LINES, (signature.0 >> 20) as usize % WAYS);
        let line = self.lines.get(line);
        (0..WAYS).filter_map(move |step| line?.0.get((first + step) % WAYS))
    }
}

/// One measured launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) ns: u64,
    /// The stream was busy when the launch was queued, so the device began it without a wait: the sample contains
    /// nothing else.
    pub(crate) clean: bool,
    /// No turn of another process is contained in it: however far from the mean, it is the launch's own. Without this,
    /// `T10 5 of around 5 us, then a wait, 30, beside 40` gets 13 points more than its bound allows.
    pub(crate) is_whole: bool,
    /// The next launch may take any time, so each one is measured.
    pub(crate) is_collective: bool,
    /// Turns of other processes may be contained in it: far from the mean, it says nothing about the next one. Without
    /// this, `groups: W2 40 ms kernels, low, beside W1 10 us kernels`, 30, misses its bound (`lending`).
    pub(crate) explained: bool,
}

/// An estimate with this many samples is used without a measurement of each launch.
const ENOUGH_SAMPLES: u64 = 4;
/// The mean covers about this many samples.
const MOST_SAMPLES: u64 = 15;
/// The same of clean samples that are the launch's own: an allowance covers more launches of a mean that is too low than
/// of one that is too high, so a mean that varies is too low in effect. If it were so of others, that contain the host's
/// delays too, `W8 10 us, sync`, 30, would get 31.3 beside `W9 launch-bound 3 us`.
const MOST_WHOLE: u64 = 63;
/// A sample is cut off at this multiple of the mean: beyond it, it more likely contains another process's turn of the
/// device.
pub(crate) const OUTLIER: u64 = 4;
/// After this many outliers in a row the mean itself is taken to be wrong. Without this,
/// `T10 1 in 100 takes 1280 us, 30, beside 40` gets 5 points more than its bound allows, with turns of 4 ms.
const MOST_DOUBTS: u64 = 3;
/// After a clean sample, this many samples that are not clean are ignored. Without this, `W9 launch-bound 3 us` misses
/// its bound at 30 % beside `W8 10 us, sync`.
const PATIENCE: u64 = 7;

/// One word of the table. Its fields are counted from the low end.
#[derive(Clone, Copy)]
struct Entry(u64);

const COST: Field = Field { shift: 0, bits: 33 };
const SAMPLES: Field = Field { shift: 33, bits: 6 };
const DOUBTS: Field = Field { shift: 39, bits: 2 };
const TRUST: Field = Field { shift: 41, bits: 3 };
const TAG: Field = Field { shift: 44, bits: 20 };

struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    const fn most(&self) -> u64 {
        (1 << self.bits) - 1
    }

    /// Returns the field's bits of a word; a value that is too large saturates.
    const fn of(&self, value: u64) -> u64 {
        (if value < self.most() { value } else { self.most() }) << self.shift
    }

    const fn from(&self, word: u64) -> u64 {
        word >> self.shift & self.most()
    }
}

impl Entry {
    /// Never zero, so that no entry looks like an empty place.
    #[inline]
    fn tag(signature: Signature) -> u64 {
        signature.0 >> TAG.shift | 1
    }

    #[inline]
    fn is_of(self, signature: Signature) -> bool {
        TAG.from(self.0) == Self::tag(signature)
    }

    #[inline]
    fn samples(self) -> u64 {
        SAMPLES.from(self.0)
    }

    #[inline]
    fn cost(self) -> u64 {
        COST.from(self.0)
    }

    /// Returns the entry after one more sample.
    fn after(self, signature: Signature, sample: Sample) -> Self {
        let (samples, mean, trust) = (self.samples(), self.cost(), TRUST.from(self.0));
        if !sample.clean && trust > 0 {
            return Self(self.0 - TRUST.of(1));
        }
        let trust = if sample.clean { PATIENCE } else { 0 };
        let (low, high) = (mean / OUTLIER, mean.saturating_mul(OUTLIER));
        let is_near = sample.is_whole || (low..=high).contains(&sample.ns);
        let doubts = if is_near { 0 } else { DOUBTS.from(self.0) + 1 };
        let (samples, mean, doubts) = if samples == 0 || doubts >= MOST_DOUBTS {
            (1, sample.ns, 0)
        } else {
            let most = match sample {
                Sample { is_collective: true, .. } => ENOUGH_SAMPLES - 1,
                Sample { is_whole: true, clean: true, .. } => MOST_WHOLE,
                _ => MOST_SAMPLES,
            };
            let count = (samples + 1).min(most);
            let ns = match sample {
                Sample { is_whole: true, ns, .. } => ns.min(COST.most()),
                Sample { explained: true, ns, .. } if ns > high => mean,
                Sample { ns, .. } => ns.clamp(low, high),
            };
            let sum = mean.saturating_mul(count - 1).saturating_add(ns);
            (count, sum / count, doubts)
        };
        let word = COST.of(mean) | SAMPLES.of(samples) | DOUBTS.of(doubts) | TRUST.of(trust);
        Self(TAG.of(Self::tag(signature)) | word)
    }
}
