//! How far apart two events are that are recorded one right behind the other: what a measurement contains besides the
//! operation.
//!
//! The device takes time to come from one event to the next, as much as a tenth of a short kernel, and a launch between
//! two events would be charged for it. So now and then a third one is recorded right behind the second, while the
//! operation still runs, and the least distance of some is taken off. The least, since whatever comes between (a launch
//! of another thread, a slice of a neighbour) only adds; never more than [`MOST`], nor than half of what was measured,
//! so that nobody who manages to get between all of them is charged much less than his work.

/// Distances that are looked at; until there are [`ENOUGH`], nothing is taken off.
const SAMPLES: u32 = 16;
const ENOUGH: u32 = 4;
/// No device is slower: cards need 0.5 to 2 us.
const MOST: u64 = 4_000;
/// Launches among which each is asked at first, and later one.
const OFTEN: u32 = 64;

/// The least distance seen.
#[derive(Debug, Default)]
pub(super) struct Spacing {
    least: Option<u64>,
    samples: u32,
    asked: u32,
}

impl Spacing {
    /// Whether one more is to be measured behind the launch that was just taken.
    pub(super) fn wants_more(&mut self) -> bool {
        if self.samples >= SAMPLES {
            return false;
        }
        self.asked = self.asked.wrapping_add(1);
        self.asked <= OFTEN || self.asked.is_multiple_of(OFTEN)
    }

    /// Two events were so far apart, in nanoseconds.
    pub(super) fn note(&mut self, distance: u64) {
        self.samples = self.samples.saturating_add(1);
        self.least = Some(self.least.map_or(distance, |least| least.min(distance)));
    }

    /// What was measured, without what lies between events.
    pub(super) fn off(&self, measured: u64) -> u64 {
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
        assert_eq!(spacing.off(10_000), 10_000, "nothing lies between them");
    }

    #[test]
    fn nobody_who_gets_between_is_charged_much_less() {
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
