//! The words behind `gpucap configure`, for the command and for each engine's part of it.
//!
//! The defaults are here, since the help shows them.

use gpucap_plan::Node;
use std::io;
use std::path::{PathBuf, absolute};

/// The handler that a pod names as its runtime class.
pub(super) const HANDLER: &str = "gpucap";
/// containerd's base specification with the hook.
const SPECIFICATION: &str = "/etc/gpucap/base-spec.json";

const AFTER: &str = "\
An engine reads its configuration when it starts: containerd is to be restarted, Docker to be reloaded; podman and
CRI-O look for themselves. Doing it twice changes nothing more.

Exit status: 0 if it is as asked, 1 if a file cannot be changed; one line says why.

Examples:
  gpucap configure containerd --dry-run
  gpucap configure containerd && systemctl restart containerd";

/// The words behind `gpucap configure`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// The engine
    pub(super) engine: Engine,
    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Show also long files that come or go as a whole
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Take out what was put in
    #[arg(long)]
    pub(super) undo: bool,
    /// The engine's file, if it is in another place: config.toml, daemon.json, or the file in the directory of hooks
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// containerd: the runtime handler; an existing handler keeps its other settings
    #[arg(long, value_name = "NAME", default_value = HANDLER)]
    pub(super) handler: String,
    /// containerd: where the base specification is written
    #[arg(long, value_name = "FILE", default_value = SPECIFICATION)]
    pub(super) specification: PathBuf,
    /// containerd: also switch NRI on, so that `gpucap nri` is asked
    #[arg(long)]
    pub(super) nri: bool,
    /// The node's configuration that the hook is to read
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    pub(super) config: PathBuf,
    /// The command as the engine is to call it [default: this one, by the link `current` of an installation]
    #[arg(long, value_name = "FILE")]
    pub(super) program: Option<PathBuf>,
}

impl Options {
    /// The same with absolute paths: an engine works in a directory of its own.
    pub(super) fn absolute(self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.map(absolute).transpose()?,
            specification: absolute(self.specification)?,
            config: absolute(self.config)?,
            program: self.program.map(absolute).transpose()?,
            ..self
        })
    }
}

/// A supported engine.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Engine {
    Containerd,
    Docker,
    Podman,
    Crio,
}
