//! The cost of one operation lies between what is certainly its own and all of the time that it took, and what is due
//! for all of them is no more than the time that they covered.

use proptest::prelude::*;

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{
        Launch, PeerReport, Reached, Signature, UsageReport,
        charging::{
            Charging,
            time_account::{TimeAccount, WORDS},
        },
        timeline::{outcome::Measured, stream::Reserved, turns::Turns},
        unreported::UnreportedProcesses,
    },
    units::{ComputeLimit, Share},
};

const OTHER: Signature = Signature::kernel(8, 64);

fn reserved(signature: Signature) -> Reserved {
    Reserved { signature, ns: 0, long: None, unmeasured: false, is_collective: false }
}

/// An operation from `start` to `end`, of which `own_parts` of 8 were its own in the mean and half of that at least.
fn measured(start: u64, end: u64, own_parts: u64, is_queued: bool) -> Measured {
    let took_ns = end - start;
    let own_ns = took_ns / 8 * own_parts;
    let least_ns = if own_parts == 8 { took_ns } else { own_ns / 2 };
    Measured {
        start,
        end,
        whole_ns: took_ns,
        own_ns,
        least_ns,
        turns_ns: own_ns,
        waited_ns: 0,
        is_clean: is_queued,
        is_queued,
        is_alone: own_parts == 8,
        is_explained: own_parts < 7,
    }
}

proptest! {
    #[test]
    fn no_more_is_due_than_the_time_covered(
        operations in prop::collection::vec(
            (0..3_000_000_u64, 1..3_000_000_u64, 0..9_u64, any::<[bool; 2]>()), 1..100,
        ),
    ) {
        let (words, turns) = (<[Word; WORDS]>::default(), Turns::new(NOW));
        let account = TimeAccount::new(words.each_ref());
        let mut charging = Charging::default();
        let (mut now, mut covered_ns, mut due_ns) = (NOW, 0, 0);
        for (idle_ns, took_ns, own_parts, [is_other, is_queued]) in operations {
            let (start, end) = (now + idle_ns, now + idle_ns + took_ns);
            let operation = measured(start, end, own_parts, is_queued);
            let cost = reserved(if is_other { OTHER } else { KERNEL });
            let done = charging.operation(cost, &operation, &turns, end);
            due_ns += charging.charge(done, &turns, account, end).ns;
            covered_ns += took_ns;
            now = end;
            // The shared account keeps times in units of 1024 ns.
            prop_assert!(due_ns <= covered_ns + 100 * 1024, "{due_ns} of {covered_ns}");
        }
        prop_assert_eq!(charging.due_ns(), due_ns);
    }

    /// The first one of a signature is charged what was measured, whatever was measured of others.
    #[test]
    fn an_operation_costs_what_is_its_own(
        others in prop::collection::vec((1..3_000_000_u64, 0..9_u64), 0..40),
        took_ns in 8..3_000_000_u64,
        own_parts in 0..9_u64,
    ) {
        let (turns, mut charging) = (Turns::new(NOW), Charging::default());
        for (took_ns, own_parts) in others {
            let operation = measured(NOW, NOW + took_ns, own_parts, false);
            charging.operation(reserved(OTHER), &operation, &turns, NOW);
        }
        let operation = measured(NOW, NOW + took_ns, own_parts, false);
        let done = charging.operation(reserved(KERNEL), &operation, &turns, NOW);
        let expected = if own_parts == 8 { took_ns } else { operation.own_ns };
        prop_assert_eq!(done.work_ns, expected);
    }
}

/// Beside one process that takes turns.
fn beside_one() -> Turns {
    let mut turns = Turns::new(NOW);
    for work_ms in [0, 100] {
        let report = UsageReport::new(work_ms * MS, 0, Some(NOW));
        let peer = PeerReport { page: 7, limit: None, key: 7, report };
        turns.take_reports([peer].into_iter(), report, NOW + work_ms);
    }
    turns
}

/// Half of each was a peer's turn in the mean, and it waited for a turn of its own before.
fn costs_after_a_turn(charging: &mut Charging, took_ns: u64) -> u64 {
    let (turns, waited_ns) = (beside_one(), 2 * MS);
    let operation = Measured { waited_ns, ..measured(NOW, NOW + took_ns, 4, false) };
    charging.operation(reserved(KERNEL), &operation, &turns, NOW).work_ns
}

/// Launches of one function took 0.5 and 1.9 ms, and each was charged 0.5.
#[test]
fn what_is_shorter_than_a_turn_and_began_with_one_costs_all_of_its_time() {
    let mut charging = Charging::default();
    for number in 0..300 {
        let took_ns = if number % 3 == 0 { MS / 2 } else { 19 * MS / 10 };
        assert_eq!(costs_after_a_turn(&mut charging, took_ns), took_ns, "launch {number}");
    }
}

#[test]
fn what_is_longer_than_a_turn_and_began_with_one_costs_its_own_turns() {
    let mut charging = Charging::default();
    for (took, cost) in [(3, 2), (5, 3), (7, 4), (8, 4), (9, 5)] {
        assert_eq!(costs_after_a_turn(&mut charging, took * MS), cost * MS, "{took} ms");
    }
}

/// Launches of 1 ms began with turns of 1.2 ms, and one of them was interrupted by a turn of another process.
#[test]
fn what_is_steady_costs_its_usual_time_if_the_turns_explain_the_rest() {
    let mut charging = Charging::default();
    let turns = beside_one();
    let mut cost = |took_ns| {
        let operation =
            Measured { waited_ns: 12 * MS / 10, ..measured(NOW, NOW + took_ns, 4, false) };
        charging.operation(reserved(KERNEL), &operation, &turns, NOW).work_ns
    };
    for _ in 0..100 {
        assert_eq!(cost(MS), MS);
    }
    assert_eq!(cost(22 * MS / 10), MS, "interrupted once");
    assert_eq!(
        cost(34 * MS / 10),
        22 * MS / 10,
        "a longer one: a whole turn, and what is left after that of the other one"
    );
}

