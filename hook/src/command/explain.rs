//! `gpucap explain`: whether a process is limited, by what, and if not, why.
//!
//! Three questions: which limits are set for the process, whether the library is loaded in it, and what the ledger
//! has for it. A container or run that is named stands for its first process; without a name the process is one that
//! would be started from here. The exit code is the answer, for scripts. For a container that does not run yet,
//! [`bundle`] shows what the hook would do.

mod bundle;
mod facts;
mod json;
mod text;
mod verdict;

use crate::command::status::target::Target;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::node::inputs;
use crate::node::proc::Process;
use crate::terminal::output;
use facts::Facts;
use gpucap_plan::Node;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use verdict::Verdict;

const AFTER: &str = "\
A container or run stands for its first process. What is a directory, or begins with . or /, is a bundle.
A PID, as NAME or with --pid, is the one by which this machine counts, not the one in a container.

Exit status: 0 limited, 3 not limited, 4 the limits are invalid (no GPU work is allowed,
a container is not started), 1 what is named cannot be read, or may be several.

Examples:
  gpucap explain default/train/main
  gpucap explain --pid 4242      a process that runs, here or in a container
  gpucap explain /run/bundle     a container before it starts: its limits, and the sources of each";

/// The words behind `gpucap explain`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = AFTER,
    override_usage = "gpucap explain [OPTIONS] [NAME|BUNDLE]\n       gpucap explain [OPTIONS] --pid <PID>"
)]
pub(crate) struct Options {
    /// The process to look at; without it and a NAME, a program started from here
    #[arg(long, conflicts_with = "name")]
    pid: Option<u32>,
    /// A container, run or PID, as `gpucap status` shows it; or a container's bundle, the directory of config.json
    #[arg(value_name = "NAME|BUNDLE")]
    name: Option<OsString>,
    /// A file with the OCI state (JSON) that the runtime would give the hook
    #[arg(long, value_name = "FILE", requires = "name", conflicts_with = "pid")]
    state: Option<PathBuf>,
    /// The node's configuration
    #[arg(long, value_name = "FILE", requires = "name", conflicts_with = "pid", default_value = Node::PATH)]
    config: PathBuf,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Prints the answer.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let Options { pid, name, state, config, json } = options;
    match (name, pid) {
        (Some(name), _) if is_bundle(name) => {
            bundle::execute(name.as_ref(), state.as_deref(), config, *json)
        }
        (Some(name), _) => of_name(&name.to_string_lossy(), state.is_some(), config, *json),
        (None, Some(pid)) => answer(&of_process(Process(*pid))?, "", *json),
        (None, None) => {
            let own = Process::own().0;
            let facts = Facts::of_here().map_err(|why| Error::Process { pid: own, why })?;
            answer(&facts, "", *json)
        }
    }
}

/// Whether a word is a path, of what may be a bundle; a ledger is a file.
fn is_bundle(name: &OsStr) -> bool {
    let path = Path::new(name);
    let is_path = [b'.', b'/'].iter().any(|sign| name.as_bytes().first() == Some(sign));
    path.is_dir() || is_path && !path.is_file()
}

/// The answer about what `status` shows by this name, or about the process of this number.
fn of_name(name: &str, state: bool, config: &Path, json: bool) -> Result<Exit> {
    let refused = |why: &str| Error::Explain { name: name.to_owned(), why: why.to_owned() };
    if state {
        return Err(refused("it is no directory, and --state is about a bundle"));
    }
    let node = inputs::node_or_default(config)?;
    let found = Target::find(&node, name).map_err(|why| refused(&why))?;
    let Some(target) = found else {
        let none =
            "no container or run goes by it, as `gpucap status` shows them, and no directory";
        let pid = name.parse().map_err(|_| refused(none))?;
        return answer(&of_process(Process(pid))?, "", json);
    };
    let process = target.process().map_err(|why| refused(&why))?;
    let mut remark = format!("the process is of {}", target.label());
    let others = target.others(process);
    if others > 0 {
        let (processes, use_it) =
            if others == 1 { ("process", "uses") } else { ("processes", "use") };
        remark +=
            &format!("; {others} other {processes} of it {use_it} a GPU: gpucap status {name}");
    }
    answer(&of_process(process)?, &remark, json)
}

fn of_process(process: Process) -> Result<Facts> {
    Facts::of(process).map_err(|why| Error::Process { pid: process.0, why })
}

/// Prints it, as text or JSON.
fn answer(facts: &Facts, remark: &str, json: bool) -> Result<Exit> {
    let verdict = Verdict::of(facts);
    output::print(&match json {
        true => json::render(facts, &verdict),
        false => text::render(facts, &verdict, remark),
    })?;
    Ok(match verdict {
        Verdict::Limited => Exit::OK,
        Verdict::NotLimited(_) => Exit::NOT_LIMITED,
        Verdict::Broken(_) => Exit::BROKEN,
    })
}
