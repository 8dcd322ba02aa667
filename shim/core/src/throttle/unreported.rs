//! Whether processes that publish no report work on the device: what the driver says of it as a whole, less what is known of
//! those with a report.
//!
//! A launch that takes long may contain the turns of such a process, so beside one that works measurements say less of launches
//! (`Meter::set_unreported`). Beside one that does nothing that rule would be a way out: launches that differ by
//! their data got up to 97 % at a limit of 30.
//!
//! While none is known to work, launches are charged for all of their time, late if they take far longer than was known. So what
//! the device did beyond that is others', once two looks in a row show it: what is charged late in the first is charged in the
//! second. With one look, a kernel of 3 s whose length is its data gave its process 82 at a limit of 30. Only at the first look of
//! all one is enough, since a program beside one that works would be charged in full for longer. Once one is known, launches may
//! take more than they are charged. Then only the time in which nothing reported is in flight shows others, and if it shows none
//! for a minute, all time is charged again.

use super::usage_report::UsageReport;

/// Those that there are on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnreportedProcesses {
    /// None.
    #[default]
    None,
    /// Some that do nothing.
    Idle,
    /// Some that work, or may.
    Working,
}

/// What is known of the unreported processes of a device.
#[derive(Debug, Default)]
pub struct Unreported {
    before: Option<Look>,
    /// The latest look showed others.
    is_shown: bool,
    /// There was a look before the latest one.
    has_looked: bool,
    works_until: u64,
}

/// What there was at one time: the sources of reports, by a stable number.
#[derive(Debug)]
struct Look {
    at: u64,
    reports: Vec<(u64, UsageReport)>,
}

/// How busy the device was, by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Nanoseconds that the samples cover.
    pub of_ns: u64,
    /// Of these the device worked.
    pub ns: u64,
}

/// From samples of less time nothing is concluded: they are of a sixth of a second as a rule, of a second on some cards.
const LEAST_NS: u64 = 400_000_000;
/// One that works for less than this part of the time that is left counts as idle: its turns lengthen what others are charged by
/// half of that at most.
const PART: u64 = 8;
/// One that is known to work has to show more: launches without events are in flight for longer than is known. With the other
/// part, `spin_ns` of `tests/programs/throttle/share.c` kept the verdict that it had once got by a stopped process.
const PART_KNOWN: u64 = 2;
/// Less than this part of the samples' time shows nothing: the driver counts in whole percent, and what is charged at a launch
/// may run after a look.
const ERROR_PARTS: u64 = 16;
/// For how long one is taken to work that has. In this time it may be hidden: what others have in flight beside it takes
/// longer.
const REMEMBERED_NS: u64 = 60_000_000_000;

impl Unreported {
    /// Returns whether they work, beside sources of these reports, each by its number. `busy` returns what the driver says of
    /// the time since then, in ns before now; `None` if it does not say, and then they may.
    pub fn works(
        &mut self,
        now: u64,
        reports: Vec<(u64, UsageReport)>,
        busy: impl FnOnce(u64) -> Option<Busy>,
    ) -> bool {
        let before = self.before.replace(Look { at: now, reports });
        let passed_ns = before.as_ref().map_or(0, |before| now.saturating_sub(before.at));
        let Some(busy) = busy(passed_ns) else { return true };
        let was_shown = core::mem::take(&mut self.is_shown);
        if let (Some(before), Some(look)) = (before, &self.before) {
            let is_known = before.at < self.works_until;
            let known_ns = look.known_since(&before, is_known);
            self.is_shown = shows_others(busy, known_ns, is_known);
            let is_first = !core::mem::replace(&mut self.has_looked, true);
            if self.is_shown && (is_known || was_shown || is_first) {
                self.works_until = now.saturating_add(REMEMBERED_NS);
            }
        }
        now < self.works_until
    }
}

