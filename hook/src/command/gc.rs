//! `gpucap gc`: removes state that is no longer needed.
//!
//! That happens by itself whenever a container or a run starts; this is for a node where none will. What may still be
//! in use stays, so it can be called at any time.

use crate::container::ledgers;
use crate::container::{pages, records};
use crate::error::Result;
use crate::exit::Exit;
use crate::node::inputs;
use crate::terminal::output;
use gpucap_plan::Node;
use std::path::PathBuf;

const AFTER: &str = "\
It can be called at any time: what may still be in use stays. Calling it is rarely needed: each later start does the same.
Of ledgers of `gpucap run` it removes those of the user who calls it; as root those of all users, if it may look at their
processes (CAP_SYS_PTRACE).

Exit status: 0, also if there was nothing.

Examples:
  gpucap gc";

/// The words behind `gpucap gc`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// The node's configuration: where the hook keeps what it knows of containers
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
}

/// Takes it away, and says how much it was.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let node = inputs::node_or_default(&options.config)?;
    let records = records::sweep(&records::directory(&node));
    let pages = pages::sweep(&pages::directory(&node));
    let ledgers = ledgers::sweep_all();
    let text = format!(
        "states of containers removed: {records}\nusage pages removed: {pages}\nledgers removed: {ledgers}\n"
    );
    output::print(&text)?;
    Ok(Exit::OK)
}
