//! One program in one world.
//!
//! The environment is empty but for `PATH`, `HOME` and what the world and the test set, so that the machine's own
//! settings cannot change a result. The stub's card and the ledger lie in the run's scratch directory.
//!
//! A card takes no orders: a run that gives the stub some is skipped beside one. What takes the card's place in a
//! rehearsal has its settings from the environment of the tests.
//!
//! A real libcuda that runs as root makes device nodes in `/dev`: beside a real driver a program runs in a mount
//! namespace of its own with a `/dev` of its own, or not at all. A limits file needs such a namespace too.

use crate::process::{self, Process, hangs};
use crate::{Driver, Output, Result, Scratch, Stop, World, sandbox};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// What of the stub's settings says nothing that a test relies on: where its card lies, and that contexts take nothing,
/// where the shim is told not to charge for them.
const INDIFFERENT: [(&str, Option<&str>); 2] =
    [("STUB_GPU_DIR", None), ("STUB_GPU_CONTEXT_MEM", Some("0"))];

/// A program that is to run in a world. Runs of one value, or of its clones, share the card and the ledger.
#[derive(Debug, Clone)]
pub struct Run {
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    libraries: Option<PathBuf>,
    more_libraries: Vec<PathBuf>,
    preload: Vec<PathBuf>,
    card: bool,
    sandboxed: bool,
    limits: Option<&'static str>,
    time_limit: Duration,
    scratch: Arc<Scratch>,
}

impl Run {
    pub(crate) fn new(world: &World, program: &Path) -> Result<Self> {
        let scratch = Arc::new(Scratch::new()?);
        let card = scratch.path().join("card");
        std::fs::create_dir(&card)?;
        let run = Self {
            words: vec![program.into()],
            environment: Vec::new(),
            libraries: world.driver().libraries()?,
            more_libraries: Vec::new(),
            preload: world.shim().map(Path::to_path_buf).into_iter().collect(),
            card: *world.driver() == Driver::Card,
            sandboxed: matches!(world.driver(), Driver::Real(_)),
            limits: None,
            time_limit: hangs(),
            scratch,
        };
        let run = run.env("STUB_GPU_DIR", &card).budget("ledger");
        Ok(match world.omitted() {
            "" => run,
            omitted => run.env("GPUCAP_TEST_OMIT", omitted),
        })
    }

    /// The same card, ledger and environment for another program.
    #[must_use]
    pub fn program(mut self, program: &Path) -> Self {
        self.words = vec![program.into()];
        self
    }

