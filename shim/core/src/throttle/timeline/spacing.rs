//! The distance of two events recorded one right behind the other, which each measurement contains in addition to the
//! operation.
//!
//! The device takes time from one event to the next, up to a tenth of a short kernel, and a launch between two events
//! would be charged for it. So now and then a third event is recorded right behind the second, while the operation
//! still runs, and the least of several distances is subtracted. The least, since anything in between (a launch of
//! another thread, a time slice of a peer) only adds; never more than [`MOST`], nor more than half of the
//! measurement, so that a program that gets between all of them is not charged much less than its work.
//!
//! Without this, `W14 short all-reduces` at 70 % of the device misses its bound.

/// The number of samples, since each costs a third event; until there are [`ENOUGH`], nothing is subtracted: the least
/// of fewer may contain what came in between. Both are only sizes.
const SAMPLES: u32 = 16;
const ENOUGH: u32 = 4;
/// No device is slower: cards need 0.5 to 2 us.
const MOST: u64 = 4_000;
/// Each of the first launches of this number is sampled, and one in this many later, until there are [`SAMPLES`]: where
/// operations end before the third event is recorded, samples are rare, and asking for them must cost little.
const OFTEN: u32 = 64;

/// The least distance seen.
#[derive(Debug, Default)]
pub(crate) struct Spacing {
    least: Option<u64>,
    samples: u32,
    asked: u32,
}

impl Spacing {
    /// Returns whether to sample behind the latest launch.
    pub(crate) fn wants_more(&mut self) -> bool {
        if self.samples >= SAMPLES {
            return false;
        }
        self.asked = self.asked.wrapping_add(1);
        self.asked <= OFTEN || self.asked.is_multiple_of(OFTEN)
    }

    /// Takes the distance of two events, in nanoseconds.
    pub(crate) fn note(&mut self, distance: u64) {
        self.samples = self.samples.saturating_add(1);
        self.least = Some(self.least.map_or(distance, |least| least.min(distance)));
    }

    /// Returns a measurement less the distance of the events.
    pub(crate) fn off(&self, measured: u64) -> u64 {
        let least = self.least.filter(|_| self.samples >= ENOUGH).unwrap_or(0);
        measured.saturating_sub(least.min(MOST).min(measured / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_some_is_taken_off() {
        let mut spacing = Spacing::default();
        for distance in [900, 300, 5_000_000] {
            spacing.note(distance);
            assert_eq!(spacing.off(10_000), 10_000, "too few");
        }
        spacing.note(400);
        assert_eq!((spacing.off(10_000), spacing.off(400)), (9_700, 200));
        spacing.note(0);
        assert_eq!(spacing.off(10_000), 10_000, "no event between them");
    }

    #[test]
    fn a_program_that_gets_between_events_is_not_charged_much_less() {
        let mut spacing = Spacing::default();
        for _ in 0..SAMPLES {
            spacing.note(5_000_000);
        }
        assert_eq!((spacing.off(1_000_000), spacing.off(6_000)), (996_000, 3_000));
    }

    #[test]
    fn it_is_asked_often_at_first_then_seldom_and_in_the_end_never() {
        let mut spacing = Spacing::default();
        let asked = (0..10 * OFTEN).filter(|_| spacing.wants_more()).count();
        assert_eq!(asked, 64 + 9);
        for _ in 0..SAMPLES {
            spacing.note(300);
        }
        assert_eq!((0..10 * OFTEN).filter(|_| spacing.wants_more()).count(), 0);
    }
}
