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
//! Everything reserved is settled exactly once: by its events, or at its estimate where there are none. What is reserved
//! and unsettled is at most the bucket and one operation, and that bounds how far wrong an estimate can lead.

use std::sync::Arc;

use super::{
    Batch, Bucket, Costs, Events, Launch, Reached, Signature,
    costs::Estimate,
    settlement::{Done, Settlement, Span},
    stream::{Operation, Pending, Stream, StreamId},
};
use crate::units::Share;

/// The compute cap of one device, as one process keeps it.
#[derive(Debug)]
pub struct Meter<'a, E> {
    bucket: Bucket<'a>,
    costs: Arc<Costs>,
    streams: Vec<Stream<E>>,
    settlement: Settlement,
    /// Between two openings nothing is admitted until the bucket holds a quantum.
    open: bool,
    /// Operations whose events are out.
    pending: usize,
    /// The stream that the next harvest begins with.
    next: usize,
    /// Who found the bucket empty may go on from here on, as soon as it holds anything.
    reopens_at: u64,
    /// When the device last came to an event, or had nothing to come to.
    progress_at: u64,
    random: u64,
    totals: Totals,
}

/// Whether a launch may go to the driver.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    /// Launch, then hand the permit back: to [`Meter::launched`] or to [`Meter::refused`].
    Admit(Permit),
    /// Ask again at this time, later than now.
    Wait {
        /// A time of the same clock.
        until: u64,
    },
}

/// The right to one launch. To drop it leaves its reservation charged for good.
#[derive(Debug)]
#[must_use = "a permit goes back to the meter"]
pub struct Permit {
    stream: StreamId,
    operation: Operation,
    batch_ns: u64,
    waited: bool,
    events: bool,
}

impl Permit {
    /// Whether to record a timing event right before the launch and another one right after it.
    #[must_use]
    pub const fn wants_events(&self) -> bool {
        self.events
    }
}

/// What the meter did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Time of the device that was settled.
    pub busy_ns: u64,
    /// Launches that came through the meter.
    pub launches: u64,
    /// Times that a launch was told to wait.
    pub waits: u64,
    /// Launches admitted for no other reason than that nothing moved.
    pub stalls: u64,
}

/// A batch is worth this much, or less with a small share.
const BATCH_NS: u64 = 250_000;
/// Launches of a batch, less a few by chance, so that a program's period and ours do not fall into step.
const BATCH_LAUNCHES: u8 = 64;
/// While work is out, what it turns out to be worth can open the bucket before its time.
const RECHECK_NS: u64 = 1_000_000;
/// Other processes' work can do so too.
const RECHECK_IDLE_NS: u64 = 10_000_000;
/// Streams known at once; more share the last place.
const STREAMS: usize = 1024;
/// Operations with events at once; more are charged at their estimate.
const PENDING: usize = 1024;
/// Streams that one harvest looks at.
const HARVEST: usize = 16;
/// Work that is out this long without an event reached may be waiting for the launch that waits for it.
const STALL_NS: u64 = 2_000_000_000;
const STALL_ESTIMATES: u64 = 8;

impl<'a, E> Meter<'a, E> {
    /// A meter on the bucket of a device.
    #[must_use]
    pub fn new(bucket: Bucket<'a>, now: u64) -> Self {
        Self {
            bucket,
            costs: Arc::default(),
            streams: Vec::new(),
            settlement: Settlement::default(),
            open: true,
            pending: 0,
            next: 0,
            reopens_at: now,
            progress_at: now,
            random: now | 1,
            totals: Totals::default(),
        }
    }

    /// The table of costs, for the fast path.
    #[must_use]
    pub fn costs(&self) -> Arc<Costs> {
        Arc::clone(&self.costs)
    }

    /// Makes a stream known; its batch is closed until the first launch.
    pub fn stream(&mut self, now: u64) -> (StreamId, Arc<Batch>) {
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
        let batch = self.streams.get(place).map(|stream| Arc::clone(&stream.batch));
        // At most 1024 places.
        #[allow(clippy::cast_possible_truncation)]
        (StreamId(place as u16), batch.unwrap_or_default())
    }