    /// Adds an argument of the program.
    #[must_use]
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().into());
        self
    }

    /// Starts the program through another one, which is given the program and its arguments.
    #[must_use]
    pub fn through(mut self, words: &[&OsStr]) -> Self {
        self.words.splice(0..0, words.iter().map(Into::into));
        self
    }

    /// Lets the loader look here, too, after where the world's driver lies.
    #[must_use]
    pub fn more_libraries(mut self, directory: PathBuf) -> Self {
        self.more_libraries.push(directory);
        self
    }

    /// Lets it run for so long before it counts as hung.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// The same card for the processes of another budget, of this name.
    #[must_use]
    pub fn budget(self, name: &str) -> Self {
        let ledger = self.scratch.path().join(name);
        self.env("GPUCAP_LEDGER", ledger)
    }

    /// Preloads a library before the shim.
    #[must_use]
    pub fn preload_before(mut self, library: PathBuf) -> Self {
        self.preload.insert(0, library);
        self
    }

    /// Preloads a library after the shim.
    #[must_use]
    pub fn preload_after(mut self, library: PathBuf) -> Self {
        self.preload.push(library);
        self
    }

    /// Shows the program this text as `/.gpucap/limits`, on a read-only mount as the hook would, with a ledger.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn limits_file(self, text: &str) -> Result<Self> {
        self.limits(text, "ro")
    }

    /// Shows the program this text as `/.gpucap/limits` where it could change it itself.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn writable_limits_file(self, text: &str) -> Result<Self> {
        self.limits(text, "rw")
    }

    fn limits(mut self, text: &str, mode: &'static str) -> Result<Self> {
        let directory = self.scratch.path().join("limits");
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("limits"), text)?;
        std::fs::write(directory.join("ledger"), "")?;
        self.sandboxed = true;
        self.limits = Some(mode);
        Ok(self)
    }

    /// Shows the program, beside its limits file, a usage page among those of others, as the hook would.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn card_page(self) -> Result<Self> {
        let pages = self.scratch.path().join("limits/pages");
        std::fs::create_dir_all(&pages)?;
        std::fs::write(pages.join("own"), "")?;
        std::fs::write(self.scratch.path().join("limits/page"), "")?;
        Ok(self)
    }

    /// Where this run's files lie.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Where the processes keep their book.
    pub(crate) fn ledger(&self) -> PathBuf {
        // One that lies beside a limits file is the container's, and no other counts.
        let beside = self.scratch.path().join("limits/ledger");
        let mut configured =
            self.environment.iter().rev().filter(|(name, _)| name == "GPUCAP_LEDGER");
        let configured = || configured.next().map(|(_, path)| PathBuf::from(path));
        Some(beside).filter(|path| path.exists()).or_else(configured).unwrap_or_default()
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// If it cannot start or exceeds its time; skips if it needs a private `/dev` that cannot be had here. How the
    /// program ended is the caller's to judge.
    pub fn output(&self) -> Result<Output> {
        let mut process = Process::spawn(&mut self.command()?, Stdio::null())?;
        let stdout = process::read(process.stdout.take());
        let status = process.wait(self.time_limit)?;
        process.kill()?;
        let stdout = stdout.recv().unwrap_or_default();
        let stderr = process.stderr.recv().unwrap_or_default();
        let output = Output { command: self.to_string(), status, stdout, stderr };
        match output.status {
            Some(_) => Ok(output),
            None => Err(Stop::fail(format!("killed after {:?}: {output}", self.time_limit))),
        }
    }

    /// Starts the program, to be spoken to.
    pub(crate) fn spawn(&self) -> Result<Process> {
        Process::spawn(&mut self.command()?, Stdio::piped())
    }

    /// The time after which the program is given up.
    pub(crate) const fn limit(&self) -> Duration {
        self.time_limit
    }

    /// The program with its environment, to be started.
    pub(crate) fn command(&self) -> Result<Command> {
        if self.card && self.sandboxed {
            return Err(Stop::skip("in a private /dev there is no card"));
        }
        if let Some(order) = self.order() {
            return Err(Stop::skip(format!("a card does not obey {order}")));
        }
        let mut command = if self.sandboxed {
            let mut command = sandbox::command(self.scratch.path(), self.limits)?;
            // The loader's variables are for the program, not for the shell that prepares its place.
            command.arg("env").args(self.variables().map(|(mut word, value)| {
                word.push("=");
                word.push(value);
                word
            }));
            command.args(&self.words).env_clear();
            command
        } else {
            let mut command = Command::new(&self.words[0]);
            command.args(&self.words[1..]).env_clear().envs(self.variables());
            command
        };
        for kept in ["PATH", "HOME"] {
            command.envs(env::var_os(kept).map(|value| (kept, value)));
        }
        command.current_dir(self.scratch.path());
        Ok(command)
    }

    /// What this run needs of a card that only the stub can be told.
    fn order(&self) -> Option<String> {
        let told = |(name, value): &&(OsString, OsString)| {
            of_the_stub(name)
                && !INDIFFERENT
                    .iter()
                    .any(|(known, only)| name == known && only.is_none_or(|only| value == only))
        };
        let (name, value) = self.environment.iter().filter(|_| self.card).find(told)?;
        Some(format!("{}={}", name.display(), value.display()))
    }

    fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let preload = self
            .preload
            .iter()
            .map(|path| path.as_os_str())
            .collect::<Vec<_>>()
            .join(OsStr::new(":"));
        let preload = (!preload.is_empty()).then(|| ("LD_PRELOAD".into(), preload));
        let places: Vec<_> = self.libraries.iter().chain(&self.more_libraries).collect();
        let places = places.iter().map(|path| path.as_os_str()).collect::<Vec<_>>();
        let places = places.join(OsStr::new(":"));
        let libraries = (!places.is_empty()).then(|| ("LD_LIBRARY_PATH".into(), places));
        let own = self.environment.iter().filter(|(name, _)| !(self.card && of_the_stub(name)));
        let posing = env::vars_os().filter(|(name, _)| self.card && of_the_stub(name));
        own.cloned().chain(posing).chain(libraries).chain(preload)
    }
}

/// Whether a variable is a setting of the stub.
fn of_the_stub(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"STUB_GPU_")
}

impl fmt::Display for Run {
    /// As one could type it, but for the sandbox.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.sandboxed { "(sandbox) env" } else { "env" })?;
        for (name, value) in self.variables() {
            write!(f, " {}={}", name.display(), value.display())?;
        }
        self.words.iter().try_for_each(|word| write!(f, " {}", word.display()))
    }
}
