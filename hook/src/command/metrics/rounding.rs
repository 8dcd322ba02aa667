//! What processes had of a GPU's time, by samples in whole percents.
//!
//! The driver rounds the part of each process, and none of NVIDIA's documents says how. Fifty processes of 0.1 % each would
//! count as fifty percent where it rounds up. The GPU's own sample, one number for all of them, is off by one percent at most:
//! so each process is taken to have had up to one percent less than its sample, equally, as far as their sum is more than that.
//! Nothing is added where it is less: what has ended before it was sampled may be missing there.

use std::collections::BTreeMap;

/// Parts of a percent in which what is left is counted.
pub(super) const PARTS: u64 = 1000;

/// The samples of processes with something in common.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Samples {
    /// In percent of the time, in sum.
    percent: u64,
    /// How many of them were not zero.
    count: u64,
}

impl Samples {
    /// Adds one.
    pub(super) fn add(&mut self, percent: u64) {
        self.percent = self.percent.saturating_add(percent);
        self.count = self.count.saturating_add(u64::from(percent > 0));
    }

    /// Their sum.
    pub(super) fn percent(self) -> u64 {
        self.percent
    }

    /// At least this is what they stand for, and of each a percent more at most.
    fn least(self) -> u64 {
        self.percent.saturating_sub(self.count)
    }

    /// What they stand for if each process had this many parts of that percent.
    fn parts(self, more: u64) -> u64 {
        let least = self.least().saturating_mul(PARTS);
        least.saturating_add(self.count.saturating_mul(more)).min(100 * PARTS)
    }
}

/// Returns what each budget had, in [`PARTS`] of a percent of the time: `seen` are the samples of all processes, and `all` that of
/// the GPU, if there is one.
pub(super) fn parts(
    used: BTreeMap<String, Samples>,
    seen: Samples,
    all: Option<u64>,
) -> BTreeMap<String, u64> {
    let left = all.map(|all| all.saturating_sub(seen.least()).saturating_mul(PARTS));
    let more = left.map_or(PARTS, |left| left.checked_div(seen.count).unwrap_or(0).min(PARTS));
    used.into_iter().map(|(budget, samples)| (budget, samples.parts(more))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(percents: &[u64]) -> Samples {
        percents.iter().fold(Samples::default(), |mut all, percent| {
            all.add(*percent);
            all
        })
    }

    fn of(containers: &[&[u64]], all: Option<u64>) -> Vec<u64> {
        let seen = samples(&containers.concat());
        let used = containers.iter().enumerate();
        let used = used.map(|(at, it)| (format!("{at:03}"), samples(it))).collect();
        parts(used, seen, all).into_values().collect()
    }

    #[test]
    fn many_small_processes_are_not_more_than_the_gpu_worked() {
        // 50 processes of 0.08 % each, alone and beside one of 60 %: rounded up.
        assert_eq!(of(&[&[1; 50]], Some(4)), [4_000]);
        assert_eq!(of(&[&[1; 50], &[60]], Some(64)), [4_900, 59_098]);
        // None of them says more than it seems, also if some are missing.
        assert_eq!(of(&[&[30], &[0, 20]], Some(50)), [30_000, 20_000]);
        assert_eq!(of(&[&[30], &[20]], Some(90)), [30_000, 20_000]);
        assert_eq!(of(&[&[30], &[1; 3]], None), [30_000, 3_000]);
        assert_eq!(of(&[&[0], &[]], Some(0)), [0, 0]);
    }

    /// Whatever processes had: the driver may round up or to the nearest percent.
    #[test]
    fn what_is_counted_is_within_a_percent_of_each_process() {
        const HAD: [u64; 5] = [0, 80, 500, 1_200, 19_999];
        for place in 0..HAD.len().pow(4) {
            let had = |at: u32| HAD[place / HAD.len().pow(at) % HAD.len()];
            let exact = [vec![had(0)], vec![had(1), had(2), had(3)]];
            for up in [false, true] {
                let round = |it: u64| (it + if up { PARTS - 1 } else { PARTS / 2 }) / PARTS;
                let total: u64 = exact.iter().flatten().sum();
                let rounded = exact.each_ref().map(|of| of.iter().map(|it| round(*it)).collect());
                let found = of(&rounded.each_ref().map(Vec::as_slice), Some(round(total)));
                for (found, of) in found.iter().zip(&exact) {
                    let (had, count): (u64, _) = (of.iter().sum(), of.len() as u64);
                    assert!(found.abs_diff(had) <= count * PARTS, "{found} of {of:?}");
                }
                let sum: u64 = found.iter().sum();
                assert!(sum <= round(total) * PARTS + 1, "{sum} of {exact:?}");
            }
        }
    }
}
