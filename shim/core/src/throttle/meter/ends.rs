//! Ends of work as the host sees them: a wait that returned, a stream that is destroyed, work that something else
//! follows.

use super::Meter;
use crate::throttle::{
    Events,
    settlement::{Certain, Done, Part},
    stream::StreamId,
};

/// A call that waits for work returns at most this long after the work's end.
const RETURN_NS: u64 = 100_000;

impl<E> Meter<'_, E> {
    /// Records that a call that waits until this stream is empty returned at `now`, having waited since `began`;
    /// without a stream, one that waits for all streams of the device.
    pub fn sync_returned(
        &mut self,
        stream: Option<StreamId>,
        began: u64,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        let places = match stream {
            Some(StreamId(place)) => usize::from(place)..usize::from(place) + 1,
            None => 0..self.streams.len(),
        };
        for place in places {
            self.collect_finished_in(place, now, events);
            let Some(stream) = self.streams.get_mut(place) else { continue };
            if stream.pending.is_empty() {
                let span = stream.span(stream.unmarked_ns > 0, now);
                let (taken, before) = (stream.look(), std::mem::take(&mut stream.unmarked_ns));
                // The call waited for the work, apart from its own way back to the program.
                let (from, until) = (stream.since.max(began), now.saturating_sub(RETURN_NS));
                let certain = (from < until).then_some(Certain { from, until, part: Part::Rest });
                (stream.since, stream.synced) = (now, true);
                let worth = self.account(taken, now).saturating_add(before);
                // No event shows that a batch was in flight.
                if !self.is_in_flight() {
                    self.was_in_flight_ns = self.was_in_flight_ns.saturating_add(worth);
                }
                if worth > 0 {
                    self.settle(worth, Done { span, work_ns: worth, certain }, now);
                }
            }
        }
    }

    /// Separates earlier launches from later ones: something that is not work of the device comes between. Returns
    /// whether an event recorded now would show when the earlier launches ended.
    #[must_use]
    pub fn fence(&mut self, stream: StreamId, now: u64) -> bool {
        let place = usize::from(stream.0);
        let taken_ns = self.close_allowances_of(place, now);
        if let Some(stream) = self.streams.get_mut(place) {
            stream.unmarked_ns = stream.unmarked_ns.saturating_add(taken_ns);
        }
        self.wants_mark(stream)
    }

    /// Records that the stream's handle is gone. Its work may still run and is settled when its events are reached.
    /// For work without an event, call [`fence`](Self::fence) first and record the mark.
    pub fn stream_destroyed(&mut self, stream: StreamId, now: u64) {
        let place = usize::from(stream.0);
        let taken_ns = self.close_allowances_of(place, now);
        let Some(stream) = self.streams.get_mut(place) else { return };
        stream.open = false;
        stream.allowances.clear();
        let worth = taken_ns.saturating_add(std::mem::take(&mut stream.unmarked_ns));
        self.settle(worth, Done::estimated(worth), now);
    }
}
