//! Launches that take far longer than those before them: what has passed is charged before their end.

use super::desk::{Bench, KERNEL, MS};
use crate::{
    sync::Word,
    throttle::{
        Launch, Reached,
        timeline::{KEPT, PENDING},
    },
    units::{ComputeLimit, Share},
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

/// For 2 s what it took is charged before its end. It owes the rest, whatever ends beside it.
#[test]
fn who_is_killed_owes_a_long_one_beside_short_ones_in_another_stream() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 99);
    (0..20).for_each(|_| bench.run(KNOWN, 200_000));
    let began = bench.now;
    assert!(bench.launch(KNOWN));
    let before = bench.card.events.len() - 2;
    bench.card.events[before] = Reached::At(began);
    bench.stream = bench.meter.stream(began);
    let mut short = 0;
    for _ in 0..400 {
        if let Some(permit) = bench.ask(KNOWN) {
            let pair = bench.card.pair(Reached::At(bench.now), Reached::At(bench.now + 200_000));
            bench.meter.launched(permit, bench.now, pair, &mut bench.card);
            short += 1;
        }
        bench.now += 10 * MS;
        let _ = bench.meter.watch(bench.now, &mut bench.card);
    }
    assert!(short > 100, "{short}");
    let owed_ms = (bench.now - bench.meter.paid_until().unwrap()) / MS;
    // Four seconds, less two and the short ones.
    assert!((1_850..=2_010).contains(&owed_ms), "{owed_ms}");
}

/// A look comes some time after the launch, and none for long where nothing watches.
#[test]
fn what_is_late_counts_from_its_beginning_or_two_looks_before_the_first() {
    for (first_ms, then_ms, charged_ms) in [(9, 19, 19), (18, 28, 28), (500, 510, 30)] {
        let word = Word::default();
        let mut bench = measured(&word);
        let (began, busy_ns) = (bench.now, bench.meter.totals().busy_ns);
        assert!(bench.launch(KNOWN));
        let before = bench.card.events.len() - 2;
        bench.card.events[before] = Reached::At(began);
        for ms in [first_ms, then_ms] {
            bench.now = began + ms * MS;
            let _ = bench.meter.watch(bench.now, &mut bench.card);
        }
        let ns = bench.meter.totals().busy_ns - busy_ns;
        assert!(ns.abs_diff(charged_ms * MS) <= MS, "{first_ms}: {ns}");
    }
}

/// A stream with a batch of which nothing has been reached, since its launches were queued at this time.
fn with_batch<'a>(word: &'a Word) -> Bench<'a> {
    let mut bench = Bench::new(word, 50);
    (0..20).for_each(|_| bench.run(KNOWN, 10_000));
    bench.now += 1_000 * MS;
    let permit = bench.ask(KNOWN).unwrap();
    let pair = bench.card.pair(Reached::At(bench.now), Reached::At(bench.now + 10_000));
    bench.meter.launched(permit, bench.now, pair, &mut bench.card);
    bench.now += 20_000;
    assert!((0..10).all(|_| bench.allowance.launch(10_000)));
    assert!(bench.launch(KNOWN));
    bench
}

/// How much is charged in half a second, beyond what flows in.
fn charged_in_half_a_second(bench: &mut Bench<'_>) -> i64 {
    let began = bench.now;
    let full = i64::try_from(bench.bucket.capacity_ns()).unwrap();
    for ms in 1..=500 {
        bench.now = began + ms * MS;
        let _ = bench.ask(KNOWN).map(|permit| bench.meter.refused(permit, bench.now));
    }
    full - bench.balance()
}

#[test]
fn a_batch_that_takes_long_is_late() {
    let word = Word::default();
    let late_ns = charged_in_half_a_second(&mut with_batch(&word));
    assert!((200_000_000..=260_000_000).contains(&late_ns), "{late_ns}");
}

/// A default stream waits for others, and they for it.
#[test]
fn what_may_wait_for_a_stream_that_waits_for_the_host_is_not_late() {
    let word = Word::default();
    let mut bench = with_batch(&word);
    let first = std::mem::replace(&mut bench.stream, bench.meter.stream(bench.now));
    let _ = bench.meter.fence(bench.stream, bench.now);
    assert!(bench.launch(KNOWN));
    bench.stream = first;
    let late_ns = charged_in_half_a_second(&mut bench);
    assert!(late_ns < 2_000_000, "{late_ns}");
}

