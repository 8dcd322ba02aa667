//! What this process publishes for its peers on the device, and what it derives from their reports.

use super::Meter;
use crate::throttle::usage_report::{PeerReport, UNKNOWN_NS, UsageReport};

impl<E> Meter<'_, E> {
    /// Returns whether it is time to read the reports of other processes on the device.
    #[must_use]
    pub const fn is_look_due(&self, now: u64) -> bool {
        self.turns.is_look_due(now)
    }

    /// Takes the current reports of other processes on the device.
    pub fn look(&mut self, peers: impl Iterator<Item = PeerReport>, now: u64) {
        let own = self.usage_report();
        self.turns.look(peers, own, now);
    }

    /// Sets whether a process on the device publishes no report: then the duration of launches says less about their
    /// cost. Assumed false until set.
    pub const fn set_unreported(&mut self, unreported: bool) {
        self.settlement.set_unreported(unreported);
    }

    /// Returns this process's report.
    #[must_use]
    pub fn usage_report(&self) -> UsageReport {
        let back = self.settlement.overlap_of(self.in_flight_ns);
        // The end of unmeasured work is unknown: until then it may use all of the time.
        let in_flight_ns = if self.unmeasured > 0 { UNKNOWN_NS } else { self.in_flight_ns - back };
        let work = self.totals.busy_ns.saturating_add(in_flight_ns);
        UsageReport::new(
            work,
            self.was_in_flight_ns,
            self.is_in_flight().then_some(self.in_flight_since),
        )
        .with_long(self.is_in_flight() && self.progress_at < self.long_until)
    }

    pub(super) const fn is_in_flight(&self) -> bool {
        self.pending > 0 || self.under_way > 0
    }

    /// Removes one piece of work in flight. It ended when the device reached its event, however late that was
    /// noticed.
    pub(super) fn may_be_over(&mut self, now: u64) {
        if !self.is_in_flight() {
            let over = self.reached_at.clamp(self.in_flight_since, now.max(self.in_flight_since));
            self.was_in_flight_ns =
                self.was_in_flight_ns.saturating_add(over - self.in_flight_since);
        }
    }
}
