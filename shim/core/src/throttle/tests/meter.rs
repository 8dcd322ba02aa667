//! The meter's decisions, launch by launch.

use std::sync::Arc;

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::throttle::unreported::UnreportedProcesses;
use crate::{
    sync::Word,
    throttle::{Launch, Reached, Signature, Unfinished, timeline::PENDING},
    units::{ComputeLimit, Share},
};

#[test]
fn one_launch_of_which_nothing_is_known_is_out_at_a_time() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let unknown = |number| Launch::kernel(Signature::kernel(number, 1024));
    assert!(bench.launch(unknown(1)));
    assert!(!bench.launch(unknown(1)) && !bench.launch(unknown(2)));
    bench.card.events.fill(Reached::At(NOW + 1_000));
    bench.now = NOW + 2_000;
    assert!(bench.launch(unknown(2)));
    let balance = bench.balance();
    assert!(bench.launch(unknown(1)), "that one is known now");
    assert!(balance - bench.balance() < 10_000);
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
    bench.now += MS;
    assert_eq!(bench.meter.paid_until(), None, "what came before it may wait for the host");
    bench.meter.set_watched(false, bench.now);
    assert_eq!(bench.meter.paid_until(), Some(NOW + 8 * MS), "nothing would show that it begins");
    bench.meter.set_watched(true, bench.now);
    bench.card.events = vec![Reached::At(NOW + 7 * MS), Reached::Pending];
    let _ = bench.meter.watch(bench.now, &mut bench.card);
    bench.now += 50 * MS;
    assert_eq!(
        bench.meter.paid_until(),
        Some(NOW + 8 * MS),
        "when it began, not when that was seen"
    );
    bench.card.events = vec![Reached::At(NOW + 7 * MS), Reached::At(NOW + 9 * MS)];
    bench.meter.settle_finished(bench.now, &mut bench.card);
    assert_eq!(bench.meter.paid_until(), None);
}

#[test]
fn what_a_dead_process_owes_is_bounded() {
    for (ago, owed) in [(200 * MS, 200 * MS), (900_000 * MS, 60_000 * MS)] {
        let word = Word::default();
        let mut bench = Bench::new(&word, 50);
        assert_eq!(
            bench.meter.inherit(Unfinished { paid_until: NOW - ago, alive_at: None }, NOW),
            owed
        );
        let full = i64::try_from(bench.bucket.capacity_ns()).unwrap();
        let since = i64::try_from(ago / 2).unwrap();
        assert_eq!(bench.balance(), (full + since - i64::try_from(owed).unwrap()).min(full));
    }
}

#[test]
fn a_graph_is_guessed_by_its_nodes() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    assert!(bench.launch(Launch::graph(Signature::graph(1), 1000)));
    assert_eq!(bench.taken(), 5 * MS);
    bench.card.events.fill(Reached::At(NOW + 1));
    bench.now += 100 * MS;
    assert!(bench.launch(Launch::graph(Signature::graph(2), 3)));
    assert_eq!(bench.taken(), MS);
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
fn work_that_cannot_be_measured_costs_its_estimate() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
    bench.meter.launched(permit, NOW, None, &mut bench.card);
    // As one out of an allowance: what is behind it shows more.
    assert_eq!((bench.taken(), bench.meter.totals().busy_ns), (MS, 0));
    bench.meter.sync_returned([bench.stream], NOW, NOW + 5 * MS, &mut bench.card);
    assert_eq!(
        bench.meter.totals().busy_ns,
        5 * MS - 100_000,
        "that is how long it was waited for"
    );
    let before = bench.meter.totals().busy_ns;
    bench.now += 5 * MS;
    assert!(bench.launch(Launch::kernel(KERNEL)));
    bench.card.events[0] = Reached::Lost;
    bench.meter.settle_finished(bench.now, &mut bench.card);
    assert_eq!((bench.meter.totals().busy_ns - before, bench.card.given_back), (MS, 2));
}

/// Otherwise a driver that records no events would stop a program.
#[test]
fn the_guess_for_work_that_is_never_measured_does_not_grow_without_bound() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 50);
    for turn in 0..60 {
        bench.now += 100 * MS;
        let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
        match turn % 3 {
            0 => assert!(!bench.meter.launched(permit, bench.now, None, &mut bench.card)),
            1 => bench.meter.refused(permit, bench.now),
            _ => {
                let pair = bench.card.pair(Reached::Lost, Reached::Lost);
                bench.meter.launched(permit, bench.now, pair, &mut bench.card);
                bench.meter.settle_finished(bench.now, &mut bench.card);
            }
        }
    }
    assert!(bench.bucket.balance(bench.now) > -2 * i64::try_from(MS).unwrap());
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
fn a_known_small_launch_opens_an_allowance_that_pays_for_the_next_ones() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let allowance = Arc::clone(&bench.allowance);
    let costs = bench.meter.costs();
    (0..4).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    assert!(!allowance.launch(1));
    bench.run(Launch::kernel(KERNEL), 10_000);
    let cost = costs.small(KERNEL).unwrap();
    assert_eq!(cost, 10_000);
    let fitted = (0..100).take_while(|_| allowance.launch(cost)).count();
    assert_eq!(fitted, 25);
    // What they took is settled by the mark that comes with the next launch.
    let before = bench.meter.totals().busy_ns;
    bench.now += 25 * 10_000;
    bench.run(Launch::kernel(KERNEL), 10_000);
    assert_eq!(bench.meter.totals().busy_ns - before, 26 * 10_000);
}

