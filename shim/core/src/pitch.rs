//! To what multiple a driver pads the rows of pitched memory.
//!
//! No argument says it, and the memory has to be charged before the driver chooses. So it is taken to be what the device
//! aligns textures to, and no less than drivers are known to use; a pitch beyond that teaches a larger one. It only ever
//! grows: too large a charge is refunded once the pitch is known.

use crate::sync::Counter;

/// What drivers pad to, as far as is known.
const LEAST: u64 = 512;

/// The step of a device; 0 until it is asked for.
#[derive(Debug, Default)]
pub struct PitchStep(Counter);

impl PitchStep {
    /// The most that a row of `width` bytes can take. `alignment` is asked once for the device's.
    pub fn most(&self, width: u64, alignment: impl FnOnce() -> Option<u64>) -> u64 {
        if self.0.load() == 0 {
            self.0.raise(alignment().unwrap_or(0).max(LEAST));
        }
        padded(width, self.0.load())
    }

    /// A row of `width` bytes was given this pitch.
    pub fn learn(&self, width: u64, pitch: u64) {
        let mut step = self.0.load();
        while padded(width, step) < pitch && step < pitch {
            step = step.max(1).saturating_mul(2);
        }
        self.0.raise(step);
    }
}

fn padded(width: u64, step: u64) -> u64 {
    width.checked_next_multiple_of(step.max(1)).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_to_the_alignment_and_to_512_at_least() {
        assert_eq!(PitchStep::default().most(1, || None), 512);
        assert_eq!(PitchStep::default().most(513, || Some(32)), 1024);
        assert_eq!(PitchStep::default().most(1, || Some(4096)), 4096);
        assert_eq!(PitchStep::default().most(u64::MAX, || None), u64::MAX);
    }

    #[test]
    fn a_pitch_beyond_what_was_expected_is_expected_from_then_on() {
        let step = PitchStep::default();
        assert_eq!(step.most(5000, || None), 5120);
        step.learn(5000, 8192);
        assert_eq!(step.most(5000, || None), 8192);
        assert_eq!(step.most(1, || None), 4096);
        step.learn(1, 512);
        assert_eq!(step.most(1, || None), 4096);
    }

    #[test]
    fn a_pitch_below_the_width_teaches_nothing() {
        let step = PitchStep::default();
        assert_eq!(step.most(600, || None), 1024);
        step.learn(600, 0);
        assert_eq!(step.most(600, || None), 1024);
    }
}
