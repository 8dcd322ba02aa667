//! Mounts and mount namespaces, as the kernel offers them: the descriptors of Linux 5.12, and `mount(2)`.
//!
//! libc has neither functions nor most of the numbers for the former. `ENOSYS` from any of them means an older kernel;
//! `container::mounts` then takes the latter.

use super::at::check;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;

/// What a mount may not be used for (`mount_setattr(2)`).
pub(crate) const READ_ONLY: u64 = 0x1;
/// See [`READ_ONLY`].
pub(crate) const NO_SETUID: u64 = 0x2;
/// See [`READ_ONLY`].
pub(crate) const NO_DEVICES: u64 = 0x4;
/// See [`READ_ONLY`].
pub(crate) const NO_PROGRAMS: u64 = 0x8;

const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const OPEN_TREE_CLONE: libc::c_uint = 1;
const OPEN_TREE_CLOEXEC: libc::c_uint = libc::O_CLOEXEC.cast_unsigned();
const EMPTY_PATH: libc::c_uint = libc::AT_EMPTY_PATH.cast_unsigned();
const MOVE_MOUNT_EMPTY_PATHS: libc::c_uint = 0x4 | 0x40;

/// `struct mount_attr` of `linux/mount.h`.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// A new file system in memory with these options, mounted nowhere.
pub(crate) fn new_tmpfs(options: &[(&CStr, &CStr)], attributes: u64) -> io::Result<File> {
    // SAFETY: a C string and a number.
    let context = unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), FSOPEN_CLOEXEC) };
    let context = opened(context)?;
    for (key, value) in options {
        configure(&context, FSCONFIG_SET_STRING, key.as_ptr(), value.as_ptr())?;
    }
    configure(&context, FSCONFIG_CMD_CREATE, ptr::null(), ptr::null())?;
    // SAFETY: a context whose file system has been made, and numbers.
    let mount = unsafe {
        libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, attributes)
    };
    opened(mount)
}

fn configure(
    context: &File,
    command: libc::c_uint,
    key: *const libc::c_char,
    value: *const libc::c_char,
) -> io::Result<()> {
    // SAFETY: an open context; key and value are C strings of the caller, or null where the command has none.
    let result =
        unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0) };
    done(result)
}

/// A second mount of an open file or directory (of it alone), mounted nowhere.
pub(crate) fn clone_of(file: &File) -> io::Result<File> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | EMPTY_PATH;
    // SAFETY: an open descriptor, an empty name, numbers.
    let mount =
        unsafe { libc::syscall(libc::SYS_open_tree, file.as_raw_fd(), c"".as_ptr(), flags) };
    opened(mount)
}

/// Sets and clears the restrictions of a mount. Later mounts on it do not propagate: else a container that may mount
/// would do so on the host, where the host shares the mount that this one was made of.
pub(crate) fn restrict(mount: &File, set: u64, clear: u64) -> io::Result<()> {
    let attributes = Attributes { set, clear, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    // SAFETY: an open mount, an empty name, and attributes of the size that is named.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            EMPTY_PATH,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    done(result)
}

/// Mounts what was mounted nowhere on top of an open file or directory.
pub(crate) fn attach(mount: &File, place: &File) -> io::Result<()> {
    // SAFETY: two open descriptors, two empty names, numbers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            place.as_raw_fd(),
            c"".as_ptr(),
            MOVE_MOUNT_EMPTY_PATHS,
        )
    };
    done(result)
}

/// `mount(2)`: absent arguments are null.
pub(crate) fn mount(
    source: Option<&CStr>,
    place: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let (source, kind, options) = (pointer(source), pointer(kind), pointer(options));
    // SAFETY: C strings, or null where the kernel expects it for these flags; else it says so.
    check(unsafe { libc::mount(source, place.as_ptr(), kind, flags, options.cast()) })
}

/// Unmounts what is mounted there, unless it is in use.
pub(crate) fn unmount(place: &CStr) -> io::Result<()> {
    // SAFETY: a C string and a number.
    check(unsafe { libc::umount2(place.as_ptr(), libc::UMOUNT_NOFOLLOW) })
}

/// Detaches what is mounted on a name in an open directory from the tree of files, in use or not. This changes this
/// process's working directory to that directory: the kernel has no other way to name a mount below a directory that
/// has no path here.
pub(crate) fn detach(directory: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: an open directory.
    check(unsafe { libc::fchdir(directory.as_raw_fd()) })?;
    // SAFETY: a C string and a number.
    check(unsafe { libc::umount2(name.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) })
}

/// Lets this process see the files of a mount namespace. It must have one thread.
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: an open descriptor.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) })
}

fn opened(result: libc::c_long) -> io::Result<File> {
    done(result)?;
    let descriptor = libc::c_int::try_from(result).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just given it to us.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
