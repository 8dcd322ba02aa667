//! Waits for work beside other processes, which may be waits for a turn.

use super::turns::{ABSENT, START, looks};
use crate::{
    sync::Word,
    throttle::{
        Signature,
        charging::{
            Charging,
            settlement::Settlement,
            time_account::{TimeAccount, WORDS},
        },
        timeline::{
            done::{Certain, Done, Part, Span},
            outcome::Measured,
            stream::Reserved,
            turns::Turns,
        },
        usage_report::{PeerReport, UsageReport},
    },
    units::{ComputeLimit, Share},
};

const MS: u64 = 1_000_000;
/// What is expected of the work that is waited for.
const WORK_NS: u64 = 10_000;

/// Returns what is due, in ns, for work that was waited for from the one millisecond to the other.
fn due(turns: &Turns, from: u64, until: u64) -> u64 {
    let words = <[Word; WORDS]>::default();
    let [from, until] = [from, until].map(|ms| START + ms * MS);
    let certain = Some(Certain { from, until, part: Part::Rest });
    let done = Done { span: Span::From(from, until), work_ns: WORK_NS, certain };
    let account = TimeAccount::new(words.each_ref());
    Settlement::default().settle(done, turns, account, until).ns
}

fn close(found_ns: u64, expected_ms: f64) {
    let found_ms = found_ns as f64 / MS as f64;
    assert!((found_ms - expected_ms).abs() < 0.02, "{found_ms}, not {expected_ms}");
}

/// Peers may have had twice what they report, in a wait that may have been for their turns.
#[test]
fn of_a_short_wait_less_is_certain_than_of_a_long_one() {
    // By its report it had 3 of 40 ms, or 20 of them.
    for (had_ms, short_ms, long_ms) in [(3, 3.4, 5.55), (20, 0.01, 3.0)] {
        let mut turns = Turns::new(START);
        let (busy, peer) = ((100, 0, Some(0)), (had_ms, 0, Some(0)));
        looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[peer])]);
        close(due(&turns, 30, 34), short_ms);
        close(due(&turns, 30, 36), long_ms);
    }
}

/// A process that is stopped behind a launch has work in flight in its report for ever.
#[test]
fn beside_one_that_reports_nothing_new_all_waits_are_for_work() {
    let mut turns = Turns::new(START);
    let (busy, stopped) = ((1_000, 0, Some(0)), (3, 0, Some(0)));
    looks(&mut turns, &[(0, busy, &[ABSENT]), (40, busy, &[stopped])]);
    close(due(&turns, 36, 40), 3.4);
    looks(&mut turns, &[(239, busy, &[stopped])]);
    assert!(turns.has_others());
    looks(&mut turns, &[(240, busy, &[stopped])]);
    assert!(!turns.has_others());
    close(due(&turns, 236, 240), 4.0);
    looks(&mut turns, &[(250, busy, &[(4, 0, Some(0))])]);
    assert!(turns.has_others(), "it goes on");
}

/// No event follows the work that a call waits for, and it looks before it says so.
#[test]
fn a_wait_that_the_look_did_not_know_of_was_in_part_for_another_container() {
    let other = ComputeLimit::fixed(Share::FULL);
    // What siblings had of it, the container pays for: it counts as its own.
    for (limit, part_ms) in [(Some(other), 2), (None, 4)] {
        let mut turns = Turns::new(START);
        let mut look = |at_ms: u64, own: UsageReport, report: UsageReport| {
            let peer = PeerReport { page: 1, limit, key: 1, report };
            turns.take_reports([peer].into_iter(), own, START + at_ms * MS);
            let until = START + at_ms * MS;
            turns.of(until - 4 * MS, until)
        };
        let unseen = UsageReport::default();
        let busy = UsageReport::new(4 * MS, 0, Some(START));
        look(0, unseen, unseen);
        assert_eq!(look(4, unseen, busy), part_ms * MS);
        // It was given all that it reported of that time: nothing is left.
        let seen = UsageReport::new(100 * MS, 0, Some(START + 4 * MS));
        assert_eq!(look(8, seen, busy), 4 * MS);
    }
}

