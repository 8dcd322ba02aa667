//! A machine of its own for an engine: mounts and processes that no other process sees, and that end with the test.
//!
//! An engine leaves much behind if it is stopped in the middle: daemons, shims, containers, mounts. All of them live in
//! the namespaces of one process here (`enclosure.sh`), which ends when its standard input does: with the value, or with
//! the test binary, however that ends. In it an engine has its usual places; `/etc`, `/run` and `/var` are its own.
//!
//! An engine of another release than the machine's brings its own userland, which is mounted over `/usr`.

use gpucap_tests::{Driver, Result, Run, Stop, World, fetched, project};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// How long a daemon may take until it says what it is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose programs an enclosure has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Userland {
    /// This machine's.
    Machine,
    /// Those of a Debian release, as `ci/engines` fetched them.
    Release(&'static str),
}

/// The place, and the process that keeps it.
#[derive(Debug)]
pub(crate) struct Enclosure {
    keeper: Child,
    pid: String,
    /// Whether its end has to end the processes in it.
    is_ended: bool,
}

/// A program in it that runs until it is told to stop.
#[derive(Debug)]
pub(crate) struct Daemon {
    process: RefCell<Child>,
    name: String,
    said: Receiver<String>,
}

impl Userland {
    /// All that the tests know, the oldest engines first.
    pub(crate) const ALL: [Self; 3] =
        [Self::Machine, Self::Release("trixie"), Self::Release("forky")];

    /// As a test's name says it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Machine => "this machine",
            Self::Release(name) => name,
        }
    }

    /// Its `/usr` and `/etc`, if there is this program.
    ///
    /// # Errors
    /// Skips without the program.
    pub(crate) fn places(self, program: &str) -> Result<[PathBuf; 2]> {
        match self {
            Self::Machine => {
                let here = Path::new("/").join(program).exists();
                let name = program.rsplit('/').next().unwrap_or(program);
                let why = || Stop::skip(format!("no {name} on this machine"));
                here.then(|| ["/usr".into(), "/etc".into()]).ok_or_else(why)
            }
            Self::Release(name) => {
                let tree = fetched::userland(name, program)?;
                Ok([tree.join("usr"), tree.join("etc")])
            }
        }
    }
}

impl Enclosure {
    /// One with the programs of this userland, for the one that is named by its path.
    ///
    /// # Errors
    /// Skips without the program, or where no such place can be had.
    pub(crate) fn new(userland: Userland, program: &str) -> Result<Self> {
        Self::make(userland, program, None)
    }

