//! What this process publishes for its peers on the device, and what it derives from their reports.

use super::Meter;
use crate::throttle::unreported::UnreportedProcesses;
use crate::throttle::usage_report::{PeerReport, UNKNOWN_NS, UsageReport};

impl<E> Meter<'_, E> {
    /// Returns whether it is time to read the reports of other processes on the device.
    #[must_use]
    pub const fn is_look_due(&self, now: u64) -> bool {
        self.timeline.turns().is_look_due(now)
    }

    /// Takes the current reports of other processes on the device.
    pub fn take_reports(&mut self, peers: impl Iterator<Item = PeerReport>, now: u64) {
        let own = self.usage_report();
        self.timeline.take_reports(peers, own, now);
        self.give_back(now);
        self.follow_lending(0, now);
    }

    /// If the owner of what is lent has come back, what of it is in flight still counts as taken out of the guarantee.
    fn give_back(&mut self, now: u64) {
        let Self { admission, timeline, .. } = self;
        let (lent, part) = (admission.lent(), timeline.turns().available(0, now));
        if lent.is_some() && part < lent {
            admission.gives_back(part, now);
        }
    }

    /// Sets whether the next looks see all other containers: otherwise nothing is lent. Assumed true until set.
    pub const fn set_sees_all(&mut self, sees_all: bool) {
        self.timeline.turns_mut().set_sees_all(sees_all);
    }

    /// Returns whether the container borrows what others leave: then their reports matter to each launch.
    #[must_use]
    pub fn may_borrow(&self) -> bool {
        self.admission.limit().borrows()
    }

    /// Returns whether others have to know when threads of this process [wait](Self::wait_begins): a container that borrows.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.timeline.turns().are_watched()
    }

    /// Beside a process that works and publishes no report nothing is lent: what it leaves is unknown.
    pub(super) fn follow_lending(&mut self, launch_ns: u64, now: u64) {
        if !self.may_borrow() {
            return self.admission.lend(self.admission.limit().guaranteed(), now);
        }
        let part = match self.charging.beside_unreported_work() {
            true => Some(self.admission.limit().share()),
            false => self.timeline.turns().available(launch_ns, now),
        };
        self.admission.lend(part, now);
    }

    /// Sets what processes there are on the device that publish no report: beside them the duration of launches says less about
    /// their cost. Until it is set there are none.
    pub fn set_unreported(&mut self, unreported: UnreportedProcesses) {
        self.charging.set_unreported(unreported);
    }

    /// Returns this process's report.
    #[must_use]
    pub fn usage_report(&self) -> UsageReport {
        let Self { admission, timeline, charging, .. } = self;
        let reserved_ns = admission.reserved_ns();
        // The end of unmeasured work is unknown: until then it may use all of the time.
        let in_flight_ns = match admission.has_unmeasured() {
            true => UNKNOWN_NS,
            false => reserved_ns - charging.overlap_of(reserved_ns),
        };
        // Behind something that is no launch it waits for that, for ever perhaps.
        let may_be_long = timeline.may_be_at_it() && charging.may_be_long(timeline.progress_at());
        timeline.report(charging.due_ns().saturating_add(in_flight_ns)).with_long(may_be_long)
    }
}
