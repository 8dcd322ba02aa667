//! What a process does about its launches of unknown length while they are in flight.

use super::Admission;
use crate::throttle::{
    charging::Charging,
    timeline::{Timeline, late::WATCH_NS, stream::Reserved},
};
use crate::units::Share;

/// How soon the end of one is looked for again: after this part of the time for which it has been in flight, but not more
/// often than each fifth of a millisecond, and at least each hundredth of a second.
const PART: u64 = 64;
const SOONEST_NS: u64 = 200_000;

impl Admission<'_> {
    /// What the launches of unknown length took has been charged: if none is in flight any more, another process may
    /// have one.
    pub(crate) fn note_unknown(&mut self) {
        if self.unmeasured == 0 {
            self.unknown.end();
        }
    }

    /// The driver has taken a launch.
    pub(crate) fn launched(&mut self, reserved: Reserved) {
        if reserved.unmeasured {
            self.unknown.launched();
        }
    }

    /// Sets whether there are other processes of the container on the device.
    pub(crate) const fn set_shared(&mut self, is_shared: bool) {
        self.unknown.set_shared(is_shared);
    }

    /// Returns whether others may be waiting for the end of a launch of unknown length.
    pub(crate) const fn is_awaited(&self) -> bool {
        self.unmeasured > 0 && self.unknown.is_shared()
    }

    /// Returns whether there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.shares.share() != Share::FULL
    }

    /// Sets whether anything looks at what is in flight between the calls of the program. If not, each launch is measured by
    /// itself: of those out of an allowance, none would show what they took before the next call.
    pub(crate) fn set_watched<E>(&mut self, watched: bool, now: u64, timeline: &mut Timeline<E>) {
        if self.watched.set(watched) && !watched {
            self.close_allowances(now, timeline);
        }
    }

    /// Has each launch measured by itself until this time.
    pub(crate) fn measure_each_until<E>(
        &mut self,
        until: u64,
        now: u64,
        timeline: &mut Timeline<E>,
    ) {
        self.watched.measure_each_until(until);
        self.close_allowances(now, timeline);
    }

    /// Returns whether each launch is to be measured by itself, since nothing looks at those that are not, or did not.
    pub(super) const fn measures_each(&self, now: u64) -> bool {
        self.watched.measures_each(now)
    }

    /// Returns whether nothing does.
    pub(crate) const fn is_unwatched(&self) -> bool {
        self.watched.is_missing()
    }

    /// Reserves what work in flight takes beyond what was expected.
    pub(crate) fn follow_late<E>(
        &mut self,
        now: u64,
        timeline: &mut Timeline<E>,
        charging: &Charging,
    ) {
        // Processes of a container may have different shares, and come and go while the work runs.
        self.shares.follow(self.reserved_ns, now);
        // Beside a process that works and publishes no report nothing is certain.
        let may_be_others = charging.beside_unreported_work();
        let due_ns = charging.due_ns();
        let meets = self.gang.meets(now);
        let more_ns =
            if may_be_others { 0 } else { timeline.late(self.reserved_ns, due_ns, meets, now) };
        if more_ns > 0 {
            self.reserved_ns = self.reserved_ns.saturating_add(more_ns);
            self.late_ns = self.late_ns.saturating_add(more_ns);
            self.shares.charge_late(more_ns, now);
        }
    }

    /// What of the work in flight has passed beyond what was expected.
    pub(crate) const fn late_ns(&self) -> u64 {
        self.late_ns
    }

    /// Gives back what was reserved for such work: it is over, and what is due for it is charged.
    pub(crate) fn forget_late(&mut self, ns: u64) {
        if ns > 0 {
            self.late_ns = self.late_ns.saturating_sub(ns);
            self.release(ns);
        }
    }

    /// Records that another process of the container has died.
    pub(crate) fn sibling_died(&self, process: u16) {
        self.unknown.died(process);
    }

    /// Follows what is in flight. Returns when to do so again.
    pub(crate) fn watch<E>(
        &mut self,
        now: u64,
        timeline: &mut Timeline<E>,
        charging: &Charging,
    ) -> u64 {
        self.follow_late(now, timeline, charging);
        if self.unmeasured <= timeline.stuck_unmeasured(now) {
            self.unknown.end();
        }
        let since = timeline.latest_unmeasured().filter(|_| self.is_awaited());
        let soon = |since| (now.saturating_sub(since) / PART).clamp(SOONEST_NS, WATCH_NS);
        now.saturating_add(since.map_or(WATCH_NS, soon))
    }
}
