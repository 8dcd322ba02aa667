//! The device's clock in terms of the host's, and how long a launch call takes by itself.
//!
//! No event is reached before the host began to record it, and in an empty stream it is reached as soon as it is
//! recorded. So the largest difference seen between the two clocks is their offset, less what they may have drifted
//! since, and the least duration of the recording call. No call waits for it.
//!
//! Without the return of the call as the earliest start of what it launched, `W8 10 us, sync` misses its bound at 30 %.

use crate::sync::Counter;

/// How long a launch call takes when nothing delays it: the time between an event on an empty stream and the arrival
/// of the kernel. A longer call waited, for room in a queue, for its kernel, for a processor; that says nothing about
/// the kernel.
#[derive(Debug, Default)]
pub struct CallTime(Counter);

/// No launch call is that slow by itself, in nanoseconds.
const SLOWEST_CALL_NS: u64 = 50_000;

impl CallTime {
    /// Notes how long a call took, in nanoseconds. Returns the part of it that may have been the call itself.
    pub fn bounded(&self, took: u64) -> u64 {
        let known = match self.0.load() {
            0 => took.min(SLOWEST_CALL_NS),
            known => known,
        };
        // Follows down at once and up slowly: nearly the shortest of late.
        let next = if took < known {
            took.saturating_add(known.saturating_sub(took) / 2)
        } else {
            known.saturating_add(known / 64).saturating_add(1).min(took).min(SLOWEST_CALL_NS)
        };
        self.0.store(next.max(1));
        took.min(next.saturating_mul(2))
    }
}

/// The offset of the device's clock from the host's.
#[derive(Debug, Default)]
pub struct ClockMap {
    /// The least offset of the host's clock, and the device's time at which it was seen.
    ahead: Option<(i64, i64)>,
    /// The least duration of a recording call.
    shortest: Option<u64>,
}

/// No two oscillators differ by more than one part in this many.
const DRIFT: i64 = 10_000;

impl ClockMap {
    /// Returns the host's time at which an event was reached: the host began to record it at `asked`, in a call that
    /// took `took`, and the device reached it at `at` by its own clock. All times in nanoseconds.
    pub fn host_time(&mut self, asked: u64, took: u64, at: i64) -> u64 {
        let shortest = self.shortest.map_or(took, |shortest| shortest.min(took));
        self.shortest = Some(shortest);
        let seen = i64::try_from(asked).unwrap_or(i64::MAX).saturating_sub(at);
        let (ahead, latest) = self.ahead.map_or((seen, at), |(ahead, then)| {
            let passed = at.saturating_sub(then).max(0);
            (seen.max(ahead.saturating_sub(passed / DRIFT)), then.saturating_add(passed))
        });
        self.ahead = Some((ahead, latest));
        let host = at.saturating_add(ahead);
        u64::try_from(host).unwrap_or(0).saturating_add(shortest)
    }

    /// Limits a time to now: what has been reached was reached before. Otherwise the device's clock has leapt, as
    /// when a machine is moved.
    pub fn not_after(&mut self, host: u64, now: u64) -> u64 {
        let beyond = i64::try_from(host.saturating_sub(now)).unwrap_or(0);
        self.ahead = self.ahead.map(|(ahead, then)| (ahead.saturating_sub(beyond), then));
        host.min(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_that_waited_is_no_slow_call() {
        let call = CallTime::default();
        assert_eq!(call.bounded(10_000_000), 100_000, "the first one may have loaded the code");
        for took in (0..40).map(|turn| if turn % 4 == 0 { 2_000_000 } else { 4_000 }) {
            assert!(call.bounded(took) <= 100_000);
        }
        assert_eq!(call.bounded(4_100), 4_100);
        assert!(call.bounded(2_000_000) < 10_000);
        for _ in 0..10_000 {
            assert!(call.bounded(2_000_000) <= 100_000);
        }
    }

    #[test]
    fn the_tightest_event_says_how_far_the_clocks_are_apart() {
        let mut clock = ClockMap::default();
        // Queued behind a millisecond of work: reached long after it was recorded.
        assert_eq!(clock.host_time(5_000_000, 1_500, 1_000_000), 5_001_500);
        // In an empty stream: that millisecond was waiting.
        assert_eq!(clock.host_time(7_000_000, 1_000, 2_000_000), 7_001_000);
        // Queued again: as much later than it was recorded.
        assert_eq!(clock.host_time(7_500_000, 2_000, 3_000_000), 8_000_900);
    }

    #[test]
    fn a_card_whose_clock_has_leapt_is_not_ahead_of_now() {
        let mut clock = ClockMap::default();
        assert_eq!(clock.host_time(5_000_000, 0, 1_000_000), 5_000_000);
        let leapt = clock.host_time(6_000_000, 0, 3_600_000_000_000);
        assert_eq!(clock.not_after(leapt, 6_000_500), 6_000_500);
        let next = clock.host_time(7_000_000, 0, 3_600_001_000_000);
        assert_eq!(clock.not_after(next, 7_000_600), 7_000_400);
    }

    #[test]
    fn clocks_that_drift_are_followed() {
        for drift in [-50_i64, 0, 50] {
            let mut clock = ClockMap::default();
            for step in 0..100_000_i64 {
                // Every hundredth finds its stream empty, the others wait a millisecond.
                let (host, empty) = (2_000_000 + step * 100_000, step % 100 == 0);
                let asked = if empty { host } else { host - 1_000_000 };
                let card = host + host * drift / 1_000_000;
                let said = clock.host_time(asked.unsigned_abs(), 0, card);
                let error = said.cast_signed() - host;
                assert!(error.abs() <= 1_600, "step {step}, {drift} ppm: {error}");
            }
        }
    }

    proptest! {
        /// Whatever the driver answers, no time is after now.
        #[test]
        fn no_time_is_after_now(reads in prop::collection::vec((any::<u64>(), any::<u64>(), any::<i64>(), any::<u64>()), 1..30)) {
            let mut clock = ClockMap::default();
            for (asked, took, at, now) in reads {
                let host = clock.host_time(asked, took, at);
                prop_assert!(clock.not_after(host, now) <= now);
            }
        }
    }
}
