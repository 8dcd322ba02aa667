//! The slow path: launches that did not fit their stream's batch. One meter per process and device.
//!
//! It has three parts, and passes between them what each decides:
//!
//! ```text
//! launch -> Admission: may it go, and what is reserved for it?
//!        -> Timeline:  what did the device do for this process, and when?
//!        -> Charging:  what does that cost, and what of it is due?  -> Admission: reserved out, due in
//! ```
//!
//! The caller holds one lock around it, and lets go of it while it waits or calls the driver:
//!
//! ```text
//! loop  before_launch -> Wait { until, wants_mark }   unlock, mark the stream's end if wanted, sleep, again
//!                     -> Admit(permit)                unlock
//!       record an event, launch, record an event (if permit.wants_events())
//!       launched(permit, time, events) -> whether to record a third event for spaced
//!       or  refused(permit), if the driver failed
//! ```
//!
//! Each reservation is settled exactly once: by its events, or at its estimate where it has none. The reserved and
//! unsettled time is at most the bucket and one operation, which bounds the error that a wrong estimate can cause.

mod ends;
mod reports;
mod watch;

use std::sync::Arc;

use super::{
    admission::{Admission, bucket::Bucket, gang::Gang, reserve::Permit},
    allowance::Allowance,
    charging::{Charging, costs::Costs, settlement::Due},
    event::Events,
    signature::{Launch, Signature},
    timeline::turns::lending::UNKNOWN_LAUNCH_NS,
    timeline::{
        Timeline,
        done::Done,
        outcome::Finished,
        stream::{Operation, Pending, Reserved, StreamId},
    },
};
use crate::units::ComputeLimit;

/// The compute limit of one device, as one process enforces it.
#[derive(Debug)]
pub struct Meter<'a, E> {
    admission: Admission<'a>,
    timeline: Timeline<E>,
    charging: Charging,
    /// When it was last looked at without a call of the program, with the reports of others, and at all.
    watched_at: u64,
    looked_at: u64,
}

/// Whether a launch may go to the driver.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    /// Launch, then return the permit to [`Meter::launched`] or to [`Meter::refused`].
    Admit(Permit),
    /// Ask again.
    Wait {
        /// When: a time of the caller's clock, later than now.
        until: u64,
        /// An event recorded in the stream now would show when its work so far ends: pass it to [`Meter::marked`].
        /// Without it the meter estimates the end.
        wants_mark: bool,
    },
}

/// Counters since the meter was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Device time that was settled, and what [late](Meter::watch) work has taken so far. It may be less once that has ended.
    pub busy_ns: u64,
    /// The part of it beyond the guarantee.
    pub borrowed_ns: u64,
    /// Launches: those that went through the meter, and those of closed allowances.
    pub launches: u64,
    /// Launches that had to wait.
    pub waits: u64,
    /// Launches that were admitted only because nothing moved.
    pub stalls: u64,
}

impl<'a, E> Meter<'a, E> {
    /// Makes a meter on the bucket of a device.
    #[must_use]
    pub fn new(bucket: Bucket<'a>, now: u64) -> Self {
        Self {
            admission: Admission::new(bucket, now),
            timeline: Timeline::new(now),
            charging: Charging::default(),
            watched_at: 0,
            looked_at: 0,
        }
    }

    /// Adds the container's other devices and processes: processes may differ in their shares, and devices may meet.
    #[must_use]
    pub fn among(self, gang: Gang<'a>) -> Self {
        Self { admission: self.admission.among(gang), ..self }
    }

