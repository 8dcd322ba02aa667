//! What has finished, and what it was worth.

use super::Meter;
use crate::throttle::{
    Events, Reached, Signature,
    costs::{Estimate, Sample},
    settlement::{Done, Span},
    stream::{Operation, Pending, Reserved, StreamId},
};

/// A stream's events are in order: one that is this much before the one before it is told by another clock.
const CLOCK_STEP_NS: u64 = 1_000_000;
/// A stream that does nothing for so long between two operations has left the device to others.
const IDLE_NS: u64 = 10_000;
/// Streams that one harvest looks at.
const HARVEST: usize = 16;

/// How an operation found its stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Busy: it began when the device was ready for it.
    clean: bool,
    /// Its process had nothing on the device, as far as the stream tells, and had to wait for its turn.
    is_first: bool,
}

impl<E> Meter<'_, E> {
    /// Settles what has finished: on this stream, and on some others in turn.
    pub(super) fn harvest(
        &mut self,
        first: Option<StreamId>,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        if self.pending == 0 {
            return;
        }
        if let Some(StreamId(place)) = first {
            self.harvest_stream(usize::from(place), now, events);
        }
        for _ in 0..self.streams.len().min(HARVEST) {
            self.next = (self.next + 1) % self.streams.len();
            self.harvest_stream(self.next, now, events);
        }
    }

    pub(super) fn harvest_stream(
        &mut self,
        place: usize,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        while let Some(stream) = self.streams.get_mut(place) {
            let Some(front) = stream.pending.front_mut() else { return };
            // The mark comes first: while it is pending, so is all that follows.
            let reached = match (&front.mark, &front.operation) {
                (Some(mark), _) => events.reached(mark),
                (None, Some(operation)) => events.reached(&operation.after),
                (None, None) => Reached::Lost,
            };
            if let Reached::At(at) = reached {
                self.reached_at = self.reached_at.max(at);
            }
            match reached {
                Reached::Pending => return,
                Reached::At(at) if front.behind.is_some() => {
                    let asked = front.behind.unwrap_or(at);
                    front.mark.take().into_iter().for_each(|event| events.give_back(event));
                    // Asked for while the operation still ran: the device came to both as fast as it can.
                    let distance = at.checked_sub(stream.since).filter(|_| stream.since > asked);
                    distance.into_iter().for_each(|distance| self.spacing.note(distance));
                    stream.since = at;
                    self.take_front(place, now);
                }
                Reached::At(at) if front.mark.is_some() => {
                    front.marked_at = at;
                    front.mark.take().into_iter().for_each(|event| events.give_back(event));
                    let reserved = std::mem::take(&mut front.batch_ns);
                    front.idle = reserved == 0 && at.saturating_sub(stream.since) >= IDLE_NS;
                    let (over, waited) = (front.operation.is_none(), front.waited);
                    let (since, span) = (stream.since, stream.span(waited, at));
                    let work_ns = stream.worth(reserved, at.saturating_sub(since));
                    (stream.since, stream.synced) = (at, false);
                    if at.saturating_add(CLOCK_STEP_NS) < since {
                        self.settlement.clock_moved();
                    }
                    if reserved > 0 {
                        self.settle(reserved, Done { span, work_ns }, now);
                    }
                    if over {
                        self.take_front(place, now);
                    }
                }
                Reached::At(at) => {
                    if let Some(pending) = self.take_front(place, now)
                        && let Some(operation) = pending.operation
                    {
                        let clean = pending.marked_at > operation.returned;
                        let found = Found { clean, is_first: !clean || pending.idle };
                        self.finish(place, &operation, at, found, now);
                        events.give_back(operation.after);
                    }
                }
                Reached::Lost => {
                    if let Some(Pending { mark, operation, batch_ns, .. }) =
                        self.take_front(place, now)
                    {
                        let cost = operation.as_ref().map(|operation| operation.cost);
                        let reserved = cost.map_or(0, |cost| cost.ns);
                        if let Some(cost) = cost {
                            self.take_back_guess(cost);
                            self.collective_ended(cost, now, now);
                        }
                        let worth = batch_ns.saturating_add(reserved);
                        self.settle(worth, Done { span: Span::Unknown, work_ns: worth }, now);
                        let after = operation.map(|operation| operation.after);
                        mark.into_iter().chain(after).for_each(|event| events.give_back(event));
                    }
                }
            }
            self.progress_at = now;
        }
    }

    pub(super) fn take_front(&mut self, place: usize, now: u64) -> Option<Pending<E>> {
        self.progress_at = now;
        self.pending = self.pending.saturating_sub(1);
        self.may_be_over(now);
        self.streams.get_mut(place)?.pending.pop_front()
    }

    /// Settles an operation that ended at `end`.
    pub(super) fn finish(
        &mut self,
        place: usize,
        operation: &Operation<E>,
        end: u64,
        Found { clean, is_first }: Found,
        now: u64,
    ) {
        let Reserved { signature, ns: reserved, is_collective, .. } = operation.cost;
        self.collective_ended(operation.cost, end, now);
        let Some(stream) = self.streams.get_mut(place) else { return };
        // On an empty stream the event before it is reached before the operation arrives at the device, which is when
        // the call returns: unless the call waited for the end, or its thread was held up, and says nothing.
        let arrived = Some(operation.returned).filter(|returned| *returned < end);
        let start = stream.since.max(arrived.unwrap_or(0));
        stream.since = end;
        let measured = self.turns.own(start, end, is_first);
        let explained = self.turns.explain(start, end);
        let off = |ns| if clean { self.spacing.off(ns) } else { ns }.max(1);
        let (sample, taught) = (off(measured), off(self.turns.alone(start, end, is_first)));
        let first = !matches!(self.costs.estimate(signature), Estimate::Measured(_));
        let small = self.costs.small(signature).filter(|_| !self.settlement.is_doubtful(now));
        stream.note(sample, reserved);
        if let Some(expected) = small
            && clean
            && !is_collective
            && !explained
        {
            self.settlement.saw_single(u64::from(expected), sample, now);
        }
        self.costs.learn(signature, Sample { ns: taught, clean, is_collective, explained });
        let work_ns = small.map_or(sample, u64::from);
        self.settle(reserved, Done { span: Span::Operation(start, end), work_ns }, now);
        if first {
            self.reprice(signature, taught, now);
        }
    }

    /// The first measurement of a signature takes the place of the guesses that its other launches reserved.
    pub(super) fn reprice(&mut self, signature: Signature, sample: u64, now: u64) {
        let mut guessed: u64 = 0;
        let mut worth: u64 = 0;
        let pending = self.streams.iter_mut().flat_map(|stream| &mut stream.pending);
        for operation in pending.filter_map(|pending| pending.operation.as_mut()) {
            let cost = &mut operation.cost;
            if cost.unmeasured && cost.signature == signature {
                guessed = guessed.saturating_add(cost.ns);
                worth = worth.saturating_add(sample);
                (cost.ns, cost.unmeasured) = (sample, false);
            }
        }
        self.release(guessed);
        self.reserve(worth, now);
    }

    pub(super) fn settle(&mut self, reserved_ns: u64, done: Done, now: u64) {
        let due = self.settlement.settle(done, &self.turns, now);
        self.totals.busy_ns = self.totals.busy_ns.saturating_add(due);
        self.out_ns = self.out_ns.saturating_sub(reserved_ns);
        if due > reserved_ns {
            self.bucket.charge(due - reserved_ns, now);
        } else {
            self.bucket.refund(reserved_ns - due);
        }
    }

    pub(super) fn reserve(&mut self, ns: u64, now: u64) {
        self.out_ns = self.out_ns.saturating_add(ns);
        self.bucket.charge(ns, now);
    }

    pub(super) fn release(&mut self, ns: u64) {
        self.out_ns = self.out_ns.saturating_sub(ns);
        self.bucket.refund(ns);
    }
}