/// Launches of one function, each behind other work of its stream: each third one takes 1 us, the first ones longer.
#[test]
fn what_is_short_is_not_assumed_to_take_what_only_some_launches_take() {
    let (mut charging, turns) = (Charging::default(), beside_one());
    for number in 0..300 {
        let took_ns = if number % 3 == 2 { 1_000 } else { 12_000 };
        let operation = measured(NOW, NOW + took_ns, 7, true);
        charging.operation(reserved(KERNEL), &operation, &turns, NOW);
    }
    // 8.3 us in the mean.
    let mean_ns = charging.costs().estimate(KERNEL);
    assert!(mean_ns.is_some_and(|ns| (8_000..9_000).contains(&ns)), "{mean_ns:?}");
}

/// Returns what is charged of ten kernels of 5 to 5.9 ms beside a peer, the events before which are reached 3 ms late.
fn charged_of_late_ones(has_copies: bool) -> u64 {
    let word = Word::default();
    let mut bench = Bench::new(&word, 100);
    let look = |bench: &mut Bench, work_ms| {
        let report = UsageReport::new(work_ms * MS, 0, Some(NOW));
        let limit = Share::from_percent(70).map(ComputeLimit::fixed);
        let peer = PeerReport { page: 7, limit, key: 7, report };
        bench.meter.take_reports([peer].into_iter(), bench.now);
    };
    look(&mut bench, 0);
    for number in 0..10 {
        bench.now += MS;
        let (stream, now) = (bench.stream, bench.now);
        bench.meter.sync_returned([stream], now - MS, now, &mut bench.card);
        if has_copies {
            let _ = bench.meter.fence(stream, now);
        }
        let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
        let end = now + 8 * MS + number * MS / 10;
        let pair = bench.card.pair(Reached::At(now + 3 * MS), Reached::At(end));
        bench.meter.launched(permit, now, pair, &mut bench.card);
        bench.now = end;
        look(&mut bench, 100 * (number + 1));
        bench.meter.settle_finished(bench.now, &mut bench.card);
    }
    bench.meter.totals().busy_ns
}

#[test]
fn what_an_operation_waits_for_behind_a_copy_is_no_turn() {
    let [turns_ns, copies_ns] = [false, true].map(charged_of_late_ones);
    assert!(turns_ns < 10 * 4 * MS, "{turns_ns}: a turn each, and one of the peer");
    assert!(copies_ns > 10 * 4 * MS, "{copies_ns}: half of all the time");
}

/// A page of 30 % reports work, and takes it back in each eighth kernel. The kernels of this process take turns too.
#[test]
fn work_that_is_taken_back_gives_away_no_more_than_the_share_of_its_page() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 100);
    let limit = Share::from_percent(30).map(ComputeLimit::fixed);
    let mut busy_ns = 0;
    for number in 0..5_000_u64 {
        let takes = if number % 2 == 0 { 2 * MS / 3 } else { 2 * MS };
        let work = if number % 8 == 7 { 5 * MS } else { 10 * MS };
        let report = UsageReport::new(work, number, Some(NOW));
        let peer = PeerReport { page: 7, limit, key: 7, report };
        bench.meter.take_reports([peer].into_iter(), bench.now);
        let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
        let pair = bench.card.pair(Reached::At(bench.now), Reached::At(bench.now + takes));
        bench.meter.launched(permit, bench.now, pair, &mut bench.card);
        (bench.now, busy_ns) = (bench.now + takes, busy_ns + takes);
        bench.meter.take_reports([peer].into_iter(), bench.now);
        bench.meter.settle_finished(bench.now, &mut bench.card);
    }
    let given_ns = busy_ns - bench.meter.totals().busy_ns;
    let most_ns = ((bench.now - NOW) * 9 / 8 + 200 * MS) * 30 / 100;
    assert!(given_ns <= most_ns + most_ns / 100 + 1_100_000, "{given_ns} of {most_ns}");
}

/// Each third launch takes 0.5 ms, the others 1.9, of which seven sixteenths are certain: more than 0.5 in the mean.
#[test]
fn what_is_longer_for_certain_is_not_charged_the_least_time() {
    let cost = |limit, unreported| {
        let mut turns = Turns::new(NOW);
        for work_ms in [0, 100] {
            let report = UsageReport::new(work_ms * MS, 0, Some(NOW));
            let peer = PeerReport { page: 7, limit: Some(limit), key: 7, report };
            turns.take_reports([peer].into_iter(), report, NOW + work_ms);
        }
        let mut charging = Charging::default();
        charging.set_unreported(unreported);
        let costs = (0..300).map(|number| {
            let took_ns = if number % 3 == 2 { MS / 2 } else { 19 * MS / 10 };
            let operation = measured(NOW, NOW + took_ns, 7, true);
            charging.operation(reserved(KERNEL), &operation, &turns, NOW).work_ns
        });
        costs.take(299).last().unwrap_or(0)
    };
    let [own_ns, least_ns] = [19 * MS / 10 / 8 * 7, 19 * MS / 10 / 16 * 7];
    let fixed = ComputeLimit::fixed(Share::ONE_HALF);
    assert_eq!(cost(fixed, UnreportedProcesses::None), own_ns);
    // Not all of what a borrower did is reported in time, and nothing of what works beside the reports.
    assert!(
        cost(ComputeLimit::burst(Share::ONE_HALF, Share::FULL), UnreportedProcesses::None)
            <= least_ns
    );
    assert!(cost(fixed, UnreportedProcesses::Working) <= least_ns);
}
