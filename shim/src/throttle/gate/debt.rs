//! Until when the container is in debt, for its usage page: the node has the next one in its place wait for that.

use super::Gate;
use crate::sys;
use gpucap_core::page::PLACES;

/// Less is not worth a word: it is what a launch may wait for at any time.
const LEAST_NS: u64 = 100_000_000;

impl Gate {
    /// Publishes it, if it is time to.
    pub(super) fn publish_debt(&self, now: u64) {
        let Some(peers) = self.peers.as_ref().filter(|_| self.upkeep.is_debt_due(now)) else {
            return;
        };
        let paid_until = self.ledger.paid_until(self.index, PLACES);
        let until = self.with(|inside| inside.meter.in_debt_until(paid_until, now));
        let Some(left_ns) = until.map(|until| until.saturating_sub(now)) else { return };
        let is_in_debt = left_ns >= LEAST_NS;
        peers.set_debt(if is_in_debt { sys::unix_time_ns().saturating_add(left_ns) } else { 0 });
    }
}
