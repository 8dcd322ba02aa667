//! Queues that the device works off, that wait for the host, and that end with their context.

use std::sync::Arc;

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{Launch, Reached, Signature},
};

/// Whatever the expected cost of the batch's launches.
#[test]
fn a_batch_that_the_device_had_to_work_off_is_charged_its_time() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let allowance = Arc::clone(&bench.allowance);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 1_000));
    assert!((0..10).all(|_| allowance.launch(1_000)));
    let before = bench.meter.totals().busy_ns;
    // The next launch returns before the device has reached the end of the batch.
    let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
    let (queued, end) = (bench.now, bench.now + 15 * MS);
    let pair = bench.card.pair(Reached::At(end), Reached::At(end + 1_000));
    bench.meter.launched(permit, queued, pair, &mut bench.card);
    bench.now = end + 2_000;
    bench.meter.settle_finished(bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns - before, 15 * MS + 1_000);
}

#[test]
fn what_is_out_when_its_context_ends_is_charged_until_then() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    assert!(bench.launch(Launch::kernel(KERNEL)));
    bench.now += 300 * MS;
    bench.card.events.fill(Reached::Ended(bench.now));
    bench.meter.settle_all(bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns, 300 * MS);
    assert_eq!((bench.meter.paid_until(), bench.card.given_back), (None, 2));
    // The bucket held 10 ms, and what flowed in while the work ran counts against it: 75 ms.
    assert_eq!(bench.balance(), (10 + 75 - 300) * 1_000_000);
}

/// Kernels of 100 ms, each of a new function: the bucket is full when one ends, but what flowed in while it ran is not lost.
/// They would get 36 % of the device if it were.
#[test]
fn long_launches_of_unknown_functions_get_the_share() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 50);
    let mut worked_ns = 0;
    for function in 0..100 {
        let launch = Launch::kernel(Signature::kernel(100 + function, 1024));
        let permit = loop {
            match bench.ask(launch) {
                Some(permit) => break permit,
                None => bench.now += MS / 2,
            }
        };
        let (begin, end) = (bench.now + 1, bench.now + 1 + 100 * MS);
        let pair = bench.card.pair(Reached::At(begin), Reached::At(end));
        bench.meter.launched(permit, bench.now, pair, &mut bench.card);
        bench.now = end + 1;
        worked_ns += 100 * MS;
    }
    let percent = worked_ns * 100 / (bench.now - NOW);
    assert!((49..=51).contains(&percent), "{percent} %");
}

/// Its queue waits for the host: it is filled at the share's rate.
#[test]
fn a_stream_in_which_nothing_moves_is_filled_at_the_share() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 300_000));
    bench.now += 1_000 * MS;
    let _ = bench.meter.fence(bench.stream, bench.now);
    while bench.launch(Launch::kernel(KERNEL)) {}
    bench.now += 99 * MS;
    assert!(!bench.launch(Launch::kernel(KERNEL)), "its turn may come yet");
    bench.now += 2 * MS;
    let admitted = (0..1_000).take_while(|_| bench.launch(Launch::kernel(KERNEL))).count();
    assert!((30..=40).contains(&admitted), "10 ms have come in: {admitted}");
    assert_eq!(bench.meter.totals().stalls, 0);
}

/// Else nothing that the other processes of its container do would be certain for as long as its host likes.
#[test]
fn what_waits_for_the_host_is_not_reported_as_work_that_may_be_long() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 300_000));
    bench.now += 1_000 * MS;
    bench.run(Launch::kernel(KERNEL), 50 * MS);
    bench.now += 1_000 * MS;
    assert!(bench.launch(Launch::kernel(KERNEL)));
    assert!(bench.meter.usage_report().may_be_long(), "one was long lately");
    bench.card.events.iter_mut().for_each(|event| *event = Reached::At(bench.now));
    bench.meter.settle_finished(bench.now, &mut bench.card);
    let _ = bench.meter.fence(bench.stream, bench.now);
    assert!(bench.launch(Launch::kernel(KERNEL)));
    assert!(bench.meter.usage_report().is_in_flight());
    assert!(!bench.meter.usage_report().may_be_long(), "the device is at none of it");
}

#[test]
fn a_queue_of_functions_never_seen_does_not_grow_for_ever() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 10);
    let mut admitted = 0;
    for second in 0..600 {
        bench.now = NOW + second * 1_000 * MS;
        // The first one has begun, and never ends.
        if let Some(event) = bench.card.events.first_mut() {
            *event = Reached::At(NOW);
        }
        let debt = if second == 0 { 0 } else { 1_000 * MS };
        bench.bucket.charge(debt, bench.now);
        let unknown = Launch::kernel(Signature::kernel(second, 1024));
        admitted += u64::from(bench.launch(unknown));
    }
    assert!((3..=10).contains(&admitted), "{admitted}");
}
