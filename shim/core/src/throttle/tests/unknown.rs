//! Launches of unknown length of several processes of a container: one at a time is in flight on a device.

use std::sync::Arc;

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{
        Bucket, DEVICE_WORDS, DeviceWords, Gang, Launch, Meter, Reached, Signature, Unfinished,
        Verdict, admission::unknown::UnknownLaunches,
    },
    units::Share,
};

type Words = [Word; DEVICE_WORDS];

const NEW: Launch = Launch::kernel(KERNEL);
const OTHER: Launch = Launch::kernel(Signature::kernel(9, 1024));

/// A process of the container of these words, with 50 %.
fn process(words: &Words, number: u16) -> Bench<'_> {
    let mut bench = Bench::new(&words[0], 50);
    let bucket = Bucket::new(&words[0], Share::ONE_HALF);
    let gang = Gang::new(vec![DeviceWords::new(words.each_ref())], 0, number);
    bench.meter = Meter::new(bucket, NOW).among(gang);
    bench.meter.set_shared(true);
    bench.stream = bench.meter.stream(NOW);
    bench
}

impl Bench<'_> {
    /// The thread that looks for ends does so at this time.
    fn watch(&mut self, now: u64) -> bool {
        self.now = now;
        self.meter.watch(now, &mut self.card).is_some()
    }

    /// The device begins with the latest launch.
    fn begins(&mut self) {
        let before = self.card.events.len() - 2;
        self.card.events[before] = Reached::At(self.now);
        let _ = self.watch(self.now);
    }
}

#[test]
fn one_of_another_process_waits_until_one_is_measured() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    second.run(OTHER, MS);
    first.now = second.now;
    assert!(first.launch(NEW));
    second.now += 20 * MS;
    assert!(!second.launch(NEW), "either may take any time");
    assert!(second.launch(OTHER), "this one is known");
    // The thread that looks sees that it took 1 ms.
    first.card.events.fill(Reached::At(first.now + MS));
    assert!(!first.watch(first.now + 2 * MS));
    assert!(second.launch(NEW));
}

/// The driver loads the function first, which may take any time.
#[test]
fn one_that_the_driver_has_not_taken_holds_up_others_for_a_moment_alone() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    let _permit = first.ask(NEW).unwrap();
    second.now = NOW + 9 * MS;
    assert!(!second.launch(NEW));
    second.now = NOW + 11 * MS;
    assert!(second.launch(NEW));
}

/// What waits for the host uses no device, and what it waits for may be another process's.
#[test]
fn one_that_has_not_begun_holds_up_no_other_for_long() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    assert!(first.watch(NOW + 99 * MS));
    second.now = NOW + 99 * MS;
    assert!(!second.launch(NEW));
    assert!(first.watch(NOW + 100 * MS), "its end is still to be seen");
    assert!(second.launch(NEW));
}

/// A process whose launch runs, and that makes no call, is charged all the same.
#[test]
fn what_has_passed_is_charged_before_the_end() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    second.run(OTHER, MS);
    first.now = second.now;
    let began = first.now;
    assert!(first.launch(NEW));
    first.begins();
    for ms in 1..=300 {
        assert!(first.watch(began + ms * MS));
    }
    second.now = began + 300 * MS;
    assert!(!second.launch(OTHER), "150 ms are missing");
    let opens_at = second.meter.out_of_debt_at(second.now);
    assert!((opens_at - began).abs_diff(560 * MS) <= 20 * MS, "{} ms", (opens_at - began) / MS);
    // It took no longer than that: nothing is charged twice.
    first.card.events.fill(Reached::At(began + 300 * MS));
    assert!(!first.watch(began + 301 * MS));
    let opens_again_at = second.meter.out_of_debt_at(second.now + MS);
    assert!(opens_at.abs_diff(opens_again_at) <= 2 * MS, "{opens_at} {opens_again_at}");
    assert_eq!(first.meter.totals().busy_ns / MS, 300);
}

/// A kernel that never ends may be what another process waits for.
#[test]
fn no_more_than_two_seconds_are_charged_before_the_end() {
    let words = Words::default();
    let mut first = process(&words, 1);
    let began = first.now;
    assert!(first.launch(NEW));
    first.begins();
    for second in 1..=30 {
        assert!(first.watch(began + second * 1_000 * MS));
    }
    assert_eq!(first.meter.out_of_debt_at(began + 30_000 * MS), began + 30_000 * MS);
}

/// A persistent kernel, and short launches of the same process in another stream.
#[test]
fn what_has_passed_leaves_room_for_work_to_come() {
    let words = Words::default();
    let mut first = process(&words, 1);
    first.run(OTHER, MS);
    let began = first.now;
    let persistent = first.stream;
    assert!(first.launch(NEW));
    first.begins();
    first.stream = first.meter.stream(first.now);
    let goes = |bench: &mut Bench<'_>, ms: u64| {
        bench.watch(began + ms * MS);
        bench.launch(OTHER)
    };
    let goes_at = (1..100).map(|tenth| tenth * 100).find(|ms| goes(&mut first, *ms));
    assert_ne!(persistent, first.stream);
    assert_eq!(goes_at, Some(4_000), "2 s of a half are paid for");
}

