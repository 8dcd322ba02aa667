//! Timing events of the driver, and the device's clock in terms of the host's.
//!
//! An event says how long after another one of the same context the device reached it (a float of milliseconds: 60 ns
//! at one second, so the reference event is replaced about once a second). The host's time follows without a call
//! that waits: no event is reached before the host began to record it, and in an empty stream it is reached as soon
//! as it is recorded. So the largest difference seen between the two clocks is their offset, less what they may have
//! drifted since, and the least duration of the recording call.
//!
//! Events are made in the stream's context and reused; they end with it. No call here is made with an event of a
//! context that has ended: its number is then unknown.

mod recorded;

use crate::driver::cuda::{current_context, time as driver};
use crate::redirect::DriverCopy;
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering};
use gpucap_abi::cuda::{CUcontext, CUevent, CUstream};
use gpucap_core::throttle::{Events, Reached};
pub(super) use recorded::Recorded;
use std::collections::VecDeque;

/// A recorded event.
#[derive(Debug)]
pub(super) struct Mark {
    event: CUevent,
    context: ContextId,
    /// The host's time right before the driver was asked to record it.
    asked: u64,
    /// What the call took.
    took: u64,
}

impl Mark {
    /// When the call that recorded it returned.
    pub(super) fn asked_until(&self) -> u64 {
        self.asked.saturating_add(self.took)
    }

    /// Returns the event for reuse: its time is not needed.
    pub(super) fn unused(self) -> Spare {
        Spare { event: self.event, context: self.context }
    }
}

/// A context; the next one with the same handle has another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContextId(u64);

/// An event that is not in use.
#[derive(Debug)]
pub(super) struct Spare {
    event: CUevent,
    context: ContextId,
}

/// The events of one device.
#[derive(Default)]
pub(super) struct Timing {
    contexts: Vec<Context>,
    made: u64,
    /// The contexts that ended last, and when.
    ended: VecDeque<(ContextId, u64)>,
}

/// How many of them are kept; an event of an older one reports nothing.
const ENDED: usize = 64;

struct Context {
    id: ContextId,
    /// The driver is ending it, or is about to: its events are not queried.
    is_ending: bool,
    handle: CUcontext,
    spare: Vec<CUevent>,
    clock: Clock,
}

impl Timing {
    /// Returns the number of a context.
    pub(super) fn context(&mut self, handle: CUcontext) -> ContextId {
        if let Some(id) = self.find(handle) {
            return id;
        }
        self.made = self.made.saturating_add(1);
        let id = ContextId(self.made);
        let (spare, clock) = (Vec::new(), Clock::default());
        self.contexts.push(Context { id, is_ending: false, handle, spare, clock });
        id
    }

    /// Returns the handle of a context that has not ended.
    pub(super) fn handle(&self, id: ContextId) -> Option<CUcontext> {
        let context = self.contexts.iter().find(|context| context.id == id && !context.is_ending);
        context.map(|context| context.handle)
    }

    /// Returns the number of a context in which something has been launched.
    pub(super) fn find(&self, handle: CUcontext) -> Option<ContextId> {
        let is_it = |context: &&Context| context.handle == handle && !context.is_ending;
        self.contexts.iter().find(is_it).map(|context| context.id)
    }

    /// Marks whether the driver is about to end a context: its events are not touched until the outcome is known.
    pub(super) fn is_ending(&mut self, id: ContextId, is_ending: bool) {
        if let Some(context) = self.contexts.iter_mut().find(|context| context.id == id) {
            context.is_ending = is_ending;
        }
    }

    /// Marks the end of a context, and of its events, at this time.
    pub(super) fn end(&mut self, id: ContextId, at: u64) {
        self.contexts.retain(|context| context.id != id);
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, at));
    }

    /// Marks the possible end of all contexts.
    pub(super) fn end_all(&mut self, at: u64) {
        let all: Vec<_> = self.contexts.iter().map(|context| context.id).collect();
        all.into_iter().for_each(|id| self.end(id, at));
    }

    /// Returns the state of the events of a context that no longer exists.
    fn ended_at(&self, id: ContextId) -> Reached {
        let ended = self.ended.iter().find(|(ended, _)| *ended == id);
        ended.map_or(Reached::Lost, |(_, at)| Reached::Ended(*at))
    }

    /// Returns an event for reuse, if there is one.
    pub(super) fn spare(&mut self, id: ContextId) -> Option<Spare> {
        let is_it = |context: &&mut Context| context.id == id && !context.is_ending;
        let context = self.contexts.iter_mut().find(is_it)?;
        Some(Spare { event: context.spare.pop()?, context: id })
    }

    /// Keeps an event that was not recorded after all.
    pub(super) fn keep(&mut self, spare: Spare) {
        if let Some(context) = self.contexts.iter_mut().find(|context| context.id == spare.context)
        {
            context.spare.push(spare.event);
        }
    }

    /// Returns a reader of events.
    pub(super) fn reader<'a>(&'a mut self, copy: &'a DriverCopy) -> Reader<'a> {
        Reader { timing: self, copy }
    }
}

