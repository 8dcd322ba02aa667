//! Files by a name below an open directory: what the standard library can only do by whole paths.
//!
//! A name is one component. Nothing here follows a symlink, so that what a hostile image has laid out cannot lead
//! anywhere; `container::root` alone decides where a link leads.

use rustix::fs::{self, AtFlags, FallocateFlags, Mode};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::ffi::CStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

pub(crate) use rustix::fs::{OFlags, StatVfsMountFlags};

/// A longer target of a symlink is not followed.
const LONGEST_TARGET: usize = 4096;
/// The kernel lists no more names of extended attributes.
const LONGEST_LIST: usize = 64 * 1024;

/// Opens a path without following a symlink. `mode` is that of a new file.
pub(crate) fn open(at: &File, name: &CStr, flags: OFlags, mode: u32) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(fs::openat(at, name, flags, Mode::from_raw_mode(mode))?.into())
}

/// Opens a path for inspection (`O_PATH`): no reading, no waiting, whatever kind of file it is.
pub(crate) fn open_path(at: &File, name: &CStr) -> io::Result<File> {
    open(at, name, OFlags::PATH, 0)
}

/// Makes a file with these permissions, whatever the umask; there must be none.
pub(crate) fn create(at: &File, name: &CStr, mode: u32) -> io::Result<File> {
    let file = open(at, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Gives a file this length, and all of the memory or disk that it needs for it.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    Ok(fs::fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

/// Takes what a file needs for this length, and leaves its length as it is. A file system that cannot do it has promised
/// nothing. Where files may not be so long (`ulimit -f`), which would be a signal, it is left to who writes.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < bytes) {
        return Ok(());
    }
    match fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        taken => Ok(taken?),
    }
}

/// Makes a directory that all users may enter; it must not exist.
pub(crate) fn make_directory(at: &File, name: &CStr) -> io::Result<()> {
    Ok(fs::mkdirat(at, name, Mode::from_raw_mode(0o755))?)
}

/// Removes a file, or an empty directory.
pub(crate) fn remove(at: &File, name: &CStr, is_directory: bool) -> io::Result<()> {
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(fs::unlinkat(at, name, flags)?)
}

/// Gives a file another name in the same directory, in place of what has that name.
pub(crate) fn rename(at: &File, from: &CStr, to: &CStr) -> io::Result<()> {
    Ok(fs::renameat(at, from, at, to)?)
}

/// Where an open symlink leads.
pub(crate) fn target(link: &File) -> io::Result<Vec<u8>> {
    let mut target = vec![0; LONGEST_TARGET];
    let length = fs::readlinkat_raw(link, c"", &mut *target)?;
    if length == target.len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    target.truncate(length);
    Ok(target)
}

/// Whether an open file has this extended attribute.
pub(crate) fn has_attribute(file: &File, name: &CStr) -> io::Result<bool> {
    match fs::fgetxattr_query(file, name) {
        Ok(_length) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

/// Removes all extended attributes of an open file.
pub(crate) fn remove_attributes(file: &File) -> io::Result<()> {
    let mut names = vec![0; LONGEST_LIST];
    let length = fs::flistxattr(file, &mut *names)?;
    let names = names.get(..length).ok_or(io::ErrorKind::InvalidData)?;
    for name in names.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        fs::fremovexattr(file, name)?;
    }
    Ok(())
}

/// What the mount of an open file forbids.
pub(crate) fn mount_flags(file: &File) -> io::Result<StatVfsMountFlags> {
    Ok(fs::fstatvfs(file)?.f_flag)
}

/// What files this process makes are kept from others by.
pub(crate) fn set_umask(mask: u32) {
    rustix::process::umask(Mode::from_raw_mode(mask));
}
