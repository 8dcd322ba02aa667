//! Work in flight that a thread looks at, whether or not the program makes a call.

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{DEVICE_WORDS, DeviceWords, Gang, Launch, Meter, Reached},
    units::{ComputeLimit, Share},
};

const KNOWN: Launch = Launch::kernel(KERNEL);

/// A process with half of the device, a function that took 10 us until now, and an allowance of which three launches have
/// been made just now.
fn with_allowance(word: &Word) -> Bench<'_> {
    let mut bench = Bench::new(word, 50);
    (0..20).for_each(|_| bench.run(KNOWN, 10_000));
    bench.now += 1_000 * MS;
    bench.run(KNOWN, 10_000);
    assert!((0..3).all(|_| bench.allowance.launch(10_000)));
    bench
}

/// Looks each 10 ms for this long, and says that the stream is or is not idle.
fn looks(bench: &mut Bench<'_>, is_idle: bool, ms: u64) -> Option<u64> {
    bench.card.is_idle = Some(is_idle);
    let until = bench.now + ms * MS;
    let mut again = Some(bench.now);
    while bench.now < until {
        bench.now += 10 * MS;
        again = bench.meter.watch(bench.now, &mut bench.card);
    }
    again
}

fn charged(bench: &Bench<'_>) -> u64 {
    bench.meter.totals().busy_ns - 21 * 10_000
}

#[test]
fn launches_without_an_event_are_charged_while_they_run_and_when_they_have_ended() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    assert_eq!(looks(&mut bench, false, 1_000), Some(bench.now + 10 * MS));
    assert!((960 * MS..=1_000 * MS).contains(&charged(&bench)), "{}", charged(&bench));
    assert!(bench.meter.usage_report().is_in_flight());
    assert!(bench.ask(KNOWN).is_none(), "the share is used up");
    // More than two seconds are charged when they are over.
    let _ = looks(&mut bench, false, 4_000);
    assert!((1_900 * MS..=2_000 * MS).contains(&charged(&bench)), "{}", charged(&bench));
    assert_eq!(looks(&mut bench, true, 10), None);
    assert!((4_960 * MS..=5_000 * MS).contains(&charged(&bench)), "{}", charged(&bench));
    assert!(!bench.meter.usage_report().is_in_flight());
    assert_eq!(bench.meter.paid_until(), None);
}

/// Where the system allows no thread, or the process is ending.
#[test]
fn where_nothing_looks_each_launch_is_measured() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    bench.meter.set_watched(false, bench.now);
    assert!(!bench.allowance.launch(10_000), "it is closed");
    bench.run(KNOWN, 10_000);
    assert!(!bench.allowance.launch(10_000));
    bench.meter.set_watched(true, bench.now);
    bench.run(KNOWN, 10_000);
    assert!(bench.allowance.launch(10_000));
}

#[test]
fn launches_that_are_over_cost_what_was_expected() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    assert_eq!(looks(&mut bench, true, 10), Some(bench.now + 10 * MS), "it is too soon to ask");
    assert_eq!(looks(&mut bench, true, 10), None);
    assert_eq!(charged(&bench), 30_000);
    assert_eq!(looks(&mut bench, false, 50), None, "nothing is known to be in flight");
    assert_eq!(charged(&bench), 30_000);
}

/// A thread that takes out of its allowance may lose its processor, or be held up, before the driver has the launch.
#[test]
fn launches_that_the_driver_may_not_have_yet_are_not_over() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    assert!(bench.allowance.spend(10_000));
    assert!(looks(&mut bench, true, 100).is_some());
    assert!(looks(&mut bench, false, 1_000).is_some());
    assert!((950 * MS..=1_000 * MS).contains(&charged(&bench)), "{}", charged(&bench));
    bench.allowance.returned(10_000);
    assert_eq!(looks(&mut bench, true, 10), None);
}

