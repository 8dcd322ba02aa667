//! Launches that take far longer than those before them: what has passed is charged before their end.

use super::desk::{Bench, KERNEL, MS};
use crate::{
    sync::Word,
    throttle::{Launch, Reached},
};

const KNOWN: Launch = Launch::kernel(KERNEL);

/// A process with half of the device, and a function that took 0.2 ms until now.
fn measured(word: &Word) -> Bench<'_> {
    let mut bench = Bench::new(word, 50);
    (0..20).for_each(|_| bench.run(KNOWN, 200_000));
    bench.now += 1_000 * MS;
    bench
}

/// How many launches go in this time, one after the other each 0.1 ms, of which the first has begun and does not end.
fn launches_in(bench: &mut Bench<'_>, ms: u64) -> usize {
    let began = bench.now;
    assert!(bench.launch(KNOWN));
    let before = bench.card.events.len() - 2;
    bench.card.events[before] = Reached::At(began);
    let steps = (1..ms * 10).map(|step| began + step * MS / 10);
    steps
        .filter(|at| {
            bench.now = *at;
            bench.launch(KNOWN)
        })
        .count()
}

#[test]
fn no_more_is_queued_behind_one_that_takes_long() {
    let word = Word::default();
    let mut bench = measured(&word);
    // The bucket holds 20 ms; the tolerance is one.
    assert!(
        launches_in(&mut bench, 200) <= 150,
        "a bucket of them, and what is launched in a moment"
    );
    assert!(bench.balance() < -50 * 1_000_000, "{}", bench.balance());
}

#[test]
fn it_costs_what_it_took() {
    let word = Word::default();
    let mut bench = measured(&word);
    let (began, before) = (bench.now, bench.card.events.len());
    let _ = launches_in(&mut bench, 500);
    let ended = bench.now;
    // All that is behind it takes as long as usual.
    let mut at = ended;
    for (place, event) in bench.card.events.iter_mut().enumerate().skip(before + 1) {
        at += if place % 2 == 1 { 200_000 } else { 0 };
        *event = Reached::At(at);
    }
    bench.card.events[before + 1] = Reached::At(ended);
    bench.now = at + MS;
    bench.meter.settle_finished(bench.now, &mut bench.card);
    let busy_ns = bench.meter.totals().busy_ns - 20 * 200_000;
    assert!(busy_ns.abs_diff(at - began) <= 5 * MS, "{busy_ns} of {}", at - began);
    let owed_ns = i64::try_from((at - began) / 2).unwrap() - 20_000_000;
    assert!((bench.balance() + owed_ns).abs() <= 12_000_000, "{} {owed_ns}", bench.balance());
    assert!(!bench.meter.usage_report().is_in_flight());
}

/// The device has done other work of the process in that time, which is paid for.
#[test]
fn work_of_other_streams_is_not_charged_twice() {
    let word = Word::default();
    let mut bench = measured(&word);
    let (began, full) = (bench.now, bench.balance());
    assert!(bench.launch(KNOWN));
    let before = bench.card.events.len() - 2;
    bench.card.events[before] = Reached::At(began);
    bench.stream = bench.meter.stream(began);
    // In half of the time, which is the share.
    for _ in 0..80 {
        let permit = bench.ask(KNOWN).unwrap();
        let pair = bench.card.pair(Reached::At(bench.now), Reached::At(bench.now + 200_000));
        bench.meter.launched(permit, bench.now, pair, &mut bench.card);
        bench.now += 400_000;
        bench.meter.settle_finished(bench.now, &mut bench.card);
    }
    // The long one may have had the other half.
    let late_ns = full - bench.balance();
    assert!((14_000_000..=17_000_000).contains(&late_ns), "{late_ns}");
}

/// What is queued behind something else than launches may be waiting for the host.
#[test]
fn what_waits_for_the_host_is_not_late() {
    let word = Word::default();
    let mut bench = measured(&word);
    let _ = bench.meter.fence(bench.stream, bench.now);
    assert!(bench.launch(KNOWN));
    let full = bench.balance();
    bench.now += 500 * MS;
    bench.meter.settle_finished(bench.now, &mut bench.card);
    assert!(bench.launch(KNOWN));
    assert!(bench.balance() >= full, "{} {full}", bench.balance());
}

/// A thread begins to wait, another one queues a wait for the host, and the first one's wait returns.
#[test]
fn a_wait_that_began_before_a_fence_does_not_undo_it() {
    let word = Word::default();
    let mut bench = measured(&word);
    let (began, stream) = (bench.now, bench.stream);
    bench.now += MS;
    let _ = bench.meter.fence(stream, bench.now);
    bench.now += MS;
    bench.meter.sync_returned([stream], began, bench.now, &mut bench.card);
    assert!(bench.launch(KNOWN));
    bench.now += 500 * MS;
    assert!(bench.launch(KNOWN));
    assert!(bench.balance() > 0, "{}", bench.balance());
}
