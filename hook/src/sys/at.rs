//! Files by a name below an open directory: what the standard library can only do by whole paths.
//!
//! A name is one component. Nothing here follows a symlink, so that what a hostile image has laid out cannot lead
//! anywhere; `container::root` alone decides where a link leads.

use std::ffi::CStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::PermissionsExt;

/// A longer target of a symlink is not followed.
const LONGEST_TARGET: usize = 4096;
/// The kernel lists no more names of extended attributes.
const LONGEST_LIST: usize = 64 * 1024;

/// Opens a path without following a symlink. `flags` are those of `open`, `mode` that of a new file.
pub(crate) fn open(at: &File, name: &CStr, flags: i32, mode: u32) -> io::Result<File> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: an open directory and a C string.
    let descriptor = unsafe { libc::openat(at.as_raw_fd(), name.as_ptr(), flags, mode) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and not shared with any other code yet.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Opens a path for inspection (`O_PATH`): no reading, no waiting, whatever kind of file it is.
pub(crate) fn look(at: &File, name: &CStr) -> io::Result<File> {
    open(at, name, libc::O_PATH, 0)
}

/// Makes a file with these permissions, whatever the umask; there must be none.
pub(crate) fn create(at: &File, name: &CStr, mode: u32) -> io::Result<File> {
    let file = open(at, name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, mode)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Gives a file this length, and all of the memory or disk that it needs for it.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: an open descriptor and numbers.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) })
}

/// Makes a directory that all users may enter; it must not exist.
pub(crate) fn make_directory(at: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: an open directory and a C string.
    check(unsafe { libc::mkdirat(at.as_raw_fd(), name.as_ptr(), 0o755) })
}

/// Removes a file, or an empty directory.
pub(crate) fn remove(at: &File, name: &CStr, is_directory: bool) -> io::Result<()> {
    let flags = if is_directory { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: an open directory and a C string.
    check(unsafe { libc::unlinkat(at.as_raw_fd(), name.as_ptr(), flags) })
}

/// Gives a file another name in the same directory, in place of what has that name.
pub(crate) fn rename(at: &File, from: &CStr, to: &CStr) -> io::Result<()> {
    let directory = at.as_raw_fd();
    // SAFETY: an open directory and two C strings.
    check(unsafe { libc::renameat(directory, from.as_ptr(), directory, to.as_ptr()) })
}

/// Where an open symlink leads.
pub(crate) fn target(link: &File) -> io::Result<Vec<u8>> {
    let mut target = vec![0_u8; LONGEST_TARGET];
    // SAFETY: an open symlink, an empty name, and a buffer of this length.
    let length = unsafe {
        libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), target.as_mut_ptr().cast(), target.len())
    };
    match usize::try_from(length) {
        Ok(length) if length < target.len() => {
            target.truncate(length);
            Ok(target)
        }
        Ok(_) => Err(io::ErrorKind::InvalidFilename.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Whether an open file has this extended attribute.
pub(crate) fn has_attribute(file: &File, name: &CStr) -> io::Result<bool> {
    // SAFETY: an open file, a C string, and no place to write to.
    let length =
        unsafe { libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), std::ptr::null_mut(), 0) };
    if length >= 0 {
        return Ok(true);
    }
    let why = io::Error::last_os_error();
    match why.raw_os_error() {
        Some(libc::ENODATA | libc::EOPNOTSUPP) => Ok(false),
        _ => Err(why),
    }
}

/// Removes all extended attributes of an open file.
pub(crate) fn remove_attributes(file: &File) -> io::Result<()> {
    let mut names = vec![0_u8; LONGEST_LIST];
    // SAFETY: an open file, and a buffer of this length.
    let length =
        unsafe { libc::flistxattr(file.as_raw_fd(), names.as_mut_ptr().cast(), names.len()) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let names = names.get(..length).ok_or(io::ErrorKind::InvalidData)?;
    for name in names.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        // SAFETY: an open file and a C string.
        check(unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) })?;
    }
    Ok(())
}

/// What `statvfs` reports about the mount of an open file: flags such as `ST_RDONLY` and `ST_NOEXEC`.
pub(crate) fn mount_flags(file: &File) -> io::Result<u64> {
    let mut status = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: an open descriptor and a writable place.
    check(unsafe { libc::fstatvfs(file.as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: filled in by the call; a zeroed one is valid too.
    Ok(unsafe { status.assume_init() }.f_flag)
}

/// What files this process makes are kept from others by.
pub(crate) fn set_umask(mask: libc::mode_t) {
    // SAFETY: no conditions.
    unsafe { libc::umask(mask) };
}

pub(super) fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
