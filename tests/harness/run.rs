//! One program in one world.
//!
//! The environment is empty but for `PATH`, `HOME` and what the world and the test set, so that the machine's own
//! settings cannot change a result. The stub's card and the ledger lie in the run's scratch directory.
//!
//! A real libcuda that runs as root makes device nodes in `/dev`: beside a real driver a program runs in a mount
//! namespace of its own with a `/dev` of its own, or not at all. A limits file needs such a namespace too.

use crate::{Driver, Result, Scratch, Stop, World, sandbox};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A program that is to run in a world. May be run more than once: the card and the ledger stay.
#[derive(Debug)]
pub struct Run {
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    libraries: Option<PathBuf>,
    preload: Vec<PathBuf>,
    sandboxed: bool,
    limits: Option<&'static str>,
    time_limit: Duration,
    scratch: Scratch,
}

impl Run {
    pub(crate) fn new(world: &World, program: &Path) -> Result<Self> {
        let scratch = Scratch::new()?;
        let card = scratch.path().join("card");
        std::fs::create_dir(&card)?;
        let run = Self {
            words: vec![program.into()],
            environment: Vec::new(),
            libraries: world.driver().libraries()?,
            preload: world.shim().map(Path::to_path_buf).into_iter().collect(),
            sandboxed: matches!(world.driver(), Driver::Real(_)),
            limits: None,
            time_limit: Duration::from_secs(30),
            scratch,
        };
        let ledger = run.scratch.path().join("ledger");
        let run = run.env("STUB_GPU_DIR", &card).env("GPUCAP_LEDGER", &ledger);
        Ok(match world.omitted() {
            "" => run,
            omitted => run.env("GPUCAP_TEST_OMIT", omitted),
        })
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

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().into(), value.as_ref().into()));
        self
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

    /// Shows the program this text as `/.gpucap/limits`, on a read-only mount as the hook would.
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
        self.sandboxed = true;
        self.limits = Some(mode);
        Ok(self)
    }

    /// Sets the time after which the program and its children are killed and the test fails. 30 s if not called.
    #[must_use]
    pub const fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Where this run's files lie.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// If it cannot start or exceeds its time; skips if it needs a private `/dev` that cannot be had here. How the
    /// program ended is the caller's to judge.
    pub fn output(&self) -> Result<Output> {
        let mut command = self.command()?;
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Stop::fail(format!("{shown}: {error}")))?;
        let stdout = read(child.stdout.take());
        let stderr = read(child.stderr.take());
        let status = wait(child, self.time_limit)?;
        let text = |pipe: mpsc::Receiver<String>| pipe.recv().unwrap_or_default();
        let (stdout, stderr) = (text(stdout), text(stderr));
        let output = Output { command: shown, status, stdout, stderr };
        if output.status.is_none() {
            return Err(Stop::fail(format!("killed after {:?}: {output}", self.time_limit)));
        }
        Ok(output)
    }

    fn command(&self) -> Result<Command> {
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

    fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let preload = self
            .preload
            .iter()
            .map(|path| path.as_os_str())
            .collect::<Vec<_>>()
            .join(OsStr::new(":"));
        let preload = (!preload.is_empty()).then(|| ("LD_PRELOAD".into(), preload));
        let libraries = self.libraries.clone().map(|path| ("LD_LIBRARY_PATH".into(), path.into()));
        self.environment.iter().cloned().chain(libraries).chain(preload)
    }
}

fn read(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What could not be read is missing from the text; the test then fails by its own means.
            drop(pipe.read_to_end(&mut bytes));
        }
        drop(send.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receive
}

/// Waits for the end of the child; `None` if its process group had to be killed.
fn wait(mut child: Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let group = -libc::pid_t::try_from(child.id()).map_err(Stop::fail)?;
    let (send, receive) = mpsc::channel();
    thread::spawn(move || drop(send.send(child.wait())));
    match receive.recv_timeout(limit) {
        Ok(status) => Ok(Some(status?)),
        Err(_) => {
            // SAFETY: the group's leader has not been waited for, so the number is still that of our child's group.
            unsafe { libc::kill(group, libc::SIGKILL) };
            Ok(None)
        }
    }
}

/// How a run ended and what it said.
#[derive(Debug)]
pub struct Output {
    command: String,
    status: Option<ExitStatus>,
    /// What it printed.
    pub stdout: String,
    /// What it, or the shim, complained about.
    pub stderr: String,
}

impl Output {
    /// The exit code; `None` if a signal ended the program.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status?.code()
    }

    /// The signal that ended the program.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.status?.signal()
    }

    /// Goes on if the program ended with 0. 77 is a program's way to say that the machine cannot do what it tests; it
    /// then gives the reason on stderr.
    ///
    /// # Errors
    /// Skips on 77, fails on any other end.
    pub fn success(self) -> Result<Self> {
        match self.code() {
            Some(0) => Ok(self),
            Some(77) => Err(Stop::skip(self.stderr.trim())),
            _ => Err(Stop::fail(self)),
        }
    }

    /// The value of the line `key=value`, if it was printed.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&str> {
        self.stdout.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    /// The value of the line `key=value`.
    ///
    /// # Errors
    /// If there is no such line.
    pub fn value(&self, key: &str) -> Result<&str> {
        self.find(key).ok_or_else(|| Stop::fail(format!("no `{key}=` in: {self}")))
    }

    /// The number in the line `key=number`.
    ///
    /// # Errors
    /// If there is no such line or it holds no number.
    pub fn number(&self, key: &str) -> Result<u64> {
        let value = self.value(key)?;
        value.parse().map_err(|error| Stop::fail(format!("{key}={value}: {error} in: {self}")))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, status, stdout, stderr } = self;
        writeln!(f, "{command}")?;
        match status {
            Some(status) => writeln!(f, "{status}")?,
            None => writeln!(f, "killed: out of time")?,
        }
        write!(f, "--- stdout\n{stdout}--- stderr\n{stderr}")
    }
}
