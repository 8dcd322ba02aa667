//! What has not been measured of cards: a cell has to hold however each of these is.

use super::job::End;
use super::scene::Scene;
use crate::run::Effort;
use crate::simulator::Setup;
use std::fmt;

/// Properties of cards that have not been measured.
#[derive(Debug, Clone, Copy)]
pub struct Switches {
    /// A timing event is reached as soon as its stream comes to it.
    pub at_once: bool,
    /// Time slices, in milliseconds.
    pub slice_ms: u64,
    /// A switch between processes, in microseconds.
    pub switch_us: u64,
    /// The end of a context drops its work.
    pub drops: bool,
}

/// Time slices in milliseconds, and switches in microseconds; the first ones are those of quick runs.
const CARDS: [(u64, u64); 9] =
    [(2, 0), (1, 100), (4, 500), (1, 0), (4, 0), (2, 100), (4, 100), (2, 500), (1, 500)];
const CORNERS: usize = 3;

impl fmt::Display for Switches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {} ms {} us {}",
            if self.at_once { "at-once" } else { "in-turn" },
            self.slice_ms,
            self.switch_us,
            if self.drops { "drops" } else { "waits" },
        )
    }
}

impl Switches {
    /// Returns a machine with these switches.
    #[must_use]
    pub fn setup(self) -> Setup {
        Setup {
            events_at_once: self.at_once,
            slice_ns: self.slice_ms * 1_000_000,
            switch_ns: self.switch_us * 1_000,
            end_waits: !self.drops,
            look_ns: 8_000,
            ..Setup::default()
        }
    }

    /// Returns all switches that matter to a scene.
    pub(super) fn of(scene: &Scene, effort: Effort) -> Vec<Self> {
        let jobs = scene.containers.iter().flat_map(|it| &it.members).flat_map(|it| &it.jobs);
        let ends = jobs.into_iter().any(|job| job.end == End::Context);
        let is_alone = scene.containers.iter().map(|it| it.members.len()).sum::<usize>() < 2;
        let mut all = Vec::new();
        for at_once in [true, false] {
            for (slice_ms, switch_us) in CARDS {
                let is_first = (slice_ms, switch_us) == CARDS[0];
                let is_corner = CARDS[..CORNERS].contains(&(slice_ms, switch_us));
                if is_alone && !is_first || effort == Effort::Quick && !is_corner {
                    continue;
                }
                for drops in [false, true] {
                    if ends || !drops {
                        all.push(Self { at_once, slice_ms, switch_us, drops });
                    }
                }
            }
        }
        all
    }
}
