//! Mounts whose files belong to no user.
//!
//! The owner of a file may take a lease on it (`fcntl(2)`, `F_SETLEASE`), again and again, and so keep others from opening it.
//! In a container of the host's users that is each process with user 0, and by `CAP_SETUID` each user. Through a mount that
//! maps the users of its files (`mount_setattr(2)`, `MOUNT_ATTR_IDMAP`) to those of a user namespace in which their owner does
//! not exist, no user owns them. The kernel does this for a file system in memory since Linux 6.3.

use super::mount;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The one user of the namespace, of which no file is.
const USER: u32 = u32::MAX - 1;

/// A user namespace in which no file has an owner.
#[derive(Debug)]
pub(crate) struct NoUser(File);

impl NoUser {
    /// Makes it, by a process that ends at once.
    ///
    /// # Errors
    /// No user namespace is allowed here.
    pub(crate) fn make() -> io::Result<Self> {
        let (waits, goes) = io::pipe()?;
        let child = Child::begin(&waits, &goes)?;
        let path = |name: &str| PathBuf::from(format!("/proc/{}/{name}", child.0.as_raw_nonzero()));
        let line = format!("{USER} {USER} 1");
        let made =
            ["uid_map", "gid_map"].into_iter().try_for_each(|map| fs::write(path(map), &line));
        let namespace = made.and_then(|()| File::open(path("ns/user")));
        drop(goes);
        child.end()?;
        namespace.map(Self)
    }

    /// Has the files of a mount that is mounted nowhere yet belong to no user there.
    ///
    /// # Errors
    /// The kernel cannot do that for their file system.
    pub(crate) fn own(&self, mount: &File) -> io::Result<()> {
        mount::map_users(mount, &self.0)
    }
}

/// A child in a user namespace of its own, which ends with the other end of a pipe.
struct Child(Pid);

impl Child {
    fn begin(waits: &PipeReader, goes: &PipeWriter) -> io::Result<Self> {
        let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
        // SAFETY: as `fork(2)`; a stack of its own is not given, and the child makes no more than the system calls below.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        if pid == 0 {
            // SAFETY: the child's own copy, which it does not use again.
            unsafe { libc::close(goes.as_raw_fd()) };
            let _ = rustix::io::read(waits, &mut [0_u8; 1]);
            // SAFETY: nothing that the parent has prepared for its end is done in the child.
            unsafe { libc::_exit(0) }
        }
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        pid.map(Self).ok_or_else(io::Error::last_os_error)
    }

    fn end(self) -> io::Result<()> {
        waitpid(Some(self.0), WaitOptions::empty())?;
        Ok(())
    }
}