impl Spare {
    /// Makes a new event in a context.
    pub(super) fn new(copy: &DriverCopy, handle: CUcontext, context: ContextId) -> Option<Self> {
        let make = || driver::create_event(copy);
        let event = if current_context(copy) == Some(handle) {
            make()?
        } else {
            driver::in_context(copy, handle, make)??
        };
        Some(Self { event, context })
    }

    /// Gives it back to the driver.
    pub(super) fn destroy(self, copy: &DriverCopy) {
        let _ = driver::destroy_event(copy, self.event);
    }

    /// Records it at the end of what is queued in a stream of its context.
    ///
    /// # Errors
    /// The driver refuses: the event is still spare.
    pub(super) fn record(self, copy: &DriverCopy, stream: CUstream) -> Result<Mark, Self> {
        let asked = sys::monotonic_ns();
        match driver::record(copy, self.event, stream) {
            Some(()) => {
                let took = sys::monotonic_ns().saturating_sub(asked);
                Ok(Mark { event: self.event, context: self.context, asked, took })
            }
            None => Err(self),
        }
    }
}

/// Reads events for the meter.
pub(super) struct Reader<'a> {
    timing: &'a mut Timing,
    copy: &'a DriverCopy,
}

impl Reader<'_> {
    fn context(&mut self, mark: &Mark) -> Option<&mut Context> {
        self.timing.contexts.iter_mut().find(|context| context.id == mark.context)
    }
}

impl Events for Reader<'_> {
    type Event = Mark;

    fn reached(&mut self, mark: &Mark) -> Reached {
        let copy = self.copy;
        let Some(context) = self.context(mark) else { return self.timing.ended_at(mark.context) };
        if context.is_ending {
            return Reached::Pending;
        }
        context.clock.read(copy, mark, &mut context.spare)
    }

    fn give_back(&mut self, mark: Mark) {
        let Some(context) = self.context(&mark) else { return };
        if !context.clock.keeps(mark.event) {
            context.spare.push(mark.event);
        }
    }
}

/// How long a launch call takes when nothing delays it: the time between an event on an empty stream and the arrival
/// of the kernel. A longer call waited, for room in a queue, for its kernel, for a processor; that says nothing about
/// the kernel.
#[derive(Default)]
pub(super) struct CallTime(AtomicU64);

/// No launch call is that slow by itself.
const SLOWEST_CALL: u64 = 50_000;

impl CallTime {
    /// Notes how long a call took. Returns the part of it that may have been the call itself.
    pub(super) fn bounded(&self, took: u64) -> u64 {
        let known = match self.0.load(Ordering::Relaxed) {
            0 => took.min(SLOWEST_CALL),
            known => known,
        };
        // Follows down at once and up slowly: nearly the shortest of late.
        let next = if took < known {
            took.saturating_add(known.saturating_sub(took) / 2)
        } else {
            known.saturating_add(known / 64).saturating_add(1).min(took).min(SLOWEST_CALL)
        };
        self.0.store(next.max(1), Ordering::Relaxed);
        took.min(next.saturating_mul(2))
    }
}

/// The relation of the device's clock to the host's.
#[derive(Default)]
struct Clock {
    origin: Option<Origin>,
    /// The least offset of the host's clock, and the device's time at which it was seen.
    ahead: Option<(i64, i64)>,
    /// The least duration of a recording call.
    shortest: Option<u64>,
}

/// The event that others are counted from.
struct Origin {
    event: CUevent,
    /// Its time, in nanoseconds since the first one.
    at: i64,
    /// The meter has given it back: it is kept only as the reference.
    ours: bool,
}

/// How long an event is counted from.
const SECOND: i64 = 1_000_000_000;
/// No two oscillators differ by more than one part in this many.
const DRIFT: i64 = 10_000;

impl Clock {
    fn read(&mut self, copy: &DriverCopy, mark: &Mark, spare: &mut Vec<CUevent>) -> Reached {
        match driver::ask(copy, mark.event) {
            driver::Event::Pending => return Reached::Pending,
            driver::Event::Lost => return Reached::Lost,
            driver::Event::Reached => {}
        }
        let since_origin = match &self.origin {
            Some(origin) => driver::elapsed_ns(copy, origin.event, mark.event),
            None => Some(0),
        };
        let Some(since_origin) = since_origin else {
            // The driver no longer knows the origin.
            self.origin = None;
            return Reached::Lost;
        };
        let at = self.count(mark, since_origin, spare);
        let host = self.host_time(mark, at);
        Reached::At(self.not_after(host, sys::monotonic_ns()))
    }

