//! What came of a run.

use crate::{Result, Stop};
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a run ended and what it said.
#[derive(Debug)]
pub struct Output {
    pub(crate) command: String,
    pub(crate) status: Option<ExitStatus>,
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
