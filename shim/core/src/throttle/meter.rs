//! The slow path: launches that did not fit their stream's batch. One meter per process and device.
//!
//! The caller holds one lock around it, and lets go of it while it waits or calls the driver:
//!
//! ```text
//! loop  before_launch -> Wait { until }        unlock, sleep until then, again
//!                     -> Admit(permit)         unlock
//!       record an event, launch, record an event (if permit.wants_events())
//!       launched(permit, time, events)  or  refused(permit), if the driver failed
//! ```
//!
//! Each reservation is settled exactly once: by its events, or at its estimate where it has none. The reserved and
//! unsettled time is at most the bucket and one operation, which bounds the error that a wrong estimate can cause.

mod collect;
mod ends;
mod gate;
mod peers;
mod unheld;

use std::sync::Arc;

use super::{
    Allowance, Bucket, Costs, Events, Gang, Launch, Signature,
    settlement::{Done, Settlement},
    shares::Shares,
    spacing::Spacing,
    steady::Steady,
    stream::{Operation, Pending, Reserved, Stream, StreamId},
    turns::Turns,
};
use crate::units::Share;

/// The compute limit of one device, as one process enforces it.
#[derive(Debug)]
pub struct Meter<'a, E> {
    shares: Shares<'a>,
    gang: Gang<'a>,
    costs: Costs,
    streams: Vec<Stream<E>>,
    settlement: Settlement,
    turns: Turns,
    steady: Steady,
    /// Between two openings no launch is admitted until the bucket holds a quantum.
    open: bool,
    /// Time that is reserved and not settled.
    in_flight_ns: u64,
    /// Operations whose events are pending.
    pending: usize,
    /// The stream that the next collection begins with.
    next: usize,
    /// From this time on, a launch that found the bucket empty may go as soon as the bucket holds anything.
    reopens_at: u64,
    /// Launches that were admitted and are not yet back from the driver.
    under_way: usize,
    /// When the oldest work in flight was admitted, and for how long work was in flight before that.
    in_flight_since: u64,
    was_in_flight_ns: u64,
    /// The time of the latest event that the device reached.
    reached_at: u64,
    /// When the device last reached an event, or last had none to reach.
    progress_at: u64,
    /// How many launches were let through since the gate was last open only because nothing moved.
    let_through: u32,
    /// Launches in flight whose signature has no measurement yet.
    unmeasured: u64,
    /// By how much steady operations lately exceeded the least that peers can have left of the time.
    saved_ns: u64,
    long_until: u64,
    /// The distance of two events, which each measurement on a busy stream contains.
    spacing: Spacing,
    totals: Totals,
}

/// Whether a launch may go to the driver.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    /// Launch, then return the permit to [`Meter::launched`] or to [`Meter::refused`].
    Admit(Permit),
    /// Ask again at this time, later than now.
    Wait {
        /// A time of the caller's clock.
        until: u64,
    },
}

/// The right to one launch. A dropped permit leaves its reservation charged.
#[derive(Debug)]
#[must_use = "a permit goes back to the meter"]
pub struct Permit {
    stream: StreamId,
    reserved: Reserved,
    batch_ns: u64,
    waited: bool,
    events: bool,
}

impl Permit {
    /// Returns whether to record a timing event right before the launch and another one right after it.
    #[must_use]
    pub const fn wants_events(&self) -> bool {
        self.events
    }
}

/// Counters since the meter was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Device time that was settled.
    pub busy_ns: u64,
    /// Launches: those that went through the meter, and those of closed allowances.
    pub launches: u64,
    /// Launches that had to wait.
    pub waits: u64,
    /// Launches that were admitted only because nothing moved.
    pub stalls: u64,
}

/// The number of streams that are distinguished; further streams share the last place.
const STREAMS: usize = 1024;
/// The largest debt that a dead process can leave. A restarted program must not wait for minutes because of a kernel
/// that ended long before its process did.
const LEFT_NS: u64 = 2_000_000_000;
/// The number of operations with pending events; further ones are charged at their estimate.
pub(super) const PENDING: usize = 4096;

