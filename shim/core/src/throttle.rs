//! The compute cap: which launches wait, for how long, and what the device's time was worth.
//!
//! * [`Bucket`]: the shared word of a container and a device. GPU nanoseconds flow in at the share and are taken
//!   out before a launch; a debt makes the next opening come later. Nobody refills it.
//! * [`Costs`]: what a launch of a signature cost so far: a table that launches read without a lock.
//! * [`Batch`]: prepaid room of one thread in one stream. Nearly every launch takes its cost out of it, and that is all
//!   it does.
//! * [`Meter`]: every other launch. It prepays batches, measures with pairs of timing events, and settles what was
//!   reserved against what was measured.
//! * [`Party`]: the devices of a container that meet in collectives, which go together.
//! * [`UsageReport`]: what processes on a card tell each other, from which each knows how much of the time was its turn.
//!
//! What is charged is measured time of the device, never a count of launches or blocks. Estimates only decide what is
//! reserved until the measurement is there. The manual's page on time has the reasons and the numbers.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod batch;
mod bucket;
mod costs;
mod coverage;
mod meter;
mod party;
mod settlement;
mod shares;
mod signature;
mod spacing;
mod steady;
mod stream;
mod turns;
mod usage_report;

pub use batch::Batch;
pub use bucket::Bucket;
pub use costs::Costs;
pub use meter::{Meter, Permit, Totals, Verdict};
pub use party::{Party, Seat};
pub use signature::{Launch, Signature};
pub use stream::StreamId;
pub use usage_report::{PeerReport, UsageReport};

/// Timing events of the driver, as far as the meter needs them. Recording them is the caller's.
pub trait Events {
    /// One event that was recorded.
    type Event;

    /// Whether the device has come to it. Called with the meter's lock held, at most a few dozen times in a row.
    fn reached(&mut self, event: &Self::Event) -> Reached;

    /// The meter has no more use for it.
    fn give_back(&mut self, event: Self::Event);
}

/// What became of a timing event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The device has not come to it yet.
    Pending,
    /// The device came to it at this time of the clock that launches are timed with.
    At(u64),
    /// Its context ended at this time, and all work in it with it.
    Ended(u64),
    /// Nobody will ever know: the driver refuses to say.
    Lost,
}

/// An operation from here on is measured each time, and its own measurement is what it costs.
pub(crate) const BIG_NS: u64 = 200_000;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
