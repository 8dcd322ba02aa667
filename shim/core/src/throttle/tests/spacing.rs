//! What a measurement contains besides the operation, found by a third event.

use super::desk::{Bench, KERNEL, MS};
use crate::{
    sync::Word,
    throttle::{Launch, Reached},
};

#[test]
fn the_distance_of_two_events_is_subtracted_once_it_is_known() {
    let word = Word::default();
    let mut bench = Bench::new(&word, 50);
    let mut round = |third: Option<(u64, u64)>| {
        let before = bench.meter.totals().busy_ns;
        let permit = bench.ask(Launch::kernel(KERNEL)).unwrap();
        // Busy until the launch had returned: it contains only the distance of the events.
        let (begin, end) = (bench.now + 5_000, bench.now + 15_300);
        let pair = bench.card.pair(Reached::At(begin), Reached::At(end));
        let wants = bench.meter.launched(permit, bench.now + 4_000, pair, &mut bench.card);
        if let Some((asked, distance)) = third {
            assert!(wants);
            bench.card.events.push(Reached::At(end + distance));
            let event = bench.card.events.len() - 1;
            bench.meter.spaced(bench.stream, event, bench.now + asked, &mut bench.card);
        }
        bench.now += 10 * MS;
        bench.meter.settle_finished(bench.now, &mut bench.card);
        assert_eq!(bench.card.given_back, bench.card.events.len());
        bench.meter.totals().busy_ns - before
    };
    for distance in [320, 900, 310] {
        round(Some((4_500, distance)));
    }
    // Recorded after the operation had ended: no distance.
    round(Some((20_000, 9)));
    let long: Vec<u64> = (0..40).map(|_| round(None)).collect();
    assert!(long.iter().all(|busy| *busy == 10_300), "three are too few: {long:?}");
    round(Some((4_500, 300)));
    let short: Vec<u64> = (0..180).map(|_| round(None)).collect();
    assert!((10_000..10_020).contains(short.last().unwrap()), "{short:?}");
}
