//! A meter without a device: its events are reached when a test says so.

use std::sync::Arc;

use crate::{
    sync::Word,
    throttle::{
        Allowance, Bucket, Events, Launch, Meter, Permit, Reached, Signature, StreamId, Verdict,
    },
    units::Share,
};

pub(super) const NOW: u64 = 1_000_000_000_000;
pub(super) const MS: u64 = 1_000_000;
pub(super) const KERNEL: Signature = Signature::kernel(7, 1024);

/// The state of each event, and how many were given back.
#[derive(Default)]
pub(super) struct Card {
    pub(super) events: Vec<Reached>,
    pub(super) given_back: usize,
    /// What the driver says about each stream; `None`: nothing.
    pub(super) is_idle: Option<bool>,
}

impl Card {
    pub(super) fn pair(&mut self, before: Reached, after: Reached) -> Option<[usize; 2]> {
        self.events.extend([before, after]);
        Some([self.events.len() - 2, self.events.len() - 1])
    }
}

impl Events for Card {
    type Event = usize;

    fn reached(&mut self, event: &usize) -> Reached {
        self.events[*event]
    }

    fn give_back(&mut self, _: usize) {
        self.given_back += 1;
    }

    fn is_idle(&mut self, _: StreamId) -> Option<bool> {
        self.is_idle
    }
}

pub(super) struct Bench<'a> {
    pub(super) meter: Meter<'a, usize>,
    pub(super) bucket: Bucket<'a>,
    pub(super) card: Card,
    pub(super) stream: StreamId,
    pub(super) allowance: Arc<Allowance>,
    pub(super) now: u64,
}

impl<'a> Bench<'a> {
    pub(super) fn new(word: &'a Word, percent: u16) -> Self {
        let bucket = Bucket::new(word, Share::from_percent(percent).unwrap());
        let mut meter = Meter::new(bucket, NOW);
        let stream = meter.stream(NOW);
        let allowance = Arc::default();
        Self { meter, bucket, card: Card::default(), stream, allowance, now: NOW }
    }

    pub(super) fn ask(&mut self, launch: Launch) -> Option<Permit> {
        let Self { meter, card, allowance, .. } = self;
        match meter.before_launch(self.stream, allowance, launch, self.now, card) {
            Verdict::Admit(permit) => Some(permit),
            Verdict::Wait { until, wants_mark } => {
                assert!(until > self.now);
                assert_eq!(wants_mark, self.meter.wants_mark(self.stream));
                None
            }
        }
    }

    /// A launch that begins after its return and takes `ns`, whose end the meter has seen.
    pub(super) fn run(&mut self, launch: Launch, ns: u64) {
        let permit = self.ask(launch).unwrap();
        let pair = self.card.pair(Reached::At(self.now + 1), Reached::At(self.now + 1 + ns));
        self.meter.launched(permit, self.now, pair, &mut self.card);
        self.now += ns + 2;
        self.meter.settle_finished(self.now, &mut self.card);
    }

    /// A launch that has not begun.
    pub(super) fn launch(&mut self, launch: Launch) -> bool {
        let Some(permit) = self.ask(launch) else { return false };
        let pair = self.card.pair(Reached::Pending, Reached::Pending);
        self.meter.launched(permit, self.now, pair, &mut self.card);
        true
    }

    pub(super) fn balance(&self) -> i64 {
        self.bucket.balance(self.now)
    }

    /// The nanoseconds that the bucket lacks to be full.
    pub(super) fn taken(&self) -> u64 {
        self.bucket.capacity_ns() - u64::try_from(self.balance()).unwrap()
    }
}