#[test]
fn a_synchronizing_call_settles_the_allowance_and_leaves_it_open() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let allowance = Arc::clone(&bench.allowance);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    assert!(allowance.launch(10_000) && allowance.launch(10_000));
    let before = bench.meter.totals().busy_ns;
    bench.now += 30_000;
    bench.meter.sync_returned([bench.stream], bench.now, bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns - before, 20_000);
    bench.meter.sync_returned([bench.stream], bench.now, bench.now, &mut bench.card);
    assert_eq!(bench.meter.totals().busy_ns - before, 20_000, "nothing is settled twice");
    assert!(allowance.launch(10_000));
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

/// With launches that block, and when the thread was held up before it read the clock.
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

/// Events are mapped onto the host's clock now and then: what seems to have ended already may not be free.
#[test]
fn time_that_seems_to_come_twice_is_charged_twice() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    bench.run(Launch::kernel(KERNEL), 5 * MS);
    bench.now = NOW;
    bench.run(Launch::kernel(KERNEL), 5 * MS);
    assert_eq!(bench.meter.totals().busy_ns, 10 * MS);
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
    // 300 ms are paid for after 600, less the burst of 20, of which a quantum of 10 must be there again.
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
    let balance = bench.balance();
    assert!(!bench.launch(Launch::kernel(KERNEL)));
    assert!(bench.launch(Launch::kernel(KERNEL).collective(NOW)));
    assert_eq!(bench.balance(), balance - 1_000_000);
}

/// A program could name all its kernels as collectives.
#[test]
fn a_collective_that_meets_no_other_device_is_lent_little() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let collective = Launch::kernel(KERNEL).collective(NOW);
    bench.run(collective, MS);
    // 9 ms are there; 100 are lent.
    bench.bucket.charge(109 * MS, bench.now);
    assert!(bench.launch(collective), "as much may be owed");
    assert!(!bench.launch(collective), "now it is more");
    bench.now = NOW + 4 * MS;
    assert!(bench.launch(collective), "what was too much has come in");
    bench.bucket.charge(60_000 * MS, bench.now);
    bench.now = NOW + 1_999 * MS;
    assert!(!bench.launch(collective));
}

#[test]
fn a_launch_through_a_closed_gate_opens_no_allowance() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let allowance = Arc::clone(&bench.allowance);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    bench.bucket.charge(100 * MS, bench.now);
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    assert!(bench.launch(Launch::kernel(KERNEL).collective(NOW)));
    assert!(!allowance.launch(1));
}

#[test]
fn one_launch_goes_when_nothing_moves() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    bench.run(Launch::kernel(KERNEL), 300_000);
    while bench.launch(Launch::kernel(KERNEL)) {}
    bench.bucket.charge(100_000 * MS, bench.now);
    // The patience doubles each time.
    for (patience, stalls) in [(2_000, 1), (4_000, 2), (8_000, 3)] {
        bench.now += (patience - 1) * MS;
        assert!(!bench.launch(Launch::kernel(KERNEL)));
        bench.now += MS;
        assert!(bench.launch(Launch::kernel(KERNEL)));
        assert!(!bench.launch(Launch::kernel(KERNEL)));
        assert_eq!(bench.meter.totals().stalls, stalls);
    }
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
    bench.meter.set_limit(ComputeLimit::fixed(Share::FULL), bench.now);
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
fn a_closed_gate_closes_every_allowance() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    let allowance = Arc::clone(&bench.allowance);
    let other = (bench.meter.stream(NOW), Arc::default());
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    assert!(allowance.launch(10_000) && !bench.meter.wants_mark(bench.stream));
    bench.bucket.charge(500 * MS, bench.now);
    let stream = bench.stream;
    (bench.stream, bench.allowance) = other;
    let first = bench.stream;
    let balance = bench.balance();
    assert!(bench.ask(Launch::kernel(KERNEL)).is_none());
    assert_eq!(bench.balance() - balance, 240_000, "what is left of the allowance comes back");
    assert!(!allowance.launch(10_000));
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

/// Launches of 10 us of which one in ten takes 10 ms, where a process without a report may have had the time.
#[test]
fn a_function_that_is_often_long_is_not_prepaid() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 99);
    bench.meter.set_unreported(UnreportedProcesses::Working);
    let is_doubted = (0..1000).any(|number| {
        bench.now += 20 * MS;
        bench.run(Launch::kernel(KERNEL), if number % 10 == 9 { 10 * MS } else { 10_000 });
        let is_prepaid = bench.allowance.spend(1);
        if is_prepaid {
            bench.allowance.refused(1);
        }
        number > 10 && !is_prepaid
    });
    assert!(is_doubted);
}
