//! The time in which at least one stream was occupied: the union of spans that are added in any order.
//!
//! A span adds the time that no earlier span covered. The memory is bounded: beyond [`KEPT`] separate stretches the
//! oldest is dropped, and all time before its end counts as covered, since later spans rarely begin that early.
//!
//! Without one view of all streams, `W4 4 streams x 50 us` misses its bound at 30 %.

/// Stretches of covered time, in order, apart from one another.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    stretches: Vec<(u64, u64)>,
    /// Everything before this counts as covered.
    floor: u64,
}

const KEPT: usize = 64;

impl Coverage {
    /// Forgets everything: the clock has changed.
    pub(crate) fn clear(&mut self) {
        self.stretches.clear();
        self.floor = 0;
    }

    /// The end of the latest stretch.
    pub(crate) fn end(&self) -> u64 {
        self.stretches.last().map_or(self.floor, |&(_, end)| end)
    }

    /// Returns how much of the time since `from` is covered.
    pub(crate) fn since(&self, from: u64) -> u64 {
        let first = self.stretches.partition_point(|&(_, end)| end <= from);
        let later = self.stretches.get(first..).unwrap_or_default();
        later.iter().map(|&(start, end)| end - start.max(from)).sum()
    }

    /// Covers a span. Returns the part of it that was not covered before.
    pub(crate) fn add(&mut self, start: u64, end: u64) -> u64 {
        let (mut start, mut end) = (start.max(self.floor), end);
        if start >= end {
            return 0;
        }
        let first = self.stretches.partition_point(|&(_, before)| before < start);
        let last = self.stretches.partition_point(|&(after, _)| after <= end);
        let mut added = end - start;
        for (from, to) in self.stretches.drain(first..last) {
            added = added.saturating_sub(to.min(end).saturating_sub(from.max(start)));
            // The span grows to the outer ends of the stretches it touches: no other stretch begins before those.
            (start, end) = (start.min(from), end.max(to));
        }
        self.stretches.insert(first, (start, end));
        if self.stretches.len() > KEPT {
            self.floor = self.stretches.remove(0).1;
        }
        added
    }
}