impl Look {
    /// For how long the device may have worked for these sources since an earlier look, if never for two at once: they had work
    /// in flight, or were charged for it.
    fn known_since(&self, before: &Self, in_flight: bool) -> u64 {
        let passed_ns = self.at.saturating_sub(before.at);
        let sum = |at: u64, report: UsageReport| {
            if in_flight { report.occupied_ns(at) } else { report.work }
        };
        let since = |&(source, report): &(u64, UsageReport)| {
            let was = before.reports.iter().find(|(other, _)| *other == source);
            let was = was.map_or(0, |(_, report)| sum(before.at, *report));
            // Less than before: what was reserved for work of unknown length was counted. It may have been any part of the time.
            sum(self.at, report).checked_sub(was).map_or(passed_ns, |ns| ns.min(passed_ns))
        };
        self.reports.iter().map(since).fold(0, u64::saturating_add)
    }
}

/// Returns whether the device worked for others. All that is known may lie in the time of the samples, which is less than that
/// between the looks.
const fn shows_others(busy: Busy, known_ns: u64, is_known: bool) -> bool {
    let part = if is_known { PART_KNOWN } else { PART };
    let (left, others) = (busy.of_ns.saturating_sub(known_ns), busy.ns.saturating_sub(known_ns));
    busy.of_ns >= LEAST_NS
        && others >= busy.of_ns / ERROR_PARTS
        && others.saturating_mul(part) >= left
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// After each 5 s, in percent of them: how busy the device was, and of each of two sources what it was charged and for how
    /// long it had work in flight.
    fn works(steps: &[(u64, [[u64; 2]; 2])]) -> Vec<bool> {
        let (mut unreported, mut sums, mut now) = (Unreported::default(), [[0; 2]; 2], 1_000 * S);
        let mut step = |percent: u64, had: [[u64; 2]; 2]| {
            now += 5 * S;
            let had = had.into_iter().flatten();
            sums.iter_mut().flatten().zip(had).for_each(|(sum, part)| *sum += part * 5 * S / 100);
            let report = |[work, occupied]: [u64; 2]| UsageReport::new(work, occupied, None);
            let sources = vec![(7, report(sums[0])), (9, report(sums[1]))];
            unreported.works(now, sources, |since_ns| {
                assert!(since_ns == 0 || since_ns == 5 * S);
                Some(Busy { of_ns: since_ns, ns: since_ns * percent / 100 })
            })
        };
        steps.iter().map(|(percent, had)| step(*percent, *had)).collect()
    }

    const NONE: [u64; 2] = [0; 2];

    #[test]
    fn one_that_works_is_seen_at_the_second_look() {
        let seen = [false, true];
        assert_eq!(works(&[(100, [[30, 30], NONE]); 2]), seen);
        assert_eq!(works(&[(100, [[30, 100], NONE]); 2]), seen, "in flight all the time");
        assert_eq!(works(&[(70, [[30, 60], [20, 40]]); 2]), seen);
    }

    #[test]
    fn one_that_begins_later_is_seen_by_two_looks() {
        let steps = [(30, [[30, 30], NONE]); 3].into_iter().chain([(100, [[30, 30], NONE]); 2]);
        assert_eq!(works(&steps.collect::<Vec<_>>()), [false, false, false, false, true]);
    }

    /// A kernel that runs on is charged for 2 s of its time before its end, and for the rest then.
    #[test]
    fn what_is_charged_late_is_not_that_of_others() {
        let late = [
            (30, [[30, 30], NONE]),
            (30, [[30, 30], NONE]),
            (90, [[40, 90], NONE]),
            (30, [[80, 30], NONE]),
        ];
        assert_eq!(works(&late.repeat(3)), [false; 12]);
        let moment = [
            (30, [[30, 30], NONE]),
            (30, [[30, 30], NONE]),
            (60, [[30, 30], NONE]),
            (30, [[30, 30], NONE]),
        ];
        let name = "one that works for a moment now and then";
        assert_eq!(works(&moment.repeat(3)), [false; 12], "{name}");
    }

    #[test]
    fn one_that_does_nothing_or_little_is_none() {
        assert_eq!(works(&[(30, [[30, 60], NONE]); 3]), [false; 3]);
        assert_eq!(works(&[(50, [[30, 60], [20, 90]]); 3]), [false; 3]);
        assert_eq!(works(&[(37, [[30, 30], NONE]); 3]), [false; 3], "a tenth of what is left");
        assert_eq!(works(&[(12, [NONE; 2]); 3]), [false; 3]);
        assert_eq!(works(&[(100, [[97, 97], NONE]); 3]), [false; 3]);
    }

    /// Beside one that has worked, launches that differ by their data are charged for less than they take.
    #[test]
    fn one_that_has_worked_counts_for_a_minute_unless_it_shows_while_nothing_is_in_flight() {
        let steps = |then| [(100, [[30, 40], NONE]); 2].into_iter().chain([then; 13]);
        let all: Vec<_> = steps((70, [[30, 60], NONE])).collect();
        let mut expected = vec![true; 15];
        (expected[0], expected[13], expected[14]) = (false, false, false);
        assert_eq!(works(&all), expected, "from here on it would be charged for all");
        let all: Vec<_> = steps((90, [[30, 60], NONE])).collect();
        (expected[13], expected[14]) = (true, true);
        assert_eq!(works(&all), expected);
    }

    #[test]
    fn where_the_driver_does_not_say_they_may() {
        let mut unreported = Unreported::default();
        assert!((1..4).all(|at| unreported.works(at * 5 * S, vec![], |_| None)));
    }

    /// A page that comes brings the sum of its past, and one that goes takes it away.
    #[test]
    fn no_source_has_more_than_the_time_that_has_passed() {
        let mut unreported = Unreported::default();
        let busy = |since_ns| Some(Busy { of_ns: since_ns, ns: since_ns });
        let report = |seconds: u64| UsageReport::new(seconds * S, 0, None);
        assert!(!unreported.works(5 * S, vec![(7, report(1_000))], busy));
        assert!(!unreported.works(10 * S, vec![(7, report(1_001)), (9, report(500))], busy));
        assert!(!unreported.works(15 * S, vec![(9, report(501))], busy), "a fifth of the time");
        assert!(unreported.works(20 * S, vec![(9, report(502))], busy), "again");
    }

    #[test]
    fn a_sum_that_has_become_less_shows_nothing() {
        let mut unreported = Unreported::default();
        let busy = |since_ns| Some(Busy { of_ns: since_ns, ns: since_ns });
        let report = |seconds: u64| vec![(7, UsageReport::new(seconds * S, 0, None))];
        assert!(!unreported.works(5 * S, report(10), busy));
        assert!(!unreported.works(10 * S, report(2), busy));
        assert!(!unreported.works(15 * S, report(3), busy));
        assert!(unreported.works(20 * S, report(4), busy));
    }

    /// What is known may all have been in that part.
    #[test]
    fn samples_of_a_part_of_the_time_show_what_exceeds_all_that_is_known() {
        for (part, expected) in [(30, false), (40, true)] {
            let mut unreported = Unreported::default();
            let busy = |since_ns: u64| {
                let ns = since_ns * part / 100;
                Some(Busy { of_ns: ns, ns })
            };
            let report = |at: u64| UsageReport::new(at * 3 * S / 2, 0, None);
            let mut works = |at: u64| unreported.works(at * 5 * S, vec![(7, report(at))], busy);
            let all: Vec<_> = (1..4).map(&mut works).collect();
            assert_eq!(all, [false, expected, expected]);
        }
    }

    #[test]
    fn a_short_time_shows_nothing() {
        let mut unreported = Unreported::default();
        let busy = |since_ns| Some(Busy { of_ns: since_ns, ns: since_ns });
        assert!((1..20).all(|at| !unreported.works(at * S / 3, vec![], busy)));
    }
}
