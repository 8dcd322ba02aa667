//! `gpucap nri`: a plugin of containerd and CRI-O, which ask it before they make a container.
//!
//! Its answers put the limit into the environment of everything that starts in the container, `exec` included, and
//! have the runtime call the hook, whatever the pod's runtime class. **The hook enforces**: a runtime that gets no
//! answer from a plugin in time makes its containers without one. The plan is the hook's own, so a container without
//! a request is left unchanged, and one that cannot be read is refused.
//!
//! It runs for as long as it is wanted: a runtime that goes away is waited for. Started by the runtime itself, as
//! `/opt/nri/plugins/10-gpucap`, it has its socket from there, and ends with it.

mod link;
mod ready;

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::inject::hooks::{self, Hooks, STAGES};
use crate::node::inputs::{self, Inputs};
use crate::sys;
use crate::terminal::output;
use gpucap_nri::{Answer, Creation, Name};
use gpucap_plan::{Node, Plan, decide};
use link::End;
use ready::Ready;
use std::env;
use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::{self, Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const AFTER: &str = "\
It serves until it is stopped, and waits for a runtime that is not there or goes away.

Exit status: 1 if it cannot serve, one line says why; started by a runtime, 0 when that ends.

Examples:
  gpucap nri --socket /var/run/nri/nri.sock";

/// The words behind `gpucap nri`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
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
/// The variable in which a runtime passes the number of the open socket to a plugin that it started.
const SOCKET: &str = "NRI_PLUGIN_SOCKET";

/// How long a failure that stays the same goes without a line.
const SILENCE: Duration = Duration::from_secs(60);

/// The latest line about a failure, and when it was printed.
#[derive(Default)]
struct Said(Option<(String, Instant)>);

impl Said {
    /// Whether the end of a connection is to be printed now: it is another one, or the last line was long ago.
    fn is_due(&mut self, end: &End, now: Instant) -> bool {
        let same =
            |(why, at): &(String, Instant)| *why == end.why && now.duration_since(*at) < SILENCE;
        let is_due = end.was_ready || !self.0.as_ref().is_some_and(same);
        if is_due {
            self.0 = Some((end.why.clone(), now));
        }
        is_due
    }
}

/// Serves one runtime after the other.
pub(crate) fn execute(options: &Options) -> Result<Exit> {
    let name = Name::new(&options.name, &options.index).map_err(failed)?;
    let planner = Planners::new(&options.config, options.program.clone())?;
    let ready = Ready::new(options.ready_file.clone())?;
    let (mut pause, mut said) = (PAUSES[0], Said::default());
    loop {
        let end = match UnixStream::connect(&options.socket) {
            Ok(stream) => link::serve(stream, &name, &|it| planner.answer(it), &ready)?,
            Err(why) => End { was_ready: false, why: crate::error::reason(&why) },
        };
        if end.was_ready {
            pause = PAUSES[0];
        }
        if said.is_due(&end, Instant::now()) {
            output::notice(format!("nri: {}: {}; trying again", options.socket.display(), end.why));
        }
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
    let number = number.ok_or_else(|| {
        failed(format!("{SOCKET} names no open file: start this plugin from a runtime"))
    })?;
    let stream = sys::inherited_socket(number);
    let stream =
        stream.map_err(|why| failed(format!("{SOCKET}: {}", crate::error::reason(&why))))?;
    let planner = Planners::new(Path::new(Node::PATH), None)?;
    let end = link::serve(stream, name, &|it| planner.answer(it), &Ready::new(None)?)?;
    if end.was_ready { Ok(Exit::OK) } else { Err(failed(end.why)) }
}

fn failed(why: impl fmt::Display) -> Error {
    Error::Nri(why.to_string())
}

/// How long a decision may take, and how many that took longer may still be under way. A runtime waits for 2 s in all,
/// and then makes its containers without the plugin: those of others, too.
const TIME: Duration = Duration::from_millis(1000);
const MOST_LATE: usize = 4;

/// Decides about containers, each in time.
struct Planners {
    planner: Arc<Planner>,
    /// One handle is ours; each decision under way has another.
    late: Arc<()>,
}

impl Planners {
    fn new(config: &Path, program: Option<PathBuf>) -> Result<Self> {
        Ok(Self { planner: Arc::new(Planner::new(config, program)?), late: Arc::default() })
    }

    /// The decision, or a refusal where there is none in time.
    fn answer(&self, creation: &Creation) -> Answer {
        if Arc::strong_count(&self.late) > MOST_LATE {
            return refused(creation, "other decisions are still under way");
        }
        let (planner, late, asked) = (self.planner.clone(), self.late.clone(), creation.clone());
        let (answered, answer) = mpsc::channel();
        let work = move || {
            // The runtime does not wait for an answer that is late.
            let _ = answered.send(planner.answer(&asked));
            drop(late);
        };
        if let Err(why) = thread::Builder::new().spawn(work) {
            return refused(creation, crate::error::reason(&why));
        }
        let late = format!("no decision within {} ms", TIME.as_millis());
        answer.recv_timeout(TIME).unwrap_or_else(|_| refused(creation, late))
    }
}

/// The container is not made, and one line says why.
fn refused(creation: &Creation, why: impl fmt::Display) -> Answer {
    let why = format!("nri: container {} is not made: {why}", creation.name());
    output::notice(&why);
    Answer::Refuse(format!("gpucap: {why}"))
}

/// Decides about containers.
struct Planner {
    config: PathBuf,
    /// As it was when we started: a command that was replaced since has no name any more. A path that outlives upgrades,
    /// since containers outlive them.
    program: PathBuf,
}

impl Planner {
    fn new(config: &Path, program: Option<PathBuf>) -> Result<Self> {
        let program = program.map_or_else(hooks::program, Ok);
        let program = program.map_err(|why| failed(crate::error::reason(&why)))?;
        // The hook runs in a directory of the runtime's.
        let absolute =
            |path: &Path| path::absolute(path).map_err(|why| failed(crate::error::reason(&why)));
        Ok(Self { config: absolute(config)?, program: absolute(&program)? })
    }

    fn answer(&self, creation: &Creation) -> Answer {
        let node = inputs::node(&self.config).unwrap_or_default();
        let gathered = Inputs::of(&self.config, creation.container(&node), None);
        let decision = match gathered.map(|gathered| decide(&gathered.sources())) {
            Ok(decision) => decision,
            Err(reason) => return refused(creation, reason),
        };
        match decision.plan {
            Plan::NotAsked => {
                for note in decision.notes.iter().filter(|note| note.is_warning) {
                    output::notice(format_args!("nri: container {}: {note}", creation.name()));
                }
                Answer::Leave
            }
            Plan::Limits(limits) => {
                let hooks = Hooks { program: &self.program, config: &self.config };
                let hooks = STAGES.map(|stage| (stage, hooks.at(stage)));
                Answer::Adjust(Box::new(creation.adjust(&node, &limits, &hooks)))
            }
            Plan::Refuse(reason) => refused(creation, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_stays_is_printed_once_a_minute() {
        let (start, mut said) = (Instant::now(), Said::default());
        let end = |why: &str| End { was_ready: false, why: why.into() };
        let mut is_due =
            |why, seconds| said.is_due(&end(why), start + Duration::from_secs(seconds));
        let due = [("a", 0), ("a", 59), ("a", 60), ("b", 61), ("b", 120), ("b", 121), ("a", 122)];
        let expected = [true, false, true, true, false, true, true];
        assert_eq!(due.map(|(why, seconds)| is_due(why, seconds)), expected);
        let ready = End { was_ready: true, why: "a".into() };
        assert!(said.is_due(&ready, start + Duration::from_secs(123)), "a connection has ended");
    }
}
