//! What a container is allowed: one answer from everything that says something about it.
//!
//! [`decide()`] takes what the engine, the node and the pod say ([`Sources`]) and answers [`Plan`]: these limits,
//! nothing was asked, or a refusal in one line. Whoever prepares a container (the hook, the runtime wrapper, `explain`)
//! asks here and only applies the answer.
//!
//! * [`State`], [`Container`], [`Node`], [`Card`]: what is known, read leniently where others wrote it and strictly
//!   where our administrator did.
//! * [`Calibration`]: what was measured of the node's cards, and [`Wall`]: what their driver keeps by itself.
//! * [`Grant`]: what one source says. Each convention (ours, HAMi, gpushare, ...) is one file of `convention`.
//! * The rule: for each GPU and each quantity the lowest of all grants holds. A source can be added to lower, never to
//!   raise. A value that cannot be used refuses the container; it is never "no limit".
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

mod calibration;
mod card;
mod container;
mod convention;
mod decide;
mod env;
mod grant;
mod identity;
mod json;
mod merge;
mod native;
mod node;
mod paths;
mod reason;
mod seccomp;
mod state;
mod variables;

pub use calibration::{Calibration, Measured, running_driver};
pub use card::Card;
pub use container::{Container, MountNamespace};
pub use convention::{ANNOTATIONS, hears};
pub use decide::{Decision, Plan, Sources, decide, plan};
pub use env::Env;
pub use grant::{Cap, Caps, Grant};
pub use identity::{Identity, Names};
pub use native::NativeLimit;
pub use node::{NativeLimits, NoGlibc, Node, NodeError, Privileged};
pub use reason::Reason;
pub use state::State;
pub use variables::{annotations, variables};
