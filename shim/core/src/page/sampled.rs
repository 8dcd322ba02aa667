//! Usage reports that the node publishes for processes without one, from what the driver samples of them.
//!
//! A process without gpucap, or without a compute limit, publishes nothing, and beside it a container is charged for its
//! turns. The driver samples for which part of the time the device worked for each process, in whole percents, a few
//! times a second. The sum of these samples is work, as the process itself would report it. It is late by the length of a
//! sample and by no more, and readers count what is reported whenever it comes.
//!
//! **What is published never exceeds the time that has passed, less what was sampled of processes that report by
//! themselves** ([`Clock::cover`], [`busy_ns`]), and never goes back. Nothing here knows whose process it is: the caller
//! leaves out those of containers that read such pages, since a report lowers what its readers are charged.
//!
//! Each process has a page of its own, since readers count a page as one that takes turns.

use super::{MAGIC, PLACES, SEATS_AT, Seat, VERSION, WORD};
use crate::throttle::UsageReport;
use crate::uuid::Uuid;

/// How much of a device's time the samples have covered.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    covered_until: u64,
}

/// Time that no sample has covered for longer than this never counts.
const LATEST_NS: u64 = 1_000_000_000;

impl Clock {
    /// Begins at this time.
    #[must_use]
    pub const fn new(now: u64) -> Self {
        Self { covered_until: now }
    }

    /// Returns how much of the length of a sample counts: no more than has passed since what counted before.
    pub fn cover(&mut self, length_ns: u64, now: u64) -> u64 {
        let from = self.covered_until.max(now.saturating_sub(LATEST_NS));
        let covered_ns = length_ns.min(now.saturating_sub(from));
        self.covered_until = from.saturating_add(covered_ns);
        covered_ns
    }
}

/// Returns for how long the device worked for each of some processes within a time, by their percentages of it, beside
/// processes that report by themselves and had `reported` percent in sum. All together they had no more than all of it.
#[must_use]
pub fn busy_ns(covered_ns: u64, reported: u64, percentages: &[u64]) -> Vec<u64> {
    let free = 100_u64.saturating_sub(reported);
    let sum = percentages.iter().fold(0_u64, |sum, percent| sum.saturating_add(*percent));
    let of = |percent: &u64| {
        // More than there is: each gets its part of what there is.
        let (part, whole) = if sum > free { (free, sum.max(1)) } else { (1, 1) };
        let ns = u128::from(covered_ns) * u128::from(*percent) * u128::from(part);
        u64::try_from(ns / (100 * u128::from(whole))).unwrap_or(0)
    };
    percentages.iter().map(of).collect()
}

/// What is published of one process on one device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    work_ns: u64,
    occupied_ns: u64,
    /// From when until when work is reported as in flight.
    in_flight: (u64, u64),
}

/// For how much longer than it worked a process is reported to have work in flight: beside up to three others it has to
/// wait that long for its turns. With half of that, a container beside two of them gets 20 of 30 %. If it were all of the
/// time, a program of `5 of around 5 us, then a wait` would get 37 of 30 % beside one that works for 20 ms every 400.
const TAKERS: u64 = 4;

impl Sampled {
    /// Adds a sample of `length_ns`, within which the device worked for the process for `busy_ns`, and which is known
    /// now.
    pub fn add(&mut self, busy_ns: u64, length_ns: u64, now: u64) {
        let (since, until) = self.in_flight;
        let since = if now < until {
            since
        } else {
            self.occupied_ns = self.occupied_ns.saturating_add(until.saturating_sub(since));
            now
        };
        self.work_ns = self.work_ns.saturating_add(busy_ns.min(length_ns));
        // Up to the next sample, even if that is late.
        let most_ns = length_ns.saturating_add(length_ns / 2);
        let flight_ns = busy_ns.saturating_mul(TAKERS).min(most_ns);
        self.in_flight = (since, until.max(now.saturating_add(flight_ns)));
    }

    /// Returns until when its report has work in flight, and has to be written again then.
    #[must_use]
    pub const fn in_flight_until(&self) -> u64 {
        self.in_flight.1
    }

    /// Returns its report at this time.
    #[must_use]
    pub const fn report(&self, now: u64) -> UsageReport {
        let (since, until) = self.in_flight;
        if now < until {
            return UsageReport::new(self.work_ns, self.occupied_ns, Some(since));
        }
        let occupied_ns = self.occupied_ns.saturating_add(until.saturating_sub(since));
        UsageReport::new(self.work_ns, occupied_ns, None)
    }
}

