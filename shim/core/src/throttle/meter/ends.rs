//! Ends of work as the host sees them: a wait that returned, a stream that is destroyed, work that something else
//! follows.

use super::Meter;
use crate::throttle::{
    allowance::Taken,
    event::Events,
    timeline::{done::Done, stream::StreamId},
};

/// A call that waits for work returns at most this long after the work's end.
const RETURN_NS: u64 = 100_000;

impl<E> Meter<'_, E> {
    /// Records that a thread begins to wait in a call of the driver for work to end. Peers that borrow leave this
    /// container its guarantee as long as it waits.
    pub fn wait_begins(&mut self) {
        self.timeline.wait_begins();
    }

    /// Records that a call has returned whose wait had [begun](Self::wait_begins).
    pub fn wait_ends(&mut self) {
        self.timeline.wait_ends();
    }

    /// Records that a call that waits until these streams are empty returned at `now`, having waited since `began`.
    /// Settles what has finished in others too: a process that dies from here on owes nothing for it.
    pub fn sync_returned(
        &mut self,
        streams: impl IntoIterator<Item = StreamId>,
        began: u64,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        self.note_late_look(now);
        // The call waited for the work, apart from its own way back to the program.
        let waited = (began, now.saturating_sub(RETURN_NS));
        streams.into_iter().for_each(|stream| self.emptied(stream, waited, now, events));
        self.settle_finished(now, events);
    }

    /// A stream is empty, and had work from the one moment to the other.
    pub(super) fn emptied(
        &mut self,
        id: StreamId,
        had_work: (u64, u64),
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        self.collect_in(id, now, events);
        let Some((span, certain)) = self.timeline.emptied(id, had_work, now) else { return };
        let was_seen = self.timeline.unmarked_over(id);
        self.admission.forget_late(self.timeline.take_late_over());
        let Some(stream) = self.timeline.stream_mut(id) else { return };
        let (taken, before) = (stream.newly_taken(), std::mem::take(&mut stream.unmarked_ns));
        let work_ns = self.admission.account_for(taken, now).saturating_add(before);
        if work_ns > 0 || was_seen {
            // No event shows that a batch was in flight.
            self.timeline.was_in_flight(work_ns, certain, now);
            self.settle(work_ns, Done { span, work_ns, certain }, now);
        }
    }

    /// Separates earlier launches from later ones: something that is not work of the device comes between. Returns
    /// whether an event recorded now would show when the earlier launches ended: pass it to
    /// [`marked`](Self::marked).
    #[must_use]
    pub fn fence(&mut self, stream: StreamId, now: u64) -> bool {
        self.note_late_look(now);
        self.close_allowances_of(stream, now);
        if let Some(stream) = self.timeline.stream_mut(stream) {
            (stream.fenced, stream.fenced_at) = (true, now);
        }
        self.wants_mark(stream)
    }

    /// Records that the stream's handle is gone. Its work may still run and is settled when its events are reached.
    /// For work without an event, call [`fence`](Self::fence) first and record the mark.
    pub fn stream_destroyed(&mut self, id: StreamId, now: u64) {
        self.close_allowances_of(id, now);
        let Some(stream) = self.timeline.stream_mut(id) else { return };
        let mut late = Taken::default();
        if !stream.is_shared {
            stream.open = false;
            late = stream.all_taken();
            stream.allowances.clear();
        }
        let worth = std::mem::take(&mut stream.unmarked_ns);
        let worth = self.admission.account_for(late, now).saturating_add(worth);
        let done = self.timeline.seen_unmarked(id).unwrap_or_else(|| Done::estimated(worth));
        self.timeline.unmarked_over(id);
        self.admission.forget_late(self.timeline.take_late_over());
        self.settle(worth, done, now);
    }

    /// As [`stream_destroyed`](Self::stream_destroyed), for a stream that was first used while its context ended: all that it
    /// had, it had since then, and has no more.
    pub fn ended_with_context(
        &mut self,
        id: StreamId,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        if let Some(since) = self.timeline.stream(id).map(|stream| stream.since) {
            self.emptied(id, (since, now), now, events);
        }
        self.stream_destroyed(id, now);
    }

    pub(super) fn close_allowances_of(&mut self, stream: StreamId, now: u64) {
        let Self { admission, timeline, .. } = self;
        let stream = timeline.stream_mut(stream).into_iter();
        stream.for_each(|stream| admission.close_allowances_of(stream, now));
    }
}
