//! Collects finished work and computes what it is charged.

use super::Meter;
use crate::throttle::{
    BIG_NS, Events, Reached,
    costs::{OUTLIER, Sample},
    settlement::{Certain, Done, Part, Span},
    stream::{Operation, Pending, Reserved, StreamId},
};

/// A stream's events are in order: one that is this much earlier than its predecessor is of another clock.
const CLOCK_STEP_NS: u64 = 1_000_000;
/// A stream that is idle for this long between two operations has left the device to others.
const IDLE_NS: u64 = 10_000;
/// A measurement counts as undisturbed if peers can have had at most this fraction of it. Without this,
/// `W2 40 ms kernels` miss their bound at 50 % beside kernels of 300 us at 50 %.
const ALONE_PART: u64 = 16;
/// At most one turn is carried over to later measurements.
const SAVED_NS: u64 = 2_000_000;
/// For how long a launch that took far longer than expected is taken to come again.
const LATELY_NS: u64 = 10_000_000_000;
/// The number of streams that one pass collects.
const STREAMS_PER_PASS: usize = 16;

/// The state in which an operation found its stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Busy: the operation began when the device was ready for it.
    clean: bool,
    /// From this time the device had nothing of the stream: any later wait was for other processes. Without this,
    /// `W13 4 processes x 10 us` misses its bound at 30 % of the device.
    waited_since: Option<u64>,
}

