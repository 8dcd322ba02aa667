//! Which launches take the same time each time, as far as they were seen while no neighbour was there.
//!
//! Beside neighbours a measurement says only between what and what an operation lies: all of the time that it took, and
//! that without what the neighbours may have been given. Of an operation that took the same time whenever it was alone,
//! it is taken to be that time again, as far as it lies between the two; of any other, its turns in the mean.

use super::Signature;

/// What was seen of some signatures. A newcomer takes the place of another one.
#[derive(Debug)]
pub(super) struct Steady {
    known: Vec<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    signature: Option<Signature>,
    /// The mean of what it took alone.
    mean_ns: u64,
    /// How many of the latest took about that.
    agree: u8,
}

const PLACES: usize = 1024;
/// So many make it steady, and more are not counted.
const ENOUGH: u8 = 3;
const MOST: u8 = 8;
/// About the same: within a part of the mean, and what a clock may be off.
const PART: u64 = 8;
const OFF_NS: u64 = 1_000;

impl Default for Steady {
    fn default() -> Self {
        Self { known: vec![Known::default(); PLACES] }
    }
}

impl Steady {
    /// Notes what a launch took that no neighbour can have delayed.
    pub(super) fn note(&mut self, signature: Signature, ns: u64) {
        let Some(known) = self.place(signature) else { return };
        if known.signature != Some(signature) {
            *known = Known { signature: Some(signature), mean_ns: ns, agree: 1 };
        } else if known.mean_ns.abs_diff(ns) <= known.mean_ns / PART + OFF_NS {
            known.agree = MOST.min(known.agree + 1);
            known.mean_ns = known.mean_ns - known.mean_ns / PART + ns / PART;
        } else {
            known.agree = known.agree.saturating_sub(2);
            if known.agree == 0 {
                (known.mean_ns, known.agree) = (ns, 1);
            }
        }
    }

    /// What a launch takes alone, if it takes the same each time.
    pub(super) fn mean(&mut self, signature: Signature) -> Option<u64> {
        let known = self.place(signature).filter(|known| known.signature == Some(signature))?;
        (known.agree >= ENOUGH).then_some(known.mean_ns)
    }

    /// It means something else from now on.
    pub(super) fn forget(&mut self, signature: Signature) {
        if let Some(known) = self.place(signature).filter(|it| it.signature == Some(signature)) {
            *known = Known::default();
        }
    }

    fn place(&mut self, signature: Signature) -> Option<&mut Known> {
        // The highest bits: the lowest are those of the table of costs.
        #[allow(clippy::cast_possible_truncation)]
        let place = (signature.0 >> 40) as usize % PLACES;
        self.known.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Signature = Signature::kernel(7, 1024);

    #[test]
    fn what_takes_the_same_each_time_is_steady() {
        let mut steady = Steady::default();
        (0..3).for_each(|_| {
            assert_eq!(steady.mean(KERNEL), None);
            steady.note(KERNEL, 1_000_000);
        });
        assert_eq!(steady.mean(KERNEL), Some(1_000_000));
        steady.forget(KERNEL);
        assert_eq!(steady.mean(KERNEL), None);
    }

    #[test]
    fn what_varies_is_not() {
        let mut steady = Steady::default();
        for turn in 0..100_u64 {
            steady.note(KERNEL, 1_000_000 + turn * 7 % 5 * 400_000);
        }
        assert_eq!(steady.mean(KERNEL), None);
    }

    #[test]
    fn what_changes_is_steady_again_after_a_while() {
        let mut steady = Steady::default();
        (0..20).for_each(|_| steady.note(KERNEL, 1_000_000));
        (0..8).for_each(|_| steady.note(KERNEL, 5_000_000));
        assert_eq!(steady.mean(KERNEL), Some(5_000_000));
    }
}
