//! The container's first process, which waits for the hook, and the mount namespace that it is in.

use crate::node::proc::Process;
use crate::sys::mount;
use std::fs::File;
use std::io;

/// A process that is to become a container.
#[derive(Debug)]
pub(crate) struct Init {
    namespace: File,
    root: u32,
}

impl Init {
    /// Finds it by its number.
    ///
    /// # Errors
    /// It is gone, or has no mount namespace of its own: what would be mounted there, the host would see.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let process = Process(pid);
        let start_time = || -> io::Result<u64> {
            let stat = process.stat()?.filter(|stat| !stat.ended);
            Ok(stat.ok_or(io::ErrorKind::NotFound)?.start_time)
        };
        let before = start_time()?;
        let namespace = File::open(process.path("ns/mnt"))?;
        let root = root_of(&std::fs::read_to_string(process.path("uid_map"))?);
        // The number may have been reused by another process.
        if start_time()? != before {
            return Err(io::ErrorKind::NotFound.into());
        }
        let own = File::open(Process::own().path("ns/mnt"))?;
        if super::root::FileIdentity::of(&own)? == super::root::FileIdentity::of(&namespace)? {
            return Err(io::Error::other("it sees the host's own mounts"));
        }
        Ok(Self { namespace, root })
    }

    /// The host's user that is its root; root itself, if there is no mapping.
    pub(crate) const fn root(&self) -> u32 {
        self.root
    }

    /// Sees what it sees, from here on.
    pub(crate) fn enter(&self) -> io::Result<()> {
        mount::enter(&self.namespace)
    }
}

/// Returns the user that this map maps to 0: begin inside, begin outside, and count, in each line.
fn root_of(map: &str) -> u32 {
    let numbers = |line: &str| -> Option<Vec<u32>> {
        line.split_whitespace().map(|number| number.parse().ok()).collect()
    };
    let root = |line: &str| match numbers(line)?[..] {
        [0, outside, _] => Some(outside),
        _ => None,
    };
    map.lines().find_map(root).unwrap_or(0)
}
