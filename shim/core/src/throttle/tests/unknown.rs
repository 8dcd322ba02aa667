//! Launches of unknown length of several processes of a container: one at a time is in flight on a device.

use std::sync::Arc;

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{
        Bucket, DEVICE_WORDS, DeviceWords, Gang, Launch, Meter, Reached, Signature, Verdict,
        admission::unknown::UnknownLaunches,
    },
    units::Share,
};

type Words = [Word; DEVICE_WORDS];

const NEW: Launch = Launch::kernel(KERNEL);
const OTHER: Launch = Launch::kernel(Signature::kernel(9, 1024));
const SECOND_NS: u64 = 1_000 * MS;

/// A process of the container of these words, with 50 %.
fn process(words: &Words, number: u16) -> Bench<'_> {
    let mut bench = Bench::new(&words[0], 50);
    let bucket = Bucket::new(&words[0], Share::ONE_HALF);
    let gang = Gang::new(vec![DeviceWords::new(words.each_ref())], 0, number);
    bench.meter = Meter::new(bucket, NOW).among(gang);
    bench.stream = bench.meter.stream(NOW);
    bench
}

#[test]
fn one_of_another_process_waits_until_the_first_one_is_measured() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    second.run(OTHER, MS);
    assert!(first.launch(NEW));
    second.now = first.now + 2 * MS;
    assert!(!second.launch(NEW), "either may take any time");
    assert!(second.launch(OTHER), "this one is known");
    // The first process sees that it took 1 ms.
    first.card.events.fill(Reached::At(first.now + MS));
    first.now += 2 * MS;
    first.meter.settle_finished(first.now, &mut first.card);
    assert!(second.launch(NEW));
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

#[test]
fn a_process_that_makes_no_call_is_waited_for_two_seconds_and_twice_as_long_then() {
    let words = Words::default();
    let [mut first, mut second, mut third] = [1, 2, 3].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    second.now = NOW + 2 * SECOND_NS - 2 * MS;
    assert!(!second.launch(NEW));
    second.now = NOW + 2 * SECOND_NS + 2 * MS;
    assert!(second.launch(NEW));
    third.now = NOW + 6 * SECOND_NS - 2 * MS;
    assert!(!third.launch(NEW));
    // The end of the first one says nothing about the second one.
    first.card.events.fill(Reached::At(first.now + MS));
    first.now += 5 * SECOND_NS;
    first.meter.settle_finished(first.now, &mut first.card);
    assert!(!third.launch(NEW));
    third.now = NOW + 6 * SECOND_NS + 4 * MS;
    assert!(third.launch(NEW));
}

#[test]
fn none_of_a_dead_process_is_in_flight() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    assert!(!second.launch(NEW));
    second.meter.died(3);
    assert!(!second.launch(NEW), "another one has died");
    second.meter.died(1);
    assert!(second.launch(NEW));
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

/// Whatever a process of the container wrote: a time to come, or the largest number.
#[test]
fn a_false_word_is_waited_for_twice_as_long_as_a_true_one_at_most() {
    let word = Word::default();
    for at in [0, NOW, NOW + 16 * SECOND_NS, NOW + 3_600 * SECOND_NS, u64::MAX] {
        word.store(at >> 20 << 24 | 0xff_0007);
        let mut launches = UnknownLaunches::new(Some(&word), 1);
        let waits = |seconds: &u64| !launches.begin(NOW + seconds * SECOND_NS);
        assert!((0..100).take_while(waits).count() <= 33);
    }
}