/// Each of them took some times as long as expected, in time slices of another container or because it was longer.
#[test]
fn waits_that_no_look_knew_of_are_evidence_against_the_estimates() {
    let other = Some(ComputeLimit::fixed(Share::FULL));
    // What a sibling reports to have had is none.
    for (times, limit, is_doubtful) in [(1, other, false), (3, other, true), (3, None, false)] {
        let mut turns = Turns::new(START);
        let mut settlement = Settlement::default();
        let words = <[Word; WORDS]>::default();
        for at_ms in (0..40).step_by(4) {
            let report = UsageReport::new(at_ms * MS, 0, Some(START));
            let peer = PeerReport { page: 1, limit, key: 1, report };
            let now = START + at_ms * MS;
            turns.take_reports([peer].into_iter(), UsageReport::default(), now);
            let certain = Some(Certain { from: now - 3 * MS, until: now, part: Part::Rest });
            let work_ns = 3 * MS / times - 1;
            let done = Done { span: Span::From(now - 3 * MS, now), work_ns, certain };
            settlement.settle(done, &turns, TimeAccount::new(words.each_ref()), now);
        }
        assert_eq!(settlement.is_doubtful(START + 40 * MS), is_doubtful, "{times} times");
    }
}

/// Looks each 4 ms. A process of another container had 3 of each, and a sibling was there all of the time.
fn beside_another_container() -> Turns {
    let mut turns = Turns::new(START);
    let limit = Some(ComputeLimit::fixed(Share::FULL));
    for at_ms in (0..=400).step_by(4) {
        let other = UsageReport::new(at_ms * 3 / 4 * MS, 0, (at_ms > 0).then_some(START));
        let sibling = UsageReport::new(at_ms * MS, 0, Some(START));
        let peers = [(1, limit, other), (2, None, sibling)];
        let peers = peers.map(|(key, limit, report)| PeerReport { page: key, limit, key, report });
        turns.take_reports(peers.into_iter(), sibling, START + at_ms * MS);
    }
    turns
}

#[test]
fn of_a_wait_in_doubt_the_container_pays_for_what_other_containers_do_not_report() {
    let turns = beside_another_container();
    let mut settlement = Settlement::default();
    let words = <[Word; WORDS]>::default();
    let mut due = |span: fn(u64, u64) -> Span, from_ms: u64| {
        let [from, until] = [from_ms, from_ms + 4].map(|ms| START + ms * MS);
        let certain = Some(Certain { from, until, part: Part::Known(WORK_NS) });
        let done = Done { span: span(from, until), work_ns: WORK_NS, certain };
        settlement.settle(done, &turns, TimeAccount::new(words.each_ref()), until).ns
    };
    // An estimate, until it is doubted.
    assert_eq!(due(Span::Waited, 0), WORK_NS);
    for number in 1..45 {
        due(Span::Operation, number * 4);
    }
    close(due(Span::Waited, 200), 1.0);
    // Of three processes it had a third, and its sibling another.
    close(due(Span::Operation, 300), 4.0 * 2.0 / 3.0 * 15.0 / 16.0);
}

/// A quarter of each was its own in the mean, and an eighth at least; the function is new each time.
#[test]
fn an_operation_in_doubt_that_may_have_waited_costs_what_is_certainly_its_own() {
    let turns = beside_another_container();
    let words = <[Word; WORDS]>::default();
    let mut charging = Charging::default();
    let account = TimeAccount::new(words.each_ref());
    let mut functions = 1..;
    let mut cost = |charging: &mut Charging, took_ns: u64, is_queued, waited_ns| {
        let [start, end] = [START, START + took_ns];
        let measured = Measured {
            start,
            end,
            whole_ns: took_ns,
            own_ns: took_ns / 4,
            least_ns: took_ns / 8,
            turns_ns: took_ns / 4,
            waited_ns,
            is_clean: is_queued,
            is_queued,
            is_alone: false,
            is_explained: true,
        };
        let signature = Signature::kernel(functions.next().unwrap_or(0) << 8, 64);
        let reserved =
            Reserved { signature, ns: 0, long: None, unmeasured: false, is_collective: false };
        let done = charging.operation(reserved, &measured, &turns, START);
        (done.work_ns, matches!(done.span, Span::Waited(..)))
    };
    assert_eq!(cost(&mut charging, 2 * MS, false, 0), (MS / 2, true), "without a doubt");
    // Far longer than what was expected.
    for number in 0..10 {
        let [from, until] = [number, number + 1].map(|at| START + at * 20 * MS);
        let certain = Some(Certain { from, until, part: Part::Turns });
        let done = Done { span: Span::Batch(from, until), work_ns: WORK_NS, certain };
        charging.charge(done, &turns, account, START);
    }
    assert!(charging.is_doubtful(START));
    assert_eq!(cost(&mut charging, 2 * MS, false, 0), (MS / 4, true));
    assert_eq!(cost(&mut charging, 2 * MS, true, 0), (MS / 2, false), "behind other work");
    assert_eq!(cost(&mut charging, 4 * MS, false, 0), (MS, false), "no turn is that long");
    cost(&mut charging, 4 * MS, false, 3 * MS);
    assert_eq!(cost(&mut charging, 2 * MS, false, 0), (MS / 2, false), "waits are seen here");
}
