//! Devices that meet in collectives: which of them wait for one another.

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{Bucket, DEVICE_WORDS, DeviceWords, Gang, Launch, Meter, Reached, Signature},
    units::Share,
};

type Words = [[Word; DEVICE_WORDS]; 2];

const COLLECTIVE: Launch = Launch::kernel(Signature::kernel(9, 1024)).collective(NOW);
const OTHER: Launch = Launch::kernel(KERNEL);
const GRAPH: Launch = Launch::graph(Signature::graph(11), 20).with_collectives();

/// Two devices of a container, each under a share of its own.
fn two(words: &Words, percent: [u16; 2]) -> [Bench<'_>; 2] {
    [0, 1].map(|own| {
        let [bucket, ..] = &words[own];
        let mut bench = Bench::new(bucket, percent[own]);
        let seats = words.iter().map(|words| DeviceWords::new(words.each_ref()));
        let bucket = Bucket::new(bucket, Share::from_percent(percent[own]).unwrap());
        bench.meter = Meter::new(bucket, NOW).among(Gang::new(seats.collect(), own, 1));
        bench.stream = bench.meter.stream(NOW);
        bench
    })
}

/// Each had a collective of a millisecond, which ended on both at the same time; the next millisecond has begun.
fn met(words: &Words, percent: [u16; 2]) -> [Bench<'_>; 2] {
    let mut benches = two(words, percent);
    for bench in &mut benches {
        bench.run(COLLECTIVE, MS);
        bench.now = NOW + 2 * MS;
    }
    benches
}

#[test]
fn a_device_that_is_waited_for_goes_at_once_until_its_collective_has_come() {
    let words = Words::default();
    let [mut first, mut second] = met(&words, [25, 25]);
    second.bucket.charge(500 * MS, second.now);
    assert!(!second.launch(OTHER), "no device waits for it");
    assert!(first.launch(COLLECTIVE));
    assert!(second.launch(OTHER), "the other one spins");
    assert!(second.launch(COLLECTIVE));
    assert!(!second.launch(OTHER), "it does so no longer");
}

/// The others go no further while it owes.
#[test]
fn on_a_device_that_meets_others_less_is_late() {
    let words = Words::default();
    let [mut first, mut second] = met(&words, [25, 25]);
    (0..20).for_each(|_| first.run(OTHER, 10_000));
    first.now += 200 * MS;
    second.now = first.now;
    let began = first.now;
    assert!(first.launch(OTHER));
    let before = first.card.events.len() - 2;
    first.card.events[before] = Reached::At(began);
    let mut goes_at = |ms| {
        (first.now, second.now) = (began + ms * MS, began + ms * MS);
        let _ = first.meter.watch(first.now, &mut first.card);
        second.ask(OTHER).map(|permit| second.meter.refused(permit, second.now)).is_some()
    };
    assert!(goes_at(100) && goes_at(180));
    assert!(!goes_at(400));
}

#[test]
fn a_device_that_is_waited_for_and_owes_too_much_waits() {
    let words = Words::default();
    let [mut first, mut second] = met(&words, [25, 25]);
    second.bucket.charge(2_600 * MS, second.now);
    assert!(first.launch(COLLECTIVE));
    assert!(!second.launch(OTHER));
}

/// Otherwise a program that launches only such graphs would not be held back at all.
#[test]
fn a_graph_with_collectives_waits_like_any_work_until_it_is_waited_for() {
    let words = Words::default();
    let [mut first, mut second] = met(&words, [25, 25]);
    second.bucket.charge(500 * MS, second.now);
    assert!(!second.launch(GRAPH), "no device waits for it");
    assert!(!first.launch(GRAPH), "the second one is in debt");
    first.now = second.bucket.holds_at(0, second.now);
    assert!(first.launch(GRAPH));
    second.now = first.now;
    second.bucket.charge(500 * MS, second.now);
    assert!(second.launch(GRAPH), "the first one spins");
    assert!(!second.launch(GRAPH), "it does so no longer");
}

#[test]
fn graphs_with_collectives_make_devices_meet() {
    let words = Words::default();
    let [mut first, mut second] = two(&words, [50, 50]);
    first.run(GRAPH, MS);
    second.run(GRAPH, MS);
    second.bucket.charge(500 * MS, second.now);
    assert!(!first.launch(OTHER));
}

