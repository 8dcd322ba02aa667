//! The meter's decisions, launch by launch.

use std::sync::Arc;

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{Launch, Reached, Signature, meter::PENDING},
    units::Share,
};

#[test]
fn a_queue_of_unknown_work_closes_the_gate_after_a_few_launches() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let admitted = (0..100).take_while(|_| bench.launch(Launch::kernel(KERNEL))).count();
    // 1 + 2 + 3 + 4 ms, of 10.
    assert_eq!(admitted, 4);
}

#[test]
fn the_first_measurement_replaces_every_guess() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    while bench.launch(Launch::kernel(KERNEL)) {}
    bench.card.events[0] = Reached::At(NOW);
    bench.card.events[1] = Reached::At(NOW + 1000);
    bench.meter.settle_finished(NOW, &mut bench.card);
    assert_eq!(bench.taken(), 4 * 1000);
    assert_eq!(bench.meter.totals().busy_ns, 1000);
}

#[test]
fn what_is_out_is_paid_for_up_to_what_was_reserved() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    assert_eq!(bench.meter.paid_until(), None);
    let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
    assert_eq!(bench.meter.paid_until(), Some(NOW + MS), "its call may wait for its end");
    bench.meter.refused(permit, NOW);
    assert_eq!(bench.meter.paid_until(), None);
    bench.now += 7 * MS;
    assert!(bench.launch(Launch::kernel(KERNEL)));
    bench.now += 50 * MS;
    assert_eq!(bench.meter.paid_until(), Some(NOW + 8 * MS));
    bench.card.events = vec![Reached::At(NOW + 7 * MS), Reached::At(NOW + 9 * MS)];
    bench.meter.settle_finished(bench.now, &mut bench.card);
    assert_eq!(bench.meter.paid_until(), None);
}

#[test]
fn what_a_dead_process_owes_is_bounded() {
    for (ago, owed) in [(200 * MS, 200 * MS), (900_000 * MS, 2_000 * MS)] {
        let word = Word::default();
        let mut bench = Bench::new(&word, 50);
        assert_eq!(bench.meter.inherit(NOW - ago, NOW), owed);
        let full = i64::try_from(bench.bucket.cap_ns()).unwrap();
        let since = i64::try_from(ago / 2).unwrap();
        assert_eq!(bench.level(), (full + since - i64::try_from(owed).unwrap()).min(full));
    }
}

#[test]
fn a_graph_is_guessed_by_its_nodes() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    assert!(bench.launch(Launch::graph(Signature::graph(1), 1000)));
    assert_eq!(bench.taken(), 5 * MS);
    // The second one that nothing is known of counts twice.
    assert!(bench.launch(Launch::graph(Signature::graph(2), 3)));
    assert_eq!(bench.taken(), 7 * MS);
}

#[test]
fn a_launch_that_the_driver_refuses_costs_nothing() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
    bench.meter.refused(permit, NOW);
    assert_eq!((bench.taken(), bench.meter.totals().busy_ns), (0, 0));
}

#[test]
fn what_nobody_can_measure_costs_its_estimate() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
    bench.meter.launched(permit, NOW, None, &mut bench.card);
    assert_eq!((bench.taken(), bench.meter.totals().busy_ns), (MS, MS));
    assert!(bench.launch(Launch::kernel(KERNEL)));
    bench.card.events[0] = Reached::Lost;
    bench.meter.settle_finished(NOW, &mut bench.card);
    assert_eq!((bench.taken(), bench.card.given_back), (2 * MS, 2));
}

/// Without a bound a driver that records no event would bring a program to a stop.
#[test]
fn what_nobody_ever_measures_is_feared_no_more_each_time() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 50);
    for turn in 0..60 {
        bench.now += 100 * MS;
        let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
        match turn % 3 {
            0 => bench.meter.launched(permit, bench.now, None, &mut bench.card),
            1 => bench.meter.refused(permit, bench.now),
            _ => {
                let pair = bench.card.pair(Reached::Lost, Reached::Lost);
                bench.meter.launched(permit, bench.now, pair, &mut bench.card);
                bench.meter.settle_finished(bench.now, &mut bench.card);
            }
        }
    }
    assert!(bench.bucket.level(bench.now) > -2 * i64::try_from(MS).unwrap());
}

#[test]
fn work_on_a_destroyed_stream_stays_charged_until_it_is_measured() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    assert!(bench.launch(Launch::kernel(KERNEL)));
    bench.meter.stream_destroyed(bench.stream, NOW);
    assert_eq!(bench.taken(), MS);
    let other = bench.meter.stream(NOW);
    assert_ne!(other, bench.stream, "its place is not free yet");
    bench.card.events[0] = Reached::At(NOW);
    bench.card.events[1] = Reached::At(NOW + 5000);
    bench.meter.settle_finished(NOW, &mut bench.card);
    assert_eq!(bench.taken(), 5000);
    assert_eq!(bench.meter.stream(NOW), bench.stream);
}