    /// The table of costs, for the fast path.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.charging.costs().clone()
    }

    /// Registers a stream.
    pub fn stream(&mut self, now: u64) -> StreamId {
        self.timeline.register(now)
    }

    /// Returns whether `launch` may go to the driver now. `allowance` is the calling thread's for this stream,
    /// the same one at each call: small launches after this one may then be paid out of it.
    pub fn before_launch(
        &mut self,
        stream: StreamId,
        allowance: &Arc<Allowance>,
        launch: Launch,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) -> Verdict {
        self.note_late_look(now);
        self.collect(Some(stream), now, events);
        if self.may_borrow() {
            let launch_ns = self.charging.costs().estimate(launch.signature);
            self.follow_lending(launch_ns.unwrap_or(UNKNOWN_LAUNCH_NS), now);
        }
        let Self { admission, timeline, charging, .. } = self;
        admission.follow_late(now, timeline, charging);
        let until = admission.waits_until(launch, now, timeline, charging);
        timeline.holds_back(admission.is_at_limit());
        if let Some(until) = until {
            return Verdict::Wait { until, wants_mark: self.wants_mark(stream) };
        }
        timeline.begins(now);
        Verdict::Admit(admission.admit(stream, allowance, launch, now, timeline, charging))
    }

    /// Records that the driver took the launch. `returned` is when its call returned: read the clock before recording
    /// the second event. `pair` are the events recorded before and after the launch; `None` if either is missing.
    /// Returns whether an event recorded right behind the second one would show the distance of two events: pass it
    /// to [`spaced`](Self::spaced).
    pub fn launched(
        &mut self,
        permit: Permit,
        returned: u64,
        pair: Option<[E; 2]>,
        events: &mut impl Events<Event = E>,
    ) -> bool {
        let Permit { stream, reserved, batch_ns, waited, .. } = permit;
        self.admission.launched(reserved);
        match pair {
            Some([before, after]) if self.timeline.has(stream) => {
                let operation = Some(Operation { after, returned, cost: reserved });
                let new = Pending::new(before, returned);
                let of = self.timeline.stream_mut(stream);
                let fenced = of.is_none_or(|stream| std::mem::take(&mut stream.fenced));
                let pending = Pending { batch_ns, waited, fenced, operation, ..new };
                self.timeline.push(stream, pending, returned);
                self.timeline.returns();
                self.timeline.wants_spacing()
            }
            pair => {
                pair.into_iter().flatten().for_each(|event| events.give_back(event));
                self.timeline.returns();
                self.admission.forget_launch(reserved, returned, returned);
                self.admission.forget_long(reserved);
                self.is_still_unmarked(stream, batch_ns.saturating_add(reserved.ns), returned);
                false
            }
        }
    }

    /// Records a launch that the driver took before it was admitted, and the events around it, if any: one of a tool that the
    /// driver called back while the caller held a lock, or one that was to be captured. `returned` is when the driver's call
    /// returned.
    pub fn launched_unheld(
        &mut self,
        stream: StreamId,
        launch: Launch,
        returned: u64,
        pair: Option<[E; 2]>,
        events: &mut impl Events<Event = E>,
    ) {
        let Self { admission, timeline, charging, .. } = self;
        let permit = admission.admit_unheld(stream, launch, returned, timeline, charging);
        timeline.begins(returned);
        let pair = if permit.wants_events() {
            pair
        } else {
            pair.into_iter().flatten().for_each(|event| events.give_back(event));
            None
        };
        self.launched(permit, returned, pair, events);
    }

    /// Records that the driver refused the launch: nothing of it stays charged. Recorded events are the caller's.
    pub fn refused(&mut self, permit: Permit, now: u64) {
        self.timeline.returns();
        self.admission.forget_launch(permit.reserved, now, now);
        self.admission.release_launch(permit.reserved, now);
        self.is_still_unmarked(permit.stream, permit.batch_ns, now);
    }

    /// No event came behind the launches before a launch: they may be in flight still.
    fn is_still_unmarked(&mut self, stream: StreamId, batch_ns: u64, now: u64) {
        match self.timeline.stream_mut(stream).filter(|stream| stream.open) {
            Some(stream) => stream.unmarked_ns = stream.unmarked_ns.saturating_add(batch_ns),
            None => self.settle(batch_ns, Done::estimated(batch_ns), now),
        }
        self.admission.note_unknown();
        self.timeline.may_be_over(now);
    }

    /// Takes the event that [`Verdict::Wait`] or [`fence`](Self::fence) asked for, recorded now.
    pub fn marked(
        &mut self,
        stream: StreamId,
        mark: E,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        match self.timeline.stream_mut(stream).filter(|stream| stream.unmarked_ns > 0) {
            Some(unmarked) => {
                let batch_ns = std::mem::take(&mut unmarked.unmarked_ns);
                self.timeline.push(stream, Pending { batch_ns, ..Pending::new(mark, now) }, now);
            }
            None => events.give_back(mark),
        }
    }

    /// Takes the event that [`launched`](Self::launched) asked for: recorded now, right behind the launch's own.
    pub fn spaced(
        &mut self,
        stream: StreamId,
        mark: E,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        if !self.timeline.has(stream) {
            return events.give_back(mark);
        }
        let pending = Pending { behind: Some(now), ..Pending::new(mark, now) };
        self.timeline.push(stream, pending, now);
    }

    /// Forgets the cost of a signature: its executable graph was updated, or its handle stands for something else.
    pub fn changed(&mut self, signature: Signature) {
        self.charging.forget(signature);
    }

    /// Changes the limit from now on.
    pub fn set_limit(&mut self, limit: ComputeLimit, now: u64) {
        self.admission.set_limit(limit, now);
        self.timeline.turns_mut().set_limit(limit);
    }

    /// Returns the counters since the meter was made.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        let [launches, waits, stalls] = self.admission.counts();
        let busy_ns = self.charging.due_ns().saturating_add(self.admission.late_ns());
        let borrowed_ns = self.admission.borrowed_ns();
        Totals { busy_ns, borrowed_ns, launches, waits, stalls }
    }

    /// Returns the time up to which the work in flight is paid for; `None` if none is in flight. A process that dies
    /// owes the time since then.
    #[must_use]
    pub fn paid_until(&self) -> Option<u64> {
        let due_ns = self.charging.due_ns();
        let since = self.timeline.busy_since(self.admission.is_unwatched(), due_ns)?;
        Some(since.saturating_add(self.admission.reserved_ns()))
    }

    /// Returns when no more is charged than has flowed in, provided that nothing changes; `now` if that is so.
    #[must_use]
    pub fn out_of_debt_at(&mut self, now: u64) -> u64 {
        self.admission.out_of_debt_at(now)
    }

    /// Settles what has finished. Launches do this anyway; this is for callers that need current totals.
    pub fn settle_finished(&mut self, now: u64, events: &mut impl Events<Event = E>) {
        self.collect(None, now, events);
    }

    /// Settles what has finished in every stream. Call it before some events can no longer be queried.
    pub fn settle_all(&mut self, now: u64, events: &mut impl Events<Event = E>) {
        self.timeline.ids().for_each(|stream| self.collect_in(stream, now, events));
    }

    /// Settles what has finished: on this stream, and on some others in rotation.
    fn collect(&mut self, first: Option<StreamId>, now: u64, events: &mut impl Events<Event = E>) {
        self.timeline.pass(first).for_each(|stream| self.collect_in(stream, now, events));
    }

    fn collect_in(&mut self, stream: StreamId, now: u64, events: &mut impl Events<Event = E>) {
        while let Some(finished) = self.timeline.finished(stream, now, events) {
            self.admission.forget_late(self.timeline.take_late_over());
            match finished {
                Finished::Batch { reserved_ns, done } => self.settle(reserved_ns, done, now),
                Finished::Operation { cost, measured } => {
                    self.admission.forget_launch(cost, measured.end, now);
                    let turns = self.timeline.turns();
                    let done = self.charging.operation(cost, &measured, turns, now);
                    self.settle_launch(cost, done, now);
                }
                Finished::Unmeasured { cost, reserved_ns, done } => {
                    cost.into_iter().for_each(|cost| self.admission.forget_launch(cost, now, now));
                    match cost {
                        Some(cost) => {
                            // A long launch was paid for at what was lent then, the batch before it at what is lent now.
                            self.settle_launch(cost, done, now);
                            self.admission.release(reserved_ns.saturating_sub(cost.ns));
                        }
                        None => self.settle(reserved_ns, done, now),
                    }
                }
            }
        }
    }

    /// Replaces what was reserved for work by what is due for it.
    fn settle(&mut self, reserved_ns: u64, done: Done, now: u64) {
        let due = self.due(done, now);
        self.admission.settle(reserved_ns, due, now);
        self.admission.note_unknown();
    }

    /// The same for a launch that was measured.
    fn settle_launch(&mut self, reserved: Reserved, done: Done, now: u64) {
        let due = self.due(done, now);
        self.admission.settle_launch(reserved, due, now);
        self.admission.note_unknown();
    }

    fn due(&mut self, done: Done, now: u64) -> Due {
        let Self { admission, timeline, charging, .. } = self;
        let account = admission.account();
        if timeline.clock_has_moved() {
            charging.clock_moved(account);
        }
        charging.charge(done, timeline.turns(), account, now)
    }

    /// Returns whether an event recorded on this stream now would show when its work so far ends.
    pub(super) fn wants_mark(&self, stream: StreamId) -> bool {
        let stream = self.timeline.stream(stream);
        self.timeline.has_room() && stream.is_some_and(|stream| stream.unmarked_ns > 0)
    }
}
