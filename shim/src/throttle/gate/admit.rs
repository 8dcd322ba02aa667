//! A launch at the gate: what is done with the driver around it.
//!
//! The order is the meter's, and the simulator follows it too: ask, and mark the stream's end before a wait; an event,
//! the launch, an event; then, now and then, a third event, which shows the distance of two.

use super::super::stream_table::{Stream, ThreadAllowance};
use super::super::timing::{ContextId, Mark, Spare};
use super::Gate;
use crate::driver::DriverCopy;
use crate::sys;
use gpucap_abi::cuda::CUstream;
use gpucap_core::throttle::{Launch, Permit, StreamId, Verdict};

/// A launch that may go to the driver.
pub(crate) struct Admitted {
    permit: Permit,
    events: Option<(Mark, Spare)>,
    /// The stream, and the context of its events.
    place: (StreamId, ContextId),
}

impl Gate {
    /// Waits until the share allows a launch, and marks where it begins in its stream. `None` if this thread is
    /// inside a call of the driver already, or the stream has ended.
    pub(crate) fn admit(
        &self,
        copy: &DriverCopy,
        allowance: &ThreadAllowance,
        launch: Launch,
        stream: CUstream,
    ) -> Option<Admitted> {
        let Stream { id, context } = allowance.entry.stream();
        let id = id?;
        let mark = || self.mark_end(copy, (id, context), stream);
        let permit = self.permit(copy, id, allowance, launch, mark)?;
        let events = if permit.wants_events() { self.spare(copy, context) } else { None };
        let events = events.and_then(|[first, second]| match first.record(copy, stream) {
            Ok(mark) => Some((mark, second)),
            Err(first) => {
                self.keep([first, second]);
                None
            }
        });
        Some(Admitted { permit, events, place: (id, context) })
    }

    /// Calls `mark` before it waits, if an event would then show when the stream's work ends.
    fn permit(
        &self,
        copy: &DriverCopy,
        id: StreamId,
        allowance: &ThreadAllowance,
        launch: Launch,
        mark: impl Fn(),
    ) -> Option<Permit> {
        let began = sys::monotonic_ns();
        let mut now = began;
        loop {
            self.look_around(now, true);
            let verdict = self.asking(copy, |inside| {
                let mut events = inside.timing.reader(copy);
                inside.meter.before_launch(id, &allowance.prepaid, launch, now, &mut events)
            })?;
            match verdict {
                Verdict::Admit(permit) => {
                    if now > began {
                        self.ledger.waited(self.index, now.saturating_sub(began));
                    }
                    return Some(permit);
                }
                Verdict::Wait { until, wants_mark } => {
                    if wants_mark {
                        mark();
                    }
                    if self.upkeep.held_back(now) {
                        self.look_for_unreported();
                    }
                    sys::sleep_until(until);
                }
            }
            now = sys::monotonic_ns();
        }
    }

    /// Handles a launch that the driver took just now; marks where it ends.
    pub(crate) fn launched(&self, copy: &DriverCopy, admitted: Admitted, stream: CUstream) {
        let now = sys::monotonic_ns();
        let Admitted { permit, events, place } = admitted;
        let began = events.as_ref().map_or(now, |(first, _)| first.asked_until());
        let returned = began.saturating_add(self.call.bounded(now.saturating_sub(began)));
        let marks = events.and_then(|(first, second)| match second.record(copy, stream) {
            Ok(second) => Some([first, second]),
            Err(second) => {
                self.keep([first.unused(), second]);
                None
            }
        });
        let wants_spacing = self.asking(copy, |inside| {
            let mut events = inside.timing.reader(copy);
            inside.meter.launched(permit, returned, marks, &mut events)
        });
        if wants_spacing == Some(true) {
            self.mark(copy, place, stream, |inside, id, mark, now| {
                inside.meter.spaced(id, mark, now, &mut inside.timing.reader(copy));
            });
        }
    }

    /// Handles a launch that the driver refused.
    pub(crate) fn refused(&self, admitted: Admitted) {
        let Admitted { permit, events, .. } = admitted;
        self.with(|inside| inside.meter.refused(permit, sys::monotonic_ns()));
        self.keep(events.into_iter().flat_map(|(first, second)| [first.unused(), second]));
    }
}
