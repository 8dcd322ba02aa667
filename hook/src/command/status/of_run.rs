//! The limits of a `gpucap run`, by the file beside its ledger. That is its user's to write, as its ledger is.

use super::view::LedgerView;
use crate::container::effective_limit::EffectiveLimit;
use crate::container::ledgers::{Name, maker_has_ended};
use crate::container::run_file::{self, RunFile};
use crate::node::proc::Process;
use crate::sys;
use std::io;

impl LedgerView {
    /// The same with its limits, if it is a run that has such a file.
    ///
    /// # Errors
    /// There is one, and it cannot be read.
    pub(super) fn with_limits_of_run(&mut self) -> io::Result<()> {
        let Some(RunFile { limits, page }) = run_file::copy(&self.path)? else { return Ok(()) };
        let effective = EffectiveLimit::all(&limits, Some(page.get()));
        for device in &mut self.devices {
            device.effective = EffectiveLimit::find(&effective, device.uuid);
        }
        Ok(())
    }

    /// The process that `gpucap run` became, if it runs in this pid namespace.
    pub(super) fn maker(&self) -> Option<u32> {
        let name = Name::of(&self.path)?;
        let Name::Run { pid, pid_namespace, .. } = name else { return None };
        let is_here = Process::own().namespace("pid") == Some(pid_namespace);
        (is_here && !maker_has_ended(name, sys::uid())).then_some(pid)
    }
}
