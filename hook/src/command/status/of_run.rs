//! What is known of a ledger that one user's processes share, as those of a `gpucap run`: its limits, by the file beside
//! it, and which processes it can be of. Both files are the user's to write.

use super::view::LedgerView;
use crate::container::effective_limit::EffectiveLimit;
use crate::container::ledgers::Name;
use crate::container::run_file::{self, RunFile};
use crate::node::proc::Process;

/// Whether a process is the one that made a run's file, by its start and its user: any user can make a file of this
/// name.
fn is_maker(process: Process, name: Name) -> bool {
    let Name::Run { uid, start_time, .. } = name else { return false };
    let stat = process.stat().ok().flatten();
    stat.is_some_and(|stat| !stat.ended && stat.start_time == start_time)
        && process.uid().is_ok_and(|user| user == uid)
}

impl LedgerView {
    /// The same with its limits, if it is a run that has such a file.
    ///
    /// # Errors
    /// There is one, and it cannot be read.
    pub(super) fn with_limits_of_run(&mut self) -> Result<(), String> {
        let Some(RunFile { limits, page }) = run_file::copy(&self.path)? else { return Ok(()) };
        let effective = EffectiveLimit::all(&limits, Some(page.get()));
        for device in &mut self.devices {
            device.effective = EffectiveLimit::find(&effective, device.uuid);
        }
        Ok(())
    }

    /// The same without processes that are another user's: a ledger may name any.
    pub(super) fn hide_other_users(&mut self) {
        let Some(name) = Name::of(&self.path) else { return };
        let is_own = |it: Process| it.uid().is_ok_and(|user| user == name.uid());
        for device in &mut self.devices {
            device.processes.retain(|row| row.here.is_none_or(is_own));
        }
    }

    /// The process that `gpucap run` became, if it runs in this pid namespace.
    pub(super) fn maker(&self) -> Option<u32> {
        let name = Name::of(&self.path)?;
        let Name::Run { pid, pid_namespace, .. } = name else { return None };
        let is_here = Process::own().namespace("pid") == Some(pid_namespace);
        (is_here && is_maker(Process(pid), name)).then_some(pid)
    }
}
