//! Reports that say late when work was in flight.

use super::{
    desk::{Bench, KERNEL, MS, NOW},
    turns::{ABSENT, START, close, looks, own},
};
use crate::{
    sync::Word,
    throttle::{
        Launch,
        event::{Events, Reached},
        timeline::{
            Timeline,
            done::{Certain, Part},
            stream::Pending,
            turns::Turns,
        },
    },
    units::{ComputeLimit, Share},
};

#[test]
fn what_a_peer_was_entitled_to_and_did_not_need_it_is_given_shortly_after() {
    let mut turns = Turns::new(START);
    turns.set_limit(ComputeLimit::fixed(Share::FULL));
    let busy = (100, 0, Some(0));
    let looked = [
        (0, busy, &[ABSENT][..]),
        // Of 5 ms it needs 1, and 2 of the other 4 are kept.
        (10, busy, &[(1, 0, Some(0))]),
        // Half of the 2 ms for which it was present, and those 2.
        (18, busy, &[(5, 12, None)]),
        // Nothing is kept of them: half of 2 ms again.
        (28, busy, &[(15, 14, None)]),
    ];
    looks(&mut turns, &looked);
    close(own(&turns, 0, 10), 9.0);
    close(own(&turns, 10, 18), 5.0);
    close(own(&turns, 18, 28), 9.0);
    // Low priority pays for what is not known.
    let mut turns = Turns::new(START);
    turns.set_limit(ComputeLimit::low_priority(Share::FULL));
    looks(&mut turns, &looked);
    close(own(&turns, 10, 18), 7.0);
}

/// Launches out of an allowance have no events: what shows that they were in flight is that a call waits for them.
#[test]
fn a_wait_for_prepaid_work_is_time_with_work_in_flight() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 25);
    (0..5).for_each(|_| bench.run(Launch::kernel(KERNEL), 10_000));
    let mut waits = |launches: u32| {
        let before = bench.meter.usage_report().occupied_ns(bench.now);
        assert!((0..launches).all(|_| bench.allowance.launch(10_000)));
        let began = bench.now;
        bench.now += 3 * MS;
        bench.meter.sync_returned([bench.stream], began, bench.now, &mut bench.card);
        bench.meter.usage_report().occupied_ns(bench.now) - before
    };
    // Less the way back to the program.
    assert_eq!(waits(1), 3 * MS - 100_000);
    assert_eq!(waits(0), 0, "nothing of ours was waited for");
}

/// A stream whose events show it in flight is waited for beside one without events, and several threads wait.
#[test]
fn time_with_work_in_flight_counts_once() {
    let mut timeline = Timeline::<usize>::new(NOW);
    let waits = |timeline: &mut Timeline<usize>, from: u64, until: u64| {
        let certain = Certain { from: NOW + from, until: NOW + until, part: Part::Rest };
        timeline.was_in_flight(1_000, Some(certain), NOW + until);
        timeline.report(0).occupied_ns(NOW + until)
    };
    assert_eq!(waits(&mut timeline, MS, 2 * MS), MS);
    assert_eq!(waits(&mut timeline, MS, 2 * MS), MS, "for two streams at the same time");
    assert_eq!(waits(&mut timeline, MS, 3 * MS), 2 * MS);
    // A launch with events began at 5 ms; the waits before it count as far as it had not begun.
    timeline.begins(NOW + 5 * MS);
    assert_eq!(waits(&mut timeline, 4 * MS, 6 * MS), 4 * MS);
    assert_eq!(waits(&mut timeline, 4 * MS, 7 * MS), 5 * MS);
    let stream = timeline.register(NOW);
    timeline.push(stream, Pending::new(0, NOW + 5 * MS), NOW + 7 * MS);
    timeline.returns();
    let mut events = Ends(NOW + 8 * MS);
    while timeline.finished(stream, NOW + 9 * MS, &mut events).is_some() {}
    assert_eq!(timeline.report(0).occupied_ns(NOW + 9 * MS), 6 * MS);
    assert_eq!(waits(&mut timeline, 5 * MS, 9 * MS), 7 * MS, "1 ms of it is new");
    // Calls return in any order, and what they waited for may be known late.
    assert_eq!(waits(&mut timeline, 14 * MS, 15 * MS), 8 * MS);
    assert_eq!(waits(&mut timeline, 10 * MS, 20 * MS), 17 * MS, "a longer one returns later");
    for at in (21..30).map(|ms| NOW + ms * MS) {
        timeline.begins(at);
        timeline.returns();
        timeline.may_be_over(at + 1_000);
    }
    assert_eq!(waits(&mut timeline, 20 * MS, 30 * MS), 27 * MS, "launches without events in it");
    timeline.begins(NOW + 31 * MS);
    timeline.push(stream, Pending::new(0, NOW + 31 * MS), NOW + 32 * MS);
    timeline.returns();
    assert_eq!(waits(&mut timeline, 30 * MS, 40 * MS), 37 * MS);
    while timeline.finished(stream, NOW + 40 * MS, &mut Ends(NOW + 33 * MS)).is_some() {}
    assert_eq!(timeline.report(0).occupied_ns(NOW + 40 * MS), 37 * MS, "it had ended before");
}

/// All events are reached at one time.
struct Ends(u64);

impl Events for Ends {
    type Event = usize;

    fn reached(&mut self, _: &usize) -> Reached {
        Reached::At(self.0)
    }

    fn give_back(&mut self, _: usize) {}
}
