//! Which processes have a context on the device, as NVML lists them: of this container, in its ledger and its usage page, and
//! those that publish no report.

use super::Gate;
use crate::container::ledger_file;
use core::sync::atomic::Ordering::Relaxed;

impl Gate {
    /// The process is about to have a context on the device. It may never launch anything, and no report would show that it is
    /// there.
    pub(crate) fn context_begins(&self) {
        if self.is_used.load(Relaxed) || self.is_used.swap(true, Relaxed) {
            return;
        }
        self.ledger.uses(self.slot, self.index);
        if let Some(peers) = &self.peers {
            peers.set_users(|| self.ledger.users(self.index));
        }
    }

    /// Finds out whether a process on the device publishes no report: then measurements contain its turns too.
    pub(super) fn look_for_unreported(&self) {
        if let Some(peers) = &self.peers {
            // Also those that do nothing: a container could have processes of its own taken for others.
            self.ledger.reap(&ledger_file::alive);
            let users = || self.ledger.users(self.index);
            peers.set_users(users);
            let unreported = peers.unreported(users);
            self.with(|inside| inside.meter.set_unreported(unreported));
        }
    }
}
