//! `gpucap hook STAGE`: an engine calls a stage that this version does not know.
//!
//! It refuses, so that the container does not start: one that was to be capped must not run uncapped.

use crate::error::{Error, Result};
use crate::exit::Exit;

/// The words behind `gpucap hook`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The stage of the container's start.
    stage: String,
}

/// Refuses.
pub(crate) fn execute(options: Options) -> Result<Exit> {
    Err(Error::Stage(options.stage))
}
