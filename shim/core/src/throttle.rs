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

mod admission;
mod allowance;
mod charging;
mod clock;
mod event;
mod meter;
pub mod protocol;
mod signature;
mod timeline;
pub mod unreported;
mod upkeep;
mod usage_report;

pub use admission::{
    bucket::Bucket,
    dead::Unfinished,
    gang::{DEVICE_WORDS, DeviceWords, Gang},
    reserve::Permit,
};
pub use allowance::Allowance;
pub use charging::costs::Costs;
pub use clock::{CallTime, ClockMap};
pub use event::{Events, Reached};
pub use meter::{Meter, Totals, Verdict};
pub use signature::{Launch, Signature};
pub use timeline::stream::StreamId;
pub use upkeep::{Looks, Upkeep};
pub use usage_report::{PeerReport, UsageReport};

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
