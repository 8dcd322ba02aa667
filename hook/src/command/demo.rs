//! `gpucap demo`: what gpucap does, shown in under a minute on this machine.
//!
//! Every number is read from a program that runs at that moment, and each step checks what it shows: a demo that ends
//! well has seen it all happen. Without a working driver the stub driver takes its place, which is said. Nothing is
//! left behind, and on a real card little is allocated: the limit is 2 GiB at most.

mod actor;
mod card;
mod show;
mod stage;
mod steps;

use crate::error::Result;
use crate::exit::Exit;
use show::Show;
use stage::Stage;

const AFTER: &str = "\
Exit status: 0 if everything was as it should be, 1 if not.

Examples:
  gpucap demo
  gpucap demo --stub";

/// The words behind `gpucap demo`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// Use the stub driver even if there is a GPU
    #[arg(long)]
    stub: bool,
}

/// Shows it.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let show = Show;
    let stage = Stage::set(options.stub)?;
    steps::play(&stage, show)?;
    Ok(Exit::OK)
}
