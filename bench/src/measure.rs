//! Taking turns, and what is kept of the samples.
//!
//! Worlds are measured in turns, A B B A A B ..., so that whatever else the machine does falls on
//! all of them alike, and medians are compared. No sample is thrown away.

use crate::Result;

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
    for round in 0..rounds {
        for turn in 0..M {
            // Every second round backwards: a drift then falls on all alike.
            let index = if round % 2 == 0 { turn } else { M - 1 - turn };
            let values = measure(&mut worlds[index])?;
            for (sample, value) in samples[index].iter_mut().zip(values) {
                sample.add(value);
            }
        }
    }
    Ok(samples)
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
    fn the_order_of_the_worlds_turns_round() {
        let mut seen = Vec::new();
        let samples = in_turns(&mut [1_u8, 2], 3, |world| {
            seen.push(*world);
            Ok([f64::from(*world)])
        })
        .expect("nothing fails");
        assert_eq!(seen, [1, 2, 2, 1, 1, 2]);
        assert_eq!(samples[1][0].count(), 3);
        assert_eq!(samples[1][0].p99(), 2.0);
    }
}