    /// As [`stream`](Self::stream), with a batch that the caller keeps in the place of an earlier stream's.
    pub fn stream_with(&mut self, batch: Arc<Batch>, now: u64) -> StreamId {
        let (id, _) = self.stream(now);
        if let Some(stream) = self.streams.get_mut(usize::from(id.0)) {
            stream.batch = batch;
        }
        id
    }

    /// Whether `launch` may go to the driver now.
    pub fn before_launch(
        &mut self,
        stream: StreamId,
        launch: Launch,
        now: u64,
        events: &mut impl Events<Event = E>,
    ) -> Verdict {
        self.harvest(Some(stream), now, events);
        if !launch.never_wait && !self.is_open(now) {
            self.totals.waits += 1;
            return Verdict::Wait { until: self.recheck_at(now) };
        }
        self.totals.launches += 1;
        Verdict::Admit(self.admit(stream, launch, now))
    }

    /// The driver took the launch, whose call returned at `returned`: read the clock before recording the second event.
    /// `pair` are the events recorded before and after it; none if either is missing.
    pub fn launched(
        &mut self,
        permit: Permit,
        returned: u64,
        pair: Option<[E; 2]>,
        events: &mut impl Events<Event = E>,
    ) {
        let Permit { stream, operation, batch_ns, waited, .. } = permit;
        match (self.streams.get_mut(usize::from(stream.0)), pair) {
            (Some(stream), Some([before, after])) => {
                let before = Some(before);
                stream.pending.push_back(Pending {
                    before,
                    after,
                    returned,
                    batch_ns,
                    waited,
                    operation,
                });
                if self.pending == 0 {
                    self.progress_at = returned;
                }
                self.pending += 1;
            }
            (_, pair) => {
                pair.into_iter().flatten().for_each(|event| events.give_back(event));
                let worth = batch_ns.saturating_add(operation.reserved_ns);
                self.settle(worth, Done { span: Span::Unknown, work_ns: worth }, returned);
            }
        }
    }

    /// The driver did not take the launch: nothing of it stays charged. Events that were recorded are the caller's.
    pub fn refused(&mut self, permit: Permit, now: u64) {
        self.bucket.refund(permit.operation.reserved_ns);
        let worth = permit.batch_ns;
        self.settle(worth, Done { span: Span::Unknown, work_ns: worth }, now);
    }