    /// Returns the device's time of a mark. The mark becomes the origin if there is none, or an old one.
    fn count(&mut self, mark: &Mark, since_origin: i64, spare: &mut Vec<CUevent>) -> i64 {
        let at = self.origin.as_ref().map_or(0, |origin| origin.at.saturating_add(since_origin));
        if self.origin.is_none() || since_origin > SECOND {
            let next = Origin { event: mark.event, at, ours: false };
            let before = self.origin.replace(next);
            spare.extend(before.filter(|origin| origin.ours).map(|origin| origin.event));
        }
        at
    }

    /// Returns the host's time of a mark.
    fn host_time(&mut self, mark: &Mark, at: i64) -> u64 {
        let shortest = self.shortest.map_or(mark.took, |shortest| shortest.min(mark.took));
        self.shortest = Some(shortest);
        let seen = i64::try_from(mark.asked).unwrap_or(i64::MAX).saturating_sub(at);
        let (ahead, latest) = self.ahead.map_or((seen, at), |(ahead, then)| {
            let passed = at.saturating_sub(then).max(0);
            (seen.max(ahead.saturating_sub(passed / DRIFT)), then.saturating_add(passed))
        });
        self.ahead = Some((ahead, latest));
        let host = at.saturating_add(ahead);
        u64::try_from(host).unwrap_or(0).saturating_add(shortest)
    }

    /// Limits a time to now: what has been reached was reached before. Otherwise the device's clock has leapt, as
    /// when a machine is moved.
    fn not_after(&mut self, host: u64, now: u64) -> u64 {
        let beyond = i64::try_from(host.saturating_sub(now)).unwrap_or(0);
        self.ahead = self.ahead.map(|(ahead, then)| (ahead.saturating_sub(beyond), then));
        host.min(now)
    }

    /// Returns whether an event that the meter gives back is still needed.
    fn keeps(&mut self, event: CUevent) -> bool {
        match &mut self.origin {
            Some(origin) if origin.event == event => {
                origin.ours = true;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(asked: u64, took: u64) -> Mark {
        Mark { event: CUevent::NULL, context: ContextId(1), asked, took }
    }

    #[test]
    fn a_call_that_waited_is_no_slow_call() {
        let call = CallTime::default();
        assert_eq!(call.bounded(10_000_000), 100_000, "the first one may have loaded the code");
        for took in (0..40).map(|turn| if turn % 4 == 0 { 2_000_000 } else { 4_000 }) {
            assert!(call.bounded(took) <= 100_000);
        }
        assert_eq!(call.bounded(4_100), 4_100);
        assert!(call.bounded(2_000_000) < 10_000);
        for _ in 0..10_000 {
            assert!(call.bounded(2_000_000) <= 100_000);
        }
    }

    #[test]
    fn the_tightest_event_says_how_far_the_clocks_are_apart() {
        let mut clock = Clock::default();
        // Queued behind a millisecond of work: reached long after it was recorded.
        assert_eq!(clock.host_time(&mark(5_000_000, 1_500), 1_000_000), 5_001_500);
        // In an empty stream: that millisecond was waiting.
        assert_eq!(clock.host_time(&mark(7_000_000, 1_000), 2_000_000), 7_001_000);
        // Queued again: as much later than it was recorded.
        assert_eq!(clock.host_time(&mark(7_500_000, 2_000), 3_000_000), 8_000_900);
    }

    #[test]
    fn a_card_whose_clock_has_leapt_is_not_ahead_of_now() {
        let mut clock = Clock::default();
        assert_eq!(clock.host_time(&mark(5_000_000, 0), 1_000_000), 5_000_000);
        let leapt = clock.host_time(&mark(6_000_000, 0), 3_600_000_000_000);
        assert_eq!(clock.not_after(leapt, 6_000_500), 6_000_500);
        let next = clock.host_time(&mark(7_000_000, 0), 3_600_001_000_000);
        assert_eq!(clock.not_after(next, 7_000_600), 7_000_400);
    }

    #[test]
    fn clocks_that_drift_are_followed() {
        for drift in [-50_i64, 0, 50] {
            let mut clock = Clock::default();
            for step in 0..100_000_i64 {
                // Every hundredth finds its stream empty, the others wait a millisecond.
                let (host, empty) = (2_000_000 + step * 100_000, step % 100 == 0);
                let asked = if empty { host } else { host - 1_000_000 };
                let card = host + host * drift / 1_000_000;
                let said = clock.host_time(&mark(asked.unsigned_abs(), 0), card);
                let error = said.cast_signed() - host;
                assert!(error.abs() <= 1_600, "step {step}, {drift} ppm: {error}");
            }
        }
    }
}
