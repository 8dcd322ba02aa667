//! Rates of two readings: what of a GPU's time a budget used between them, and how many of its launches waited.
//!
//! A ledger has counters that its container writes. A counter that went back, and a budget or GPU that the earlier
//! reading did not have, has no rate: a first sample shows none. Pure.

use crate::command::status::view::{Device, LedgerView, Status};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

/// A budget: a ledger file, and the start of the container's first process, whose number another one may get.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Budget(PathBuf, Option<u64>);

/// A GPU of a budget.
pub(super) type Key = (Budget, String);

/// The counters of one reading.
#[derive(Debug, Default)]
pub(super) struct Counters {
    at_ns: u64,
    /// Time for which the GPU worked, and for which launches waited.
    of: BTreeMap<Key, [u64; 2]>,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Rate {
    /// Thousandths of the time for which the GPU worked. Work is counted when it ends, so that there may be more than all.
    pub(super) permille: u32,
    /// Hundredths of the mean number of launches that waited. A wait is counted when it ends.
    pub(super) waiting: u32,
}

/// Rates by GPU and budget.
pub(super) type Rates = BTreeMap<Key, Rate>;

/// As much as is shown of a rate: 999.9 %, 99.99 launches.
const MOST: u128 = 9999;

impl Budget {
    /// Returns that of a ledger.
    pub(super) fn of(ledger: &LedgerView) -> Self {
        let start = ledger.container.as_ref().map(|container| container.record.start_time);
        Self(ledger.path.clone(), start)
    }
}

impl Counters {
    /// Returns those of a picture that was taken at this time.
    pub(super) fn of(status: &Status, at_ns: u64) -> Self {
        let counters = |device: &Device| [device.time.busy_ns, device.waited_ns];
        let of_ledger = |ledger| {
            let budget = Budget::of(ledger);
            ledger.devices.iter().map(move |it| ((budget.clone(), it.name()), counters(it)))
        };
        Self { at_ns, of: status.ledgers.iter().flat_map(of_ledger).collect() }
    }

    /// Returns the rates between an earlier reading and this one.
    pub(super) fn since(&self, before: &Self) -> Rates {
        let passed = u128::from(self.at_ns.saturating_sub(before.at_ns));
        let rate = |key: &Key, now: &[u64; 2]| {
            let [busy, waited] = *before.of.get(key)?;
            let per = |before, now: u64, scale: u128| {
                let more = u128::from(now.checked_sub(before)?) * scale;
                u32::try_from(more.checked_div(passed)?.min(MOST)).ok()
            };
            Some(Rate { permille: per(busy, now[0], 1000)?, waiting: per(waited, now[1], 100)? })
        };
        let rates = self.of.iter().filter_map(|(key, now)| Some((key.clone(), rate(key, now)?)));
        rates.collect()
    }
}

/// Puts the measured rates in the place of what the ledger says of the last second.
pub(super) fn apply(rates: &Rates, status: &mut Status) {
    for ledger in &mut status.ledgers {
        let budget = Budget::of(ledger);
        for device in &mut ledger.devices {
            if let Some(rate) = rates.get(&(budget.clone(), device.name())) {
                device.time.permille = rate.permille;
            }
        }
    }
}

/// The time used at the last refreshes, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History(BTreeMap<Key, VecDeque<u32>>);

impl History {
    /// More would fit no terminal.
    const MOST: usize = 120;

    /// Adds a refresh. What has no rate any more is forgotten.
    pub(super) fn add(&mut self, rates: &Rates) {
        self.0.retain(|key, _| rates.contains_key(key));
        for (key, rate) in rates {
            let values = self.0.entry(key.clone()).or_default();
            values.push_back(rate.permille);
            if values.len() > Self::MOST {
                values.pop_front();
            }
        }
    }

    /// Returns the values of a GPU of a budget.
    pub(super) fn of(&self, key: &Key) -> impl DoubleEndedIterator<Item = u32> {
        self.0.get(key).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SECOND, status};
    use super::*;

