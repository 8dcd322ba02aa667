//! What a container has of a GPU's time beyond its limit, by the driver's samples of its processes, and until when it has to
//! be held back for that.
//!
//! The library charges what it can see from within a process. What a process does so that nothing there sees its work (it is
//! stopped while that runs, and killed) or without the library shows in the driver's samples alone. They are in whole percents
//! and count a kernel however few of the GPU's units it uses, so there is a tolerance: a quarter of the limit, one percent of
//! the time, and [`DEPTH_NS`] at once.
//!
//! A token bucket (as in ITU-T I.371, "generic cell rate"): it fills at the tolerated rate, and what is sampled is taken out.
//! Below zero the container is held back until it would be full enough again. What the library holds a container back for at
//! its limit lasts longer than that, so the two never add up.

use crate::units::{Share, signed};

/// What it holds at most: what a container may have at once beyond the tolerated rate.
const DEPTH_NS: u64 = 2_000_000_000;
/// The longest time for which a container is held back by what was sampled so far.
pub const MOST_HELD_NS: u64 = 600_000_000_000;

/// The bucket of one container and GPU.
#[derive(Clone, Copy, Debug)]
pub struct Excess {
    balance_ns: i64,
    /// Up to when it has been filled.
    filled_at: u64,
}

impl Excess {
    /// Begins now, full.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self { balance_ns: signed(DEPTH_NS), filled_at: now }
    }

    /// Begins now with what a container owes that is to be held back for `left_ns` longer.
    #[must_use]
    pub fn owing(limit: Share, left_ns: u64, now: u64) -> Self {
        let owed_ns = tolerated(limit).map(|tolerated| tolerated.of(left_ns.min(MOST_HELD_NS)));
        owed_ns
            .map_or_else(|| Self::new(now), |ns| Self { balance_ns: -signed(ns), filled_at: now })
    }

    /// Whether nothing is left of what was sampled, so that one that begins now is the same.
    #[must_use]
    pub fn is_over(&self, limit: Share, now: u64) -> bool {
        let mut excess = *self;
        excess.add(limit, 0, now);
        excess.balance_ns >= signed(DEPTH_NS)
    }

    /// Adds a sample that ended just now, in which the GPU worked for the container for `busy_ns`; `limit` is the most that the
    /// container may have. Time of which there is no sample fills the bucket, too: nothing shows that more was had in it.
    /// Returns how much was beyond the limit and the tolerance.
    pub fn add(&mut self, limit: Share, busy_ns: u64, now: u64) -> u64 {
        let Some(tolerated) = tolerated(limit) else {
            *self = Self::new(now);
            return 0;
        };
        let before = self.balance_ns;
        let passed_ns = now.saturating_sub(self.filled_at);
        self.filled_at = self.filled_at.max(now);
        let filled = before.saturating_add(signed(tolerated.of(passed_ns)));
        let filled = filled.min(signed(DEPTH_NS));
        // More is owed where the limit was higher.
        let filled = filled.max(lowest(tolerated));
        self.balance_ns = filled.saturating_sub(signed(busy_ns)).max(lowest(tolerated));
        let below = |balance: i64| balance.min(0).unsigned_abs();
        below(self.balance_ns).saturating_sub(below(before))
    }

    /// Returns until when the container is to have no more; `None`: it may.
    #[must_use]
    pub fn held_until(&self, limit: Share, now: u64) -> Option<u64> {
        let tolerated = tolerated(limit)?;
        let owed_ns = u64::try_from(self.balance_ns.checked_neg()?).ok().filter(|ns| *ns > 0)?;
        let parts = u64::from(tolerated.parts()).max(1);
        let wait_ns = owed_ns.saturating_mul(u64::from(Share::DENOMINATOR)).div_ceil(parts);
        Some(now.saturating_add(wait_ns.min(MOST_HELD_NS)))
    }
}

/// The most that is owed.
fn lowest(tolerated: Share) -> i64 {
    -signed(tolerated.of(MOST_HELD_NS))
}

