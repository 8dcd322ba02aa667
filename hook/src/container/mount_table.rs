//! The mount that a file of the container is on, and how the kernel propagates mounts made there.
//!
//! Read from the host's `/proc`, opened before the container's mount namespace is entered: inside there may be none,
//! or one that the image has made. Kernels before 5.8 offer no other way.

use super::root::{Place, read};
use crate::node::proc::Process;
use crate::sys::at::{self, OFlags};
use crate::sys::mount;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Of how many bytes there may be: the kernel allows 100,000 mounts in a namespace.
const MOST_BYTES: u64 = 64 << 20;
/// How many mounts on one place are removed.
const MOST_MOUNTS: u32 = 64;

/// What `/proc` says of this process's mounts, whatever namespace it enters.
#[derive(Debug)]
pub(crate) struct MountTable(File);

impl MountTable {
    /// Opens it; in the host's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        super::root::open_directory(&Process::own().path("")).map(Self)
    }

    /// Returns the number of the mount that an open file is on.
    pub(crate) fn mount_of(&self, file: &File) -> io::Result<u64> {
        let text = self.text(&format!("fdinfo/{}", file.as_raw_fd()))?;
        let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        number
            .and_then(|number| number.trim().parse().ok())
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns whether mounts made on this mount propagate elsewhere, such as to the host.
    pub(crate) fn is_shared(&self, number: u64) -> io::Result<bool> {
        let number = number.to_string();
        let text = self.text("mountinfo")?;
        let line = text.lines().find(|line| line.split(' ').next() == Some(&number));
        let fields = line.ok_or(io::ErrorKind::NotFound)?.split(' ');
        // Six fields, and then the optional ones up to a dash.
        Ok(fields.skip(6).take_while(|field| *field != "-").any(|it| it.starts_with("shared:")))
    }

    /// Unmounts what is mounted at a place, so that the next mount there does not depend on a file of another mount:
    /// another holder of that mount could remove the file, and the new mount with it.
    pub(crate) fn uncover(&self, place: &Place) -> io::Result<()> {
        for _ in 0..MOST_MOUNTS {
            let Some(top) = place.found()? else { return Ok(()) };
            if self.mount_of(&top)? == self.mount_of(place.parent())? {
                return Ok(());
            }
            // Else it would be in use.
            drop(top);
            mount::detach(place.parent(), place.name())?;
        }
        Err(io::Error::other("too much is mounted there"))
    }

    fn text(&self, name: &str) -> io::Result<String> {
        let file = at::open(&self.0, &CString::new(name)?, OFlags::empty(), 0)?;
        let bytes = read(file, MOST_BYTES)?;
        // Names come from the image; only numbers and flags are used.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
