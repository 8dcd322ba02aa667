//! What a timeline takes in comes out once, whatever becomes of its events.

use proptest::prelude::*;

use super::desk::{Card, KERNEL, NOW};
use crate::throttle::{
    Reached, StreamId,
    timeline::{
        Timeline,
        outcome::Finished,
        stream::{Operation, Pending, Reserved},
    },
};

const STREAMS: usize = 3;

/// A timeline, and what is expected to come out of it.
struct Bench {
    timeline: Timeline<usize>,
    card: Card,
    streams: Vec<StreamId>,
    /// The next event of each stream that the device comes to.
    next: [Vec<usize>; STREAMS],
    reserved_ns: u64,
    now: u64,
}

impl Bench {
    fn new() -> Self {
        let mut timeline = Timeline::new(NOW);
        let streams = (0..STREAMS).map(|_| timeline.register(NOW)).collect();
        let (card, next) = (Card::default(), Default::default());
        Self { timeline, card, streams, next, reserved_ns: 0, now: NOW }
    }

    /// A batch, and an operation behind it if it has a cost.
    fn push(&mut self, stream: usize, batch_ns: u64, cost_ns: Option<u64>) {
        let [mark, after] = self.card.pair(Reached::Pending, Reached::Pending).unwrap();
        self.next[stream].push(mark);
        let operation = cost_ns.map(|ns| {
            self.next[stream].push(after);
            let (unmeasured, is_collective, long) = (false, false, None);
            let cost = Reserved { signature: KERNEL, ns, long, unmeasured, is_collective };
            Operation { after, returned: self.now, cost }
        });
        let pending = Pending { batch_ns, operation, ..Pending::new(mark, self.now) };
        self.reserved_ns += pending.reserved_ns();
        // A batch went out of an allowance: no launch of it was admitted.
        let is_admitted = pending.operation.is_some();
        (0..u8::from(is_admitted)).for_each(|_| self.timeline.begins(self.now));
        self.timeline.push(self.streams[stream], pending, self.now);
        (0..u8::from(is_admitted)).for_each(|_| self.timeline.returns());
    }

    /// The device comes to the next event of a stream, or its context ends, or its events are lost.
    fn reach(&mut self, stream: usize, reached: Reached) {
        if self.next[stream].is_empty() {
            return;
        }
        let count = if matches!(reached, Reached::At(_)) { 1 } else { self.next[stream].len() };
        for event in self.next[stream].drain(..count) {
            self.card.events[event] = reached;
        }
    }

    /// Takes out what has ended.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        let ids: Vec<_> = self.timeline.ids().collect();
        for id in ids {
            while let Some(over) = self.timeline.finished(id, self.now, &mut self.card) {
                let (reserved_ns, end) = match over {
                    Finished::Batch { reserved_ns, .. } => (reserved_ns, self.now),
                    Finished::Operation { cost, measured } => {
                        let took_ns = measured.end - measured.start;
                        prop_assert!(measured.whole_ns <= took_ns.max(1));
                        prop_assert!(measured.least_ns <= measured.whole_ns);
                        (cost.ns, measured.end)
                    }
                    Finished::Unmeasured { reserved_ns, .. } => (reserved_ns, self.now),
                };
                prop_assert!((NOW..=self.now).contains(&end));
                prop_assert!(reserved_ns > 0 && reserved_ns <= self.reserved_ns);
                self.reserved_ns -= reserved_ns;
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn all_that_is_reserved_comes_out_once(
        acts in prop::collection::vec((0..STREAMS, 0..9_u8, 1..5_000_000_u64), 1..80),
    ) {
        let mut bench = Bench::new();
        for (stream, act, ns) in acts {
            bench.now += ns;
            match act {
                0 => bench.push(stream, ns, None),
                1 => bench.push(stream, ns, Some(ns + 1)),
                2 | 3 => bench.push(stream, 0, Some(ns)),
                4 => bench.reach(stream, Reached::Ended(bench.now)),
                5 => bench.reach(stream, Reached::Lost),
                _ => bench.reach(stream, Reached::At(bench.now)),
            }
            bench.drain()?;
        }
        for stream in 0..STREAMS {
            while !bench.next[stream].is_empty() {
                bench.now += 1_000;
                bench.reach(stream, Reached::At(bench.now));
                bench.drain()?;
            }
        }
        prop_assert_eq!(bench.reserved_ns, 0);
        prop_assert!(!bench.timeline.has_pending() && !bench.timeline.is_in_flight());
        let occupied_ns = bench.timeline.report(0).occupied_ns(bench.now);
        prop_assert!(occupied_ns <= bench.now - NOW, "{occupied_ns}");
    }
}
