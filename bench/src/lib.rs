//! What gpucap costs, as differences between two worlds in one run on one machine.
//!
//! A bench takes turns between processes that differ in one thing only (is the shim preloaded?),
//! many rounds, and compares medians. Nothing is compared with a number of another day or machine.
//! Below the shim lies the null driver (`bench/null`), which answers at once, so that a difference
//! of nanoseconds can be seen; no number here says anything of a card.
//!
//! * [`run`]: how much a run does, and how it ends.
//! * [`files`]: builds the shim, the null driver and the client.
//! * [`world`]: a client in its world, obeying line by line.
//! * [`measure`]: taking turns, and what is kept of the samples.
//! * [`report`]: rows, self-checks, JSON lines, the table.
//! * [`machine`]: what has to be known of the machine to read the numbers.
//! * [`alloc`], [`families`], [`launch`], [`resolve`], [`start`], [`hook`], [`nri`], [`ledger`], [`counts`], [`accuracy`],
//!   [`judge`], [`share`]: the benches.

pub mod accuracy;
pub mod alloc;
pub mod counts;
pub mod families;
pub mod files;
pub mod hook;
pub mod judge;
pub mod launch;
pub mod ledger;
pub mod lending;
pub mod machine;
pub mod measure;
pub mod nri;
pub mod report;
pub mod resolve;
pub mod run;
pub mod share;
pub mod simulator;
pub mod start;
pub mod world;

pub use run::{Effort, Result, Stop};
