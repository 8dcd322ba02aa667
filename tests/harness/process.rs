//! A child process that cannot outlive its time, nor the value that stands for it.

use crate::{Machine, Result, Stop};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// What takes longer hangs, also on a machine that does a dozen other things: five times as long in an emulator.
pub(crate) fn hangs() -> Duration {
    Duration::from_secs(if Machine::is_emulated() { 900 } else { 180 })
}

/// A process group, led by the child. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    leader: u32,
    ended: Receiver<io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Receiver<String>,
}

impl Process {
    /// Starts the command with `stdin`, and with pipes for what it prints.
    pub(crate) fn spawn(command: &mut Command, stdin: Stdio) -> Result<Self> {
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| Stop::fail(format!("{command:?}: {error}")))?;
        let (send, ended) = channel();
        let (leader, stdin, stdout) = (child.id(), child.stdin.take(), child.stdout.take());
        let stderr = read(child.stderr.take());
        thread::spawn(move || drop(send.send(child.wait())));
        Ok(Self { leader, ended, status: None, stdin, stdout, stderr })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.leader
    }

    /// How it ended; `None` if it had not after `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        if self.status.is_none()
            && let Ok(status) = self.ended.recv_timeout(limit)
        {
            self.status = Some(status?);
        }
        Ok(self.status)
    }

    /// Kills the child and what it started, and waits until the child is gone.
    pub(crate) fn kill(&mut self) -> Result {
        if self.wait(Duration::ZERO)?.is_none() {
            let group = -libc::pid_t::try_from(self.leader).map_err(Stop::fail)?;
            // SAFETY: no memory is involved; the leader had not been waited for a moment ago, and process numbers
            // are not given out again that fast.
            unsafe { libc::kill(group, libc::SIGKILL) };
            self.wait(hangs())?;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // There is no output left.
        drop(self.kill());
    }
}

/// Reads to the end, beside everything else.
pub(crate) fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, receive) = channel();
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
