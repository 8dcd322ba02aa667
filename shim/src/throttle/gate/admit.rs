//! A launch at the gate: the [protocol] with the driver.

use super::super::stream_table::{Stream, StreamEntry, ThreadAllowance};
use super::super::timing::{ContextId, Mark, Spare};
use super::Gate;
use crate::driver::DriverCopy;
use crate::driver::cuda::time as driver;
use crate::sys;
use gpucap_abi::cuda::CUstream;
use gpucap_core::throttle::protocol::{self, Asked, Begun};
use gpucap_core::throttle::{Launch, Permit, StreamId, Verdict};

/// A launch that may go to the driver.
pub(crate) struct Admitted {
    begun: Begun<(Mark, Spare)>,
    /// The stream, and the context of its events.
    place: (StreamId, ContextId),
}

/// A stream at the gate.
struct Place<'a> {
    gate: &'a Gate,
    copy: &'a DriverCopy,
    place: (StreamId, ContextId),
    stream: CUstream,
    /// Of the thread that asks for a launch.
    allowance: Option<&'a ThreadAllowance>,
    /// When it asks.
    now: u64,
    /// When the launch call returned, without what delayed it.
    returned: u64,
}

impl protocol::Place for Place<'_> {
    type Event = Mark;
    type First = (Mark, Spare);

    fn before_launch(&mut self, launch: Launch) -> Option<Verdict> {
        let Self { copy, place: (id, _), now, .. } = *self;
        let allowance = &self.allowance?.prepaid;
        self.gate.asking(copy, |inside| {
            let mut events = inside.timing.reader(copy);
            inside.meter.before_launch(id, allowance, launch, now, &mut events)
        })
    }

    fn held_back(&mut self) {
        if self.gate.upkeep.held_back(self.now) {
            self.gate.look_for_unreported();
        }
    }

    fn mark(&mut self) {
        let copy = self.copy;
        self.gate.mark(copy, self.place, self.stream, |inside, id, mark, now| {
            inside.meter.marked(id, mark, now, &mut inside.timing.reader(copy));
        });
    }

    fn record_first(&mut self) -> Option<(Mark, Spare)> {
        let (_, context) = self.place;
        let [first, second] = self.gate.spare(self.copy, context)?;
        match first.record(self.copy, self.stream) {
            Ok(mark) => Some((mark, second)),
            Err(first) => {
                self.gate.keep([first, second]);
                None
            }
        }
    }

    fn record_second(&mut self, (first, second): (Mark, Spare)) -> Option<[Mark; 2]> {
        match second.record(self.copy, self.stream) {
            Ok(second) => Some([first, second]),
            Err(second) => {
                self.gate.keep([first.unused(), second]);
                None
            }
        }
    }

    fn launched(&mut self, permit: Permit, pair: Option<[Mark; 2]>) -> bool {
        let (copy, returned) = (self.copy, self.returned);
        let wants_spacing = self.gate.asking(copy, |inside| {
            let mut events = inside.timing.reader(copy);
            inside.meter.launched(permit, returned, pair, &mut events)
        });
        wants_spacing == Some(true)
    }

    fn space(&mut self) {
        let copy = self.copy;
        self.gate.mark(copy, self.place, self.stream, |inside, id, mark, now| {
            inside.meter.spaced(id, mark, now, &mut inside.timing.reader(copy));
        });
    }

    fn fence(&mut self) -> bool {
        let (id, _) = self.place;
        let wants_mark = self.gate.with(|inside| inside.meter.fence(id, sys::monotonic_ns()));
        wants_mark == Some(true) && driver::carries_out(self.copy, self.stream)
    }
}

impl Gate {
    fn place<'a>(
        &'a self,
        copy: &'a DriverCopy,
        place: (StreamId, ContextId),
        stream: CUstream,
    ) -> Place<'a> {
        Place { gate: self, copy, place, stream, allowance: None, now: 0, returned: 0 }
    }

    /// Waits until the share allows a launch, and marks where it begins in its stream. `None` if this thread is
    /// inside a call of the driver already, or the stream has ended.
    pub(crate) fn admit(
        &self,
        copy: &DriverCopy,
        allowance: &ThreadAllowance,
        launch: Launch,
        stream: CUstream,
    ) -> Option<Admitted> {
        let Stream { id, context, .. } = allowance.entry.stream();
        let began = sys::monotonic_ns();
        let mut place = self.place(copy, (id?, context), stream);
        (place.allowance, place.now) = (Some(allowance), began);
        loop {
            self.look_around(place.now, true);
            match protocol::ask(&mut place, launch)? {
                Asked::Admitted(permit) => {
                    if place.now > began {
                        self.ledger.waited(self.index, place.now.saturating_sub(began));
                    }
                    let begun = protocol::begin(&mut place, permit);
                    return Some(Admitted { begun, place: place.place });
                }
                Asked::HeldBack { until } => sys::sleep_until(until),
            }
            place.now = sys::monotonic_ns();
        }
    }

    /// Handles a launch that the driver took just now; marks where it ends.
    pub(crate) fn launched(
        &'static self,
        copy: &'static DriverCopy,
        admitted: Admitted,
        stream: CUstream,
    ) {
        let now = sys::monotonic_ns();
        let Admitted { begun, place } = admitted;
        let mut place = self.place(copy, place, stream);
        let began = begun.first.as_ref().map_or(now, |(first, _)| first.asked_until());
        place.returned = began.saturating_add(self.call.bounded(now.saturating_sub(began)));
        let ended = protocol::end(&mut place, begun);
        protocol::returned(&mut place, ended);
        self.watch(copy);
    }

    /// Handles a launch that the driver refused.
    pub(crate) fn refused(&self, copy: &DriverCopy, admitted: Admitted) {
        let Admitted { begun: Begun { permit, first }, place: (id, _) } = admitted;
        let (mark, spare) = first.unzip();
        let now = sys::monotonic_ns();
        self.asking(copy, |inside| {
            inside.meter.refused(permit, now);
            // The event before it is behind the launches before it.
            if let Some(mark) = mark {
                inside.meter.marked(id, mark, now, &mut inside.timing.reader(copy));
            }
        });
        self.keep(spare);
    }

    /// Separates the work launched in a stream so far from what follows: something that is no launch is about to
    /// enter it.
    pub(crate) fn fence(&self, copy: &DriverCopy, entry: &StreamEntry, stream: CUstream) {
        let Stream { id, context, .. } = entry.stream();
        if let Some(id) = id {
            protocol::fence(&mut self.place(copy, (id, context), stream));
        }
    }
}
