//! A stream under a limit: the [protocol](gpucap_core::throttle::protocol) of a launch with the card.

use super::super::card::{Card, What};
use super::super::setup::{Ablation, Setup};
use gpucap_core::throttle::protocol::Place;
use gpucap_core::throttle::{
    Allowance, Costs, Events, Launch, Meter, Permit, Reached, StreamId, Upkeep, Verdict,
};
use std::sync::Arc;

/// The stream, its meter, and the meter's arguments.
pub(super) struct Metered<'w, 'a> {
    pub(super) id: StreamId,
    pub(super) meter: &'w mut Meter<'a, Mark>,
    pub(super) costs: &'w Costs,
    pub(super) upkeep: &'w Upkeep,
    /// Processes without a report are to be looked for.
    pub(super) asks: &'w mut bool,
    pub(super) waits: &'w mut Vec<u64>,
    pub(super) metered: &'w mut u64,
    pub(super) probe: Probe<'w>,
    pub(super) setup: &'w Setup,
    /// Of the thread that asks for a launch.
    pub(super) allowance: Option<Arc<Allowance>>,
    /// Events are recorded where the protocol marks the end of a stream.
    pub(super) marks: bool,
    /// The host's time: recording an event takes some of it.
    pub(super) now: u64,
    /// When the launch returned.
    pub(super) returned: u64,
}

/// A timing event, and the context that it ends with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    event: usize,
    context: u64,
}

/// The driver's answers to queries of events, and a new event at the end of the stream.
pub(super) struct Probe<'c> {
    pub(super) card: &'c mut Card,
    pub(super) stream: usize,
    /// What the meter calls it.
    pub(super) id: Option<StreamId>,
    pub(super) context: u64,
    /// When the previous context ended; `None` while the driver is ending it.
    pub(super) ended_at: Option<u64>,
    pub(super) drift_ppm: u64,
}

impl Probe<'_> {
    pub(super) fn push(&mut self, arrives: u64, what: What) {
        self.card.push(self.stream, arrives, what);
    }

    fn event(&mut self, arrives: u64) -> Mark {
        let event = self.card.event();
        self.push(arrives, What::Event(event));
        Mark { event, context: self.context }
    }
}

impl Events for Probe<'_> {
    type Event = Mark;

    fn reached(&mut self, mark: &Mark) -> Reached {
        if mark.context != self.context {
            return self.ended_at.map_or(Reached::Pending, Reached::Ended);
        }
        let Some(at) = self.card.reached(mark.event) else { return Reached::Pending };
        // Mapped onto the host's clock once a second.
        let since = at % 1_000_000_000;
        Reached::At(at + since * self.drift_ppm / 1_000_000)
    }

    fn give_back(&mut self, mark: Mark) {
        // One of a context that has ended may still be in a stream.
        if mark.context == self.context {
            self.card.give_back(mark.event);
        }
    }

    fn is_idle(&mut self, stream: StreamId) -> Option<bool> {
        (Some(stream) == self.id).then(|| self.card.queued(self.stream) == 0)
    }
}

impl Metered<'_, '_> {
    fn record(&mut self) -> Option<Mark> {
        if self.setup.without == Ablation::Measurement {
            return None;
        }
        self.now += self.setup.record_ns;
        Some(self.probe.event(self.now))
    }
}

impl Place for Metered<'_, '_> {
    type Event = Mark;
    type First = Mark;

    fn before_launch(&mut self, launch: Launch) -> Option<Verdict> {
        let allowance = self.allowance.as_ref()?;
        Some(self.meter.before_launch(self.id, allowance, launch, self.now, &mut self.probe))
    }

    fn held_back(&mut self) {
        *self.asks |= self.upkeep.held_back(self.now);
    }

    fn mark(&mut self) {
        if self.marks {
            let event = self.probe.event(self.now + self.setup.record_ns);
            self.meter.marked(self.id, event, self.now, &mut self.probe);
        }
    }

    fn record_first(&mut self) -> Option<Mark> {
        self.record()
    }

    fn record_second(&mut self, first: Mark) -> Option<[Mark; 2]> {
        Some([first, self.record()?])
    }

    fn launched(&mut self, permit: Permit, pair: Option<[Mark; 2]>) -> bool {
        self.meter.launched(permit, self.returned, pair, &mut self.probe)
    }

    fn space(&mut self) {
        if self.setup.without != Ablation::Spacing {
            self.now += self.setup.record_ns;
            let event = self.probe.event(self.now);
            self.meter.spaced(self.id, event, self.now, &mut self.probe);
        }
    }

    fn fence(&mut self) -> bool {
        self.meter.fence(self.id, self.now)
    }
}
