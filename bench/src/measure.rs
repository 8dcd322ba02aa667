//! Taking turns, and what is kept of the samples.
//!
//! Worlds are measured in turns, each once per round, so that whatever else the machine does falls
//! on all of them alike, and medians are compared. The order within a round is drawn anew, the same
//! in every run: a process finds in the caches what the one before it left there, so none may
//! always follow the same other. No sample is thrown away.

use crate::run::Result;

/// Samples of one quantity.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    values: Vec<f64>,
}

impl Sample {
    /// Of one measurement that needs no repetition.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { values: vec![value] }
    }

    /// Adds a sample.
    pub fn add(&mut self, value: f64) {
        let place = self.values.partition_point(|other| other.total_cmp(&value).is_lt());
        self.values.insert(place, value);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The middle one.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.quantile(50)
    }

    /// The one that 99 % do not exceed.
    #[must_use]
    pub fn p99(&self) -> f64 {
        self.quantile(99)
    }

    /// The least.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.quantile(0)
    }

    /// NaN if there is no sample: such a number meets no target.
    fn quantile(&self, percent: usize) -> f64 {
        let place = self.values.len() * percent / 100;
        self.values.get(place).copied().unwrap_or(f64::NAN)
    }
}

/// Measures each of `worlds` once per round. `measure` gives one value or several; the answer has,
/// for each world, a sample of each.
///
/// # Errors
/// The first of `measure`.
pub fn in_turns<W, const M: usize, const N: usize>(
    worlds: &mut [W; M],
    rounds: usize,
    mut measure: impl FnMut(&mut W) -> Result<[f64; N]>,
) -> Result<[[Sample; N]; M]> {
    let mut samples = [(); M].map(|()| [(); N].map(|()| Sample::default()));
    let mut order: [usize; M] = std::array::from_fn(|index| index);
    let mut state = 88_172_645_463_325_252;
    for _ in 0..rounds {
        shuffle(&mut order, &mut state);
        for index in order {
            let values = measure(&mut worlds[index])?;
            for (sample, value) in samples[index].iter_mut().zip(values) {
                sample.add(value);
            }
        }
    }
    Ok(samples)
}

/// Fisher and Yates's shuffle, by Marsaglia's xorshift.
fn shuffle(order: &mut [usize], state: &mut u64) {
    for last in (1..order.len()).rev() {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let other = usize::try_from(*state >> 33).unwrap_or(0) % (last + 1);
        order.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_samples() {
        let mut sample = Sample::default();
        for value in (0_u32..200).rev() {
            sample.add(f64::from(value));
        }
        assert_eq!((sample.least(), sample.median(), sample.p99()), (0.0, 100.0, 198.0));
        assert_eq!(sample.count(), 200);
    }

    #[test]
    fn no_samples_meet_no_target() {
        assert!(Sample::default().median().is_nan());
    }

    #[test]
    fn every_world_has_its_turn_in_every_round_and_follows_every_other() {
        let mut seen = Vec::new();
        let samples = in_turns(&mut [0_u8, 1, 2], 100, |world| {
            seen.push(*world);
            Ok([f64::from(*world)])
        })
        .expect("nothing fails");
        for round in seen.chunks(3) {
            assert!((0..3).all(|world| round.contains(&world)), "{round:?}");
        }
        for before in 0..3 {
            for after in 0..3 {
                assert!(seen.windows(2).any(|pair| pair == [before, after]), "{before} {after}");
            }
        }
        assert_eq!((samples[2][0].count(), samples[2][0].p99()), (100, 2.0));
    }
}