#[test]
fn a_destroyed_stream_gives_its_room_back() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 1000));
    let open = bench.taken();
    bench.meter.stream_destroyed(bench.stream, bench.now);
    assert!(open > 100_000 && bench.taken() < 10_000, "{open} {}", bench.taken());
}

#[test]
fn a_known_small_launch_opens_a_batch_and_its_launches_need_no_meter() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let batch = Arc::clone(&bench.batch);
    let costs = bench.meter.costs();
    (0..4).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    assert!(!batch.spend(1));
    bench.run(Launch::kernel(KERNEL), 10_000);
    let cost = costs.small(KERNEL).unwrap();
    assert_eq!(cost, 10_000);
    let fitted = (0..100).take_while(|_| batch.spend(cost)).count();
    assert_eq!(fitted, 25);
    // What they took is settled by the mark that comes with the next launch.
    let before = bench.meter.totals().busy_ns;
    bench.now += 25 * 10_000;
    bench.run(Launch::kernel(KERNEL), 10_000);
    assert_eq!(bench.meter.totals().busy_ns - before, 26 * 10_000);
}

#[test]
fn a_synchronizing_call_settles_the_batch_and_leaves_it_open() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let batch = Arc::clone(&bench.batch);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    assert!(batch.spend(10_000) && batch.spend(10_000));
    let before = bench.meter.totals().busy_ns;
    bench.now += 30_000;
    bench.meter.sync_returned(None, bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns - before, 20_000);
    bench.meter.sync_returned(Some(bench.stream), bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns - before, 20_000, "nothing is settled twice");
    assert!(batch.spend(10_000));
}

#[test]
fn the_way_of_a_launch_to_an_empty_stream_is_no_work() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
    // The event before it was reached 4 us before the launch returned.
    let pair = bench.card.pair(Reached::At(NOW), Reached::At(NOW + 14_000));
    bench.meter.launched(permit, NOW + 4_000, pair, &mut bench.card);
    bench.meter.settle_finished(NOW + 20_000, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns, 10_000);
}

/// With launches that block, and when the thread was held up before it looked at the clock.
#[test]
fn a_call_that_returns_after_the_end_hides_no_work() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
    let pair = bench.card.pair(Reached::At(NOW), Reached::At(NOW + 14_000));
    bench.meter.launched(permit, NOW + 20_000, pair, &mut bench.card);
    bench.meter.settle_finished(NOW + 20_000, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns, 14_000);
}

/// Events are laid onto the host's clock now and then: what seems to be over already may not be free.
#[test]
fn time_that_seems_to_come_twice_is_charged_twice() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    bench.run(Launch::kernel(KERNEL), 5 * MS);
    bench.now = NOW;
    bench.run(Launch::kernel(KERNEL), 5 * MS);
    assert_eq!(bench.meter.totals().busy_ns, 10 * MS);
}

/// Whatever the launches of the batch were expected to take.
#[test]
fn a_batch_that_the_device_had_to_work_off_is_charged_its_time() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let batch = Arc::clone(&bench.batch);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 1_000));
    assert!((0..10).all(|_| batch.spend(1_000)));
    let before = bench.meter.totals().busy_ns;
    // The next launch returns before the device has come to the end of the batch.
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
    assert!(bench.launch(Launch::kernel(KERNEL)) && bench.launch(Launch::kernel(KERNEL)));
    bench.now += 300 * MS;
    bench.card.events.fill(Reached::Ended(bench.now));
    bench.meter.settle_all(bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns, 300 * MS);
    assert_eq!((bench.meter.paid_until(), bench.card.given_back), (None, 4));
    // The bucket of 10 ms was full again, but for the three that were reserved.
    assert_eq!(bench.level(), -287 * 1_000_000);
}

/// Its queue waits for the host: it is filled at the share's rate.
#[test]
fn a_stream_in_which_nothing_moves_is_filled_at_the_share() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 300_000));
    bench.now += 1_000 * MS;
    while bench.launch(Launch::kernel(KERNEL)) {}
    bench.now += 99 * MS;
    assert!(!bench.launch(Launch::kernel(KERNEL)), "its turn may come yet");
    bench.now += 2 * MS;
    let admitted = (0..1_000).take_while(|_| bench.launch(Launch::kernel(KERNEL))).count();
    assert!((30..=40).contains(&admitted), "10 ms have come in: {admitted}");
    assert_eq!(bench.meter.totals().stalls, 0);
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

#[test]
fn a_long_kernel_is_paid_off_at_the_share() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 50);
    bench.run(Launch::kernel(KERNEL), 300 * MS);
    let again = NOW + 60_000 * MS;
    bench.now = again;
    bench.run(Launch::kernel(KERNEL), 300 * MS);
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    // 300 ms are paid after 600, less the burst of 20, of which a quantum of 10 must be there again.
    bench.now = again + 579 * MS;
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    bench.now = again + 581 * MS;
    assert!(bench.ask(Launch::kernel(KERNEL)).is_some());
}

