//! The union of spans, and the smaller of two sums.

use proptest::prelude::*;

use super::turns::{ABSENT, START, looks};
use crate::{
    sync::Word,
    throttle::{
        charging::{
            settlement::Settlement,
            time_account::{TimeAccount, WORDS},
        },
        timeline::{
            coverage::Coverage,
            done::{Certain, Done, Part, Span},
            turns::Turns,
        },
    },
};

/// A process that is alone on the device and in its container.
#[derive(Default)]
struct Alone {
    settlement: Settlement,
    words: [Word; WORDS],
}

impl Alone {
    fn settle(&mut self, done: Done, now: u64) -> u64 {
        let account = TimeAccount::new(self.words.each_ref());
        self.settlement.settle(done, &Turns::new(0), account, now).ns
    }
}

fn due(process: &mut Alone, span: Span, work_ns: u64) -> u64 {
    process.settle(Done { span, work_ns, certain: None }, 1000)
}

#[test]
fn idle_time_in_a_span_is_not_charged() {
    let mut process = Alone::default();
    assert_eq!(due(&mut process, Span::Batch(0, 500), 40), 40);
    assert_eq!(due(&mut process, Span::Batch(500, 1000), 40), 40);
}

#[test]
fn work_side_by_side_is_charged_once() {
    let mut process = Alone::default();
    assert_eq!(due(&mut process, Span::Operation(0, 100), 100), 100);
    assert_eq!(due(&mut process, Span::Operation(0, 100), 100), 0);
    assert_eq!(due(&mut process, Span::Operation(50, 150), 100), 50);
}

/// If what flowed in while it waited for others, or the stream was idle, counted against it, a long launch after that
/// would be free.
#[test]
fn what_flowed_in_before_the_work_began_does_not_count_against_it() {
    let since = |span| {
        let words = <[Word; WORDS]>::default();
        let certain = Some(Certain { from: 9_900, until: 10_000, part: Part::Turns });
        let done = Done { span, work_ns: 20, certain };
        let account = TimeAccount::new(words.each_ref());
        Settlement::default().settle(done, &Turns::new(0), account, 11_000).since
    };
    for span in [Span::Batch, Span::From, Span::Until] {
        assert_eq!(since(span(0, 10_000)), 9_900);
    }
    assert_eq!(since(Span::Operation(0, 10_000)), 9_800, "others had as many turns at most");
    assert_eq!(since(Span::Operation(9_850, 10_000)), 9_850);
    assert_eq!(since(Span::Unknown), 10_900);
}

/// Charging the smaller sum each time would charge 20.
#[test]
fn sums_are_compared_not_pieces() {
    let mut process = Alone::default();
    let first = due(&mut process, Span::Batch(0, 10), 100);
    assert_eq!(first + due(&mut process, Span::Batch(10, 110), 10), 110);
}

/// Both had work for all of 100 ms, each in turns that the other one sees as its own.
#[test]
fn two_processes_of_a_container_pay_for_their_time_once() {
    let words = <[Word; WORDS]>::default();
    let account = TimeAccount::new(words.each_ref());
    let mut processes = [Settlement::default(), Settlement::default()];
    let mut due = 0;
    for at in (0..100_000_000).step_by(4_000_000) {
        for (process, offset) in processes.iter_mut().zip([0, 2_000_000]) {
            let (start, end) = (at + offset, at + offset + 4_000_000);
            let done =
                Done { span: Span::Operation(start, end), work_ns: 4_000_000, certain: None };
            due += process.settle(done, &Turns::new(0), account, end).ns;
        }
    }
    assert!((100_000_000..=104_000_000).contains(&due), "{due}");
}

/// A process launches 10 us before another one's kernel of a second, and again near its end.
#[test]
fn time_in_which_a_stream_was_idle_is_not_taken_from_another_process() {
    const MS: u64 = 1_000_000;
    let words = <[Word; WORDS]>::default();
    let account = TimeAccount::new(words.each_ref());
    let [mut idle, mut busy] = [Settlement::default(), Settlement::default()];
    let late = Certain { from: 949 * MS, until: 950 * MS, part: Part::Rest };
    let batch = Done { span: Span::Batch(0, 950 * MS), work_ns: 10_000, certain: Some(late) };
    assert!(idle.settle(batch, &Turns::new(0), account, 950 * MS).ns <= MS);
    let certain = Some(Certain { from: 0, until: 1_000 * MS, part: Part::Known(1_000 * MS) });
    let kernel = Done { span: Span::Operation(0, 1_000 * MS), work_ns: 1_000 * MS, certain };
    let due = busy.settle(kernel, &Turns::new(0), account, 1_000 * MS).ns;
    assert!(due >= 998 * MS, "{due}");
}

