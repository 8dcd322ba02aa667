//! How long the driver's samples of a card are, and for which part of the time the card worked for each process by them.

use core::ffi::c_uint;
use std::collections::BTreeMap;

/// The shortest and the longest sample of a driver.
const SHORTEST_US: u64 = 166_000;
const LONGEST_US: u64 = 1_000_000;
/// Without a sample for the length of this number of them, or half a second, a card was idle, but for what the driver may
/// still be measuring.
const IDLE_SAMPLES: u64 = 2;
const LEAST_IDLE_US: u64 = 500_000;

/// `nvmlProcessUtilizationSample_t`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) pid: c_uint,
    pub(super) time_us: u64,
    pub(super) sm: c_uint,
    pub(super) others: [c_uint; 3],
}

/// How long a sample of the driver is.
#[derive(Debug)]
pub(super) struct Period {
    us: u64,
    /// When the latest sample of each process was taken.
    latest: BTreeMap<c_uint, u64>,
}

impl Default for Period {
    /// The longest.
    fn default() -> Self {
        Self { us: LONGEST_US, latest: BTreeMap::new() }
    }
}

impl Period {
    /// Up to when there are samples, if there are any, and the part of the time from `known_us` for each process, in percent.
    /// A sample is about the time since the process's previous one, or about a period if that is shorter. The driver is known
    /// to return records without a meaning.
    pub(super) fn percentages(
        &mut self,
        samples: &[Sample],
        known_us: u64,
    ) -> (Option<u64>, BTreeMap<c_uint, u64>) {
        let has_meaning = |it: &&Sample| it.pid != 0 && it.sm <= 100 && it.time_us > known_us;
        let mut samples: Vec<&Sample> = samples.iter().filter(has_meaning).collect();
        samples.sort_by_key(|sample| (sample.pid, sample.time_us));
        let Some(until_us) = samples.iter().map(|sample| sample.time_us).max() else {
            return (None, BTreeMap::new());
        };
        // Of a process that has none any more, the next one is about a period.
        self.latest.retain(|_, time_us| *time_us <= until_us && until_us - *time_us <= LONGEST_US);
        let lengths: Vec<_> = samples.iter().map(|sample| self.note(sample)).collect();
        let length_us = until_us.saturating_sub(known_us).max(1);
        let mut sums: BTreeMap<c_uint, u64> = BTreeMap::new();
        for (sample, length_us) in samples.iter().zip(lengths) {
            let sum = sums.entry(sample.pid).or_default();
            *sum += length_us.min(self.us).saturating_mul(sample.sm.into());
        }
        let percent =
            |(pid, sum): (c_uint, u64)| (pid, ((sum + length_us / 2) / length_us).min(100));
        let percentages = sums.into_iter().map(percent).filter(|(_, percent)| *percent > 0);
        (Some(until_us), percentages.collect())
    }

    /// Notes a sample. Returns the time since the process's previous one.
    fn note(&mut self, sample: &Sample) -> u64 {
        let before = self.latest.insert(sample.pid, sample.time_us);
        let length_us = before.map_or(LONGEST_US, |before| sample.time_us.saturating_sub(before));
        if length_us > 0 {
            self.is_at_most(length_us);
        }
        length_us
    }

    /// No sample is longer than this.
    pub(super) fn is_at_most(&mut self, us: u64) {
        self.us = self.us.min(us.max(SHORTEST_US));
    }

    /// How long after the latest sample a card without further ones was idle.
    pub(super) fn idle_us(&self) -> u64 {
        self.us.saturating_mul(IDLE_SAMPLES).max(LEAST_IDLE_US)
    }

    /// Up to when it was: the driver may still be measuring for a period, and a fifth of it.
    pub(super) fn idle_until(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.us.saturating_add(self.us / 5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: c_uint, time_us: u64, sm: c_uint) -> Sample {
        Sample { pid, time_us, sm, others: [0; 3] }
    }

    #[test]
    fn a_sample_is_about_the_time_since_the_one_before() {
        let samples = [
            sample(7, 1_200_000, 50),
            sample(7, 1_400_000, 100),
            sample(8, 1_100_000, 80),
            sample(8, 1_400_000, 40),
        ];
        let (until_us, percentages) = Period::default().percentages(&samples, 1_000_000);
        assert_eq!(until_us, Some(1_400_000));
        // Samples are of 0.2 s: so is the first of each, and the second one of 8.
        assert_eq!(percentages.into_iter().collect::<Vec<_>>(), [(7, 75), (8, 60)]);
    }

    #[test]
    fn records_without_a_meaning_are_ignored() {
        let samples = [sample(0, 2_000, 50), sample(7, 900, 50), sample(8, 1_500, 4_000_000)];
        assert_eq!(Period::default().percentages(&samples, 1_000), (None, BTreeMap::new()));
    }

    /// What a card of samples of this length says of a process that works for `busy` of every `of` ms, in percent.
    fn counted(period_us: u64, [busy_ms, of_ms]: [u64; 2]) -> f64 {
        let worked = |until_us: u64| {
            let (whole, part) = (until_us / (of_ms * 1000), until_us % (of_ms * 1000));
            whole * busy_ms * 1000 + part.min(busy_ms * 1000)
        };
        let (mut period, mut known_us, mut sum, mut length) = (Period::default(), 0, 0, 0);
        period.is_at_most(period_us);
        let looks = (1..=600).map(|look| look * 170_000);
        for now_us in looks {
            let ends = known_us / period_us + 1..=now_us / period_us;
            let samples = ends.map(|number| {
                let [from, end] = [number - 1, number].map(|number| number * period_us);
                let percent = (worked(end) - worked(from)) * 100 / period_us;
                sample(7, end, c_uint::try_from(percent).expect("a percentage"))
            });
            let samples: Vec<_> = samples.filter(|sample| sample.sm > 0).collect();
            let (until_us, percentages) = period.percentages(&samples, known_us);
            let until_us = match until_us {
                None if now_us - known_us < period.idle_us() => continue,
                None => period.idle_until(now_us),
                Some(until_us) => until_us,
            };
            sum += percentages.get(&7).unwrap_or(&0) * (until_us - known_us);
            length += until_us - known_us;
            known_us = until_us;
        }
        let [sum, length] = [sum, length].map(|number| u32::try_from(number / 1000).expect("ms"));
        f64::from(sum) / f64::from(length)
    }

    #[test]
    fn work_in_bursts_counts_as_much_as_it_is() {
        for period_us in [SHORTEST_US, 166_667, 250_000, 500_000, LONGEST_US] {
            for of_ms in [20, 50, 300, 400, 450, 500, 600, 1000, 2000] {
                let counted = counted(period_us, [of_ms / 10, of_ms]);
                let is_close = (8.5..=10.6).contains(&counted);
                assert!(is_close, "{counted} of 10 % each {of_ms} ms, in samples of {period_us}");
            }
            let counted = counted(period_us, [100, 100]);
            assert!((99.0..=100.1).contains(&counted), "{counted} in samples of {period_us}");
        }
    }
}