/// The other device has not looked since the collective ended on both.
#[test]
fn a_collective_that_has_ended_here_has_ended_there() {
    let words = Words::default();
    let [mut first, mut second] = met(&words, [25, 25]);
    assert!(first.launch(COLLECTIVE));
    second.now += MS;
    second.run(COLLECTIVE, MS);
    second.bucket.charge(500 * MS, second.now);
    assert!(!second.launch(OTHER));
    // It launches the next one.
    first.now = second.now + MS;
    assert!(first.launch(COLLECTIVE));
    second.now = first.now + MS;
    assert!(second.launch(OTHER));
}

#[test]
fn nothing_goes_while_one_of_those_that_meet_is_in_debt() {
    let words = Words::default();
    let [mut first, second] = met(&words, [70, 30]);
    assert!(first.launch(OTHER));
    second.bucket.charge(60 * MS, second.now);
    assert!(!first.launch(OTHER), "the slower one sets the pace");
    assert!(first.launch(COLLECTIVE), "but for collectives");
    first.card.events.fill(Reached::At(first.now + MS));
    first.now = second.bucket.holds_at(0, second.now);
    assert!(first.launch(OTHER));
}

#[test]
fn devices_that_have_not_met_lately_do_not_affect_each_other() {
    let words = Words::default();
    let [mut first, mut second] = two(&words, [50, 50]);
    first.run(OTHER, MS);
    assert!(first.launch(COLLECTIVE));
    second.bucket.charge(500 * MS, NOW);
    assert!(first.launch(OTHER), "no collective has been launched on the second");
    assert!(!second.launch(OTHER), "not waited for");

    let words = Words::default();
    let [mut first, mut second] = met(&words, [50, 50]);
    second.bucket.charge(60_000 * MS, NOW);
    first.now += 9_000 * MS;
    assert!(!first.launch(OTHER));
    first.now += 1_001 * MS;
    assert!(first.launch(OTHER), "the latest was ten seconds ago");
    second.now = first.now;
    assert!(!second.launch(OTHER));
}

#[test]
fn a_device_without_a_limit_neither_waits_nor_hurries_another() {
    let words = Words::default();
    let [mut first, mut second] = met(&words, [100, 25]);
    second.bucket.charge(500 * MS, second.now);
    assert!(first.launch(OTHER));
    assert!(first.launch(COLLECTIVE));
    assert!(!second.launch(OTHER));
}

#[test]
fn a_collective_that_the_driver_refuses_makes_no_device_wait() {
    let words = Words::default();
    let [mut first, mut second] = met(&words, [25, 25]);
    second.bucket.charge(500 * MS, second.now);
    let permit = first.ask(COLLECTIVE).unwrap();
    assert!(second.launch(OTHER));
    first.meter.refused(permit, first.now);
    assert!(!second.launch(OTHER));

    // The same holds for one whose events are lost.
    let words = Words::default();
    let [mut first, mut second] = met(&words, [25, 25]);
    second.bucket.charge(500 * MS, second.now);
    let permit = first.ask(COLLECTIVE).unwrap();
    let pair = first.card.pair(Reached::Lost, Reached::Lost);
    first.meter.launched(permit, first.now, pair, &mut first.card);
    assert!(second.launch(OTHER));
    first.meter.settle_finished(first.now, &mut first.card);
    assert!(!second.launch(OTHER));
}

/// However short it was lately, the next one may spin.
#[test]
fn a_collective_is_measured_each_time() {
    for (launch, signature) in
        [(COLLECTIVE, Signature::kernel(9, 1024)), (GRAPH, Signature::graph(11))]
    {
        let words = Words::default();
        let [mut bench, _] = two(&words, [50, 50]);
        (0..40).for_each(|_| bench.run(launch, 10_000));
        assert_eq!(bench.meter.costs().small(signature), None);
        let before = bench.meter.totals().busy_ns;
        bench.run(launch, 50 * MS);
        assert_eq!(bench.meter.totals().busy_ns - before, 50 * MS);
    }
}

/// Kernels take out of the allowances that collectives open, so only collectives may ask at the gate.
#[test]
fn collectives_notice_that_the_gate_should_be_closed() {
    let words = Words::default();
    let [mut bench, _] = two(&words, [50, 50]);
    (0..5).for_each(|_| bench.run(OTHER, 10_000));
    bench.run(COLLECTIVE, 10_000);
    assert!(bench.allowance.launch(10_000), "a collective opens an allowance");
    bench.bucket.charge(100 * MS, bench.now);
    bench.run(COLLECTIVE, 10_000);
    assert!(!bench.allowance.launch(10_000));
}
