//! The mounts that show a container its files, made by the kernel's newer means or, where it lacks them, by `mount(2)`.
//!
//! The newer means (Linux 5.12) make a mount complete, read-only and all, before it appears anywhere, and carry the
//! library in from the host's namespace. Older kernels mount first and restrict afterwards, from a path that must be
//! the same file in the container's namespace; nothing runs there in between, since the container waits for the hook.
//! Which of the two it is, is known before the namespace is entered; the caller does not know.

use super::root::{FileIdentity, Place};
use crate::sys::at::{self, StatVfsMountFlags};
use crate::sys::mount::{self, MountAttrFlags, MountFlags, MountPropagationFlags};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// No mount of ours gives rights by its programs or opens devices.
pub(crate) const NO_PRIVILEGES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// What may be done with a mount.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Use {
    /// Read, and run or mapped as a program.
    Load,
    /// Read.
    Read,
    /// Written, too.
    Write,
}

impl Use {
    /// The forbidden uses, and the uses that are allowed though the source may forbid them.
    pub(crate) fn attributes(self) -> (MountAttrFlags, MountAttrFlags) {
        use MountAttrFlags as May;
        let always = NO_PRIVILEGES;
        match self {
            Self::Load => (May::MOUNT_ATTR_RDONLY | always, May::MOUNT_ATTR_NOEXEC),
            Self::Read => (May::MOUNT_ATTR_RDONLY | May::MOUNT_ATTR_NOEXEC | always, May::empty()),
            Self::Write => (May::MOUNT_ATTR_NOEXEC | always, May::MOUNT_ATTR_RDONLY),
        }
    }

    /// The same for `mount(2)`, whose remount forbids exactly what it names.
    fn flags(self) -> MountFlags {
        let always = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
        match self {
            Self::Load => always | MountFlags::RDONLY,
            Self::Read => always | MountFlags::RDONLY | MountFlags::NOEXEC,
            Self::Write => always | MountFlags::NOEXEC,
        }
    }
}

/// The available system calls, tried with the library.
#[derive(Debug)]
pub(crate) enum Means {
    /// A mount of the library that is mounted nowhere yet.
    Detached(File),
    /// The library's path and its expected content.
    Classic(PathBuf, FileIdentity),
}

impl Means {
    /// Finds out what this kernel can do; in the namespace of the host, where the library is.
    pub(crate) fn prepare(path: &Path, library: &File) -> io::Result<Self> {
        match detached(library) {
            Ok(mount) => Ok(Self::Detached(mount)),
            Err(why) if why.raw_os_error() == Some(libc::ENOSYS) => {
                Ok(Self::Classic(path.to_owned(), FileIdentity::of(library)?))
            }
            Err(why) => Err(why),
        }
    }

    /// Returns whether a file of the host can be mounted, wherever it is.
    pub(crate) fn carry(&self) -> bool {
        matches!(self, Self::Detached(_))
    }

    /// Mounts an empty file system in memory, writable for now, and opens it.
    pub(crate) fn tmpfs(&self, place: &Place, options: &[(&CStr, &CStr)]) -> io::Result<File> {
        match self {
            Self::Detached(_) => {
                mount::attach(&mount::new_tmpfs(options, NO_PRIVILEGES)?, &place.top()?)?;
            }
            Self::Classic(..) => {
                let flags = MountFlags::NOSUID | MountFlags::NODEV;
                let (options, target) = (joined(options)?, Descriptor::of(place.top()?)?);
                mount::mount(c"tmpfs", &target.path, c"tmpfs", flags, &*options)?;
            }
        }
        place.top()
    }

    /// Shows the library.
    pub(crate) fn library(&self, place: &Place) -> io::Result<()> {
        match self {
            Self::Detached(library) => mount::attach(library, &place.top()?),
            Self::Classic(path, identity) => {
                let library = File::open(path)?;
                if FileIdentity::of(&library)? != *identity {
                    return Err(io::Error::other(
                        "another file of the container is in the library's place",
                    ));
                }
                bind(library, place, Use::Load)
            }
        }
    }

    /// Shows a file of the container's namespace at a second place.
    pub(crate) fn file(&self, source: &Place, place: &Place, usage: Use) -> io::Result<()> {
        let source = source.top()?;
        match self {
            Self::Detached(_) => {
                let clone = mount::clone_of(&source)?;
                let (set, clear) = usage.attributes();
                mount::restrict(&clone, set, clear)?;
                mount::attach(&clone, &place.top()?)
            }
            Self::Classic(..) => bind(source, place, usage),
        }
    }

    /// Restricts an existing mount; not the mounts below it.
    pub(crate) fn restrict(&self, place: &Place, usage: Use) -> io::Result<()> {
        match self {
            Self::Detached(_) => {
                let (set, clear) = usage.attributes();
                mount::restrict(&place.top()?, set, clear)
            }
            Self::Classic(..) => remount(place, usage),
        }
    }
}

fn detached(library: &File) -> io::Result<File> {
    let clone = mount::clone_of(library)?;
    let (set, clear) = Use::Load.attributes();
    mount::restrict(&clone, set, clear)?;
    Ok(clone)
}

fn bind(source: File, place: &Place, usage: Use) -> io::Result<()> {
    let (source, target) = (Descriptor::of(source)?, Descriptor::of(place.top()?)?);
    mount::mount_bind(&source.path, &target.path)?;
    let bound = Descriptor::of(place.top()?)?;
    // As `mount::restrict` has it.
    mount::mount_change(&bound.path, MountPropagationFlags::PRIVATE)?;
    remount(place, usage)
}

fn remount(place: &Place, usage: Use) -> io::Result<()> {
    Ok(mount::mount_remount(&Descriptor::of(place.top()?)?.path, usage.flags(), c"")?)
}

/// A path that leads to an open file and nowhere else, as long as the file is open.
struct Descriptor {
    path: CString,
    _file: File,
}

impl Descriptor {
    fn of(file: File) -> io::Result<Self> {
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(Self { path, _file: file })
    }
}

/// Options in one text. A value with a comma in it (a label of SELinux) stands in quotes.
fn joined(options: &[(&CStr, &CStr)]) -> io::Result<CString> {
    let option = |(key, value): &(&CStr, &CStr)| {
        let quote: &[u8] = if value.to_bytes().contains(&b',') { b"\"" } else { b"" };
        [key.to_bytes(), b"=", quote, value.to_bytes(), quote].concat()
    };
    let options: Vec<Vec<u8>> = options.iter().map(option).collect();
    Ok(CString::new(options.join(&b","[..]))?)
}

/// Returns whether no user can write there.
pub(crate) fn is_closed(file: &File) -> io::Result<bool> {
    Ok(at::mount_flags(file)?.contains(StatVfsMountFlags::RDONLY))
}

/// Returns whether every user can write to this file.
pub(crate) fn is_open(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let by_all = metadata.permissions().mode() & 0o666 == 0o666;
    Ok(metadata.is_file() && by_all && !is_closed(file)?)
}
