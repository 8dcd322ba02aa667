//! What the device did for this process, and when: its streams, the events that the device reached, and whose turn it
//! was.
//!
//! ```text
//! push(operation or mark)  ->  pending in its stream, in order  ->  finished(), once its events are reached
//! ```
//!
//! Everything pushed comes out of [`finished`](Timeline::finished) exactly once, in the order of its stream, with what
//! was reserved for it: measured by its events, up to the end of its context, or not at all if its events are lost.
//! The time for which work was in flight never exceeds the time passed.

pub(crate) mod coverage;
pub(crate) mod done;
mod finished;
pub(crate) mod late;
pub(crate) mod outcome;
pub(crate) mod spacing;
pub(crate) mod stream;
pub(crate) mod turns;

use coverage::Coverage;
use done::{Certain, Part, Span};
use spacing::Spacing;
use stream::{Pending, Stream, StreamId};
use turns::Turns;

use super::usage_report::{PeerReport, UsageReport};

/// The streams of a process on a device, and what is in flight there.
#[derive(Debug)]
pub(crate) struct Timeline<E> {
    streams: Vec<Stream<E>>,
    turns: Turns,
    /// The distance of two events, which each measurement on a busy stream contains.
    spacing: Spacing,
    /// Operations and marks whose events are pending.
    pending: usize,
    /// The stream that the next pass begins with.
    next: usize,
    /// Launches that were admitted and are not yet back from the driver.
    under_way: usize,
    /// When the oldest work in flight was admitted, and for how long work was in flight before that.
    in_flight_since: u64,
    was_in_flight_ns: u64,
    /// The time of the latest event that the device reached.
    reached_at: u64,
    /// When the device last reached an event, or last had none to reach.
    progress_at: u64,
    /// Events have come from another clock since the last question.
    has_clock_moved: bool,
    /// Threads that wait in a call of the driver for work to end.
    waiting: usize,
    /// The latest launch that asked was held back.
    holds_back: bool,
    /// What was reserved for work that took longer, and is over now.
    late_over_ns: u64,
    /// The time with work in flight that has counted.
    counted: Coverage,
}

/// The number of streams that are distinguished; further streams share the last place.
const STREAMS: usize = 1024;
/// The number of operations with pending events. With more a launch waits; one of a tool, or at 100 %, is charged at its
/// estimate.
pub(crate) const PENDING: usize = 4096;
/// The number of them that is kept for launches without which others may not end.
pub(crate) const KEPT: usize = 64;
/// The number of streams that one pass looks at.
const STREAMS_PER_PASS: usize = 16;
/// A stream whose queue has not moved for this long waits for something other than the time slices of the device.
const STUCK_NS: u64 = 100_000_000;

impl<E> Timeline<E> {
    pub(crate) fn new(now: u64) -> Self {
        Self {
            streams: Vec::new(),
            turns: Turns::new(now),
            spacing: Spacing::default(),
            pending: 0,
            next: 0,
            under_way: 0,
            in_flight_since: now,
            was_in_flight_ns: 0,
            reached_at: now,
            progress_at: now,
            has_clock_moved: false,
            waiting: 0,
            holds_back: false,
            late_over_ns: 0,
            counted: Coverage::default(),
        }
    }

