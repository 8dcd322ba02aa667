//! `gpucap explain`: whether a process is capped, by what, and if not, why.
//!
//! Three questions: which limits are set for the process, whether the library is loaded in it, and what the ledger
//! has for it. Without `--pid` the process is one that would be started from here. The exit code is the answer, for
//! scripts. For a container that does not run yet, [`bundle`] shows what the hook would do.

mod bundle;
mod facts;
mod json;
mod text;
mod verdict;

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::node::proc::Process;
use crate::terminal::output;
use crate::terminal::paint::Paint;
use facts::Facts;
use gpucap_plan::Node;
use std::path::PathBuf;
use verdict::Verdict;

const AFTER: &str = "\
Exit status: 0 capped, 3 not capped, 4 limits are set that cannot be used (no GPU work is allowed,
a container is not started), 1 the process or bundle cannot be looked at.

Examples:
  gpucap explain --pid 4242      a process that runs, here or in a container
  gpucap explain /run/bundle     a container before it starts: who said what of it";

/// The words behind `gpucap explain`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// The process to look at; without it, a program started from here
    #[arg(long, conflicts_with = "bundle")]
    pid: Option<u32>,
    /// A container's bundle, the directory of config.json: what the hook would do with it, and why
    bundle: Option<PathBuf>,
    /// The state that a runtime would give the hook, as a file
    #[arg(long, value_name = "FILE", requires = "bundle", conflicts_with = "pid")]
    state: Option<PathBuf>,
    /// The node's configuration
    #[arg(long, value_name = "FILE", requires = "bundle", conflicts_with = "pid", default_value = Node::PATH)]
    config: PathBuf,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Prints the answer.
pub(crate) fn execute(options: &Options, paint: Paint) -> Result<Exit> {
    if let Some(bundle) = &options.bundle {
        let state = options.state.as_deref();
        return bundle::execute(bundle, state, &options.config, (!options.json).then_some(paint));
    }
    let facts = match options.pid {
        Some(pid) => Facts::of(Process(pid)).map_err(|why| Error::Process { pid, why })?,
        None => Facts::of_here().map_err(|why| Error::Process { pid: Process::own().0, why })?,
    };
    let verdict = Verdict::of(&facts);
    output::print(&if options.json {
        json::render(&facts, &verdict)
    } else {
        text::render(&facts, &verdict, paint)
    })?;
    Ok(match verdict {
        Verdict::Capped => Exit::OK,
        Verdict::NotCapped(_) => Exit::NOT_CAPPED,
        Verdict::Broken(_) => Exit::BROKEN,
    })
}
