//! Programs on a card in virtual time, held to their shares by the meter that ships.
//!
//! * [`card`]: the card. * [`program`]: what threads do. * [`dice`]: seeded chance. * [`setup`]: what things cost.
//! * [`workloads`]: programs as people run them. * [`World`]: threads, the meter of each process, and the clock.
//!
//! Nothing here runs in real time and nothing is a measurement of a card: it ranks designs and finds their mistakes.

pub mod card;
pub mod dice;
pub mod program;
pub mod setup;
pub mod workloads;
mod world;

pub use setup::{Ablation, Setup};
pub use world::{Outcome, Page, Process, Says, World};