    fn counters(at_ns: u64, busy: u64, waited: u64) -> Counters {
        let mut status = status();
        let device = &mut status.ledgers[0].devices[0];
        (device.time.busy_ns, device.waited_ns) = (busy, waited);
        Counters::of(&status, at_ns)
    }

    /// The rates of the one GPU of the first ledger.
    fn rate(before: &Counters, now: &Counters) -> Option<Rate> {
        let budget = Budget::of(&status().ledgers[0]);
        let rates = now.since(before);
        rates.iter().find(|(key, _)| key.0 == budget).map(|(_, rate)| *rate)
    }

    #[test]
    fn a_rate_is_the_difference_over_the_time_between() {
        let before = counters(SECOND, SECOND, 0);
        let now = counters(3 * SECOND, SECOND + SECOND / 2, 3 * SECOND);
        assert_eq!(rate(&before, &now), Some(Rate { permille: 250, waiting: 150 }));
        assert_eq!(rate(&now, &counters(4 * SECOND, SECOND + SECOND / 2, 3 * SECOND)), Some(IDLE));
    }

    const IDLE: Rate = Rate { permille: 0, waiting: 0 };

    #[test]
    fn a_first_sample_has_no_rate() {
        let now = counters(SECOND, SECOND, 0);
        assert_eq!(rate(&Counters::default(), &now), None);
        assert_eq!(rate(&now, &now), None, "no time between");
    }

    #[test]
    fn a_counter_that_went_back_has_no_rate() {
        let before = counters(SECOND, 7, 7);
        assert_eq!(rate(&before, &counters(2 * SECOND, 6, 7)), None);
        assert_eq!(rate(&before, &counters(2 * SECOND, 7, 6)), None);
        assert_eq!(rate(&before, &counters(2 * SECOND, 7, 7)), Some(IDLE));
    }

    #[test]
    fn a_counter_that_jumps_is_bounded() {
        let rate = rate(&counters(1, 0, 0), &counters(2, u64::MAX, u64::MAX));
        assert_eq!(rate, Some(Rate { permille: 9999, waiting: 9999 }));
    }

    #[test]
    fn a_container_that_ended_has_no_rate_and_no_history() {
        let (before, mut ended) = (counters(SECOND, 0, 0), status());
        let gone = ended.ledgers.remove(0);
        let rates = counters(2 * SECOND, SECOND, 0).since(&before);
        let key = (Budget::of(&gone), gone.devices[0].name());
        let mut history = History::default();
        history.add(&rates);
        history.add(&rates);
        assert_eq!(history.of(&key).collect::<Vec<_>>(), [1000, 1000]);
        let rates = Counters::of(&ended, 3 * SECOND).since(&before);
        assert!(!rates.contains_key(&key) && !rates.is_empty());
        history.add(&rates);
        assert_eq!(history.of(&key).count(), 0);
    }

    #[test]
    fn another_container_at_the_same_path_is_another_budget() {
        let mut other = status();
        for ledger in &mut other.ledgers {
            ledger.container.iter_mut().for_each(|it| it.record.start_time += 1);
        }
        let rates = Counters::of(&other, 2 * SECOND).since(&counters(SECOND, 0, 0));
        assert_eq!(rates.len(), 1, "that of the run alone");
    }

    #[test]
    fn a_history_is_bounded() {
        let rates = counters(2 * SECOND, SECOND, 0).since(&counters(SECOND, 0, 0));
        let mut history = History::default();
        (0..200).for_each(|_| history.add(&rates));
        let lengths = history.0.values().map(VecDeque::len);
        assert!(lengths.eq([120, 120]));
    }

    #[test]
    fn measured_rates_take_the_place_of_the_last_second() {
        let mut status = status();
        let rates = counters(2 * SECOND, SECOND / 4, 0).since(&counters(SECOND, 0, 0));
        apply(&rates, &mut status);
        assert_eq!(status.ledgers[0].devices[0].time.permille, 250);
    }
}