/// A call that reads reports does not look at them: that is done beside such calls too.
#[test]
fn launches_without_an_event_are_charged_beside_calls_too() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    bench.card.is_idle = Some(false);
    for _ in 0..100 {
        bench.now += 10 * MS;
        assert!(bench.meter.watch_unmarked(bench.now, &mut bench.card));
    }
    assert!((950 * MS..=1_000 * MS).contains(&charged(&bench)), "{}", charged(&bench));
}

/// Launches that come one after the other leave no time to ask: after a while the next one has an event.
#[test]
fn launches_one_after_the_other_have_an_event_now_and_then() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    let mut spent = 0;
    while bench.allowance.launch(100) {
        spent += 1;
        bench.now += 3 * MS;
        let _ = bench.meter.watch(bench.now, &mut bench.card);
    }
    assert!((7..=9).contains(&spent), "{spent}");
}

/// The context of another thread's default stream ends, or the stream's handle is gone.
#[test]
fn launches_that_were_seen_are_charged_when_their_stream_ends() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    let _ = looks(&mut bench, false, 1_000);
    bench.meter.stream_destroyed(bench.stream, bench.now);
    assert!((950 * MS..=1_000 * MS).contains(&charged(&bench)), "{}", charged(&bench));
    assert_eq!(bench.meter.paid_until(), None);
}

/// Before a launch that the driver refuses, or around which no event could be recorded.
#[test]
fn launches_before_one_that_is_not_measured_are_in_flight_still() {
    for is_refused in [true, false] {
        let word = Word::default();
        let mut bench = with_allowance(&word);
        let permit = bench.ask(KNOWN).unwrap();
        if is_refused {
            bench.meter.refused(permit, bench.now);
        } else {
            bench.meter.launched(permit, bench.now, None, &mut bench.card);
        }
        let _ = looks(&mut bench, false, 1_000);
        assert!((950 * MS..=1_010 * MS).contains(&charged(&bench)), "{}", charged(&bench));
        assert!(!bench.meter.rest(bench.now) || bench.meter.paid_until().is_some());
        let _ = looks(&mut bench, true, 30);
        assert_eq!(bench.meter.paid_until(), None);
        assert!(!bench.meter.rest(bench.now), "the thread ends");
    }
}

/// A process that dies owes what its work took since it was first seen.
#[test]
fn launches_without_an_event_are_in_flight_at_a_death() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    let launched = bench.now;
    let _ = looks(&mut bench, false, 10_000);
    let paid_until = bench.meter.paid_until().unwrap();
    let paid_ns = paid_until - launched;
    assert!((2_000 * MS..=2_050 * MS).contains(&paid_ns), "{paid_ns}");
}

/// A stream in which nothing but the program itself can say what it has done, and a driver that does not answer.
#[test]
fn what_cannot_be_asked_is_charged_as_expected_and_looked_at_for_ever() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    for _ in 0..100 {
        bench.now += 10 * MS;
        assert!(bench.meter.watch(bench.now, &mut bench.card).is_some());
    }
    assert_eq!((charged(&bench), bench.meter.paid_until()), (0, None));
}

#[test]
fn an_event_behind_launches_shows_what_of_them_was_charged_early() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    let began = bench.now;
    let _ = looks(&mut bench, false, 100);
    assert!((60 * MS..=100 * MS).contains(&charged(&bench)), "{}", charged(&bench));
    // The program goes on as soon as it may: what the device was not seen at is not certain.
    while !bench.launch(KNOWN) {
        bench.now += MS;
    }
    let ended = began + 110 * MS;
    let before = bench.card.events.len() - 2;
    bench.card.events[before] = Reached::At(ended);
    bench.card.events[before + 1] = Reached::At(ended + 10_000);
    bench.now += 10 * MS;
    bench.meter.settle_finished(bench.now, &mut bench.card);
    assert!((75 * MS..=111 * MS).contains(&charged(&bench)), "{}", charged(&bench));
}

/// Where nothing looks, each launch asks.
#[test]
fn a_process_that_rests_has_no_allowance() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    assert_eq!(looks(&mut bench, true, 20), None);
    let _ = bench.launch(KNOWN);
    bench.card.events.fill(Reached::At(bench.now));
    bench.now += 10 * MS;
    let _ = bench.meter.watch(bench.now, &mut bench.card);
    assert!(!bench.meter.rest(bench.now));
    assert!(!bench.allowance.launch(10_000));
    assert!(bench.launch(KNOWN) && bench.meter.rest(bench.now), "that is in flight");
}

