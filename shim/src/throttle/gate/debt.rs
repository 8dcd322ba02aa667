//! Until when the container is in debt, for its usage page: the node has the next one in its place wait for that.

use super::Gate;
use crate::sys;
use gpucap_core::page::LEAST_DEBT_NS;

impl Gate {
    /// Publishes it, if it is time to.
    pub(super) fn publish_debt(&self, now: u64) {
        let Some(peers) = self.peers.as_ref().filter(|_| self.upkeep.is_debt_due(now)) else {
            return;
        };
        // What runs at one time is had once.
        let left = self.ledger.all_unfinished(self.index).map(|left| left.owed(now));
        let owed_ns = left.max().unwrap_or(0);
        let until = self.with(|inside| inside.meter.in_debt_until(owed_ns, now));
        let Some(left_ns) = until.map(|until| until.saturating_sub(now)) else { return };
        let is_in_debt = left_ns >= LEAST_DEBT_NS;
        peers.set_debt(if is_in_debt { sys::unix_time_ns().saturating_add(left_ns) } else { 0 });
    }
}
