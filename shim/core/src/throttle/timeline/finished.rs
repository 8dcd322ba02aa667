//! What has ended in a stream, in its order, and what its events say about it.

use super::{
    Timeline,
    done::{Certain, Done, Part, Span},
    outcome::{Finished, Measured},
    stream::{Operation, Pending, Reserved, StreamId},
};
use crate::throttle::event::{Events, Reached};

/// A stream's events are in order: one that is this much earlier than its predecessor is of another clock.
const CLOCK_STEP_NS: u64 = 1_000_000;
/// A stream that is idle for this long between two operations has left the device to others.
const IDLE_NS: u64 = 10_000;
/// A measurement counts as undisturbed if peers can have had at most this fraction of it. Without this, two that borrow,
/// `W2 40 ms kernel, sync beside W8 10 us, sync, [70, 30]` (`lending mixes`), get 88 and 8 % in place of 76 and 16.
const ALONE_PART: u64 = 16;

impl<E> Timeline<E> {
    /// Returns the next piece of work of a stream that has ended, in order.
    pub(crate) fn finished(
        &mut self,
        id: StreamId,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) -> Option<Finished> {
        loop {
            let stream = self.streams.get_mut(usize::from(id.0))?;
            let front = stream.pending.front_mut()?;
            // The mark comes first: while it is pending, so is everything behind it.
            let reached = match (&front.mark, &front.operation) {
                (Some(mark), _) => events.reached(mark),
                (None, Some(operation)) => events.reached(&operation.after),
                (None, None) => Reached::Lost,
            };
            if let Reached::At(at) | Reached::Ended(at) = reached {
                self.reached_at = self.reached_at.max(at);
            }
            if reached != Reached::Pending {
                (stream.moved_at, self.progress_at) = (now, now);
            }
            match reached {
                Reached::Pending => return None,
                Reached::At(at) if front.behind.is_some() => {
                    let asked = front.behind.unwrap_or(at);
                    front.mark.take().into_iter().for_each(|event| events.give_back(event));
                    // Recorded while the operation still ran: the device reached both as fast as it can.
                    let distance = at.checked_sub(stream.since).filter(|_| stream.since > asked);
                    distance.into_iter().for_each(|distance| self.spacing.note(distance));
                    stream.since = at;
                    self.take_front(id, now);
                }
                Reached::At(at) if front.mark.is_some() => {
                    front.mark.take().into_iter().for_each(|event| events.give_back(event));
                    let has_ended = front.operation.is_none();
                    let batch = self.reached_mark(id, at);
                    if has_ended {
                        self.take_front(id, now);
                    }
                    if batch.is_some() {
                        return batch;
                    }
                }
                Reached::At(at) => {
                    let pending = self.take_front(id, now)?;
                    let measured = self.measured(id, &pending, at)?;
                    let Operation { after, cost, .. } = pending.operation?;
                    events.give_back(after);
                    return Some(Finished::Operation { cost, measured });
                }
                Reached::Ended(at) => {
                    let pending = self.take_front(id, now)?;
                    let reserved_ns = pending.reserved_ns();
                    let done = self.until_the_end(id, &pending, at)?;
                    let cost = give_up(pending, events);
                    return Some(Finished::Unmeasured { cost, reserved_ns, done });
                }
                Reached::Lost => {
                    let began = stream.at_front_since().filter(|began| *began < now);
                    let pending = self.take_front(id, now)?;
                    let reserved_ns = pending.reserved_ns();
                    let cost = give_up(pending, events);
                    // A kernel that fails takes its context along, and no event of that says when.
                    let done = began.map_or_else(
                        || Done::estimated(reserved_ns),
                        |began| self.due_between(began, now),
                    );
                    return Some(Finished::Unmeasured { cost, reserved_ns, done });
                }
            }
        }
    }

    /// Handles the mark at the front of a stream. Returns the batch before it, if there was any.
    fn reached_mark(&mut self, id: StreamId, at: u64) -> Option<Finished> {
        let stream = self.streams.get_mut(usize::from(id.0))?;
        let front = stream.pending.front_mut()?;
        front.marked_at = at;
        self.late_over_ns =
            self.late_over_ns.saturating_add(front.late.take().map_or(0, |late| late.ns));
        let (reserved_ns, queued_at) = (std::mem::take(&mut front.batch_ns), front.queued_at);
        let seen = front.seen.take();
        let is_idle = reserved_ns == 0 && at.saturating_sub(stream.since) >= IDLE_NS;
        front.idle_since = is_idle.then_some(stream.since);
        let waited = front.waited;
        let (since, span) = (stream.since, stream.span(waited, at));
        // All of the batch was queued before the device was past it, so the device never waited for a launch: its turns
        // in the mean are certain. Without this, `T10 1 in 100 takes 1280 us` misses its bound at 50 % beside 40; if
        // they were for a batch in an empty stream too, `T10 5 of around 5 us, then a wait` would at 30 %.
        let part = if since >= queued_at { Part::Turns } else { Part::Rest };
        let from = seen.map_or(queued_at, |(from, _)| from).max(since);
        let until = seen.filter(|_| at <= queued_at).map_or(at, |(_, until)| until.min(at));
        let certain = (from < until).then_some(Certain { from, until, part });
        (stream.since, stream.synced) = (at, false);
        self.has_clock_moved |= at.saturating_add(CLOCK_STEP_NS) < since;
        let done = Done { span, work_ns: reserved_ns, certain };
        (reserved_ns > 0).then_some(Finished::Batch { reserved_ns, done })
    }

