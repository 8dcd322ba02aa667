//! What the command can do: one module each, and the words by which it is called.

mod calibrate;
mod cdi;
mod check;
mod configure;
mod demo;
mod explain;
mod gc;
mod hook;
mod limit;
pub(crate) mod nri;
mod run;
pub(crate) mod runtime;
mod status;

use crate::error::Result;
use crate::exit::Exit;
use clap::{Parser, Subcommand};

/// Gives programs a slice of an NVIDIA GPU.
#[derive(Debug, Parser)]
#[command(name = "gpucap", version, max_term_width = 100)]
pub(crate) struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program, and everything that it starts, under a cap
    Run(run::Options),
    /// Show who holds how much of which GPU
    Status(status::Options),
    /// Tell whether a process is capped, by what, and if not, why
    Explain(explain::Options),
    /// Show what it does, on this machine's GPU or on a stub driver
    Demo(demo::Options),
    /// Tell whether the library can be loaded in an image
    Check(check::Options),
    /// Have an engine call the hook for each container
    Configure(configure::Options),
    /// Measure on this node what a context costs, and what the driver can do
    Calibrate(calibrate::Options),
    /// Change the limits of a container that runs
    Limit(limit::Options),
    /// Forget containers that are over, and ledgers that nobody uses any more
    Gc(gc::Options),
    /// Be a container runtime: cap what is asked for, then become the next runtime
    Runtime(runtime::Options),
    /// Describe slices as CDI devices
    Cdi(cdi::Options),
    /// Be a plugin of containerd or CRI-O, which show the limit to everything in a container
    Nri(nri::Options),
    #[command(hide = true)]
    Hook(hook::Options),
}

impl Line {
    /// Does what it says.
    pub(crate) fn execute(self) -> Result<Exit> {
        match self.command {
            Command::Run(options) => run::execute(&options),
            Command::Status(options) => status::execute(&options),
            Command::Explain(options) => explain::execute(&options),
            Command::Demo(options) => demo::execute(&options),
            Command::Check(options) => check::execute(&options),
            Command::Configure(options) => configure::execute(&options),
            Command::Calibrate(options) => calibrate::execute(&options),
            Command::Limit(options) => limit::execute(&options),
            Command::Gc(options) => gc::execute(&options),
            Command::Runtime(options) => runtime::execute(&options),
            Command::Cdi(options) => cdi::execute(&options),
            Command::Nri(options) => nri::execute(&options),
            Command::Hook(options) => hook::execute(options),
        }
    }
}
