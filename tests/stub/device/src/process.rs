//! Who a process is, and whether it still runs.

use libc::{EMFILE, ENFILE};
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsRawFd, RawFd};

/// A process that no later one can be mistaken for.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Pid in its own namespace; 0 is no process.
    pub(crate) pid: u32,
    /// Start time in clock ticks since boot.
    start: u64,
    /// Inode of its pid namespace.
    namespace: u64,
    /// Where its stack begins: elsewhere once it has executed a program, when the driver ends what it had, as all descriptors
    /// of it are closed then. 0 where that may not be seen.
    stack: u64,
}

impl Identity {
    /// No process.
    pub(crate) const NONE: Self = Self { pid: 0, start: 0, namespace: 0, stack: 0 };

    /// This process.
    #[must_use]
    pub(crate) fn own() -> Self {
        let pid = std::process::id();
        let (start, stack) = stat(pid).ok().and_then(|stat| program(&stat)).unwrap_or_default();
        Self { pid, start, namespace: namespace(), stack }
    }

    /// Whether the process runs, as far as it can be seen from here: one of another pid namespace
    /// cannot. A caller without a free descriptor sees no other process, and they do run.
    #[must_use]
    pub(crate) fn runs(self) -> bool {
        let is_unknown = |error: &Error| matches!(error.raw_os_error(), Some(EMFILE | ENFILE));
        let is_it = |(start, stack)| {
            start == self.start && (stack == self.stack || [stack, self.stack].contains(&0))
        };
        self.namespace == namespace()
            && match stat(self.pid) {
                Ok(stat) => program(&stat).is_some_and(is_it),
                Err(error) => is_unknown(&error),
            }
    }
}

fn stat(pid: u32) -> Result<String, Error> {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
}

/// Start time and start of the stack of a process that is neither gone nor a zombie.
fn program(stat: &str) -> Option<(u64, u64)> {
    // The name in parentheses may hold anything; the fields behind it are numbered from 3.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let (start, stack) = (fields.nth(18)?, fields.nth(5)?);
    (!matches!(state, "Z" | "X")).then_some((start.parse().ok()?, stack.parse().ok()?))
}

fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |data| data.ino())
}

/// Record locks lie far behind the file's data, one byte per slot.
fn record(slot: usize, kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: i16::try_from(kind).unwrap_or(0),
        l_whence: 0,
        l_start: (1 << 40) + i64::try_from(slot).unwrap_or(0),
        l_len: 1,
        l_pid: 0,
    }
}

/// Marks the slot as ours for as long as this process lives. Not inherited by fork, dropped by
/// exec.
pub(crate) fn hold_record(fd: RawFd, slot: usize) {
    let lock = record(slot, libc::F_WRLCK);
    // SAFETY: `lock` is a valid argument of F_SETLK for the length of the call. A failure leaves
    // liveness to the start time.
    unsafe { libc::fcntl(fd, libc::F_SETLK, &raw const lock) };
}

/// Whether another process holds the slot's record.
#[must_use]
pub(crate) fn record_is_held(fd: RawFd, slot: usize) -> bool {
    holder(fd, slot).is_some()
}

/// The number of the other process that holds the slot's record, in the caller's pid namespace; not
/// above zero if it is not to be seen there. `None`: none holds it.
fn holder(fd: RawFd, slot: usize) -> Option<i32> {
    let mut lock = record(slot, libc::F_WRLCK);
    // SAFETY: `lock` is a valid, writable argument of F_GETLK for the length of the call.
    let answered = unsafe { libc::fcntl(fd, libc::F_GETLK, &raw mut lock) } == 0;
    (answered && libc::c_int::from(lock.l_type) != libc::F_UNLCK).then_some(lock.l_pid)
}

/// The number of a slot's process as the caller numbers it, if it is to be seen from there; as the
/// process itself does, otherwise.
#[must_use]
pub(crate) fn number(file: &File, slot: usize, identity: Identity) -> u32 {
    if identity.namespace == namespace() {
        return identity.pid;
    }
    let here = holder(file.as_raw_fd(), slot)
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|pid| *pid > 0);
    here.unwrap_or(identity.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_its_double_of_another_time_does_not() {
        let own = Identity::own();
        assert!(own.runs());
        assert!(!Identity { start: own.start + 1, ..own }.runs());
        assert!(!Identity::NONE.runs());
    }
}
