//! What launches of a signature cost so far: a table of fixed size that launches read without a lock.
//!
//! ```text
//! entry   tag:24   samples:4   cost in ns:36      one word; zero is an empty place
//! ```
//!
//! A signature has a place in one line of eight, and a line is one line of the cache. Readers see an entry before a
//! change or after it. Only the meter writes, under its caller's lock. A full line loses an entry to a newcomer: the
//! signature is then unknown again, which costs a few measured launches and no accuracy.

use super::{BIG_NS, Signature};
use crate::sync::Counter;

/// The costs of the launches of one device.
#[derive(Debug)]
pub struct Costs {
    lines: Box<[[Counter; WAYS]]>,
}

const WAYS: usize = 8;
const LINES: usize = 1024;

/// What is known of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Estimate {
    /// Never launched, or forgotten.
    Unknown,
    /// Launched, and nothing has come back yet: what its latest launch reserved.
    Unmeasured(u64),
    /// The mean of the latest samples.
    Measured(u64),
}

impl Default for Costs {
    fn default() -> Self {
        Self { lines: std::iter::repeat_with(Default::default).take(LINES).collect() }
    }
}

impl Costs {
    /// The cost of a launch that may be taken out of a batch: measured often enough, and small. Otherwise the launch
    /// is the meter's.
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

    pub(super) fn estimate(&self, signature: Signature) -> Estimate {
        match self.place(signature).map(|place| Entry(place.load())) {
            None => Estimate::Unknown,
            Some(entry) if entry.samples() == 0 => Estimate::Unmeasured(entry.cost()),
            Some(entry) => Estimate::Measured(entry.cost()),
        }
    }

    /// Notes what a launch reserved of which nothing is measured.
    pub(super) fn note_unmeasured(&self, signature: Signature, reserved_ns: u64) {
        let place = self.place(signature).or_else(|| self.newcomer(signature));
        if let Some(place) = place {
            place.store(Entry::new(signature, 0, reserved_ns).0);
        }
    }

    /// Adds a measurement to the mean.
    pub(super) fn learn(&self, signature: Signature, sample_ns: u64) {
        let Some(place) = self.place(signature).or_else(|| self.newcomer(signature)) else {
            return;
        };
        let entry = Entry(place.load());
        let (samples, mean) = (entry.samples(), entry.cost());
        let count = (samples + 1).min(MOST_SAMPLES);
        let cost = if samples == 0 {
            sample_ns
        } else {
            (mean * (count - 1)).saturating_add(sample_ns) / count
        };
        place.store(Entry::new(signature, count, cost).0);
    }

    /// The signature means something else from now on.
    pub(super) fn forget(&self, signature: Signature) {
        if let Some(place) = self.place(signature) {
            place.store(0);
        }
    }

    #[inline]
    fn place(&self, signature: Signature) -> Option<&Counter> {
        self.line(signature).find(|place| Entry(place.load()).is_of(signature))
    }

    /// An empty place, or the one that the signature's hash takes from another.
    fn newcomer(&self, signature: Signature) -> Option<&Counter> {
        let empty = self.line(signature).find(|place| place.load() == 0);
        let place = empty.or_else(|| self.line(signature).next())?;
        place.store(0);
        Some(place)
    }

    /// The places of a signature, first the one where it most likely is.
    #[inline]
    fn line(&self, signature: Signature) -> impl Iterator<Item = &Counter> {
        // Three disjoint groups of bits: the line, the place in it, the tag.
        #[allow(clippy::cast_possible_truncation)]
        let (line, first) = (signature.0 as usize % LINES, (signature.0 >> 20) as usize % WAYS);
        let line = self.lines.get(line);
        (0..WAYS).filter_map(move |step| line?.get((first + step) % WAYS))
    }
}

/// From here on an estimate is believed without a look at each launch.
const ENOUGH_SAMPLES: u64 = 4;
/// The mean is over about so many.
const MOST_SAMPLES: u64 = 15;
const SAMPLES_BITS: u32 = 4;
const COST_BITS: u32 = 36;

#[derive(Clone, Copy)]
struct Entry(u64);

impl Entry {
    #[inline]
    fn new(signature: Signature, samples: u64, cost_ns: u64) -> Self {
        let cost = cost_ns.min((1 << COST_BITS) - 1);
        Self(Self::tag(signature) << (SAMPLES_BITS + COST_BITS) | samples << COST_BITS | cost)
    }

    /// Never zero, so that no entry looks like an empty place.
    #[inline]
    fn tag(signature: Signature) -> u64 {
        signature.0 >> (SAMPLES_BITS + COST_BITS) | 1
    }

    #[inline]
    fn is_of(self, signature: Signature) -> bool {
        self.0 >> (SAMPLES_BITS + COST_BITS) == Self::tag(signature)
    }

    #[inline]
    fn samples(self) -> u64 {
        self.0 >> COST_BITS & ((1 << SAMPLES_BITS) - 1)
    }

    #[inline]
    fn cost(self) -> u64 {
        self.0 & ((1 << COST_BITS) - 1)
    }
}
