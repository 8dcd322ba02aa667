//! The container's first process, which waits for the hook, and the mount namespace that it is in.

use crate::proc::Process;
use crate::sys::mount;
use std::fs::File;
use std::io;

/// A process that is to become a container.
#[derive(Debug)]
pub(super) struct Init {
    namespace: File,
}

impl Init {
    /// Finds it by its number.
    ///
    /// # Errors
    /// It is gone, or has no mount namespace of its own: what would be mounted there, the host would see.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let process = Process(pid);
        let start_time = || -> io::Result<u64> {
            let stat = process.stat()?.filter(|stat| !stat.ended);
            Ok(stat.ok_or(io::ErrorKind::NotFound)?.start_time)
        };
        let before = start_time()?;
        let namespace = File::open(process.path("ns/mnt"))?;
        // The number may have gone to another process meanwhile.
        if start_time()? != before {
            return Err(io::ErrorKind::NotFound.into());
        }
        let own = File::open(Process::own().path("ns/mnt"))?;
        if super::root::Identity::of(&own)? == super::root::Identity::of(&namespace)? {
            return Err(io::Error::other("it sees the host's own mounts"));
        }
        Ok(Self { namespace })
    }

    /// Sees what it sees, from here on.
    pub(super) fn enter(&self) -> io::Result<()> {
        mount::enter(&self.namespace)
    }
}