impl<'a, E> Meter<'a, E> {
    /// Makes a meter on the bucket of a device.
    #[must_use]
    pub fn new(bucket: Bucket<'a>, now: u64) -> Self {
        Self {
            shares: Shares::new(bucket),
            gang: Gang::alone(),
            costs: Costs::default(),
            streams: Vec::new(),
            settlement: Settlement::default(),
            turns: Turns::new(now),
            steady: Steady::default(),
            open: true,
            in_flight_ns: 0,
            pending: 0,
            next: 0,
            reopens_at: now,
            under_way: 0,
            in_flight_since: now,
            was_in_flight_ns: 0,
            reached_at: now,
            progress_at: now,
            let_through: 0,
            unmeasured: 0,
            saved_ns: 0,
            long_until: 0,
            spacing: Spacing::default(),
            totals: Totals::default(),
        }
    }

    /// Adds the container's other devices and processes: processes may differ in their shares, and devices may meet.
    #[must_use]
    pub fn among(self, gang: Gang<'a>) -> Self {
        Self { shares: self.shares.published_in(gang.shares()), gang, ..self }
    }

    /// The table of costs, for the fast path.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.costs.clone()
    }

    /// Registers a stream.
    pub fn stream(&mut self, now: u64) -> StreamId {
        let unused = |stream: &Stream<E>| !stream.open && stream.pending.is_empty();
        let place = match self.streams.iter().position(unused) {
            Some(place) => {
                if let Some(stream) = self.streams.get_mut(place) {
                    *stream = Stream::new(now);
                }
                place
            }
            None if self.streams.len() < STREAMS => {
                self.streams.push(Stream::new(now));
                self.streams.len() - 1
            }
            None => STREAMS - 1,
        };
        // At most 1024 places.
        #[allow(clippy::cast_possible_truncation)]
        StreamId(place as u16)
    }

    /// Returns whether `launch` may go to the driver now. `batch` is the calling thread's allowance for this stream,
    /// the same one at each call: small launches after this one may then be paid out of it.
    pub fn before_launch(
        &mut self,
        stream: StreamId,
        allowance: &Arc<Allowance>,
        launch: Launch,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) -> Verdict {
        self.collect_finished(Some(stream), now, events);
        self.shares.follow(now);
        // Whether the gate is open matters even for launches that are exempt: the size of their grant depends on it.
        let may_go =
            (self.is_open(now) || self.is_urgent(launch, now)) && !self.is_second(launch, now);
        if !may_go && !self.is_stalled(now) {
            self.totals.waits += 1;
            return Verdict::Wait { until: self.recheck_at(now) };
        }
        self.totals.launches += 1;
        if self.pending == 0 && self.under_way == 0 {
            self.in_flight_since = now;
        }
        self.under_way += 1;
        Verdict::Admit(self.admit(stream, allowance, launch, now))
    }

    /// Records that the driver took the launch. `returned` is when its call returned: read the clock before recording
    /// the second event. `pair` are the events recorded before and after the launch; `None` if either is missing.
    pub fn launched(
        &mut self,
        permit: Permit,
        returned: u64,
        pair: Option<[E; 2]>,
        events: &mut impl Events<Event = E>,
    ) {
        let Permit { stream, reserved, batch_ns, waited, .. } = permit;
        self.under_way = self.under_way.saturating_sub(1);
        match (self.streams.get_mut(usize::from(stream.0)), pair) {
            (Some(stream), Some([before, after])) => {
                let operation = Some(Operation { after, returned, cost: reserved });
                let new = Pending::new(before, returned);
                stream.push(Pending { batch_ns, waited, operation, ..new }, returned);
                self.expect_progress(returned);
            }
            (_, pair) => {
                pair.into_iter().flatten().for_each(|event| events.give_back(event));
                self.is_over(reserved, returned, returned);
                let worth = batch_ns.saturating_add(reserved.ns);
                self.settle(worth, Done::estimated(worth), returned);
                self.may_be_over(returned);
            }
        }
    }

    /// Returns whether an event recorded on this stream now would show when its work ends. Ask once a launch on it
    /// has to wait; without the event the meter estimates the end.
    #[must_use]
    pub fn wants_mark(&self, stream: StreamId) -> bool {
        let stream = self.streams.get(usize::from(stream.0));
        self.pending < PENDING && stream.is_some_and(|stream| stream.unmarked_ns > 0)
    }

    /// Takes the event that [`wants_mark`](Self::wants_mark) asked for.
    pub fn marked(
        &mut self,
        stream: StreamId,
        mark: E,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        match self.streams.get_mut(usize::from(stream.0)).filter(|stream| stream.unmarked_ns > 0) {
            Some(stream) => {
                let batch_ns = std::mem::take(&mut stream.unmarked_ns);
                stream.push(Pending { batch_ns, ..Pending::new(mark, now) }, now);
                self.expect_progress(now);
            }
            None => events.give_back(mark),
        }
    }

    /// Returns whether an event recorded right behind that of the latest launch would show the distance of two
    /// events.
    #[must_use]
    pub fn wants_spacing(&mut self) -> bool {
        self.pending < PENDING && self.spacing.wants_more()
    }

    /// Takes the event that [`wants_spacing`](Self::wants_spacing) asked for: recorded now, right behind the launch's
    /// own.
    pub fn spaced(
        &mut self,
        stream: StreamId,
        mark: E,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) {
        let Some(stream) = self.streams.get_mut(usize::from(stream.0)) else {
            return events.give_back(mark);
        };
        stream.push(Pending { behind: Some(now), ..Pending::new(mark, now) }, now);
        self.expect_progress(now);
    }

    /// Records that the driver refused the launch: nothing of it stays charged. Recorded events are the caller's.
    pub fn refused(&mut self, permit: Permit, now: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.is_over(permit.reserved, now, now);
        self.release(permit.reserved.ns);
        self.settle(permit.batch_ns, Done::estimated(permit.batch_ns), now);
        self.may_be_over(now);
    }

    /// Forgets the cost of a signature: its executable graph was updated, or its handle stands for something else.
    pub fn changed(&mut self, signature: Signature) {
        self.costs.forget(signature);
        self.steady.forget(signature);
    }

    /// Changes the share from now on.
    pub fn set_share(&mut self, share: Share) {
        self.shares.set_share(share);
    }

    /// Returns the counters since the meter was made.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the time up to which the work in flight is paid for; `None` if none is in flight. A process that dies
    /// owes the time since then.
    #[must_use]
    pub fn paid_until(&self) -> Option<u64> {
        self.is_in_flight()
            .then(|| self.progress_at.max(self.in_flight_since).saturating_add(self.in_flight_ns))
    }

    /// Charges the unfinished work of a dead process of the same bucket that had paid up to `paid_until`. Returns the
    /// charge. The time of its death is unknown: it is at most now, and may be long before.
    pub fn inherit(&mut self, paid_until: u64, now: u64) -> u64 {
        let owed = now.saturating_sub(paid_until).min(LEFT_NS);
        self.shares.charge_as_of(paid_until, owed, now);
        owed
    }

    /// Settles what has finished. Launches do this anyway; this is for callers that need current totals.
    pub fn settle_finished(&mut self, now: u64, events: &mut impl Events<Event = E>) {
        self.collect_finished(None, now, events);
    }

    /// Settles what has finished in every stream. Call it before some events can no longer be queried.
    pub fn settle_all(&mut self, now: u64, events: &mut impl Events<Event = E>) {
        (0..self.streams.len()).for_each(|place| self.collect_finished_in(place, now, events));
    }

    fn expect_progress(&mut self, now: u64) {
        if self.pending == 0 {
            self.progress_at = now;
        }
        self.pending += 1;
    }
}
