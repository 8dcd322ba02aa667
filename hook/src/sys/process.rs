//! A process by a descriptor: signals that reach that process, and never one that has taken its number (Linux 5.3).

use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

pub(crate) use rustix::process::Signal;

/// A process, which may have ended.
#[derive(Debug)]
pub(crate) struct Handle(OwnedFd);

impl Handle {
    /// Opens the process that has this number now.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, signal)?)
    }

    /// Waits until it has ended, for at most the timeout. Returns whether it has.
    pub(crate) fn ends(&self, most: Duration) -> io::Result<bool> {
        super::readable(&self.0, most)
    }
}