/// Returns the beginning of a page with one seat for each of these devices.
#[must_use]
pub fn header(gpus: &[Uuid]) -> Vec<u8> {
    let words = [MAGIC, VERSION, 1, 0, 0, 0, 0, 0].into_iter();
    let words = words.chain(gpus.iter().take(PLACES).flat_map(|gpu| gpu.halves()));
    words.flat_map(u64::to_le_bytes).collect()
}

/// Returns where the seat of the device in this row of the header is.
#[must_use]
pub const fn seat_at(row: usize) -> u64 {
    (SEATS_AT + row * PLACES * size_of::<Seat>()) as u64
}

/// Returns the content of a seat.
#[must_use]
pub fn seat(report: UsageReport) -> [u8; 2 * WORD] {
    let mut bytes = [0; 2 * WORD];
    let words = [report.work, report.occupied].map(u64::to_le_bytes);
    bytes.iter_mut().zip(words.into_iter().flatten()).for_each(|(place, byte)| *place = byte);
    bytes
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::page::{Header, UsagePage, read_seats};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_written_is_read() {
        let gpus = [Uuid([1; 16]), Uuid([2; 16])];
        let mut page = header(&gpus);
        page.resize(usize::try_from(UsagePage::SIZE).expect("small"), 0);
        let mut sampled = Sampled::default();
        sampled.add(5 * MS, 170 * MS, 1_000 * MS);
        let report = sampled.report(1_000 * MS);
        let at = usize::try_from(seat_at(1)).expect("small");
        page[at..at + 16].copy_from_slice(&seat(report));
        let seats = Header::read(&page).expect("a page").seats(gpus[1]).expect("its row");
        assert_eq!(seats, (at, 16));
        assert_eq!(read_seats(&page[at..at + 16]).collect::<Vec<_>>(), [(0, report)]);
        assert!(Header::read(&page).expect("a page").seats(Uuid([3; 16])).is_none());
    }

    #[test]
    fn work_is_in_flight_for_as_long_as_it_may_have_waited_for_turns() {
        let mut sampled = Sampled::default();
        sampled.add(10 * MS, 170 * MS, 1_000 * MS);
        assert!(sampled.report(1_039 * MS).is_in_flight());
        assert!(!sampled.report(1_040 * MS).is_in_flight());
        sampled.add(170 * MS, 170 * MS, 1_170 * MS);
        assert!(sampled.report(1_424 * MS).is_in_flight(), "the next one may be late");
        assert!(!sampled.report(1_425 * MS).is_in_flight(), "no more samples come");
        sampled.add(0, 170 * MS, 1_500 * MS);
        assert_eq!(sampled.report(1_600 * MS), sampled.report(9_000 * MS));
    }

    #[test]
    fn a_device_is_not_busy_for_more_than_all_of_the_time() {
        assert_eq!(busy_ns(1_000, 0, &[30, 20]), [300, 200]);
        assert_eq!(busy_ns(1_000, 50, &[60, 40]), [300, 200]);
        assert_eq!(busy_ns(1_000, 100, &[60]), [0]);
        assert_eq!(busy_ns(1_000, 300, &[60]), [0]);
    }

    proptest! {
        /// However long samples say that they are, however late they come, and if there are pauses.
        #[test]
        fn reports_never_go_back_and_never_exceed_what_is_left_of_the_time(
            samples in prop::collection::vec(
                (0..400_u64, any::<u64>(), 0..150_u64, prop::collection::vec(0..150_u64, 3)), 1..60,
            ),
        ) {
            let mut now = 1_000 * MS;
            let mut clock = Clock::new(now);
            let mut all = [Sampled::default(); 3];
            let (begin, mut left_ns) = (now, 0);
            for (passed, length, reported, percentages) in samples {
                now += passed * MS;
                let covered_ns = clock.cover(length % (2_000 * MS), now);
                left_ns += covered_ns * (100 - reported.min(100)) / 100;
                let before = all.map(|it| it.report(now));
                let busy = busy_ns(covered_ns, reported, &percentages);
                for (sampled, busy_ns) in all.iter_mut().zip(busy) {
                    sampled.add(busy_ns, covered_ns, now);
                }
                for (before, after) in before.into_iter().zip(all.map(|it| it.report(now))) {
                    prop_assert!(after.work >= before.work);
                    prop_assert!(after.occupied_ns(now) >= before.occupied_ns(now));
                    prop_assert!(after.occupied_ns(now) <= now - begin);
                }
                let work: u64 = all.iter().map(|it| it.report(now).work).sum();
                prop_assert!(work <= left_ns && work <= now - begin, "{work} of {left_ns}");
            }
        }
    }
}
