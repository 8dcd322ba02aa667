//! What is done about work in flight whether or not the program makes a call: its own, and that of processes that have died.

use super::Meter;
use crate::throttle::{admission::dead::Unfinished, event::Events, timeline::late::Unmarked};

/// A look is late that comes this long after the one before: it was due after half of that.
const LATE_NS: u64 = 20_000_000;
/// For how many times that time each launch is measured by itself then.
const MEASURED: u64 = 20;
const MOST_MEASURED_NS: u64 = 3_600_000_000_000;

impl<E> Meter<'_, E> {
    /// Sets whether there are other processes of the container on the device. Assumed false until set.
    pub const fn set_shared(&mut self, is_shared: bool) {
        self.admission.set_shared(is_shared);
    }

    /// Returns whether [`watch`](Self::watch) is to be called from the first launch on: not without a limit.
    #[must_use]
    pub fn wants_watch(&self) -> bool {
        self.admission.is_limited()
    }

    /// Sets whether [`watch`](Self::watch) is called. Assumed true until set: a launch that finds out comes before any that
    /// has no event.
    pub fn set_watched(&mut self, watched: bool, now: u64) {
        self.looked_at = now;
        let Self { admission, timeline, .. } = self;
        admission.set_watched(watched, now, timeline);
    }

    /// Notes whether nothing has looked for long at launches of which no event shows the end: the process was stopped, or its
    /// thread is kept from it. What they took is not known then, and for a while each launch is measured by itself. Without
    /// that, launches of 3 s of a process that stops itself behind each get all of a device (`throttle`: `stops`).
    pub(super) fn note_late_look(&mut self, now: u64) {
        if !self.admission.is_limited() {
            self.looked_at = now; // nothing has to
        }
        let late_ns = now.saturating_sub(self.looked_at);
        if self.looked_at == 0 || late_ns < LATE_NS {
            return;
        }
        let Self { admission, timeline, looked_at, .. } = self;
        if timeline.has_unmarked() {
            *looked_at = now;
            let until = now.saturating_add(late_ns.saturating_mul(MEASURED).min(MOST_MEASURED_NS));
            admission.measure_each_until(until, now, timeline);
        }
    }

    /// Returns whether other processes of the container may be waiting for the end of a launch of unknown length: then
    /// [`watch`](Self::watch) is to be called soon.
    #[must_use]
    pub const fn is_awaited(&self) -> bool {
        self.admission.is_awaited()
    }

    /// Returns whether to read the reports of other processes and [`watch`](Self::watch): the program makes no call that does
    /// both, or others wait. If not, [`watch_unmarked`](Self::watch_unmarked) is enough.
    #[must_use]
    pub const fn is_watch_due(&self, now: u64) -> bool {
        self.is_awaited() || self.timeline.turns().is_look_overdue(self.watched_at, now)
    }

    /// Settles what has finished, and charges what work in flight has used up so far. Returns when to do so again; `None`:
    /// nothing is in flight, as far as is known.
    pub fn watch(&mut self, now: u64, events: &mut impl Events<Event = E>) -> Option<u64> {
        self.watched_at = now;
        self.timeline.ids().for_each(|stream| self.collect_in(stream, now, events));
        let is_any = self.watch_unmarked(now, events);
        let Self { admission, timeline, charging, .. } = self;
        let again = admission.watch(now, timeline, charging);
        (is_any || timeline.is_in_flight()).then_some(again)
    }

    /// The part of [`watch`](Self::watch) that no call of the program does: launches of which no event shows the end. Returns
    /// whether there are any.
    pub fn watch_unmarked(&mut self, now: u64, events: &mut impl Events<Event = E>) -> bool {
        self.note_late_look(now);
        self.looked_at = now;
        let mut is_any = false;
        for stream in self.timeline.ids() {
            let due_ns = self.charging.due_ns();
            match self.timeline.look_at_unmarked(stream, due_ns, now, events) {
                Unmarked::None => {}
                Unmarked::Some | Unmarked::Running => is_any = true,
                Unmarked::Restless => {
                    is_any = true;
                    self.close_allowances_of(stream, now);
                }
                Unmarked::Over { from, until } => {
                    self.close_allowances_of(stream, now);
                    let is_fenced = self.timeline.stream(stream).is_some_and(|it| it.fenced);
                    self.emptied(stream, (from, until), now, events);
                    // What else was put into the stream may be to come.
                    self.timeline
                        .stream_mut(stream)
                        .into_iter()
                        .for_each(|it| it.fenced |= is_fenced);
                }
            }
        }
        let Self { admission, timeline, charging, .. } = self;
        if is_any {
            admission.follow_late(now, timeline, charging);
        }
        is_any
    }

    /// Has the next launch of each thread ask, since nothing [watches](Self::watch) from here on. Returns whether it is to
    /// go on all the same.
    pub fn rest(&mut self, now: u64) -> bool {
        let Self { admission, timeline, .. } = self;
        admission.close_allowances(now, timeline);
        timeline.is_in_flight() || timeline.unmarked_since().is_some()
    }

    /// Charges the unfinished work of a dead process of the same bucket. Returns the charge.
    pub fn inherit(&mut self, left: Unfinished, now: u64) -> u64 {
        self.admission.inherit(left, now)
    }

    /// Returns until when the container is in debt, if it owes `ns` for what is in flight.
    #[must_use]
    pub fn in_debt_until(&self, ns: u64, now: u64) -> u64 {
        self.admission.in_debt_until(ns, now)
    }

    /// Holds the process back until this time, and no longer: the node has seen that its container has had more than its limit.
    pub fn hold(&mut self, until: u64, now: u64) {
        let Self { admission, timeline, .. } = self;
        if until > now {
            admission.close_allowances(now, timeline);
        }
        admission.hold(until);
    }

    /// Records that the process with this number of the container has died.
    pub fn sibling_died(&mut self, process: u16) {
        self.admission.sibling_died(process);
    }
}