/// A process that is killed, or stopped and killed, before its launch has ended: that was in flight.
#[test]
fn a_dead_process_owes_what_its_launch_in_flight_has_used() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    first.begins();
    let paid_until = first.meter.paid_until().unwrap();
    let now = NOW + 9_000 * MS;
    second.now = now;
    second.meter.sibling_died(3);
    assert!(!second.launch(NEW), "that one had none");
    second.meter.sibling_died(1);
    let left = Unfinished { paid_until, alive_at: Some(now) };
    assert_eq!(second.meter.inherit(left, now), now - paid_until);
    assert!(!second.launch(NEW));
}

/// With `CUDA_LAUNCH_BLOCKING` the call returns when the kernel has ended.
#[test]
fn a_dead_process_may_have_launched_though_the_call_has_not_returned() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    let _permit = first.ask(NEW).unwrap();
    second.meter.sibling_died(1);
    assert!(second.launch(NEW), "it holds up no other");
}

/// A process whose own launches wait for one of unknown length goes on after ten seconds, as one that is alone does.
#[test]
fn what_is_charged_before_the_end_stalls_nothing() {
    let words = Words::default();
    let mut first = process(&words, 1);
    first.run(OTHER, MS);
    let began = first.now;
    assert!(first.launch(NEW));
    first.begins();
    let goes_at = (1..60).find(|second| {
        first.watch(began + second * 1_000 * MS);
        first.launch(NEW)
    });
    assert_eq!(goes_at, Some(10));
}

/// A thread that looks each fifth of a millisecond would do so for ever, if a stream waits for the host for ever.
#[test]
fn what_has_been_in_flight_for_long_is_looked_at_seldom() {
    let words = Words::default();
    let mut first = process(&words, 1);
    assert!(first.launch(NEW));
    let after = |bench: &mut Bench<'_>, passed| {
        let now = NOW + passed;
        bench.meter.watch(now, &mut bench.card).map(|again| again - now)
    };
    assert_eq!(after(&mut first, 0), Some(MS / 5));
    assert_eq!(after(&mut first, 64 * MS), Some(MS));
    assert_eq!(after(&mut first, 64_000 * MS), Some(10 * MS));
}

/// It is asked again soon, but not all the time: the thread would keep a core busy.
#[test]
fn a_waiting_thread_looks_for_a_moment_and_then_sleeps() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    let allowance = Arc::default();
    let mut looks = 0;
    while second.now < NOW + 100 * MS {
        let Bench { meter, stream, card, now, .. } = &mut second;
        let verdict = meter.before_launch(*stream, &allowance, NEW, *now, card);
        let Verdict::Wait { until, .. } = verdict else { panic!("{verdict:?}") };
        let (held_ns, sleeps_ns) = (*now - NOW, until - *now);
        assert!(sleeps_ns <= (held_ns / 4).clamp(1, MS / 5), "{sleeps_ns} after {held_ns}");
        // Each look takes a microsecond.
        (*now, looks) = (until.max(*now + MS / 1_000), looks + 1);
    }
    assert!((500..600).contains(&looks), "{looks}");
}

/// Kernels of two processes may wait for each other; and others could always be faster.
#[test]
fn none_is_refused_for_longer_than_half_a_second() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    let waits = |bench: &mut Bench<'_>, at| {
        bench.now = at;
        !bench.launch(NEW)
    };
    for turn in 0..20 {
        first.now = NOW + turn * 24 * MS;
        assert!(first.launch(Launch::kernel(Signature::kernel(100 + turn, 1024))));
        assert!(waits(&mut second, first.now + 2 * MS), "{turn}");
        first.card.events.fill(Reached::At(first.now + MS));
        first.watch(first.now + 3 * MS);
    }
    assert!(first.launch(NEW));
    assert!(!waits(&mut second, NOW + 503 * MS));
}

/// Nothing is noted, and no thread has to look soon.
#[test]
fn a_process_that_is_alone_waits_for_none() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    first.meter.set_shared(false);
    assert!(first.launch(NEW) && !first.meter.is_awaited());
    assert!(second.launch(NEW) && second.meter.is_awaited());
}

#[test]
fn a_later_process_with_the_same_number_does_not_wait_for_the_earlier_one() {
    let words = Words::default();
    assert!(process(&words, 1).launch(NEW));
    assert!(process(&words, 1).launch(NEW));
}

#[test]
fn one_that_the_driver_refuses_is_not_in_flight() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    let permit = first.ask(NEW).unwrap();
    assert!(second.ask(NEW).is_none());
    first.meter.refused(permit, NOW);
    assert!(second.ask(NEW).is_some());
}

/// Whatever a process of the container wrote.
#[test]
fn a_false_word_refuses_for_half_a_second_at_most() {
    let word = Word::default();
    for found in [7, 0x1_0007, 0xffff, u64::MAX, u64::MAX - 0xffff] {
        word.store(found);
        let mut launches = UnknownLaunches::new(Some(&word), 1);
        launches.set_shared(true);
        assert!(launches.begin(NOW) || launches.begin(NOW + 500 * MS), "{found:x}");
    }
}
