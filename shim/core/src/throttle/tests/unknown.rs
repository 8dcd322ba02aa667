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
fn one_of_another_process_waits_until_one_that_is_waited_for_is_measured() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    second.run(OTHER, MS);
    assert!(first.launch(NEW));
    first.meter.wait_begins();
    second.now = first.now + 20 * MS;
    assert!(!second.launch(NEW), "either may take any time");
    assert!(second.launch(OTHER), "this one is known");
    // The first process sees that it took 1 ms.
    first.card.events.fill(Reached::At(first.now + MS));
    first.now += 2 * MS;
    first.meter.settle_finished(first.now, &mut first.card);
    assert!(second.launch(NEW));
}

/// Its end may go unnoticed for long.
#[test]
fn one_that_is_not_waited_for_holds_up_others_for_a_moment_alone() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    second.now = NOW + MS / 2;
    assert!(!second.launch(NEW), "the call that waits for it is to be expected");
    second.now = NOW + 2 * MS;
    assert!(second.launch(NEW));
}

#[test]
fn one_that_is_waited_for_no_longer_holds_up_no_other() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    first.meter.wait_begins();
    first.meter.wait_begins();
    first.meter.wait_ends();
    second.now = NOW + 5 * MS;
    assert!(!second.launch(NEW), "another thread waits still");
    first.meter.wait_ends();
    assert!(second.launch(NEW));
}

/// It is asked again soon, but not all the time: the thread would keep a core busy.
#[test]
fn a_waiting_thread_looks_for_a_moment_and_then_sleeps() {
    let words = Words::default();
    let [mut first, mut second] = [1, 2].map(|number| process(&words, number));
    assert!(first.launch(NEW));
    first.meter.wait_begins();
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
        first.meter.wait_begins();
        assert!(waits(&mut second, first.now + 2 * MS), "{turn}");
        first.card.events.fill(Reached::At(first.now + MS));
        first.now += 3 * MS;
        first.meter.settle_finished(first.now, &mut first.card);
        first.meter.wait_ends();
    }
    assert!(first.launch(NEW));
    first.meter.wait_begins();
    assert!(!waits(&mut second, NOW + 503 * MS));
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
        assert!(launches.begin(NOW) || launches.begin(NOW + 500 * MS), "{found:x}");
    }
}
