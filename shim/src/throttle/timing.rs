//! Timing events of the driver, and the device's clock in terms of the host's.
//!
//! An event says how long after another one of the same context the device reached it (a float of milliseconds: 60 ns
//! at one second, so the reference event is replaced about once a second). The host's time follows by the
//! [offset](ClockMap) of the two clocks.
//!
//! Events are made in the stream's context and reused; they end with it. No call here is made with an event of a
//! context that has ended: its number is then unknown.

use super::idle::AskedStreams;
use crate::driver::DriverCopy;
use crate::driver::cuda::{current_context, time as driver};
use crate::sys;
use gpucap_abi::cuda::{CUcontext, CUevent, CUstream};
use gpucap_core::throttle::{ClockMap, Events, Reached, StreamId};
use std::collections::VecDeque;

/// A recorded event.
#[derive(Debug)]
pub(crate) struct Mark {
    event: CUevent,
    context: ContextId,
    /// The host's time right before the driver was asked to record it.
    asked: u64,
    /// What the call took.
    took: u64,
}

impl Mark {
    /// When the call that recorded it returned.
    pub(crate) fn asked_until(&self) -> u64 {
        self.asked.saturating_add(self.took)
    }

    /// Returns the event for reuse: its time is not needed.
    pub(crate) fn unused(self) -> Spare {
        Spare { event: self.event, context: self.context }
    }
}

/// A recorded event of a context whose number is not known.
#[derive(Debug)]
pub(crate) struct Recorded {
    event: CUevent,
    asked: u64,
    took: u64,
}

impl Recorded {
    /// Makes an event in the current context and records it in a stream of that.
    pub(crate) fn new(copy: &DriverCopy, stream: CUstream) -> Option<Self> {
        let event = driver::create_event(copy)?;
        let asked = sys::monotonic_ns();
        if driver::record(copy, event, stream).is_none() {
            let _ = driver::destroy_event(copy, event);
            return None;
        }
        Some(Self { event, asked, took: sys::monotonic_ns().saturating_sub(asked) })
    }

    /// Returns when the driver was asked to record it.
    pub(crate) fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns it as one of this context.
    pub(crate) fn mark(self, context: ContextId) -> Mark {
        let Self { event, asked, took } = self;
        Mark { event, context, asked, took }
    }

    /// Returns how long after it `end` was reached; `None` if it was not, or the driver does not say.
    pub(crate) fn until(&self, copy: &DriverCopy, end: &Self) -> Option<u64> {
        let is_reached = driver::ask(copy, end.event) == driver::Event::Reached;
        let elapsed = is_reached.then(|| driver::elapsed_ns(copy, self.event, end.event)).flatten();
        elapsed.map(|ns| u64::try_from(ns).unwrap_or(0))
    }

    /// Gives it back to the driver.
    pub(crate) fn destroy(self, copy: &DriverCopy) {
        let _ = driver::destroy_event(copy, self.event);
    }
}

/// A context; the next one with the same handle has another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextId(u64);

/// An event that is not in use.
#[derive(Debug)]
pub(crate) struct Spare {
    event: CUevent,
    context: ContextId,
}

/// The events of one device.
#[derive(Default)]
pub(crate) struct Timing {
    contexts: Vec<Context>,
    made: u64,
    /// The contexts that ended last, and when.
    ended: VecDeque<(ContextId, u64)>,
    /// What any thread may ask about a stream.
    pub(crate) streams: AskedStreams<ContextId>,
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
    pub(crate) fn context(&mut self, handle: CUcontext) -> ContextId {
        // Also one that is ending: what is launched in it at this moment ends with it.
        let known = self.contexts.iter().find(|context| context.handle == handle);
        if let Some(context) = known {
            return context.id;
        }
        self.made = self.made.saturating_add(1);
        let id = ContextId(self.made);
        let (spare, clock) = (Vec::new(), Clock::default());
        self.contexts.push(Context { id, is_ending: false, handle, spare, clock });
        id
    }

    /// Returns the handle of a context that has not ended.
    pub(crate) fn handle(&self, id: ContextId) -> Option<CUcontext> {
        let context = self.contexts.iter().find(|context| context.id == id && !context.is_ending);
        context.map(|context| context.handle)
    }

    /// Returns the handle of a context in which something has been launched.
    pub(crate) fn any_context(&self) -> Option<CUcontext> {
        self.contexts.iter().find(|context| !context.is_ending).map(|context| context.handle)
    }

    /// Forgets a stream, before the driver ends it.
    pub(crate) fn leave(&mut self, id: StreamId) {
        if let Some(mark) = self.latest(id) {
            self.keep(mark.unused());
        }
    }

