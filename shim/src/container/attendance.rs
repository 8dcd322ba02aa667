//! The dead of the ledger: how this process comes to know that there are any, without looking at each.
//!
//! The processes of a ledger have one segment attached that the system counts; while they are as many as there are
//! slots, none has died ([`gpucap_core::ledger`] explains why that is certain). Where the segment cannot be had
//! (another IPC namespace, a seccomp filter), each process is checked, as it is once in a second in any case, by
//! whichever process of the ledger comes first.
//!
//! A refusal asks this each time; a report of use at most twice in a second, so that it costs no system call.

use crate::container::ledger_file;
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering};
use gpucap_core::ledger::{Count, Ledger};

/// How often all are looked at, whatever the system counts.
const LOOK_NS: u64 = 1_000_000_000;
/// How old a report of use may be.
const REPORT_NS: u64 = 500_000_000;

/// What one process knows of it.
pub(crate) struct Attendance {
    ledger: &'static Ledger,
    joined: Option<sys::Attendance>,
    count: Count,
    /// When a report last asked for the dead.
    reported_ns: AtomicU64,
}

impl Attendance {
    /// Comes to the ledger, in which this process has a slot already.
    pub(crate) fn join(ledger: &'static Ledger, all_users: bool) -> Self {
        let begin = |publish: &dyn Fn(u64) -> bool| sys::Attendance::begin(all_users, publish);
        let joined = ledger.attend(sys::Attendance::join, begin);
        Self { ledger, joined, count: Count::default(), reported_ns: AtomicU64::new(0) }
    }

    /// Whether it is certain that every process of the ledger lives.
    pub(crate) fn all_live(&self) -> bool {
        let Some(joined) = &self.joined else { return false };
        let _errno = sys::Errno::keep();
        if self.ledger.is_time_to_look(sys::coarse_ns(), LOOK_NS) {
            self.count.forget();
            return false;
        }
        let is_ours = self.ledger.attendance() == joined.name();
        is_ours && self.ledger.all_live(&self.count, &|| joined.count())
    }

    /// Takes out what the dead hold, if it is time for a new report.
    pub(crate) fn keep_up(&self) {
        let now = sys::coarse_ns();
        let last = self.reported_ns.load(Ordering::Relaxed);
        if last != 0 && now.saturating_sub(last) < REPORT_NS {
            return;
        }
        self.reported_ns.store(now, Ordering::Relaxed);
        if !self.all_live() {
            let _errno = sys::Errno::keep();
            self.ledger.reap(&ledger_file::alive);
        }
    }
}
