//! `gpucap nri`: a plugin of containerd and CRI-O, which ask it before they make a container.
//!
//! What it answers shows the limit in the environment of everything that starts in the container, `exec` included, and
//! has the runtime call the hook, whatever the pod's runtime class. **The hook enforces**: a runtime that does not hear
//! from a plugin in time makes its containers without one. The plan is the hook's own, so what asks for nothing is left
//! alone, and what cannot be read is refused.
//!
//! It runs for as long as it is wanted: a runtime that goes away is waited for. Started by the runtime itself, as
//! `/opt/nri/plugins/10-gpucap`, it has its socket from there, and ends with it.

mod link;
mod ready;

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::gather::{self, Gathered};
use crate::hooks::{Hooks, STAGES};
use crate::output;
use crate::proc::Process;
use crate::sys;
use gpucap_nri::{Answer, Creation, Name};
use gpucap_plan::{Node, Plan, decide};
use link::End;
use ready::Ready;
use std::env;
use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The words behind `gpucap nri`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The runtime's socket
    #[arg(long, value_name = "FILE", default_value = "/var/run/nri/nri.sock")]
    socket: PathBuf,
    /// The plugin's name
    #[arg(long, default_value = "gpucap")]
    name: String,
    /// Its place among the plugins: two digits
    #[arg(long, default_value = "10")]
    index: String,
    /// A file that is there exactly while the runtime asks us
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = Node::PATH)]
    config: PathBuf,
    /// The command as the runtime is to call it, if by a link that later versions replace
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// The pause before the next attempt to find a runtime: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];
/// By which a runtime tells a plugin that it started which of its open files is the socket.
const SOCKET: &str = "NRI_PLUGIN_SOCKET";

/// Serves one runtime after the other.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let name = Name::new(&options.name, &options.index).map_err(failed)?;
    let planner = Planner::new(&options.config, options.program.clone())?;
    let ready = Ready::new(options.ready_file.clone())?;
    let (mut pause, mut told) = (PAUSES[0], String::new());
    loop {
        let end = match UnixStream::connect(&options.socket) {
            Ok(stream) => link::serve(stream, &name, &|it| planner.answer(it), &ready)?,
            Err(why) => End { was_ready: false, why: crate::error::reason(&why) },
        };
        if end.was_ready {
            pause = PAUSES[0];
        }
        // What stays as it is was said.
        if end.was_ready || end.why != told {
            output::tell(format!("nri: {}: {}; trying again", options.socket.display(), end.why));
        }
        told = end.why;
        thread::sleep(pause);
        pause = PAUSES[1].min(pause * 2);
    }
}

/// The plugin's name, if the command is called by that of a file which a runtime starts: `10-gpucap`.
pub(crate) fn launched_as(file: &Path) -> Option<Name> {
    Name::of_file(file.file_name()?.to_str()?).ok()
}

/// Serves the runtime that started us.
pub(crate) fn serve_launcher(name: &Name) -> Result<Exit> {
    let number = env::var(SOCKET).ok().and_then(|number| number.parse().ok());
    let number =
        number.ok_or_else(|| failed(format!("{SOCKET} names no file: who started this?")))?;
    let stream = sys::inherited_socket(number);
    let stream =
        stream.map_err(|why| failed(format!("{SOCKET}: {}", crate::error::reason(&why))))?;
    let planner = Planner::new(Path::new(Node::PATH), None)?;
    let end = link::serve(stream, name, &|it| planner.answer(it), &Ready::new(None)?)?;
    if end.was_ready { Ok(Exit::OK) } else { Err(failed(end.why)) }
}

fn failed(why: impl fmt::Display) -> Error {
    Error::Nri(why.to_string())
}

/// Decides about containers.
struct Planner {
    config: PathBuf,
    /// As it was when we started: a command that was replaced since has no name any more.
    program: PathBuf,
}

impl Planner {
    fn new(config: &Path, program: Option<PathBuf>) -> Result<Self> {
        let program = program.map_or_else(|| Process::own().path("exe").read_link(), Ok);
        let program = program.map_err(|why| failed(crate::error::reason(&why)))?;
        Ok(Self { config: config.to_owned(), program })
    }

    fn answer(&self, creation: &Creation) -> Answer {
        let node = gather::node(&self.config).unwrap_or_default();
        let gathered = Gathered::of(&self.config, creation.container(&node), None);
        let plan = gathered.map_or_else(Plan::Refuse, |it| decide(&it.sources()).plan);
        match plan {
            Plan::NotAsked => Answer::Leave,
            Plan::Limits(limits) => {
                let hooks = Hooks { program: &self.program, config: &self.config };
                let hooks = STAGES.map(|stage| (stage, hooks.at(stage)));
                Answer::Adjust(Box::new(creation.adjust(&node, &limits, &hooks)))
            }
            Plan::Refuse(reason) => {
                let why = format!("nri: container {} is not made: {reason}", creation.name());
                output::tell(&why);
                Answer::Refuse(format!("gpucap: {why}"))
            }
        }
    }
}