#[test]
fn a_collective_is_charged_and_goes() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    bench.bucket.charge(100 * MS, NOW);
    let level = bench.level();
    assert!(!bench.launch(Launch::kernel(KERNEL)));
    assert!(bench.launch(Launch::kernel(KERNEL).collective(NOW)));
    assert_eq!(bench.level(), level - 1_000_000);
}

/// A program could call all its kernels collectives.
#[test]
fn a_collective_that_meets_no_other_device_is_lent_little() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    // 10 ms are there; 200 are lent.
    bench.bucket.charge(210 * MS, NOW);
    let collective = Launch::kernel(KERNEL).collective(NOW);
    assert!(bench.launch(collective), "as much may be owed");
    assert!(!bench.launch(collective), "now it is more");
    bench.now = NOW + 4 * MS;
    assert!(bench.launch(collective), "what was too much has come in");
    bench.bucket.charge(60_000 * MS, bench.now);
    bench.now = NOW + 1_999 * MS;
    assert!(!bench.launch(collective));
}

#[test]
fn what_goes_through_a_closed_gate_opens_no_batch() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let batch = Arc::clone(&bench.batch);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    bench.bucket.charge(100 * MS, bench.now);
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    assert!(bench.launch(Launch::kernel(KERNEL).collective(NOW)));
    assert!(!batch.spend(1));
}

#[test]
fn one_launch_goes_when_nothing_moves() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    while bench.launch(Launch::kernel(KERNEL)) {}
    bench.bucket.charge(10_000 * MS, NOW);
    bench.now += 1_999 * MS;
    assert!(!bench.launch(Launch::kernel(KERNEL)));
    bench.now += MS;
    assert!(bench.launch(Launch::kernel(KERNEL)));
    assert!(!bench.launch(Launch::kernel(KERNEL)));
    assert_eq!(bench.meter.totals().stalls, 1);
}

#[test]
fn a_debt_alone_is_no_stall() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 1);
    bench.run(Launch::kernel(KERNEL), 1_000 * MS);
    bench.now += 50_000 * MS;
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    assert_eq!(bench.meter.totals().stalls, 0);
}

#[test]
fn a_larger_share_is_felt_at_once() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 1);
    bench.bucket.charge(10 * MS, NOW);
    assert!(!bench.launch(Launch::kernel(KERNEL)));
    bench.meter.set_share(Share::FULL);
    assert!(bench.launch(Launch::kernel(KERNEL)));
}

#[test]
fn the_whole_card_never_waits() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 100);
    (0..50).for_each(|_| bench.run(Launch::kernel(KERNEL), 50 * MS));
    bench.bucket.charge(5_000 * MS, bench.now);
    assert!(bench.launch(Launch::kernel(KERNEL)));
}

#[test]
fn a_closed_gate_closes_every_batch() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let batch = Arc::clone(&bench.batch);
    let other = (bench.meter.stream(NOW), Arc::default());
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    assert!(batch.spend(10_000) && !bench.meter.wants_mark(bench.stream));
    bench.bucket.charge(500 * MS, bench.now);
    let stream = bench.stream;
    (bench.stream, bench.batch) = other;
    let first = bench.stream;
    let level = bench.level();
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    assert_eq!(bench.level() - level, 240_000, "what is left of the batch comes back");
    assert!(!batch.spend(10_000));
    assert!(bench.meter.wants_mark(stream) && !bench.meter.wants_mark(first));
    let [mark, _] = bench.card.pair(Reached::At(bench.now + 5), Reached::Pending).unwrap();
    let before = bench.meter.totals().busy_ns;
    bench.meter.marked(stream, mark, bench.now, &mut bench.card);
    bench.meter.settle_finished(bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns - before, 6, "the span is all there was");
    assert!(!bench.meter.wants_mark(stream));
}

#[test]
fn a_flood_of_collectives_takes_no_more_than_its_events() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 100);
    for _ in 0..2 * PENDING {
        assert!(bench.launch(Launch::kernel(KERNEL).collective(0)));
    }
    let permit = bench.ask(Launch::kernel(KERNEL).collective(0)).unwrap();
    assert!(!permit.wants_events());
    bench.meter.refused(permit, NOW);
}

/// Launches of 10 us of which one in ten takes 1 ms.
#[test]
fn a_function_that_is_often_long_is_not_prepaid() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 99);
    let is_doubted = (0..1000).any(|number| {
        bench.now += 10 * MS;
        bench.run(Launch::kernel(KERNEL), if number % 10 == 9 { MS } else { 10_000 });
        let is_prepaid = bench.batch.spend(1);
        if is_prepaid {
            bench.batch.put_back(1);
        }
        number > 10 && !is_prepaid
    });
    assert!(is_doubted);
}