/// A thread begins to wait, another one queues a wait for the host, and the first one's wait returns: what is queued then is
/// filled at the share's rate.
#[test]
fn a_wait_that_began_before_a_fence_does_not_undo_it() {
    let word = Word::default();
    let mut bench = measured(&word);
    let (began, stream) = (bench.now, bench.stream);
    bench.now += MS;
    let _ = bench.meter.fence(stream, bench.now);
    bench.now += MS;
    bench.meter.sync_returned([stream], began, bench.now, &mut bench.card);
    while bench.launch(KNOWN) {}
    bench.now += 101 * MS;
    let admitted = (0..1_000).take_while(|_| bench.launch(KNOWN)).count();
    assert!((40..=110).contains(&admitted), "a bucket of 20 ms has come in: {admitted}");
}

/// Two limits, one before the other: what is late is charged at the one that holds when it has ended.
#[test]
fn a_limit_that_changes_holds_for_what_is_late() {
    for (percent, after) in [(10, 50), (50, 10)] {
        let word = Word::default();
        let mut bench = Bench::new(&word, percent);
        (0..20).for_each(|_| bench.run(KNOWN, 200_000));
        bench.now += 1_000 * MS;
        let began = bench.now;
        let _ = launches_in(&mut bench, 1_000);
        let share = Share::from_percent(after).unwrap();
        bench.meter.set_limit(ComputeLimit::fixed(share), bench.now);
        bench.card.events.fill(Reached::At(bench.now));
        bench.meter.settle_finished(bench.now, &mut bench.card);
        // The kernel took a second, and flowed in while it ran.
        let owes_ns = bench.meter.out_of_debt_at(bench.now) - bench.now;
        let took_ns = bench.now - began;
        let fair_ns = took_ns * 100 / u64::from(after) - took_ns;
        assert!(owes_ns.abs_diff(fair_ns) <= fair_ns / 5 + 100 * MS, "{owes_ns}, not {fair_ns}");
    }
}

/// A kernel that fails takes its context along: its events show nothing any more.
#[test]
fn work_whose_events_are_lost_is_charged_for_what_it_certainly_took() {
    for (has_begun, charged_ms) in [(true, 3_000), (false, 1)] {
        let word = Word::default();
        let mut bench = measured(&word);
        let busy_ns = bench.meter.totals().busy_ns;
        let _ = bench.meter.fence(bench.stream, bench.now);
        assert!(bench.launch(KNOWN));
        if has_begun {
            let before = bench.card.events.len() - 2;
            bench.card.events[before] = Reached::At(bench.now);
        }
        bench.meter.settle_finished(bench.now + 1, &mut bench.card);
        bench.now += 3_000 * MS;
        bench.card.events.fill(Reached::Lost);
        bench.meter.settle_all(bench.now, &mut bench.card);
        let ns = bench.meter.totals().busy_ns - busy_ns;
        assert!(ns.abs_diff(charged_ms * MS) <= MS, "{ns}");
    }
}

/// With as many pending as are kept, nothing would show the end of one more, nor what it takes.
#[test]
fn where_no_event_can_be_kept_nothing_goes() {
    let word = Word::default();
    let mut bench = measured(&word);
    let other = bench.meter.stream(bench.now);
    let _ = bench.meter.fence(bench.stream, bench.now);
    let pending = (0..10_000).filter(|_| {
        bench.now += MS;
        bench.launch(KNOWN)
    });
    // One each two seconds and more, in case that the work in flight waits for it.
    assert!((PENDING - KEPT..=PENDING - KEPT + 3).contains(&pending.count()));
    bench.stream = other;
    bench.now += MS;
    assert!(!bench.launch(KNOWN));
    bench.card.events.fill(Reached::At(bench.now));
    bench.meter.settle_all(bench.now, &mut bench.card);
    bench.now += 100_000 * MS;
    assert!(bench.launch(KNOWN));
}
