//! The worked example of the page on the compute limit (`docs/src/compute-limit.md`), launch by launch: 30 %, kernels of
//! 10 us in one stream, without a pause.

use super::desk::{Bench, KERNEL, MS, NOW};
use crate::{
    sync::Word,
    throttle::{Launch, Reached},
};

const US: u64 = 1_000;
const LAUNCH: Launch = Launch::kernel(KERNEL);

/// Asserts what the bucket holds in hundredths of a millisecond, without what has flowed in since the beginning.
fn holds(bench: &Bench<'_>, hundredths: u64) {
    let flowed_in = (bench.now - NOW) * 30 / 100;
    let balance = u64::try_from(bench.balance()).unwrap().saturating_sub(flowed_in);
    assert!(
        balance.abs_diff(hundredths * 10 * US) < 5 * US,
        "{balance}, not {hundredths} / 100 ms"
    );
}

/// The example up to the allowance of the fifth launch.
fn begun(word: &Word) -> Bench<'_> {
    let mut bench = Bench::new(word, 30);
    holds(&bench, 1200);
    assert!(bench.launch(LAUNCH));
    holds(&bench, 1100);
    assert!(!bench.launch(LAUNCH), "one launch without a measurement at a time");
    bench.card.events = vec![Reached::At(NOW + 1), Reached::At(NOW + 1 + 10 * US)];
    bench.now += 12 * US;
    bench.meter.settle_finished(bench.now, &mut bench.card);
    holds(&bench, 1199);
    (0..3).for_each(|_| bench.run(LAUNCH, 10 * US));
    holds(&bench, 1196);
    assert!(bench.launch(LAUNCH));
    holds(&bench, 1170);
    bench
}

/// Takes 25 launches out of the allowance, and goes to the gate with the next one. Returns whether that was admitted.
fn batch(bench: &mut Bench<'_>) -> bool {
    let spent = (0..25).filter(|_| bench.allowance.launch(10_000)).count();
    assert_eq!((spent, bench.allowance.launch(10_000)), (25, false));
    bench.launch(LAUNCH)
}

/// The device reaches the events of all launches from the fifth on. The first batch between them takes `longer_ns` longer
/// than the 250 us of each.
fn work_off(bench: &mut Bench<'_>, longer_ns: u64) {
    let (pairs, mut at) = (bench.card.events.split_at_mut(8).1, bench.now + 1);
    for (place, pair) in pairs.chunks_mut(2).enumerate() {
        pair[0] = Reached::At(at);
        pair[1] = Reached::At(at + 10 * US);
        at += 260 * US + if place == 0 { longer_ns } else { 0 };
    }
    bench.now = at;
    bench.meter.settle_finished(bench.now, &mut bench.card);
}

#[test]
fn the_bucket_holds_what_the_example_says() {
    let word = Word::default();
    let mut bench = begun(&word);
    assert!(batch(&mut bench));
    holds(&bench, 1144);
    work_off(&mut bench, 0);
    holds(&bench, 1144);
}

#[test]
fn a_gate_that_closed_opens_a_quantum_later() {
    let word = Word::default();
    let mut bench = begun(&word);
    while batch(&mut bench) {}
    let closed_at = bench.now;
    assert!(bench.balance() <= 0);
    work_off(&mut bench, 0);
    bench.now = closed_at + 19 * MS;
    assert!(!bench.launch(LAUNCH));
    bench.now = closed_at + 21 * MS;
    assert!(bench.launch(LAUNCH));
}

#[test]
fn a_kernel_that_took_longer_is_taken_from_the_bucket() {
    let balance = |longer_ns| {
        let word = Word::default();
        let mut bench = begun(&word);
        while batch(&mut bench) {}
        let closed_at = bench.now;
        work_off(&mut bench, longer_ns);
        bench.now = closed_at + 25 * MS;
        bench.balance()
    };
    // 10 ms instead of 10 us.
    let missing = u64::try_from(balance(0) - balance(9_990 * US)).unwrap();
    assert!(missing.abs_diff(9_990 * US) < 5 * US, "{missing} ns");
}
