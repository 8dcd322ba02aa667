//! The processes of a device that `status` counts and does not list.
//!
//! A container writes its own ledger, so the number of rows that one may cause is bounded. Here is what is kept of the
//! processes beyond that bound: how many there are, and between which limits. Nothing is read of them that a process
//! could choose at length. `view` decides which processes have a row.

/// The processes of a device that are counted and have no row: a ledger is the container's to write, and has places for
/// 65536 rows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Unlisted {
    /// How many there are.
    pub(crate) processes: usize,
    /// The lowest and the highest of their limits.
    limits: Option<(u64, u64)>,
}

impl Unlisted {
    /// Counts a process with this limit; 0 is none.
    pub(crate) fn add(&mut self, limit: u64) {
        self.processes = self.processes.saturating_add(1);
        if limit != 0 {
            let (low, high) = self.limits.unwrap_or((limit, limit));
            self.limits = Some((low.min(limit), high.max(limit)));
        }
    }

    /// The lowest and the highest of their limits.
    pub(crate) const fn limits(&self) -> Option<(u64, u64)> {
        self.limits
    }
}