/// Whatever the expected cost of the launches.
#[test]
fn time_in_which_the_device_certainly_worked_is_charged() {
    let mut process = Alone::default();
    let batch = |start, from, end| Done {
        span: Span::Batch(start, end),
        work_ns: 10,
        certain: Some(Certain { from, until: end, part: Part::Turns }),
    };
    assert_eq!(process.settle(batch(0, 0, 500), 1000), 500);
    assert_eq!(process.settle(batch(500, 900, 1000), 1000), 100);
    // Another stream was as busy at the same time.
    assert_eq!(process.settle(batch(0, 0, 1000), 1000), 400);
}

#[test]
fn what_was_over_before_a_wait_is_as_long_as_its_work() {
    let mut process = Alone::default();
    assert_eq!(due(&mut process, Span::From(0, 10_000), 100), 100);
    assert_eq!(due(&mut process, Span::From(0, 10_000), 100), 0);
    assert_eq!(due(&mut process, Span::From(9_990, 10_000), 100), 10);
}

/// Of two batches that were expected to take 100 each, one took 60 and the other 140.
#[test]
fn batches_of_varying_length_are_as_long_as_their_work_together() {
    let mut process = Alone::default();
    assert_eq!(due(&mut process, Span::From(0, 60), 100), 60);
    assert_eq!(due(&mut process, Span::Until(100, 240), 100), 140);
    assert_eq!(due(&mut process, Span::From(300, 1000), 100), 100, "no more than was expected");
}

#[test]
fn overlap_is_expected_as_far_as_it_was_seen() {
    let mut process = Alone::default();
    assert_eq!(process.settlement.overlap_of(1000), 0);
    for epoch in 1..50 {
        let (start, now) = (epoch * 1_000, epoch * 200_000_000);
        for _ in 0..4 {
            let span = Span::Operation(start, start + 100);
            process.settle(Done { span, work_ns: 100, certain: None }, now);
        }
    }
    let overlap = process.settlement.overlap_of(1000);
    assert!((745..=750).contains(&overlap), "{overlap}");
}