    /// Returns what the events of an operation that ended at `end` say about it.
    fn measured(&mut self, id: StreamId, pending: &Pending<E>, end: u64) -> Option<Measured> {
        let returned = pending.operation.as_ref()?.returned;
        let is_clean = pending.marked_at > returned;
        // From this time the device had nothing of the stream: any later wait was for other processes. Without this,
        // `T3 two containers, 1 ms, waited for, 30/70` misses its bound.
        let waited_since = match (is_clean, pending.idle_since) {
            (true, None) => None,
            (_, since) => Some(since.unwrap_or(0).max(returned)),
        };
        let stream = self.streams.get_mut(usize::from(id.0))?;
        // On an empty stream the event before the operation is reached before the operation arrives at the device,
        // which is when the call returns. If the call waited for the end, or its thread was held up, its return says
        // nothing.
        let arrived = Some(returned).filter(|returned| *returned < end);
        let start = stream.since.max(arrived.unwrap_or(0));
        stream.since = end;
        let took_ns = end.saturating_sub(start);
        let least_ns = self.turns.at_least(start, end);
        let is_alone = least_ns >= took_ns - took_ns / ALONE_PART;
        // The turns of other processes lie before it too, if it waited for its own: part of that time was its own.
        let turns_ns = self.turns.of(waited_since.unwrap_or(start).min(start), end);
        let own_ns = turns_ns.min(took_ns);
        // Nothing else of the process that is known of can be what it waited for.
        let is_only = self.pending == stream.pending.len() && !pending.fenced;
        let waited_ns = match waited_since {
            Some(since) if is_only => pending.marked_at.saturating_sub(since),
            _ => 0,
        };
        let off = |ns| if is_clean { self.spacing.off(ns) } else { ns }.max(1);
        Some(Measured {
            start,
            end,
            whole_ns: off(took_ns),
            own_ns: off(own_ns),
            least_ns: off(least_ns).min(off(took_ns)),
            turns_ns: off(turns_ns),
            waited_ns,
            is_clean,
            is_queued: waited_since.is_none(),
            is_alone,
            is_explained: !is_alone && own_ns < took_ns / 8 * 7,
        })
    }

    /// Returns what is charged for what was in flight when its context ended: all the time since the device can have
    /// begun it, whatever its estimate. The driver waits for such work, or stops it; until then it ran.
    /// If its estimate counted, `T1 a context for each kernel, 50 ms`, 10, would get 88 points more than its bound.
    fn until_the_end(&mut self, id: StreamId, pending: &Pending<E>, at: u64) -> Option<Done> {
        let returned = pending.operation.as_ref().map_or(0, |operation| operation.returned);
        // The mark was never reached: the batch before it may have run as long as the operation did.
        let queued_at = if pending.mark.is_some() { pending.queued_at } else { returned };
        let queued_at = pending.seen.map_or(queued_at, |(from, _)| queued_at.min(from));
        let stream = self.streams.get_mut(usize::from(id.0))?;
        let start = stream.since.max(queued_at).min(at);
        stream.since = stream.since.max(at);
        Some(self.due_between(start, at))
    }

    /// Returns what is due for work that the device was at from the one moment to the other.
    fn due_between(&self, start: u64, end: u64) -> Done {
        let work_ns = self.turns.of(start, end);
        let certain = Some(Certain { from: start, until: end, part: Part::Turns });
        Done { span: Span::Operation(start, end), work_ns, certain }
    }
}

/// Gives back the events of what will never be measured. Returns the cost of the operation, if it was one.
fn give_up<E>(pending: Pending<E>, events: &mut impl Events<Event = E>) -> Option<Reserved> {
    let Pending { mark, operation, .. } = pending;
    let cost = operation.as_ref().map(|operation| operation.cost);
    let after = operation.map(|operation| operation.after);
    mark.into_iter().chain(after).for_each(|event| events.give_back(event));
    cost
}