/// A process of the container of these words.
fn process(words: &[Word; DEVICE_WORDS], number: u16, percent: u16) -> Bench<'_> {
    let mut bench = Bench::new(&words[0], percent);
    let gang = Gang::new(vec![DeviceWords::new(words.each_ref())], 0, number);
    bench.meter = Meter::new(bench.bucket, NOW).among(gang);
    bench.meter.set_shared(true);
    bench.stream = bench.meter.stream(NOW);
    bench
}

/// What is late was charged at the smaller share, at which it takes eighteen times as long to flow in.
#[test]
fn a_larger_share_that_comes_while_work_is_late_is_paid_at_that() {
    let words = Default::default();
    let [mut small, mut large] = [process(&words, 1, 5), process(&words, 2, 90)];
    (0..20).for_each(|_| small.run(KNOWN, 10_000));
    small.now += 5_000 * MS;
    let began = small.now;
    assert!(small.launch(KNOWN));
    let before = small.card.events.len() - 2;
    small.card.events[before] = Reached::At(began);
    let mut goes_at = None;
    for ms in (10..=10_000).step_by(10) {
        let now = began + ms * MS;
        (small.now, large.now) = (now, now);
        if ms == 2_000 {
            small.card.events.fill(Reached::At(now));
        }
        let _ = small.meter.watch(now, &mut small.card);
        let asks = ms >= 1_000 && goes_at.is_none();
        if let Some(permit) = asks.then(|| large.ask(KNOWN)).flatten() {
            large.meter.refused(permit, now);
            goes_at = Some(ms);
        }
    }
    assert!(goes_at.is_some_and(|ms| ms <= 2_300), "{goes_at:?}");
}

/// What the node has seen, the process has not: it is in no debt of its own.
#[test]
fn a_container_that_is_held_back_makes_no_launch_until_then() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    bench.meter.hold(bench.now - MS, bench.now);
    assert!(bench.allowance.launch(10_000), "the time is past");
    let until = bench.now + 500 * MS;
    bench.meter.hold(until, bench.now);
    assert!(!bench.allowance.launch(10_000), "no allowance is left");
    let _ = looks(&mut bench, true, 10);
    assert!(bench.ask(KNOWN).is_none());
    bench.now = until - MS;
    assert!(bench.ask(KNOWN).is_none());
    bench.now = until;
    assert!(bench.ask(KNOWN).is_some(), "what it saved up is still there");
    // Held for a minute, and no longer so a moment later.
    bench.meter.hold(until + 60_000 * MS, bench.now);
    assert!(bench.ask(KNOWN).is_none());
    // Nor by a name: a kernel of any length may have that of a collective.
    let collective = Launch::kernel(KERNEL).collective(bench.now);
    assert!(bench.ask(collective).is_none());
    bench.meter.hold(0, bench.now);
    assert!(bench.ask(collective).is_some());
}

/// The call that waits comes when they have ended, or before that.
#[test]
fn launches_that_were_seen_are_charged_when_a_call_waits_for_them() {
    for waits_ms in [0, 50] {
        let word = Word::default();
        let mut bench = with_allowance(&word);
        let _ = looks(&mut bench, false, 1_000);
        let began = bench.now;
        bench.now += waits_ms * MS + 50_000;
        bench.meter.sync_returned([bench.stream], began, bench.now, &mut bench.card);
        let most = (1_000 + waits_ms) * MS;
        assert!((most - 50 * MS..=most).contains(&charged(&bench)), "{}", charged(&bench));
        assert_eq!(looks(&mut bench, true, 10), None);
        assert_eq!(bench.meter.paid_until(), None);
    }
}