/// Returns how much of the time is not beyond a limit; `None`: no more than all of it can be had.
fn tolerated(limit: Share) -> Option<Share> {
    let parts = limit.parts().saturating_mul(5) / 4;
    let parts = parts.saturating_add(Share::DENOMINATOR / 100);
    Share::from_parts(parts).filter(|share| *share != Share::FULL)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn percent(percent: u16) -> Share {
        Share::from_percent(percent).expect("a share")
    }

    #[test]
    fn what_is_owed_outlasts_who_counts_it() {
        for limit in [1, 10, 50, 78] {
            for left in [1, 7, 600, 700] {
                let excess = Excess::owing(percent(limit), left * SECOND, 5 * SECOND);
                let until = excess.held_until(percent(limit), 5 * SECOND).expect("held");
                assert!(until.abs_diff((5 + left.min(600)) * SECOND) <= 200, "{limit} {until}");
            }
        }
        assert_eq!(Excess::owing(percent(99), SECOND, 0).held_until(percent(99), 0), None);
        assert_eq!(Excess::owing(percent(10), 0, 0).held_until(percent(10), 0), None);
    }

    #[test]
    fn what_was_sampled_is_over_once_it_has_flowed_in() {
        let mut excess = Excess::new(0);
        assert!(excess.is_over(percent(10), 0));
        excess.add(percent(10), SECOND, SECOND);
        // At 13.5 %.
        let over = [7, 8, 9].map(|second| excess.is_over(percent(10), second * SECOND));
        assert_eq!(over, [false, false, true]);
        assert!(excess.is_over(percent(80), SECOND), "nothing is beyond that");
    }

    #[test]
    fn what_is_tolerated_is_never_beyond() {
        let mut excess = Excess::new(0);
        for sample in 1..10_000 {
            assert_eq!(excess.add(percent(10), 13_500_000, sample * SECOND / 10), 0);
            assert_eq!(excess.held_until(percent(10), 0), None);
        }
    }

    #[test]
    fn what_is_beyond_is_waited_for_at_the_tolerated_rate() {
        let mut excess = Excess::new(0);
        // Of 10 s, 1.35 are tolerated, and 2 at once.
        assert_eq!(excess.add(percent(10), 10 * SECOND, 10 * SECOND), 8 * SECOND);
        let until = excess.held_until(percent(10), 10 * SECOND).expect("held");
        assert_eq!(until, 10 * SECOND + (8 * SECOND * 1000).div_ceil(135));
        assert_eq!(excess.add(percent(10), 0, until + SECOND), 0);
        assert_eq!(excess.held_until(percent(10), until + SECOND), None);
    }

    /// However the time is cut into samples.
    #[test]
    fn what_flows_in_is_not_beyond() {
        let mut excess = Excess::new(0);
        let samples = 1..=100;
        let beyond: u64 =
            samples.map(|at| excess.add(percent(10), SECOND / 10, at * SECOND / 10)).sum();
        assert!(beyond.abs_diff(6_650 * SECOND / 1000) < SECOND / 50, "{beyond}");
    }

    /// An hour without samples, after 80 s of work.
    #[test]
    fn who_was_held_for_all_of_it_is_not_held_once_more() {
        let mut excess = Excess::new(0);
        excess.add(percent(10), 80 * SECOND, 80 * SECOND);
        assert!(excess.held_until(percent(10), 80 * SECOND).is_some_and(|it| it > 500 * SECOND));
        excess.add(percent(10), SECOND, 3_680 * SECOND);
        assert_eq!(excess.held_until(percent(10), 3_680 * SECOND), None);
    }

    #[test]
    fn none_is_held_for_longer_than_ten_minutes() {
        let mut excess = Excess::new(0);
        excess.add(percent(1), 100_000 * SECOND, 100_000 * SECOND);
        let until = excess.held_until(percent(1), 0).expect("held");
        assert!(until.abs_diff(MOST_HELD_NS) < SECOND, "{until}");
    }

    /// Else it would be longer than what a reader takes for a time of its own clock, and count for nothing.
    #[test]
    fn a_limit_that_is_lowered_holds_for_no_longer_than_ten_minutes() {
        let mut excess = Excess::new(0);
        excess.add(percent(50), 150 * SECOND, 400 * SECOND);
        let left = |excess: &Excess, limit, now| {
            excess.held_until(percent(limit), now * SECOND).expect("held").abs_diff(now * SECOND)
        };
        assert!(left(&excess, 50, 400) < 240 * SECOND);
        assert_eq!(left(&excess, 1, 400), MOST_HELD_NS);
        // Nor does it then owe more than can be held back.
        assert_eq!(excess.add(percent(1), 0, 401 * SECOND), 0);
        assert!(left(&excess, 1, 401).abs_diff(MOST_HELD_NS) < SECOND);
        excess.add(percent(1), SECOND, 402 * SECOND);
        assert!(left(&excess, 1, 402).abs_diff(MOST_HELD_NS) < SECOND);
        assert!(left(&excess, 1, 500).abs_diff(MOST_HELD_NS) < SECOND, "it fills with samples");
        excess.add(percent(1), 0, 500 * SECOND);
        assert!(left(&excess, 1, 500).abs_diff(MOST_HELD_NS - 98 * SECOND) < SECOND);
    }

    #[test]
    fn where_all_of_the_time_is_tolerated_nothing_is_beyond() {
        let mut excess = Excess::new(0);
        for limit in [80, 100] {
            assert_eq!(excess.add(percent(limit), 9 * SECOND, 9 * SECOND), 0);
            assert_eq!(excess.held_until(percent(limit), 9 * SECOND), None);
        }
    }

    proptest! {
        /// However the samples come, a container that is held back as it should gets the tolerated rate, what is given at
        /// once, and the sample in which it is found out.
        #[test]
        fn in_the_long_run_no_more_than_is_tolerated(
            limit in 1_u16..79,
            samples in proptest::collection::vec((0_u64..=1000, 1_u64..=1000), 1..400),
        ) {
            let (mut excess, mut now, mut had_ns, mut longest) = (Excess::new(0), 0, 0, 0);
            for (permille, ms) in samples {
                let length_ns = ms * 1_000_000;
                let held = excess.held_until(percent(limit), now).is_some();
                let busy_ns = if held { 0 } else { length_ns / 1000 * permille };
                now += length_ns;
                excess.add(percent(limit), busy_ns, now);
                had_ns += busy_ns;
                longest = longest.max(length_ns);
            }
            let tolerated = tolerated(percent(limit)).expect("less than all").of(now);
            prop_assert!(had_ns <= tolerated + DEPTH_NS + longest, "{had_ns} of {now}");
        }
    }
}