    /// Takes the event behind the latest launch of a stream about which nothing else can be asked. From here on nothing is
    /// asked about the stream.
    pub(crate) fn latest(&mut self, id: StreamId) -> Option<Mark> {
        let (latest, context) = self.streams.leave(id)?;
        let (event, asked, took) = latest.recorded();
        Some(Mark { event, context, asked, took })
    }

    /// Returns the number of a context in which something has been launched.
    pub(crate) fn find(&self, handle: CUcontext) -> Option<ContextId> {
        let is_it = |context: &&Context| context.handle == handle && !context.is_ending;
        self.contexts.iter().find(is_it).map(|context| context.id)
    }

    /// Marks whether the driver is about to end a context: its events are not touched until the outcome is known.
    pub(crate) fn is_ending(&mut self, id: ContextId, is_ending: bool) {
        if let Some(context) = self.contexts.iter_mut().find(|context| context.id == id) {
            context.is_ending = is_ending;
        }
    }

    /// Has a context go by another handle. Returns its number; `None` if nothing was launched in it.
    pub(crate) fn rename(&mut self, before: CUcontext, handle: CUcontext) -> Option<ContextId> {
        let id = self.find(before)?;
        self.name(id, handle);
        Some(id)
    }

    /// The same by number.
    pub(crate) fn name(&mut self, id: ContextId, handle: CUcontext) {
        if let Some(context) = self.contexts.iter_mut().find(|context| context.id == id) {
            context.handle = handle;
        }
    }

    /// Marks the end of a context, and of its events, at this time.
    pub(crate) fn end(&mut self, id: ContextId, at: u64) {
        self.contexts.retain(|context| context.id != id);
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, at));
    }

    /// Marks the end of each context for whose handle `ended` is true, at this time. Returns which they are.
    pub(crate) fn end_each(
        &mut self,
        at: u64,
        ended: impl Fn(CUcontext) -> bool,
    ) -> Vec<ContextId> {
        let ended = self.contexts.iter().filter(|context| ended(context.handle));
        let ids: Vec<_> = ended.map(|context| context.id).collect();
        ids.iter().for_each(|id| self.end(*id, at));
        ids
    }

    /// Returns the state of the events of a context that no longer exists.
    fn ended_at(&self, id: ContextId) -> Reached {
        let ended = self.ended.iter().find(|(ended, _)| *ended == id);
        ended.map_or(Reached::Lost, |(_, at)| Reached::Ended(*at))
    }

    /// Returns an event for reuse, if there is one.
    pub(crate) fn spare(&mut self, id: ContextId) -> Option<Spare> {
        let is_it = |context: &&mut Context| context.id == id && !context.is_ending;
        let context = self.contexts.iter_mut().find(is_it)?;
        Some(Spare { event: context.spare.pop()?, context: id })
    }

    /// Keeps an event that was not recorded after all.
    pub(crate) fn keep(&mut self, spare: Spare) {
        if let Some(context) = self.contexts.iter_mut().find(|context| context.id == spare.context)
        {
            context.spare.push(spare.event);
        }
    }

    /// Returns a reader of events.
    pub(crate) fn reader<'a>(&'a mut self, copy: &'a DriverCopy) -> Reader<'a> {
        Reader { timing: self, copy }
    }
}

impl Spare {
    /// Makes a new event in a context.
    pub(crate) fn new(copy: &DriverCopy, handle: CUcontext, context: ContextId) -> Option<Self> {
        let make = || driver::create_event(copy);
        let event = if current_context(copy) == Some(handle) {
            make()?
        } else {
            driver::in_context(copy, handle, make)??
        };
        Some(Self { event, context })
    }

    /// The driver's handle of it.
    pub(crate) fn event(&self) -> CUevent {
        self.event
    }

    /// Gives it back to the driver.
    pub(crate) fn destroy(self, copy: &DriverCopy) {
        let _ = driver::destroy_event(copy, self.event);
    }

    /// Records it at the end of what is queued in a stream of its context.
    ///
    /// # Errors
    /// The driver refuses: the event is still spare.
    pub(crate) fn record(self, copy: &DriverCopy, stream: CUstream) -> Result<Mark, Self> {
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
pub(crate) struct Reader<'a> {
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

    fn is_idle(&mut self, stream: StreamId) -> Option<bool> {
        let Self { timing, copy } = self;
        let (asked, context) = timing.streams.get(stream)?;
        let handle = timing.handle(context)?;
        driver::in_context(copy, handle, || asked.is_idle(copy)).flatten()
    }
}

/// The relation of the device's clock to the host's.
#[derive(Default)]
struct Clock {
    origin: Option<Origin>,
    map: ClockMap,
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
        let host = self.map.host_time(mark.asked, mark.took, at);
        Reached::At(self.map.not_after(host, sys::monotonic_ns()))
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
