//! The first process of a container that is created and not started: it waits to execute the container's program.
//!
//! A kubelet or a shim that is killed between the two leaves such a process behind, which waits for ever, has the slices
//! of its container, and could still be started. The hook notes, while it holds that process up, what `execve` replaces:
//! the place of its stack, and its program's file, which is the runtime's. While both are as they were, nothing of the
//! container has run. So this holds for any runtime that executes the program in that process, and the hook limits no
//! container of another one (`Reason::Root`). What cannot be seen is never taken for waiting.

use crate::node::proc::Process;
use crate::sys::process::{Handle, Signal};
use gpucap_core::process::Stat;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

/// What of a process lasts until it executes another program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Waiting {
    stack: u64,
    device: u64,
    inode: u64,
}

/// How long a process may take to stop, in milliseconds: it waits, and has nothing else to do.
const STOPS_WITHIN: u32 = 1000;
/// How long it may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

impl Waiting {
    /// Looks at a process that waits. `None`: not all of it can be seen.
    pub(crate) fn of(process: Process) -> Option<Self> {
        let stack = process.stat().ok()??.start_of_stack;
        let program = fs::metadata(process.path("exe")).ok()?;
        let seen = Self { stack, device: program.dev(), inode: program.ino() };
        (stack != 0).then_some(seen)
    }

    /// As a record has it.
    pub(crate) fn record(self) -> Value {
        json!({"stack": self.stack, "device": self.device, "inode": self.inode})
    }

    /// Reads it again.
    pub(crate) fn of_record(value: &Value) -> Option<Self> {
        let number = |key: &str| value[key].as_u64();
        Some(Self { stack: number("stack")?, device: number("device")?, inode: number("inode")? })
    }

    /// Ends the process if it still waits, so that it never starts. Returns whether it has ended by that.
    ///
    /// It is stopped first, since it may be started at this moment: a process that has stopped executes nothing, so
    /// what is seen of it then is still so when it is killed. One that has started is continued.
    pub(crate) fn end(self, pid: u32, start_time: u64) -> io::Result<bool> {
        let handle = Handle::open(pid)?;
        // Seen after the descriptor was opened, so that this is of the process of that start time.
        if !self.is_of(Process(pid), start_time) {
            return Ok(false);
        }
        handle.signal(Signal::STOP)?;
        if !has_stopped(Process(pid)) || !self.is_of(Process(pid), start_time) {
            handle.signal(Signal::CONT)?;
            return Ok(false);
        }
        handle.signal(Signal::KILL)?;
        handle.ends(ENDS_WITHIN)
    }

    fn is_of(self, process: Process, start_time: u64) -> bool {
        let stat = process.stat().ok().flatten();
        let same = stat.is_some_and(|stat| !stat.ended && stat.start_time == start_time);
        same && Self::of(process) == Some(self)
    }
}

/// Whether all threads of a process stop in time. What cannot be seen has not stopped.
fn has_stopped(process: Process) -> bool {
    let stopped = || -> io::Result<bool> {
        let mut some = false;
        for task in fs::read_dir(process.path("task"))? {
            let stat = Stat::parse(&fs::read(task?.path().join("stat"))?);
            if stat.is_none_or(|stat| stat.state != b'T') {
                return Ok(false);
            }
            some = true;
        }
        Ok(some)
    };
    (0..STOPS_WITHIN).any(|_| {
        stopped().unwrap_or(false) || {
            thread::sleep(Duration::from_millis(1));
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    /// A shell that waits for a line, and then executes another program; both say so.
    fn shell() -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo waits; read line; exec sh -c 'echo started; read line'"]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell")
    }

    fn start_time(child: &Child) -> u64 {
        Process(child.id()).stat().expect("/proc").expect("a stat").start_time
    }

    #[test]
    fn only_a_process_that_still_waits_is_ended() {
        let mut child = shell();
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut next = || lines.next().expect("a line").expect("text");
        assert_eq!(next(), "waits");
        let waiting = Waiting::of(Process(child.id())).expect("seen");
        assert_eq!(Waiting::of_record(&waiting.record()), Some(waiting));
        let start = start_time(&child);
        let ends = |waiting: Waiting, start| waiting.end(child.id(), start).expect("asked");
        assert!(!ends(waiting, start + 1), "another process");
        assert!(!ends(Waiting { inode: waiting.inode + 1, ..waiting }, start), "another program");
        assert!(!ends(Waiting { stack: waiting.stack + 1, ..waiting }, start), "started again");
        child.stdin.as_ref().expect("a pipe").write_all(b"\n").expect("written");
        assert_eq!(next(), "started");
        let ends = |waiting: Waiting| waiting.end(child.id(), start).expect("asked");
        assert!(!ends(waiting), "it has started, though its program's file is the same");
        let now = Waiting::of(Process(child.id())).expect("seen");
        assert!(ends(now));
        assert!(child.wait().expect("waited for").code().is_none(), "killed");
    }

    #[test]
    fn a_process_without_a_thread_to_be_seen_has_not_stopped() {
        // No process has this number: the kernel's highest is 2^22.
        assert!(!has_stopped(Process(u32::MAX)));
    }
}
