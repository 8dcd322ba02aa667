//! What a pool holds of the card: its reserve, and what of it is in use.
//!
//! An allocation uses part of the reserve and makes it grow if there is too little. What is freed can be used again at
//! once, since whatever uses it next waits for the stream it was freed in; but until that stream has come there it
//! cannot go back to the card.

use crate::stream::Point;
use gpucap_abi::cuda::{CuError, CuResult};
use gpucap_stub_device::card::Holding;
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::{card, settings};

/// A pool.
#[derive(Default)]
pub(crate) struct Pool {
    /// `None` for a pool on the host, which costs the card nothing.
    pub(crate) unit: Option<Unit>,
    pub(crate) reserved: u64,
    pub(crate) used: u64,
    pub(crate) reserved_high: u64,
    pub(crate) used_high: u64,
    pub(crate) threshold: u64,
    /// 0 is no bound.
    pub(crate) max_bytes: u64,
    /// Reuse policies 1 to 3.
    pub(crate) policies: [i32; 3],
    /// It may be exported, as an open file.
    pub(crate) exportable: bool,
    /// Another process's, which cannot be allocated from.
    pub(crate) imported: bool,
    pub(crate) destroyed: bool,
    /// Freed bytes, the points of their streams from which on they are free, and the streams' contexts.
    pub(crate) in_flight: Vec<(Point, u64, u64)>,
}

impl Pool {
    /// Whether it may be exported, and whether it came from another process.
    pub(crate) const fn sharing(&self) -> (bool, bool) {
        (self.exportable, self.imported)
    }

    /// Uses `bytes` of the reserve, growing it if need be.
    pub(crate) fn take(&mut self, bytes: u64) -> CuResult {
        let used = self.used.checked_add(bytes).ok_or(CuError::OUT_OF_MEMORY)?;
        let reserved = used.checked_next_multiple_of(settings().pool_granularity);
        let reserved = reserved.ok_or(CuError::OUT_OF_MEMORY)?.max(self.reserved);
        if self.max_bytes != 0 && reserved > self.max_bytes {
            return Err(CuError::OUT_OF_MEMORY);
        }
        if let Some(unit) = self.unit.filter(|_| reserved > self.reserved) {
            let more = Holding { contexts: 0, memory: reserved - self.reserved };
            if !card().take(unit, more) {
                return Err(CuError::OUT_OF_MEMORY);
            }
        }
        self.used = used;
        self.reserved = reserved;
        self.reuse();
        self.used_high = self.used_high.max(used);
        self.reserved_high = self.reserved_high.max(reserved);
        Ok(())
    }

    /// Ends a use, from a point of a stream on if there is one.
    pub(crate) fn free(&mut self, bytes: u64, from: Option<(Point, u64)>) {
        self.used -= bytes;
        self.in_flight.extend(from.map(|(point, context)| (point, bytes, context)));
    }

    /// What is in use again is no longer only freed: the oldest first.
    fn reuse(&mut self) {
        let in_flight: u64 = self.in_flight.iter().map(|(_, bytes, _)| bytes).sum();
        let mut reused = (self.used + in_flight).saturating_sub(self.reserved);
        for (_, bytes, _) in &mut self.in_flight {
            let part = reused.min(*bytes);
            *bytes -= part;
            reused -= part;
        }
        self.in_flight.retain(|(_, bytes, _)| *bytes > 0);
    }

    /// A context has ended, and with it the work in its streams.
    pub(crate) fn context_ended(&mut self, context: u64) {
        self.in_flight.retain(|(_, _, of)| *of != context);
    }

    /// Gives back what exceeds both use and `keep`.
    pub(crate) fn shrink(&mut self, keep: u64) {
        self.in_flight.retain(|(point, ..)| point.reached().is_none());
        let in_flight: u64 = self.in_flight.iter().map(|(_, bytes, _)| bytes).sum();
        let needed = (self.used + in_flight).max(keep);
        let step = settings().pool_granularity;
        let reserved = needed.checked_next_multiple_of(step).unwrap_or(u64::MAX).min(self.reserved);
        if let Some(unit) = self.unit {
            card().give(unit, Holding { contexts: 0, memory: self.reserved - reserved });
        }
        self.reserved = reserved;
    }

    /// Whether it is destroyed, and nothing of it is in use any more.
    pub(crate) const fn is_gone(&self) -> bool {
        self.destroyed && self.used == 0 && self.in_flight.is_empty()
    }
}
