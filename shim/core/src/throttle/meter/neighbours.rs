//! What this process tells others on the device, and what it makes of what they tell.

use super::Meter;
use crate::throttle::usage_report::{PeerReport, UsageReport};

/// Longer than any measurement takes.
const UNKNOWN_NS: u64 = 10_000_000_000;

impl<E> Meter<'_, E> {
    /// Whether it is time to look at what other processes on the device tell.
    #[must_use]
    pub const fn is_look_due(&self, now: u64) -> bool {
        self.turns.is_look_due(now)
    }

    /// What other processes on the device tell now.
    pub fn look(&mut self, peers: impl Iterator<Item = PeerReport>, now: u64) {
        let own = self.usage_report();
        self.turns.look(peers, own, now);
    }

    /// Whether somebody is on the device who tells nothing: then the time of launches says less of what they were. Nobody is,
    /// unless one knows better.
    pub const fn set_strangers(&mut self, strangers: bool) {
        self.settlement.set_strangers(strangers);
    }

    /// What this process has to tell others on the device.
    #[must_use]
    pub fn usage_report(&self) -> UsageReport {
        let back = self.settlement.overlap_of(self.out_ns);
        // Of what nobody has measured nobody knows the end: until then it may want all the time that there is.
        let out_ns = if self.unmeasured > 0 { UNKNOWN_NS } else { self.out_ns - back };
        let work = self.totals.busy_ns.saturating_add(out_ns);
        UsageReport::new(work, self.was_out_ns, self.is_out().then_some(self.out_since))
    }

    pub(super) const fn is_out(&self) -> bool {
        self.pending > 0 || self.under_way > 0
    }

    /// One thing less is out. It was over when the device came to its event, however late that was noticed.
    pub(super) fn may_be_over(&mut self, now: u64) {
        if !self.is_out() {
            let over = self.reached_at.clamp(self.out_since, now.max(self.out_since));
            self.was_out_ns = self.was_out_ns.saturating_add(over - self.out_since);
        }
    }
}
