//! What the test binaries share: worlds, programs, and how a test ends.
//!
//! * [`World`]: which driver a program meets (none, the stub, a real one) and whether the shim stands before it.
//! * [`Program`]: a C file below `tests/programs`, compiled once per test run.
//! * [`Run`]: one program in one world: environment, time limit, what it printed, how it ended.
//! * [`Terminal`]: a program on a terminal, with keys that a test presses.
//! * [`Actor`]: a process that obeys one command after the other, so that a test orders what several processes do.
//! * [`chart`]: the Helm chart, rendered by Helm.
//! * [`rows`]: what the shim intercepts.
//! * [`fetched`]: things of other people.
//! * [`Installation`]: the files of a node, with a driver of the test's choice.
//! * [`release`]: the archive of a release.
//! * [`markdown`]: the links of documents.
//! * [`Machine`]: the processor that the tested programs are for.
//! * [`Build`]: the libraries under test, built by cargo when first asked for.
//! * [`Stop`]: a test that lacks its means is skipped aloud with the reason and counted, never passed.
//!
//! A program tells what it saw as lines `key=value` on stdout. Everything a test writes lies in a [`Scratch`]
//! directory of its own, which goes away with it: the stub's card, the ledger, the files of the program.

mod actor;
mod build;
pub mod chart;
pub mod fetched;
mod installation;
mod ledger;
mod limits;
mod machine;
pub mod markdown;
mod output;
mod process;
mod program;
pub mod release;
pub mod rows;
mod run;
mod sandbox;
mod scratch;
mod stop;
mod terminal;
mod windows;
mod world;

pub use actor::{Actor, Answer};
pub use build::Build;
pub use installation::Installation;
pub use limits::{limits_text, sealed};
pub use machine::Machine;
pub use output::Output;
pub use program::{Compiler, Program, project};
pub use run::Run;
pub use scratch::Scratch;
pub use stop::{Result, Stop, main, trial};
pub use terminal::{Modes, Terminal};
pub use world::{Driver, World};