impl<E> Meter<'_, E> {
    /// Settles what has finished: on this stream, and on some others in rotation.
    pub(super) fn collect_finished(
        &mut self,
        first: Option<StreamId>,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        if self.pending == 0 {
            return;
        }
        if let Some(StreamId(place)) = first {
            self.collect_finished_in(usize::from(place), now, events);
        }
        for _ in 0..self.streams.len().min(STREAMS_PER_PASS) {
            self.next = (self.next + 1) % self.streams.len();
            self.collect_finished_in(self.next, now, events);
        }
    }

    pub(super) fn collect_finished_in(
        &mut self,
        place: usize,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        while let Some(stream) = self.streams.get_mut(place) {
            let Some(front) = stream.pending.front_mut() else { return };
            // The mark comes first: while it is pending, so is everything behind it.
            let reached = match (&front.mark, &front.operation) {
                (Some(mark), _) => events.reached(mark),
                (None, Some(operation)) => events.reached(&operation.after),
                (None, None) => Reached::Lost,
            };
            if let Reached::At(at) | Reached::Ended(at) = reached {
                self.reached_at = self.reached_at.max(at);
            }
            if reached == Reached::Pending {
                return;
            }
            stream.moved_at = now;
            match reached {
                Reached::Pending => return,
                Reached::At(at) if front.behind.is_some() => {
                    let asked = front.behind.unwrap_or(at);
                    front.mark.take().into_iter().for_each(|event| events.give_back(event));
                    // Recorded while the operation still ran: the device reached both as fast as it can.
                    let distance = at.checked_sub(stream.since).filter(|_| stream.since > asked);
                    distance.into_iter().for_each(|distance| self.spacing.note(distance));
                    stream.since = at;
                    self.take_front(place, now);
                }
                Reached::At(at) if front.mark.is_some() => {
                    front.marked_at = at;
                    front.mark.take().into_iter().for_each(|event| events.give_back(event));
                    let (reserved, queued_at) =
                        (std::mem::take(&mut front.batch_ns), front.queued_at);
                    let is_idle = reserved == 0 && at.saturating_sub(stream.since) >= IDLE_NS;
                    front.idle_since = is_idle.then_some(stream.since);
                    let (over, waited) = (front.operation.is_none(), front.waited);
                    let (since, span) = (stream.since, stream.span(waited, at));
                    // All of the batch was queued before the device was past it, so the device never waited for a
                    // launch.
                    let part = if since >= queued_at { Part::Turns } else { Part::Rest };
                    let from = since.max(queued_at);
                    let certain = (from < at).then_some(Certain { from, until: at, part });
                    (stream.since, stream.synced) = (at, false);
                    if at.saturating_add(CLOCK_STEP_NS) < since {
                        self.settlement.clock_moved(self.gang.account());
                    }
                    if reserved > 0 {
                        self.settle(reserved, Done { span, work_ns: reserved, certain }, now);
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
                        let waited_since = match (clean, pending.idle_since) {
                            (true, None) => None,
                            (_, since) => Some(since.unwrap_or(0).max(operation.returned)),
                        };
                        self.finish(place, &operation, at, Found { clean, waited_since }, now);
                        events.give_back(operation.after);
                    }
                }
                Reached::Ended(at) => {
                    if let Some(pending) = self.take_front(place, now) {
                        self.end(place, pending, at, now, events);
                    }
                }
                Reached::Lost => {
                    if let Some(pending) = self.take_front(place, now) {
                        let worth = pending.reserved_ns();
                        self.give_up(pending, now, events);
                        self.settle(worth, Done::estimated(worth), now);
                    }
                }
            }
            self.progress_at = now;
        }
    }

    /// Settles what was in flight when its context ended: it is charged all the time since the device can have begun
    /// it, whatever its estimate. The driver waits for such work, or stops it; until then it ran.
    fn end(
        &mut self,
        place: usize,
        pending: Pending<E>,
        at: u64,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        let reserved = pending.reserved_ns();
        let returned = pending.operation.as_ref().map_or(0, |operation| operation.returned);
        // The mark was never reached: the batch before it may have run as long as the operation did.
        let queued_at = if pending.mark.is_some() { pending.queued_at } else { returned };
        self.give_up(pending, now, events);
        let Some(stream) = self.streams.get_mut(place) else { return };
        let start = stream.since.max(queued_at).min(at);
        stream.since = stream.since.max(at);
        let work_ns = self.turns.of(start, at);
        let certain = Some(Certain { from: start, until: at, part: Part::Turns });
        let done = Done { span: Span::Operation(start, at), work_ns, certain };
        self.settle(reserved, done, now);
    }

    /// Settles an operation that will never be measured.
    fn give_up(&mut self, pending: Pending<E>, now: u64, events: &mut impl Events<Event = E>) {
        let Pending { mark, operation, .. } = pending;
        operation.iter().for_each(|operation| self.is_over(operation.cost, now, now));
        let after = operation.map(|operation| operation.after);
        mark.into_iter().chain(after).for_each(|event| events.give_back(event));
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
        Found { clean, waited_since }: Found,
        now: u64,
    ) {
        let Reserved { signature, ns: reserved, is_collective, .. } = operation.cost;
        self.is_over(operation.cost, end, now);
        let Some(stream) = self.streams.get_mut(place) else { return };
        // On an empty stream the event before the operation is reached before the operation arrives at the device,
        // which is when the call returns. If the call waited for the end, or its thread was held up, its return says
        // nothing.
        let arrived = Some(operation.returned).filter(|returned| *returned < end);
        let start = stream.since.max(arrived.unwrap_or(0));
        stream.since = end;
        let took = end.saturating_sub(start);
        let least = self.turns.at_least(start, end);
        let is_alone = least >= took - took / ALONE_PART;
        // The turns of other processes lie before it too, if it waited for its own: part of that time was its own.
        let turns = self.turns.of(waited_since.unwrap_or(start).min(start), end);
        let own = turns.min(took);
        let off = |ns| if clean { self.spacing.off(ns) } else { ns }.max(1);
        // A short operation behind other work of its stream seldom meets the end of a turn.
        let is_queued = waited_since.is_none();
        let is_whole = is_queued && took < BIG_NS;
        self.steady.note(signature, off(took), off(if is_whole { took } else { turns }));
        let steady = self.steady.time(signature).filter(|time| {
            // No wait for a turn takes that long: the operation has another length. Without this,
            // `T10 1 in 50 takes 50 ms, others 300 us, 30, beside 40` gets up to 11 points more than its share.
            took < self.turns.longest_wait_ns() || took / OUTLIER < *time
        });
        let (whole, least) = (off(took), off(least).min(off(took)));
        let sample = match steady {
            _ if is_alone => whole,
            Some(time) => self.known(time.min(whole), least),
            None if is_whole => whole,
            None => off(own),
        };
        let explained = !is_alone && own < took / 8 * 7;
        let far_beyond = self.costs.estimate(signature).is_some_and(|mean| sample / OUTLIER > mean);
        // Shorter ones may have waited for a turn.
        if far_beyond && took >= self.turns.longest_wait_ns() {
            self.long_until = now.saturating_add(LATELY_NS);
        }
        let small = self.costs.small(signature).filter(|_| !self.settlement.is_doubtful(now));
        if let Some(expected) = small
            && clean
            && !is_collective
            && !explained
        {
            self.settlement.saw_single(u64::from(expected), sample, now);
        }
        self.costs.learn(signature, Sample { ns: sample, clean, is_collective, explained });
        let work_ns = small.map_or(sample, u64::from);
        // The measurement contains the distance of two events, which is not work.
        let from = start.saturating_add(took - whole.min(took));
        let certain = Some(Certain { from, until: end, part: Part::Known(sample) });
        self.settle(reserved, Done { span: Span::Operation(start, end), work_ns, certain }, now);
    }

    /// Returns the cost of a steady operation: its usual time, but at least what the peers' reports leave to this
    /// process. The reports are late, so a minimum above the usual time is first set against earlier ones below it.
    /// Without this, kernels of 300 us at 30 % beside the same at 70 % are charged less than their bound allows.
    fn known(&mut self, time_ns: u64, least_ns: u64) -> u64 {
        let saved_ns = self.saved_ns.saturating_add(time_ns.saturating_sub(least_ns));
        let missing_ns = least_ns.saturating_sub(time_ns);
        self.saved_ns = saved_ns.saturating_sub(missing_ns).min(SAVED_NS);
        time_ns.saturating_add(missing_ns.saturating_sub(saved_ns))
    }

    pub(super) fn settle(&mut self, reserved_ns: u64, done: Done, now: u64) {
        let due = self.settlement.settle(done, &self.turns, self.gang.account(), now);
        self.totals.busy_ns = self.totals.busy_ns.saturating_add(due);
        self.in_flight_ns = self.in_flight_ns.saturating_sub(reserved_ns);
        if due > reserved_ns {
            self.shares.charge(due - reserved_ns, now);
        } else {
            self.shares.refund(reserved_ns - due);
        }
    }

    pub(super) fn reserve(&mut self, ns: u64, now: u64) {
        self.in_flight_ns = self.in_flight_ns.saturating_add(ns);
        self.shares.charge(ns, now);
    }

    pub(super) fn release(&mut self, ns: u64) {
        self.in_flight_ns = self.in_flight_ns.saturating_sub(ns);
        self.shares.refund(ns);
    }
}