    /// A call returned at `now` that waits until this stream is empty; without one, until all of the device's are.
    pub fn sync_returned(
        &mut self,
        stream: Option<StreamId>,
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
                let span = if stream.unmarked_ns > 0 {
                    Span::Within(stream.since, now)
                } else {
                    Span::Batch(stream.since, now)
                };
                let worth = stream.spent().saturating_add(std::mem::take(&mut stream.unmarked_ns));
                stream.since = now;
                if worth > 0 {
                    self.settle(worth, Done { span, work_ns: worth }, now);
                }
            }
        }
    }

    /// The stream's handle is gone. Its work may still run: it is settled when its events tell, or, if they are lost,
    /// at its estimate.
    pub fn stream_destroyed(&mut self, stream: StreamId, now: u64) {
        let Some(stream) = self.streams.get_mut(usize::from(stream.0)) else { return };
        stream.open = false;
        let (fresh, unused) = stream.close();
        let worth = fresh.saturating_add(std::mem::take(&mut stream.unmarked_ns));
        self.bucket.refund(unused);
        self.settle(worth, Done { span: Span::Unknown, work_ns: worth }, now);
    }

    /// An executable graph was updated, or a handle stands for something else: its launches are unknown again.
    pub fn changed(&mut self, signature: Signature) {
        self.costs.forget(signature);
    }

    /// The share is another one from now on.
    pub fn set_share(&mut self, share: Share) {
        self.bucket = self.bucket.with_share(share);
    }

    /// What the meter did since it was made.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Settles what has finished. Launches do it by themselves: this is for who wants to know how things stand.
    pub fn settle_finished(&mut self, now: u64, events: &mut impl Events<Event = E>) {
        self.harvest(None, now, events);
    }

    /// The gate closes at an empty bucket and opens at a quantum, so that one wake-up is good for many launches. Who
    /// slept until the bucket should have held one opens it with less: another process may have been faster.
    fn is_open(&mut self, now: u64) -> bool {
        let level = self.bucket.level(now);
        let quantum = i64::try_from(self.bucket.quantum_ns()).unwrap_or(i64::MAX);
        let enough = if self.open || now >= self.reopens_at { level > 0 } else { level >= quantum };
        let open = enough || self.bucket.share() == Share::FULL;
        if self.open && !open {
            self.close_batches();
            self.reopens_at = self.bucket.holds_at(self.bucket.quantum_ns(), now);
        }
        self.open = open;
        open || self.is_stalled(now)
    }

    /// A wait begins: what launches took so far was launched before it.
    fn close_batches(&mut self) {
        for stream in self.streams.iter_mut().filter(|stream| stream.granted_ns > 0) {
            let (fresh, unused) = stream.close();
            stream.unmarked_ns = stream.unmarked_ns.saturating_add(fresh);
            self.bucket.refund(unused);
        }
    }

    /// A launch may be what the work that is out waits for: one at a time is let through.
    fn is_stalled(&mut self, now: u64) -> bool {
        if self.pending == 0 {
            return false;
        }
        let fronts = self.streams.iter().filter_map(|stream| stream.pending.front());
        let longest = fronts.map(|front| front.operation.reserved_ns).max().unwrap_or(0);
        let patience = longest.saturating_mul(STALL_ESTIMATES).max(STALL_NS);
        let stalled = now.saturating_sub(self.progress_at) >= patience;
        if stalled {
            self.progress_at = now;
            self.totals.stalls += 1;
        }
        stalled
    }

    fn recheck_at(&self, now: u64) -> u64 {
        let recheck = if self.pending > 0 { RECHECK_NS } else { RECHECK_IDLE_NS };
        let enough = if now < self.reopens_at { self.bucket.quantum_ns() } else { 1 };
        self.bucket.holds_at(enough, now).clamp(now + 1, now.saturating_add(recheck))
    }

    /// Closes the stream's batch, reserves for the operation and, if its cost is known, for a new batch after it.
    fn admit(&mut self, id: StreamId, launch: Launch, now: u64) -> Permit {
        let (reserved_ns, unmeasured) = self.reservation(launch);
        let grant =
            if self.costs.small(launch.signature).is_some() { self.batch_size() } else { 0 };
        let launches = self.batch_launches();
        let mut waited = false;
        let (batch_ns, unused) = match self.streams.get_mut(usize::from(id.0)) {
            Some(stream) => {
                let (fresh, unused) = stream.close();
                let before = std::mem::take(&mut stream.unmarked_ns);
                waited = before > 0;
                stream.granted_ns = grant;
                if grant > 0 {
                    stream.batch.open(grant, launches);
                }
                (fresh.saturating_add(before), unused)
            }
            None => (0, grant),
        };
        self.bucket.refund(unused);
        self.bucket.charge(reserved_ns.saturating_add(grant), now);
        let operation = Operation { signature: launch.signature, reserved_ns, unmeasured };
        Permit { stream: id, operation, batch_ns, waited, events: self.pending < PENDING }
    }

    /// What to reserve, and whether it is a guess. While nothing of a signature has come back each guess is twice the
    /// one before: a deep queue of unknown work closes the gate after a few launches, however long they are.
    fn reservation(&mut self, launch: Launch) -> (u64, bool) {
        let guess = match self.costs.estimate(launch.signature) {
            Estimate::Measured(ns) => return (ns, false),
            Estimate::Unmeasured(before) => before.saturating_mul(2),
            Estimate::Unknown => launch.first_ns,
        };
        self.costs.note_unmeasured(launch.signature, guess);
        (guess, true)
    }

    fn batch_size(&self) -> u64 {
        let open = self.streams.iter().filter(|stream| stream.granted_ns > 0).count().max(2);
        BATCH_NS.min(self.bucket.quantum_ns() / (4 * open as u64))
    }

    fn batch_launches(&mut self) -> u8 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        BATCH_LAUNCHES - (self.random >> 32 & 15) as u8
    }

    /// Settles what has finished: on this stream, and on some others in turn.
    fn harvest(&mut self, first: Option<StreamId>, now: u64, events: &mut impl Events<Event = E>) {
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

    fn harvest_stream(&mut self, place: usize, now: u64, events: &mut impl Events<Event = E>) {
        while let Some(stream) = self.streams.get_mut(place) {
            let Some(front) = stream.pending.front_mut() else { return };
            if let Some(before) = &front.before {
                match events.reached(before) {
                    Reached::Pending => return,
                    Reached::At(at) => {
                        let span = if front.waited {
                            Span::Within(stream.since, at)
                        } else {
                            Span::Batch(stream.since, at)
                        };
                        stream.since = stream.since.max(at);
                        let worth = std::mem::take(&mut front.batch_ns);
                        front.before.take().into_iter().for_each(|event| events.give_back(event));
                        self.progress_at = now;
                        if worth > 0 {
                            self.settle(worth, Done { span, work_ns: worth }, now);
                        }
                        continue;
                    }
                    Reached::Lost => {}
                }
            }
            let reached = events.reached(&front.after);
            if reached == Reached::Pending && front.before.is_none() {
                return;
            }
            if let Some(pending) = stream.pending.pop_front() {
                self.pending = self.pending.saturating_sub(1);
                self.progress_at = now;
                let end = match reached {
                    Reached::At(at) if pending.before.is_none() => Some(at),
                    _ => None,
                };
                self.finish(place, &pending, end, now);
                pending.before.into_iter().for_each(|event| events.give_back(event));
                events.give_back(pending.after);
            }
        }
    }

    /// Settles one operation that ended at `end`, or nobody knows when.
    fn finish(&mut self, place: usize, pending: &Pending<E>, end: Option<u64>, now: u64) {
        let Operation { signature, reserved_ns, .. } = pending.operation;
        let reserved = reserved_ns.saturating_add(pending.batch_ns);
        let Some((stream, end)) = self.streams.get_mut(place).zip(end) else {
            return self.settle(reserved, Done { span: Span::Unknown, work_ns: reserved }, now);
        };
        // On an empty stream the event before it is reached before the operation arrives at the device.
        let start = stream.since.max(pending.returned);
        stream.since = stream.since.max(end);
        let sample = end.saturating_sub(start);
        let first = !matches!(self.costs.estimate(signature), Estimate::Measured(_));
        let small = self.costs.small(signature).map(u64::from);
        self.costs.learn(signature, sample);
        let work_ns = small.unwrap_or(sample);
        self.settle(reserved, Done { span: Span::Operation(start, end), work_ns }, now);
        if first {
            self.reprice(signature, sample, now);
        }
    }

    /// The first measurement of a signature takes the place of the guesses that its other launches reserved.
    fn reprice(&mut self, signature: Signature, sample: u64, now: u64) {
        let mut guessed: u64 = 0;
        let mut worth: u64 = 0;
        for pending in self.streams.iter_mut().flat_map(|stream| &mut stream.pending) {
            let operation = &mut pending.operation;
            if operation.unmeasured && operation.signature == signature {
                guessed = guessed.saturating_add(operation.reserved_ns);
                worth = worth.saturating_add(sample);
                operation.reserved_ns = sample;
                operation.unmeasured = false;
            }
        }
        self.exchange(guessed, worth, now);
    }

    fn settle(&mut self, reserved_ns: u64, done: Done, now: u64) {
        let due = self.settlement.settle(done, now);
        self.totals.busy_ns = self.totals.busy_ns.saturating_add(due);
        self.exchange(reserved_ns, due, now);
    }

    /// What was reserved becomes what is due.
    fn exchange(&self, reserved_ns: u64, due_ns: u64, now: u64) {
        if due_ns > reserved_ns {
            self.bucket.charge(due_ns - reserved_ns, now);
        } else {
            self.bucket.refund(reserved_ns - due_ns);
        }
    }
}
