//! The compute limit: which launches wait, for how long, and how much GPU time is charged.
//!
//! * [`Bucket`]: the shared word of a container and a device. GPU nanoseconds flow in at the share and are taken out
//!   before a launch; a debt delays the next opening. Time refills it; no thread has to.
//! * [`Costs`]: the measured cost of the launches of each signature, in a table that launches read without a lock.
//! * [`Allowance`]: the prepaid allowance of one thread in one stream. Nearly every launch takes its cost out of it and
//!   does nothing else.
//! * [`Meter`]: handles every other launch. It grants allowances, measures with pairs of timing events, and settles
//!   the reserved time against the measured time.
//! * [`Gang`]: the devices of a container that meet in collectives and are therefore throttled together.
//! * [`UsageReport`]: what each process on a device publishes about its work. From the reports of its peers a process
//!   derives how much of the measured time was its own turn.
//!
//! What is charged is measured device time, never a count of launches or blocks. Estimates only decide how much is
//! reserved until the measurement is available. `docs/src/design/measuring.md` has the rules.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod account;
mod admission;
mod allowance;
mod bucket;
mod charging;
mod clock;
mod costs;
mod coverage;
mod gang;
mod meter;
mod settlement;
mod shares;
mod signature;
mod spacing;
mod steady;
mod stream;
mod timeline;
mod turns;
mod upkeep;
mod usage_report;

pub use admission::Permit;
pub use allowance::Allowance;
pub use bucket::Bucket;
pub use clock::{CallTime, ClockMap};
pub use costs::Costs;
pub use gang::{Gang, Seat};
pub use meter::{Meter, Totals, Verdict};
pub use signature::{Launch, Signature};
pub use stream::StreamId;
pub use upkeep::{Looks, Upkeep};
pub use usage_report::{PeerReport, UsageReport};

use admission::Admission;
use charging::Charging;

/// Timing events of the driver, as far as the meter needs them. The caller records them.
pub trait Events {
    /// One recorded event.
    type Event;

    /// Returns whether the device has reached the event. Called with the meter's lock held, at most a few dozen times
    /// in a row.
    fn reached(&mut self, event: &Self::Event) -> Reached;

    /// Takes back an event that the meter no longer needs.
    fn give_back(&mut self, event: Self::Event);
}

/// The state of a timing event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The device has not reached it yet.
    Pending,
    /// The device reached it at this time, by the clock that launches are timed with.
    At(u64),
    /// Its context ended at this time, and all work in it with it.
    Ended(u64),
    /// It will never be known: the driver refuses to answer.
    Lost,
}

/// An operation whose cost is at least this is measured each time and charged its own measurement.
pub(crate) const BIG_NS: u64 = 200_000;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