    /// One whose processes are among those of the machine, numbered as the driver does. This script ends what the engine
    /// has started, when the value or the test binary ends.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn among_all(userland: Userland, program: &str, ends: &str) -> Result<Self> {
        Self::make(userland, program, Some(ends))
    }

    fn make(userland: Userland, program: &str, ends: Option<&str>) -> Result<Self> {
        // SAFETY: no conditions.
        if unsafe { libc::geteuid() } != 0 {
            return Err(Stop::skip("only root can start containers here"));
        }
        let hidden = ["/etc", "/run", "/usr", "/var"];
        if let Some(place) = hidden.iter().find(|it| project().starts_with(it)) {
            return Err(Stop::skip(format!("an engine has {place} for itself: we lie below it")));
        }
        let own_processes = &["--pid", "--fork", "--kill-child"][..];
        let mut keeper = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .args(if ends.is_none() { own_processes } else { &[] })
            .args(["sh", "-e"])
            .arg(project().join("tests/containers/enclosure.sh"))
            .args(userland.places(program)?)
            .args(ends)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut pid = String::new();
        if let Some(stdout) = keeper.stdout.take() {
            BufReader::new(stdout).read_line(&mut pid)?;
        }
        let enclosure = Self { pid: pid.trim().to_owned(), keeper, is_ended: ends.is_some() };
        if enclosure.pid.is_empty() { Err(enclosure.failed()) } else { Ok(enclosure) }
    }

    fn failed(mut self) -> Stop {
        let mut why = String::new();
        if let Some(mut stderr) = self.keeper.stderr.take() {
            drop(stderr.read_to_string(&mut why));
        }
        Stop::skip(format!("an engine cannot have a place of its own here: {}", why.trim()))
    }

    /// A program in it, as the harness runs one.
    ///
    /// # Errors
    /// If the harness cannot prepare it.
    pub(crate) fn run<T: AsRef<OsStr>>(&self, words: &[T]) -> Result<Run> {
        let run = World::bare(Driver::Absent).run(Path::new("nsenter"))?;
        let run = self.entering().iter().fold(run, Run::arg);
        Ok(words.iter().fold(run, Run::arg))
    }

    /// The output of a program in it, which has to succeed.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn output<T: AsRef<OsStr>>(&self, words: &[T]) -> Result<String> {
        Ok(self.run(words)?.output()?.success()?.stdout)
    }

    /// The number of the process that keeps it, whose namespaces are its.
    pub(crate) fn keeper(&self) -> &str {
        &self.pid
    }

    /// A file in it, as the machine reaches it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.pid))
    }

    /// Starts a daemon, and waits until it says this.
    ///
    /// # Errors
    /// If it ends, or does not say it in time.
    pub(crate) fn daemon(&self, words: &[&str], ready: &'static str) -> Result<Daemon> {
        let name = words[0].rsplit('/').next().unwrap_or(words[0]).to_owned();
        let script = "echo $$ >\"/run/${1##*/}.test\"; exec \"$@\"";
        let mut process = Command::new("nsenter")
            .args(self.entering())
            .args(["sh", "-c", script, "sh"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = process.stderr.take();
        let (send, said) = channel();
        // Read on without a reader, so that it is not held up by a full pipe.
        thread::spawn(move || {
            for line in stderr.map(BufReader::new).into_iter().flat_map(BufRead::lines).flatten() {
                drop(send.send(line));
            }
        });
        let daemon = Daemon { process: process.into(), name, said };
        daemon.says(ready)?;
        Ok(daemon)
    }

    /// Sends a daemon a signal.
    ///
    /// # Errors
    /// If it cannot be told.
    pub(crate) fn signal(&self, daemon: &Daemon, name: &str) -> Result {
        let pid = std::fs::read_to_string(self.path(&format!("/run/{}.test", daemon.name)))?;
        self.output(&["sh", "-c", "kill -s \"$1\" \"$2\"", "sh", name, pid.trim()]).map(drop)
    }

    /// Stops a daemon as its service would.
    ///
    /// # Errors
    /// If it cannot be told.
    pub(crate) fn stop(&self, daemon: &Daemon) -> Result {
        self.signal(daemon, "TERM")?;
        daemon.process.borrow_mut().wait()?;
        Ok(())
    }

    fn entering(&self) -> [&str; 5] {
        ["--target", &self.pid, "--mount", "--pid", "--"]
    }
}

impl Drop for Enclosure {
    fn drop(&mut self) {
        if self.is_ended {
            drop(self.keeper.stdin.take());
        } else if let Ok(pid) = self.pid.parse() {
            // It ends when the last of its processes has, and then does the one that waits for it.
            // SAFETY: no memory is involved; the process is waited for by its parent alone, which has not ended.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        } else {
            drop(self.keeper.kill());
        }
        drop(self.keeper.wait());
    }
}

impl Daemon {
    /// Waits until it says this in its log.
    ///
    /// # Errors
    /// If it ends, or does not say it in time.
    pub(crate) fn says(&self, text: &str) -> Result {
        let mut log = String::new();
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return Ok(()),
                Ok(line) => log += &format!("{line}\n"),
                Err(why) => {
                    let name = &self.name;
                    return Err(Stop::fail(format!("{name} does not say `{text}`: {why}: {log}")));
                }
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // What is left of it here is who waits for it; the daemon goes with its enclosure.
        let process = self.process.get_mut();
        drop(process.kill());
        drop(process.wait());
    }
}
