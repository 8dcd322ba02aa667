//! Programs on a simulated GPU in virtual time, limited to their shares by the meter that ships.
//!
//! * [`card`]: the simulated GPU. * [`program`]: what threads do. * [`dice`]: seeded randomness. * [`setup`]:
//!   durations.
//! * [`workloads`]: programs as people run them. * [`World`]: threads, the meter of each process, and the clock.
//!
//! Nothing here runs in real time and nothing is a measurement of a GPU: it ranks designs and finds their defects.

pub mod card;
pub mod dice;
pub mod program;
pub mod setup;
pub mod workloads;
mod world;

pub use setup::{Ablation, Samples, Setup};
pub use world::{Flaps, Outcome, Page, Process, Says, World};
