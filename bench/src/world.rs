//! A client in its world: what is preloaded, which limits are set, and a line for each command.
//!
//! A client obeys one command at a time and tells what it measured as `name=value`; while one
//! works, the others wait for their next line and take nothing from it.

use crate::files::Files;
use crate::run::{Result, Stop};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What stands between a program and the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Nothing.
    Bare,
    /// A preloaded library with nothing in it.
    Empty,
    /// The shim, without any limit.
    Unlimited,
    /// The shim, with a limit on memory.
    Limited,
    /// The shim, with a share of the time that is never used up: the null driver's kernels take none.
    Timed,
    /// The shim, with this percentage of the time.
    Shared(u16),
}

/// The limit of [`World::Limited`], in bytes; the null driver's card is larger.
pub const LIMIT: u64 = 64 << 30;

impl World {
    /// Makes a command run in this world, with a ledger of this name.
    pub fn dress(self, command: &mut Command, files: &Files, ledger: &str) {
        // Cargo sets the last one for what it runs.
        for variable in [
            "GPU_MEM_LIMIT",
            "GPU_CORE_PCT",
            "GPU_PROFILE",
            "GPUCAP_CONTEXT_MEM",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
        ] {
            command.env_remove(variable);
        }
        match self {
            Self::Bare => {}
            Self::Empty => {
                command.env("LD_PRELOAD", &files.empty);
            }
            Self::Unlimited => {
                command.env("LD_PRELOAD", &files.shim);
            }
            Self::Limited | Self::Timed | Self::Shared(_) => {
                command.env("LD_PRELOAD", &files.shim);
                match self {
                    Self::Shared(percent) => command.env("GPU_CORE_PCT", percent.to_string()),
                    Self::Timed => command.env("GPU_CORE_PCT", "99"),
                    _ => command.env("GPU_MEM_LIMIT", LIMIT.to_string()),
                };
                command.env("GPUCAP_LEDGER", files.ledger(ledger));
                // As where a limits file says what a context costs: NVML is not asked.
                command.env("GPUCAP_CONTEXT_MEM", "256Mi");
                // The refusals that a bench provokes are no news.
                command.env("GPUCAP_LOG", "error");
            }
        }
    }

    /// Starts a client that has not touched the driver yet.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn client(self, files: &Files, ledger: &str) -> Result<Client> {
        let mut command = Command::new(&files.client);
        self.dress(&mut command, files, ledger);
        command.env("LD_LIBRARY_PATH", &files.driver);
        Client::spawn(&mut command)
    }

    /// Starts a client that has a context and, where it may, one processor of its own.
    ///
    /// # Errors
    /// If it cannot be started, or the driver fails it.
    pub fn pinned(self, files: &Files, ledger: &str) -> Result<Client> {
        let mut client = self.client(files, ledger)?;
        client.ask("pin")?;
        client.ask("open")?;
        Ok(client)
    }
}

/// A process that obeys. It ends with the value.
#[derive(Debug)]
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    /// Starts a program that obeys line by line.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| Stop::fail("a client without stdout"))?;
        Ok(Self { child, stdin, stdout: BufReader::new(stdout) })
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives a command and waits for what it says.
    ///
    /// # Errors
    /// If the client has ended.
    pub fn ask(&mut self, command: &str) -> Result<Answer> {
        self.order(command)?;
        self.hear(command)
    }

    /// Gives a command.
    ///
    /// # Errors
    /// If the client has ended.
    pub fn order(&mut self, command: &str) -> Result {
        let stdin = self.stdin.as_mut().ok_or_else(|| Stop::fail("a client without stdin"))?;
        writeln!(stdin, "{command}").map_err(|error| Stop::fail(format!("{command}: {error}")))
    }

    /// Waits for the answer to a command.
    ///
    /// # Errors
    /// If the client has ended.
    pub fn hear(&mut self, command: &str) -> Result<Answer> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err(Stop::fail(format!("{command}: the client has ended")));
        }
        Answer::parse(&line).ok_or_else(|| Stop::fail(format!("{command}: answered {line:?}")))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.stdin.take());
        drop(self.child.wait());
    }
}

/// What a client measured.
#[derive(Debug, Clone)]
pub struct Answer {
    values: BTreeMap<String, f64>,
}

impl Answer {
    fn parse(line: &str) -> Option<Self> {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Some(Self { values: line.split_whitespace().map(pair).collect::<Option<_>>()? })
    }

    /// One value; NaN if there is none of this name, which meets no target and equals nothing.
    #[must_use]
    pub fn get(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// The bytes that a file takes, holes left out.
///
/// # Errors
/// If there is no such file.
pub fn occupied_bytes(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    // stat(2) counts in units of 512 bytes.
    Ok(std::fs::metadata(path)?.blocks() * 512)
}
