//! Whether processes without a report work on a card, as a process looks for it that is held back.

use gpucap_core::throttle::UsageReport;
use gpucap_core::throttle::unreported::{Busy, Unreported, UnreportedProcesses};

/// What one process knows of it on one card.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// A launch was held back, and the last time is long ago.
    pub(super) is_due: bool,
    unreported: Unreported,
    /// The busy time of the card at the last time.
    busy_ns: u64,
}

/// What NVML's list says from the beginning.
pub(super) const fn listed(is_any: bool) -> UnreportedProcesses {
    if is_any { UnreportedProcesses::Idle } else { UnreportedProcesses::None }
}

impl Question {
    /// Returns what there is beside processes with these reports. NVML's list says this, and `busy_ns` is the busy time of the card
    /// up to now.
    pub(super) fn ask(
        &mut self,
        reports: Vec<(u64, UsageReport)>,
        listed: UnreportedProcesses,
        busy_ns: u64,
        now: u64,
    ) -> UnreportedProcesses {
        self.is_due = false;
        let ns = busy_ns - core::mem::replace(&mut self.busy_ns, busy_ns);
        let works = self.unreported.works(now, reports, |of_ns| Some(Busy { of_ns, ns }));
        match listed {
            UnreportedProcesses::Idle if works => UnreportedProcesses::Working,
            listed => listed,
        }
    }
}
