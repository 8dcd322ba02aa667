//! What is over as the host sees it: a wait that came back, a stream that goes, work that something else follows.

use super::Meter;
use crate::throttle::{
    Events,
    settlement::{Certain, Done, Part},
    stream::StreamId,
};

/// So long after the end of the work a call that waits for it returns, at the latest.
const RETURN_NS: u64 = 100_000;

impl<E> Meter<'_, E> {
    /// A call returned at `now` that waits until this stream is empty, and had waited since `began`; without a stream, until
    /// all of the device's are.
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
            self.harvest_stream(place, now, events);
            let Some(stream) = self.streams.get_mut(place) else { continue };
            if stream.pending.is_empty() {
                let span = stream.span(stream.unmarked_ns > 0, now);
                let (taken, before) = (stream.look(), std::mem::take(&mut stream.unmarked_ns));
                // What the call found it waited for, but for the way back to the program.
                let (from, until) = (stream.since.max(began), now.saturating_sub(RETURN_NS));
                let certain = (from < until).then_some(Certain { from, until, part: Part::Rest });
                (stream.since, stream.synced) = (now, true);
                let worth = self.account(taken, now).saturating_add(before);
                // Of a batch no event says that it was out.
                if !self.is_out() {
                    self.was_out_ns = self.was_out_ns.saturating_add(worth);
                }
                if worth > 0 {
                    self.settle(worth, Done { span, work_ns: worth, certain }, now);
                }
            }
        }
    }

    /// Nothing that was launched so far shares a batch with what is launched from here on: something that is no work of
    /// the device comes between. Whether an event, recorded now, would tell when it was over.
    #[must_use]
    pub fn fence(&mut self, stream: StreamId, now: u64) -> bool {
        let place = usize::from(stream.0);
        let taken_ns = self.close_batches_of(place, now);
        if let Some(stream) = self.streams.get_mut(place) {
            stream.unmarked_ns = stream.unmarked_ns.saturating_add(taken_ns);
        }
        self.wants_mark(stream)
    }

    /// The stream's handle is gone. Its work may still run: it is settled when its events tell. For what no event tells of,
    /// ask for a mark [before](Self::fence).
    pub fn stream_destroyed(&mut self, stream: StreamId, now: u64) {
        let place = usize::from(stream.0);
        let taken_ns = self.close_batches_of(place, now);
        let Some(stream) = self.streams.get_mut(place) else { return };
        stream.open = false;
        stream.leases.clear();
        let worth = taken_ns.saturating_add(std::mem::take(&mut stream.unmarked_ns));
        self.settle(worth, Done::estimated(worth), now);
    }
}