    /// Registers a stream.
    pub(crate) fn register(&mut self, now: u64) -> StreamId {
        let unused =
            |stream: &Stream<E>| !stream.open && stream.pending.is_empty() && !stream.is_shared;
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
            None => {
                self.streams.last_mut().into_iter().for_each(|stream| stream.is_shared = true);
                STREAMS - 1
            }
        };
        // At most 1024 places.
        #[allow(clippy::cast_possible_truncation)]
        StreamId(place as u16)
    }

    pub(crate) fn stream(&self, id: StreamId) -> Option<&Stream<E>> {
        self.streams.get(usize::from(id.0))
    }

    pub(crate) fn stream_mut(&mut self, id: StreamId) -> Option<&mut Stream<E>> {
        self.streams.get_mut(usize::from(id.0))
    }

    pub(crate) fn has(&self, id: StreamId) -> bool {
        self.stream(id).is_some()
    }

    pub(crate) fn streams(&self) -> &[Stream<E>] {
        &self.streams
    }

    pub(crate) fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream<E>> {
        self.streams.iter_mut()
    }

    /// All streams that were registered, by number.
    pub(crate) fn ids(&self) -> impl Iterator<Item = StreamId> + use<E> {
        // At most 1024 places.
        #[allow(clippy::cast_possible_truncation)]
        (0..self.streams.len() as u16).map(StreamId)
    }

    /// Streams that may have something finished: this one, and some others in rotation.
    pub(crate) fn pass(
        &mut self,
        first: Option<StreamId>,
    ) -> impl Iterator<Item = StreamId> + use<E> {
        let (count, from) = (self.streams.len(), self.next + 1);
        let others = if self.pending == 0 { 0 } else { count.min(STREAMS_PER_PASS) };
        self.next = (self.next + others) % count.max(1);
        // At most 1024 places.
        #[allow(clippy::cast_possible_truncation)]
        let others = (from..from + others).map(move |place| StreamId((place % count) as u16));
        first.filter(|_| self.pending > 0).into_iter().chain(others)
    }

    /// Records that a launch was admitted.
    pub(crate) const fn begins(&mut self, now: u64) {
        if !self.is_in_flight() {
            self.in_flight_since = now;
        }
        self.under_way += 1;
    }

    /// Records that an admitted launch is back from the driver: after [`push`](Self::push), or before
    /// [`may_be_over`](Self::may_be_over) if nothing will show its end.
    pub(crate) const fn returns(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Adds what is in flight to its stream, which the timeline [has](Self::has).
    pub(crate) fn push(&mut self, id: StreamId, pending: Pending<E>, now: u64) {
        let Some(stream) = self.streams.get_mut(usize::from(id.0)) else { return };
        if self.pending == 0 {
            self.progress_at = now;
        }
        if self.pending == 0 && self.under_way == 0 {
            // A batch, all of whose launches went out of allowances: it began at any time since the latest event.
            let began = now.saturating_sub(pending.batch_ns);
            self.in_flight_since = began.max(self.reached_at.max(self.counted.end()).min(now));
        }
        stream.push(pending, now);
        self.pending += 1;
    }

    /// Returns whether anything is pending.
    pub(crate) const fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Returns whether there is room for another pending event.
    pub(crate) const fn has_room(&self) -> bool {
        self.pending < PENDING
    }

    /// Returns whether there is more of it than is kept for launches that pass a closed gate, and for marks.
    pub(crate) const fn has_much_room(&self) -> bool {
        self.pending < PENDING - KEPT
    }

    /// Returns whether to sample the distance of two events.
    pub(crate) fn wants_spacing(&mut self) -> bool {
        self.has_room() && self.spacing.wants_more()
    }

    /// Records that a stream is empty at `now`, and had work from the one moment to the other: a call has waited for it.
    /// Returns the span of what no event marks, unless events are pending, and the time in which the device certainly had it.
    pub(crate) fn emptied(
        &mut self,
        id: StreamId,
        (began, until): (u64, u64),
        now: u64,
    ) -> Option<(Span, Option<Certain>)> {
        let stream = self.streams.get_mut(usize::from(id.0))?;
        if !stream.pending.is_empty() {
            return None;
        }
        let span = stream.span(stream.unmarked_ns > 0, now);
        let (from, until) = stream.certainly_had_work((began, until), now);
        let from = stream.since.max(from);
        let certain = (from < until).then_some(Certain { from, until, part: Part::Rest });
        (stream.since, stream.synced) = (now, true);
        // What another thread has queued in the mean time was not waited for.
        stream.fenced &= stream.fenced_at >= began;
        Some((span, certain))
    }

    fn take_front(&mut self, id: StreamId, now: u64) -> Option<Pending<E>> {
        self.pending = self.pending.saturating_sub(1);
        self.may_be_over(now);
        let pending = self.streams.get_mut(usize::from(id.0))?.pending.pop_front()?;
        self.late_over_ns =
            self.late_over_ns.saturating_add(pending.late.map_or(0, |late| late.ns));
        Some(pending)
    }

    pub(crate) const fn is_in_flight(&self) -> bool {
        self.pending > 0 || self.under_way > 0
    }

    /// Removes one piece of work in flight. It ended when the device reached its event, however late that was
    /// noticed.
    pub(crate) fn may_be_over(&mut self, now: u64) {
        if !self.is_in_flight() {
            let over = self.reached_at.clamp(self.in_flight_since, now.max(self.in_flight_since));
            self.count(self.in_flight_since, over);
        }
    }

    /// Records work of `work_ns` of which no event shows that it was in flight, as a call that waited for it returns at
    /// `now`: it was for as long as the call is known to have waited. If it counted for its cost alone, what others did
    /// in the mean time would count as done while nothing was in flight here, and the wait be charged:
    /// `W8 10 us, sync` at a fixed 20 % would get 8 beside two others, one of which borrows, and
    /// `T3 two containers, 100 us, waited for` would miss its bound at 30 % beside 70.
    pub(crate) fn was_in_flight(&mut self, work_ns: u64, certain: Option<Certain>, now: u64) {
        let (from, until) = certain.map_or((now, now), |certain| (certain.from, certain.until));
        self.count(from.min(until.saturating_sub(work_ns)), until);
    }

    /// Counts the time between two moments as time with work in flight, as far as it has not counted.
    fn count(&mut self, from: u64, until: u64) {
        let new_ns = self.counted.add(from, until);
        self.was_in_flight_ns = self.was_in_flight_ns.saturating_add(new_ns);
    }

    /// Returns whether the device may be at what is in flight: not all of it is behind something that is no launch.
    pub(crate) fn may_be_at_it(&self) -> bool {
        let waits = |stream: &Stream<E>| stream.pending.is_empty() || stream.is_fenced();
        self.under_way > 0 || !self.streams.iter().all(waits)
    }

    /// Returns how much is reserved in streams in which nothing has moved for a while.
    pub(crate) fn stuck_ns(&self, now: u64) -> u64 {
        self.stuck(now).map(Stream::reserved_ns).fold(0, u64::saturating_add)
    }

    /// Returns how many unmeasured launches are in such streams.
    pub(crate) fn stuck_unmeasured(&self, now: u64) -> u64 {
        let pending = self.stuck(now).flat_map(|stream| &stream.pending);
        let operations = pending.filter_map(|pending| pending.operation.as_ref());
        operations.filter(|operation| operation.cost.unmeasured).count() as u64
    }

    /// Returns when the latest launch of unknown length that is in flight was launched.
    pub(crate) fn latest_unmeasured(&self) -> Option<u64> {
        let pending = self.streams.iter().flat_map(|stream| &stream.pending);
        let operations = pending.filter_map(|pending| pending.operation.as_ref());
        operations.filter(|it| it.cost.unmeasured).map(|it| it.returned).max()
    }

    /// A stream in which nothing but launches is queued waits for no host, unless another one does: a default stream waits
    /// for others, and they for it.
    fn stuck(&self, now: u64) -> impl Iterator<Item = &Stream<E>> {
        let since = now.saturating_sub(STUCK_NS);
        let waits = self.waits_for_host(now);
        self.streams.iter().filter(move |stream| waits && stream.is_stuck(since))
    }

    /// Returns whether a stream waits for the host, or may do so.
    fn waits_for_host(&self, now: u64) -> bool {
        let since = now.saturating_sub(STUCK_NS);
        let mut fenced = self.streams.iter().filter(|stream| stream.is_fenced());
        fenced.any(|stream| stream.is_stuck(since))
    }

    /// Returns the largest reservation of an operation that is next in its stream; `None` if no event is pending.
    pub(crate) fn longest_ns(&self) -> Option<u64> {
        let fronts = self.streams.iter().filter_map(|stream| stream.pending.front());
        let reserved = fronts.filter_map(|front| front.operation.as_ref()).map(|it| it.cost.ns);
        (self.pending > 0).then(|| reserved.max().unwrap_or(0))
    }

    /// When the device last reached an event, or last had none to reach.
    pub(crate) const fn progress_at(&self) -> u64 {
        self.progress_at
    }

    /// Begins to wait anew for progress.
    pub(crate) const fn expect_progress(&mut self, now: u64) {
        self.progress_at = now;
    }

    /// When the work in flight was first left to the device; `None` if none is in flight. What was due since then for other
    /// work, of `due_ns` in all, is paid for: it is later by that. A stream that waits for the host has none, unless nothing
    /// would show when it no longer does: `is_unwatched`.
    pub(crate) fn busy_since(&self, is_unwatched: bool, due_ns: u64) -> Option<u64> {
        let is_in_flight = self.is_in_flight() && (is_unwatched || self.may_be_at_it());
        let may_wait = self.streams.iter().any(Stream::is_fenced);
        let fronts = self.streams.iter().filter_map(|it| it.unpaid_since(may_wait, due_ns)).min();
        let since = || fronts.unwrap_or(self.progress_at).max(self.in_flight_since);
        is_in_flight.then(since).into_iter().chain(self.unmarked_since()).min()
    }

    /// Returns whether events have come from another clock since the last question.
    pub(crate) fn clock_has_moved(&mut self) -> bool {
        let has_moved = std::mem::replace(&mut self.has_clock_moved, false);
        if has_moved {
            self.counted.clear();
        }
        has_moved
    }

    pub(crate) const fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(crate) const fn turns_mut(&mut self) -> &mut Turns {
        &mut self.turns
    }

    /// Takes the current reports of other processes on the device, and this one's own.
    pub(crate) fn take_reports(
        &mut self,
        peers: impl Iterator<Item = PeerReport>,
        own: UsageReport,
        now: u64,
    ) {
        self.turns.take_reports(peers, own, now);
    }

    /// Records that a thread begins to wait in a call of the driver for work to end.
    pub(crate) const fn wait_begins(&mut self) {
        self.waiting += 1;
    }

    /// Records that such a call has returned.
    pub(crate) const fn wait_ends(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Records whether the latest launch that asked was held back.
    pub(crate) const fn holds_back(&mut self, is_held_back: bool) {
        self.holds_back = is_held_back;
    }

    /// Returns this process's report: `work_ns` in all. It says whether a thread waits: without that,
    /// `W1 10 us kernels beside W8 10 us, sync` misses its bound at 50 % each.
    pub(crate) fn report(&self, work_ns: u64) -> UsageReport {
        let shown = self.is_in_flight().then_some(self.in_flight_since);
        let since = shown.into_iter().chain(self.unmarked_since()).min();
        // Of what is in flight now, calls may have been waiting at the same time.
        let counted_ns = since.map_or(0, |since| self.counted.since(since));
        let was_in_flight_ns = self.was_in_flight_ns.saturating_sub(counted_ns);
        UsageReport::new(work_ns, was_in_flight_ns, since)
            .with_waiting(self.waiting > 0)
            .with_held_back(self.holds_back)
    }
}