proptest! {
    #[test]
    fn coverage_is_the_union(spans in prop::collection::vec((0..300_u64, 0..40_u64), 0..40)) {
        let mut coverage = Coverage::default();
        let mut covered = [false; 400];
        for (start, length) in spans {
            let span = start..start + length;
            let new = span.clone().filter(|&at| !covered[usize::try_from(at).unwrap()]).count();
            span.for_each(|at| covered[usize::try_from(at).unwrap()] = true);
            prop_assert_eq!(coverage.add(start, start + length), new as u64);
            let later = covered.iter().skip(150).filter(|&&is_covered| is_covered).count();
            prop_assert_eq!(coverage.since(150), later as u64);
            let end = covered.iter().rposition(|&is_covered| is_covered).map_or(0, |at| at + 1);
            prop_assert_eq!(coverage.end(), end as u64);
        }
    }

    /// In the order of time nothing is forgotten, however many stretches there are.
    #[test]
    fn coverage_of_a_long_time_is_the_union(gaps in prop::collection::vec((0..20_u64, 1..20_u64), 0..500)) {
        let mut coverage = Coverage::default();
        let mut at = 0;
        for (gap, length) in gaps {
            at += gap;
            prop_assert_eq!(coverage.add(at, at + length), length);
            at += length;
        }
    }

    #[test]
    fn no_more_is_due_than_either_sum(
        pieces in prop::collection::vec((0..10_000_u64, 0..1_000_u64, 0..2_000_u64), 0..60),
    ) {
        let mut process = Alone::default();
        let (mut all, mut work) = (0, 0);
        for (start, length, work_ns) in pieces {
            all += due(&mut process, Span::Operation(start, start + length), work_ns);
            work += work_ns;
            prop_assert!(all <= work && all <= 11_000);
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Something that took until `now`.
fn took(part: Part, now: u64, work_ns: u64, took_ns: u64) -> Done {
    let (from, until) = (now - took_ns, now);
    let certain = Some(Certain { from, until, part });
    Done { span: Span::Operation(from, until), work_ns, certain }
}

fn measured(process: &mut Alone, now: u64, expected_ns: u64, took_ns: u64) {
    process.settle(took(Part::Known(took_ns), now, expected_ns, took_ns), now);
}

/// The mean cuts the long ones off, and the smaller sum would always be that of estimates.
#[test]
fn estimates_far_below_what_is_measured_are_doubted() {
    let mut process = Alone::default();
    let start = 10 * SECOND;
    measured(&mut process, start, 10_000, 10_000);
    assert!(!process.settlement.is_doubtful(start));
    (0..5).for_each(|_| measured(&mut process, start, 10_000, 10_000_000));
    assert!(
        process.settlement.is_doubtful(start) && process.settlement.is_doubtful(start + 9 * SECOND)
    );
    assert!(!process.settlement.is_doubtful(start + 10 * SECOND), "they are tried again");
}

/// Launches of 10 us, of which some take longer. Returns whether that is doubted.
fn doubts(part: Part, one_in: u64, long_ns: u64, besides: impl Fn(&mut Alone, u64)) -> bool {
    let (mut process, mut now) = (Alone::default(), SECOND);
    (0..2_000).any(|number| {
        now += SECOND / 1_000;
        let is_long = number % one_in == one_in - 1;
        let took_ns = if is_long { long_ns } else { 10_000 };
        now += took_ns;
        process.settle(took(part, now, 10_000, took_ns), now);
        if is_long {
            besides(&mut process, now);
        }
        process.settlement.is_doubtful(now)
    })
}

#[test]
fn waits_far_longer_than_what_was_expected_are_doubted() {
    let alone = |_: &mut Alone, _| {};
    assert!(doubts(Part::Rest, 100, 1_280_000, alone));
    assert!(!doubts(Part::Rest, 100, 100_000, alone), "they make little");
    assert!(!doubts(Part::Rest, 2, 39_000, alone), "no mean is as certain as that");
}

/// Neither sum alone has both, the estimates and the long one; too few to be doubted.
#[test]
fn a_wait_far_longer_than_what_was_expected_is_part_of_both_sums() {
    let due = |long_ns: u64| -> u64 {
        let mut process = Alone::default();
        let batch = |number: u64| {
            let took_ns = if number == 50 { long_ns } else { 100_000 };
            let now = SECOND + number * 100_000 + took_ns;
            let (span, done) =
                (Span::From(now - took_ns, now), took(Part::Rest, now, 100_000, took_ns));
            // Of the others the end was not waited for, or was over before.
            Done { span, certain: done.certain.filter(|_| number == 50), ..done }
        };
        let due = (1..=50).map(|number| process.settle(batch(number), SECOND)).sum();
        assert!(!process.settlement.is_doubtful(SECOND));
        due
    };
    assert_eq!(due(1_280_000), 49 * 100_000 + 1_280_000);
    assert_eq!(due(100_000), 50 * 100_000);
}

#[test]
fn waits_for_what_another_stream_did_are_not_doubted() {
    let beside = |process: &mut Alone, now| {
        process.settle(took(Part::Known(1_280_000), now, 1_280_000, 1_280_000), now);
    };
    assert!(!doubts(Part::Rest, 100, 1_280_000, beside));
}

#[test]
fn what_is_measured_alone_far_longer_than_expected_is_doubted() {
    let alone = |_: &mut Alone, _| {};
    assert!(doubts(Part::Alone(1_280_000), 100, 1_280_000, alone));
    assert!(!doubts(Part::Known(1_280_000), 100, 1_280_000, alone), "it may have been queued");
    assert!(!doubts(Part::Alone(39_000), 2, 39_000, alone), "it is no outlier");
}

#[test]
fn turns_of_other_processes_raise_no_doubt() {
    let mut process = Alone::default();
    let mut now = SECOND;
    for _ in 0..10 {
        // Three of 6 ms in each second, among others that take the expected time.
        (0..3).for_each(|_| measured(&mut process, now, 10_000, 6_000_000));
        for _ in 0..600 {
            now += SECOND / 600;
            measured(&mut process, now, 10_000, 10_000);
        }
        assert!(!process.settlement.is_doubtful(now));
    }
}

/// Each took the other's launches for what made its own so long.
#[test]
fn processes_that_doubt_pay_for_their_time_together() {
    let words = <[Word; WORDS]>::default();
    let mut turns = Turns::new(START);
    let busy = (100, 0, Some(0));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[busy])]);
    let launch =
        |process: &mut Settlement, words: &[Word; WORDS], from_ms, until_ms, expected_ns| {
            let [from, until] = [from_ms, until_ms].map(|ms: u64| START + ms * 1_000_000);
            let certain = Some(Certain { from, until, part: Part::Known(expected_ns) });
            let (span, account) =
                (Span::Operation(from, until), TimeAccount::new(words.each_ref()));
            process.settle(Done { span, work_ns: expected_ns, certain }, &turns, account, until).ns
        };
    let mut trusting = Settlement::default();
    assert_eq!(launch(&mut trusting, &words, 1, 5, 10_000), 10_000);
    let mut doubting = [Settlement::default(), Settlement::default()];
    for process in &mut doubting {
        let elsewhere = <[Word; WORDS]>::default();
        for from_ms in [0, 40, 80, 120] {
            launch(process, &elsewhere, from_ms, from_ms + 40, 10_000);
        }
        assert!(process.is_doubtful(START + 160_000_000));
    }
    let [one, other] = &mut doubting;
    let due = launch(one, &words, 300, 305, 10_000)
        + launch(other, &words, 302, 309, 10_000)
        + launch(one, &words, 305, 309, 10_000);
    assert!(due.abs_diff(9_000_000) < 10_000, "{due}");
}
