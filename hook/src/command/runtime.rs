//! `gpucap runtime ...`, or `gpucap-runtime ...`: a runtime for containerd and Docker that becomes the next one.
//!
//! Every word goes to the next runtime as it came (but for `--gpucap-config=FILE` at the front). Before a container is
//! made (`create`, `run`, `restore`), its `config.json` gets the hook that enforces the plan, and the variables that
//! show it; before `exec` with a file, that file gets the variables. A container that asks for nothing is not touched.
//! One that asks and cannot be limited is not made: the line goes to stderr, into the log that the engine reads, and where
//! the hook's lines go; it is counted as the hook's refusals are.

mod args;
mod edit;
mod file;
mod next;

use crate::error::{Error, Result, reason};
use crate::exit::Exit;
use crate::inject::hooks::{self, Hooks};
use crate::inject::journal::Journal;
use crate::inject::refusal::RefusedContainer;
use crate::node::inputs::{self, Inputs};
use crate::terminal::output;
use args::{Command, RuntimeArgs};
use gpucap_plan::{Names, Node, NodeError, Plan, Reason, decide, variables};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// The name under which the command is the runtime, whatever its first word.
pub(crate) const NAME: &str = "gpucap-runtime";
/// The only word that is for us, if it comes first: another configuration of the node.
const CONFIG: &str = "--gpucap-config=";

const AFTER: &str = "\
An engine calls it in place of runc: `gpucap configure docker` registers it. The next runtime is `next_runtime` of the node's configuration; --gpucap-config=FILE, as the first word, names another one.
All other words are the next runtime's: `gpucap runtime --help` is its help, and `gpucap help runtime` this one.

Exit status: that of the next runtime; 1 if the container is not made.

Examples:
  gpucap runtime --gpucap-config=/etc/gpucap/config.json create --bundle /run/bundle id";

/// The words behind `gpucap runtime`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_long_help = AFTER)]
pub(crate) struct Options {
    /// The words for the next runtime
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    args: Vec<OsString>,
}

/// Prepares the container, and becomes the next runtime.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    become_next(&options.args)
}

/// The same, under the name of a runtime.
pub(crate) fn become_next(line: &[OsString]) -> Result<Exit> {
    let (own, line) = configured(line);
    let args = RuntimeArgs::of(line);
    // Where the configuration cannot be used, containers that run are still those of the runtimes that it names.
    let node = match inputs::node(&own) {
        Ok(node) => node,
        Err(NodeError { next_runtime: Some(next_runtime), .. }) => {
            Node { next_runtime, ..Node::default() }
        }
        Err(why) => {
            output::notice(&why);
            args.log(&why.to_string());
            return Ok(Exit::FAILED);
        }
    };
    let done = match &args.command {
        Some(Command::Make { id, bundle, config }) => {
            make(&own, &bundle.join(config), id).map_err(|why| why.refused(id))
        }
        Some(Command::Exec { id, process }) => {
            show(&node, &args, id, process);
            Ok(())
        }
        None => Ok(()),
    };
    if let Err(why) = done {
        output::notice(&why);
        args.log(&why.to_string());
        return Ok(Exit::FAILED);
    }
    next::become_it(&node.next_runtime, line)
}

/// The path of the node's configuration, and the arguments for the next runtime: all but the first, which is for this
/// program.
fn configured(line: &[OsString]) -> (PathBuf, &[OsString]) {
    let own = |word: &OsString| Some(word.to_str()?.strip_prefix(CONFIG)?.into());
    match line.split_first() {
        Some((first, rest)) if own(first).is_some() => (own(first).unwrap_or_default(), rest),
        _ => (Node::PATH.into(), line),
    }
}

/// Puts hook and variables into the container's `config.json`, if it is to be limited.
fn make(own: &Path, path: &Path, id: &OsStr) -> std::result::Result<(), Box<NotMade>> {
    let of_path = |why: &dyn fmt::Display| document(format!("{}: {why}", path.display()));
    let mut value =
        file::read_json(path).map_err(|why| NotMade::new(None, of_path(&reason(&why))))?;
    let container = gpucap_plan::Container::of(&value);
    let names = Names::of(&container.annotations);
    let gathered = Inputs::of(own, container, None);
    let gathered = gathered.map_err(|why| NotMade::new(names.clone(), why))?;
    let not_made =
        |reason| Box::new(NotMade { node: gathered.node(), names: names.clone(), reason });
    let decision = decide(&gathered.sources());
    let limits = match decision.plan {
        Plan::NotAsked => {
            // The hook is not called for it.
            let node = gathered.node();
            Journal::new(&node).of(names).warn(&id.to_string_lossy(), &decision.notes);
            return Ok(());
        }
        Plan::Refuse(reason) => return Err(not_made(reason)),
        Plan::Limits(limits) => limits,
    };
    let program = hooks::program();
    let program = program.map_err(|why| not_made(document(format!("gpucap: {}", reason(&why)))))?;
    let hooks = Hooks { program: &program, config: own };
    let edited = edit::limit(&mut value, &variables(&limits), hooks);
    edited.map_err(|why| not_made(of_path(&why)))?;
    file::replace(path, &value).map_err(|why| not_made(of_path(&reason(&why))))
}

/// The container's documents cannot be used.
const fn document(why: String) -> Reason {
    Reason::Document { what: "config.json", why }
}

/// Shows a program that joins the container the variables that its `config.json` has. If that fails it is no matter:
/// the limits file holds in there, whatever the variables say.
fn show(node: &Node, args: &RuntimeArgs, id: &OsStr, process: &Path) -> Option<()> {
    let state = next::state(&node.next_runtime, args.globals(), id)?;
    let bundle = gpucap_plan::State::parse(&state).ok()?.bundle;
    let config = file::read_json(&Path::new(&bundle).join("config.json")).ok()?;
    let mut value = file::read_json(process).ok()?;
    if edit::like(&mut value, &config) {
        file::replace(process, &value).ok()?;
    }
    Some(())
}

/// Why the container is not made, and what says where that is logged.
struct NotMade {
    node: Node,
    names: Option<Names>,
    reason: Reason,
}

impl NotMade {
    /// Where the node's configuration was not read.
    fn new(names: Option<Names>, reason: Reason) -> Box<Self> {
        Box::new(Self { node: Node::default(), names, reason })
    }

    /// Logs and counts it, as the hook does; the line.
    fn refused(self, id: &OsStr) -> RefusedContainer {
        let Self { node, names, reason } = self;
        let container = id.to_string_lossy().into_owned();
        let refused = RefusedContainer { by: "runtime", container, reason: reason.into() };
        Journal::new(&node).of(names).refuse(&refused);
        refused
    }
}

impl From<next::NoNext> for Error {
    fn from(none: next::NoNext) -> Self {
        Self::NoRuntime(none.0)
    }
}
