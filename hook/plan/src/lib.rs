//! What a container is allowed: one answer from everything that says something about it.
//!
//! [`decide()`] takes the documents of the engine, the node and the pod ([`Sources`]) and returns a [`Plan`]: these
//! limits, no request, or a refusal in one line. Each front end (the hook, the runtime wrapper, `explain`) calls it
//! and only applies the answer.
//!
//! * [`State`], [`Container`], [`Node`], [`Card`]: the facts, read leniently where other programs wrote them and
//!   strictly where the node's administrator did.
//! * [`Calibration`]: the measurements of the node's GPUs, and [`NativeLimit`]: the limits that their driver keeps.
//! * [`Grant`]: the limits of one source. Each convention (gpucap's, HAMi, gpushare, ...) is one file of
//!   `convention`.
//! * The rule: for each GPU and each quantity the lowest of all grants holds. An additional source can lower a limit,
//!   never raise it. A value that cannot be used refuses the container; it is never "no limit".
//!
//! Pure: no unsafe, clock, environment, file or thread; the same sources give the same answer.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod cdi;
mod convention;
mod decide;
mod document;
mod encoding;
pub mod entry;
mod facts;
mod grant;
mod lending;
mod merge;
mod native;
mod reason;
mod run;
mod source;
mod variables;

pub use convention::near_miss::misspelt;
pub use convention::{annotation_patterns, hears};
pub use decide::{Decision, Note, Plan, Sources, decide, plan};
pub use document::calibration::{Calibration, Measured, running_driver};
pub use document::card::Card;
pub use document::container::{Container, MountNamespace};
pub use document::env::Env;
pub use document::identity::{ContainerIdentity, Names};
pub use document::node::{Lending, NativeLimits, NoGlibc, Node, Privileged, SampledExcess};
pub use document::node_file::NodeFile;
pub use document::slice::Slice;
pub use document::state::State;
pub use grant::{DeviceLimit, DeviceLimits, Grant};
pub use native::NativeLimit;
pub use reason::{NodeError, Reason};
pub use run::of_run;
pub use source::Source;
pub use variables::{SHOWN, annotations, variables};