/// They came after those that were seen: the time between the two is no launch's.
#[test]
fn what_a_call_waits_for_does_not_go_on_from_what_was_seen_before_others_came() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    let _ = looks(&mut bench, false, 1_000);
    bench.now += 9 * MS;
    assert!(bench.allowance.launch(10_000));
    bench.meter.sync_returned([bench.stream], bench.now, bench.now + MS, &mut bench.card);
    assert!((950 * MS..=1_000 * MS).contains(&charged(&bench)), "{}", charged(&bench));
}

/// Another thread waits for the stream, or puts something into it.
#[test]
fn a_launch_that_the_driver_has_not_taken_yet_is_not_what_another_thread_has_waited_for() {
    for waits in [true, false] {
        let word = Word::default();
        let mut bench = with_allowance(&word);
        assert!(bench.allowance.spend(10_000));
        if waits {
            bench.meter.sync_returned([bench.stream], bench.now, bench.now, &mut bench.card);
        } else {
            assert!(bench.meter.fence(bench.stream, bench.now));
            let [mark, _] =
                bench.card.pair(Reached::At(bench.now), Reached::At(bench.now)).unwrap();
            bench.meter.marked(bench.stream, mark, bench.now, &mut bench.card);
            bench.now += MS;
            bench.meter.settle_finished(bench.now, &mut bench.card);
        }
        bench.allowance.returned(10_000);
        assert!(charged(&bench) <= 4 * 10_000, "{}", charged(&bench));
        let _ = looks(&mut bench, false, 1_000);
        assert!((950 * MS..=1_000 * MS).contains(&charged(&bench)), "{waits} {}", charged(&bench));
    }
}

/// The process was stopped, or its thread kept from looking.
#[test]
fn after_a_late_look_each_launch_is_measured_for_twenty_times_as_long() {
    for calls in [false, true] {
        let word = Word::default();
        let mut bench = with_allowance(&word);
        let _ = looks(&mut bench, false, 10);
        assert!(bench.allowance.launch(10_000), "it has looked");
        bench.now += 1_000 * MS;
        if calls {
            bench.meter.sync_returned([bench.stream], bench.now, bench.now, &mut bench.card);
        } else {
            let _ = looks(&mut bench, true, 10);
        }
        let late = bench.now;
        assert!(!bench.allowance.launch(10_000), "no allowance is left");
        let _ = looks(&mut bench, true, 20);
        bench.now = late + 19_000 * MS;
        bench.run(KNOWN, 10_000);
        assert!(!bench.allowance.launch(10_000), "each launch is measured");
        bench.now = late + 21_000 * MS;
        bench.run(KNOWN, 10_000);
        assert!(bench.allowance.launch(10_000));
    }
}

/// No thread has to look then, and the limit may change again.
#[test]
fn without_a_limit_no_look_is_late() {
    let word = Word::default();
    let mut bench = with_allowance(&word);
    bench.meter.set_limit(ComputeLimit::fixed(Share::FULL), bench.now);
    for _ in 0..3 {
        bench.now += 1_000 * MS;
        bench.run(KNOWN, 10_000);
        assert!(bench.allowance.launch(10_000));
    }
    bench.meter.set_limit(ComputeLimit::fixed(Share::from_percent(50).unwrap()), bench.now);
    bench.run(KNOWN, 10_000);
    assert!(bench.allowance.launch(10_000));
}

/// The driver's return shows when all that the stream had was over.
#[test]
fn a_stream_of_a_context_that_ended_has_worked_since_it_was_first_used() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 50);
    let late = bench.meter.stream(bench.now);
    let own = std::mem::replace(&mut bench.stream, late);
    let permit = bench.ask(KNOWN).unwrap();
    bench.meter.launched(permit, bench.now, None, &mut bench.card);
    bench.now += 1_000 * MS;
    bench.meter.ended_with_context(late, bench.now, &mut bench.card);
    let busy_ns = bench.meter.totals().busy_ns;
    assert!((990 * MS..=1_000 * MS).contains(&busy_ns), "{busy_ns}");
    assert_eq!(bench.meter.paid_until(), None);
    bench.stream = own;
    assert!(bench.ask(KNOWN).is_none(), "the share is used up");
}
