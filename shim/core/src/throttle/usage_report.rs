//! What a process publishes about itself for its peers on a device: two sums, in its container's [page](crate::page).
//!
//! ```text
//! work       what it has had done, and has reserved for work in flight      GPU ns
//! occupied   for how long it has had work in flight                        ns
//!            its four highest bits: work is in flight; it may take far longer than was reserved for it; a thread waits
//!            for work; a launch is held back
//! ```
//!
//! Readers believe nothing beyond the share that the node gave the page's container: see [`turns`](super::timeline::turns).

use crate::units::ComputeLimit;

/// The usage report of a process for a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// GPU nanoseconds: work done, and what is reserved for work in flight.
    pub work: u64,
    /// Nanoseconds for which it has had work in flight; with the highest bit set, the time at which that would have
    /// begun if it had not been interrupted. The second bit says that this work may take far longer than was reserved,
    /// the third one that a thread waits in a call of the driver, the fourth one that the latest launch is held back.
    pub occupied: u64,
}

/// What was read of a peer.
#[derive(Clone, Copy, Debug)]
pub struct PeerReport {
    /// The page that contains it, by a stable number.
    pub page: u64,
    /// What the container of the page may take of the device's time, as the node wrote it; `None` for this process's own
    /// container, whose processes pay out of the same bucket.
    pub limit: Option<ComputeLimit>,
    /// The process that published it, by a stable number.
    pub key: u64,
    /// Its report.
    pub report: UsageReport,
}

/// What is published for unmeasured work in flight: longer than any measurement takes.
pub(super) const UNKNOWN_NS: u64 = 10_000_000_000;
/// Set while work is in flight.
const OUT: u64 = 1 << 63;
/// Set while a launch in flight may take far longer than was reserved for it.
const LONG: u64 = 1 << 62;
/// Set while a thread waits in a call of the driver for work to end.
const WAITS: u64 = 1 << 61;
/// Set while a launch is held back by the limit.
const HELD: u64 = 1 << 60;
const FLAGS: u64 = OUT | LONG | WAITS | HELD;

impl UsageReport {
    /// Makes the report of a process that had work in flight for `occupied_ns`, and again since `in_flight_since`.
    #[must_use]
    pub const fn new(work: u64, occupied_ns: u64, in_flight_since: Option<u64>) -> Self {
        let occupied = match in_flight_since {
            Some(since) => OUT | since.saturating_sub(occupied_ns),
            None => occupied_ns & !FLAGS,
        };
        Self { work, occupied }
    }

    /// Combines the reports of several processes into one.
    #[must_use]
    pub fn together(all: impl Iterator<Item = Self>, now: u64) -> Self {
        let (mut work, mut occupied_ns, mut is_in_flight) = (0_u64, 0_u64, false);
        let (mut is_long, mut waits, mut is_held) = (false, false, false);
        for report in all {
            work = work.wrapping_add(report.work);
            occupied_ns = occupied_ns.saturating_add(report.occupied_ns(now));
            is_in_flight |= report.is_in_flight();
            is_long |= report.may_be_long();
            waits |= report.waits();
            is_held |= report.is_held_back();
        }
        Self::new(work, occupied_ns.min(now), is_in_flight.then_some(now))
            .with_long(is_long)
            .with_waiting(waits)
            .with_held_back(is_held)
    }

    /// Returns this report as the continuation of one by an earlier process.
    #[must_use]
    pub const fn after(self, before: Self, taken_at: u64) -> Self {
        let work = self.work.wrapping_add(before.work);
        let before_ns = before.occupied_ns(taken_at);
        let occupied = match self.occupied & !FLAGS {
            since if self.is_in_flight() => OUT | since.saturating_sub(before_ns),
            ns => ns.saturating_add(before_ns) & !FLAGS,
        };
        // Only what follows the time is this report's own.
        Self { work, occupied: occupied | self.occupied & (LONG | WAITS | HELD) }
    }

    /// Returns the report of a process that ended by `now`: nothing is in flight, waits, or is held back.
    #[must_use]
    pub const fn ended(self, now: u64) -> Self {
        Self { occupied: self.occupied_ns(now) & !FLAGS, ..self }
    }

    /// Returns the report with the notice that a launch in flight may take far longer than was reserved for it.
    pub(super) const fn with_long(self, is_long: bool) -> Self {
        let long = if is_long { LONG } else { 0 };
        Self { occupied: self.occupied | long, ..self }
    }

    /// Returns the report with the notice that a thread waits in a call of the driver for work to end.
    pub(crate) const fn with_waiting(self, waits: bool) -> Self {
        let waits = if waits { WAITS } else { 0 };
        Self { occupied: self.occupied | waits, ..self }
    }

    /// Returns the report with the notice that a launch is held back.
    pub(crate) const fn with_held_back(self, is_held: bool) -> Self {
        let held = if is_held { HELD } else { 0 };
        Self { occupied: self.occupied | held, ..self }
    }

    /// Returns whether a launch is held back.
    pub(super) const fn is_held_back(self) -> bool {
        self.occupied & HELD != 0
    }

    /// Returns whether a thread waits in a call of the driver for work to end.
    pub(super) const fn waits(self) -> bool {
        self.occupied & WAITS != 0
    }

    /// Returns whether a launch in flight may take far longer than was reserved for it.
    pub(super) const fn may_be_long(self) -> bool {
        self.occupied & (OUT | LONG) == OUT | LONG
    }

    /// For how long it has had work in flight by `now`.
    pub(crate) const fn occupied_ns(self, now: u64) -> u64 {
        if self.is_in_flight() {
            now.saturating_sub(self.occupied & !FLAGS)
        } else {
            self.occupied & !FLAGS
        }
    }

    /// Returns whether it has work in flight.
    #[must_use]
    pub const fn is_in_flight(self) -> bool {
        self.occupied & OUT != 0
    }
}
