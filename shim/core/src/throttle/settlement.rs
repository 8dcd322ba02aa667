//! What finished work is charged: the smaller of two sums that are both too large.
//!
//! * Presence: the time in which at least one stream was occupied. Too large when a stream waits, copies or starves.
//! * Work: the sum of what each operation costs by itself. Too large when operations run side by side.
//!
//! Busy time is below both. Whichever is smaller for one batch is smaller by chance, and charging that would charge too
//! little: both are summed up over an epoch, and what is charged follows the smaller sum.

use super::coverage::Coverage;

/// The sums of one device and process.
#[derive(Debug)]
pub(super) struct Settlement {
    coverage: Coverage,
    presence_ns: u64,
    work_ns: u64,
    charged_ns: u64,
    epoch_ends: u64,
    /// Work and presence of this epoch of which both are known, and their ratio in the epochs before.
    known: (u64, u64),
    ratio: u64,
}

const EPOCH_NS: u64 = 100_000_000;
/// A ratio of one.
const ONE: u64 = 1 << 16;

/// A piece of work that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// From when to when its stream was occupied with it, idle time included; nothing if nobody knows.
    pub(super) span: Option<(u64, u64)>,
    /// What it costs by itself.
    pub(super) work_ns: u64,
}

impl Default for Settlement {
    fn default() -> Self {
        Self {
            coverage: Coverage::default(),
            presence_ns: 0,
            work_ns: 0,
            charged_ns: 0,
            epoch_ends: 0,
            known: (0, 0),
            ratio: ONE,
        }
    }
}

impl Settlement {
    /// What is due for it.
    pub(super) fn settle(&mut self, done: Done, now: u64) -> u64 {
        if now >= self.epoch_ends {
            self.begin_epoch(now);
        }
        let work_ns = done.work_ns;
        let presence_ns = match done.span {
            Some((start, end)) => {
                let presence_ns = self.coverage.add(start, end);
                self.known.0 = self.known.0.saturating_add(work_ns);
                self.known.1 = self.known.1.saturating_add(presence_ns);
                presence_ns
            }
            None => work_ns.saturating_mul(self.ratio) / ONE,
        };
        self.work_ns = self.work_ns.saturating_add(work_ns);
        self.presence_ns = self.presence_ns.saturating_add(presence_ns);
        let due = self.presence_ns.min(self.work_ns).saturating_sub(self.charged_ns);
        self.charged_ns = self.charged_ns.saturating_add(due);
        due
    }

    fn begin_epoch(&mut self, now: u64) {
        let (work_ns, presence_ns) = std::mem::take(&mut self.known);
        if let Some(ratio) = presence_ns.saturating_mul(ONE).checked_div(work_ns) {
            self.ratio = ratio.min(ONE);
        }
        (self.presence_ns, self.work_ns, self.charged_ns) = (0, 0, 0);
        self.epoch_ends = now.saturating_add(EPOCH_NS);
    }
}
