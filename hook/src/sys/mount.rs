//! Mounts and mount namespaces, as the kernel offers them: the descriptors of Linux 5.12, and `mount(2)`.
//!
//! `ENOSYS` from any of the former means an older kernel; `container::mounts` then takes the latter. `mount_setattr` is
//! the only system call that is made here itself: rustix does not have it.

use rustix::mount::{
    self, FsMountFlags, FsOpenFlags, FsPickFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

pub(crate) use rustix::mount::{MountAttrFlags, MountFlags, MountPropagationFlags};
pub(crate) use rustix::mount::{mount, mount_bind, mount_change, mount_remount};

/// `struct mount_attr` of `linux/mount.h`.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// A new file system in memory with these options, mounted nowhere.
pub(crate) fn new_tmpfs(
    options: &[(&CStr, &CStr)],
    attributes: MountAttrFlags,
) -> io::Result<File> {
    let context = mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        mount::fsconfig_set_string(&context, *key, *value)?;
    }
    mount::fsconfig_create(&context)?;
    Ok(mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?.into())
}

/// Changes these options of the file system that is mounted at an open directory.
pub(crate) fn change_options(top: &File, options: &[(&CStr, &CStr)]) -> io::Result<()> {
    let flags = FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC;
    let context = mount::fspick(top, c"", flags)?;
    for (key, value) in options {
        mount::fsconfig_set_string(&context, *key, *value)?;
    }
    Ok(mount::fsconfig_reconfigure(&context)?)
}

/// A second mount of an open file or directory (of it alone), mounted nowhere.
pub(crate) fn clone_of(file: &File) -> io::Result<File> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(mount::open_tree(file, c"", flags | OpenTreeFlags::AT_EMPTY_PATH)?.into())
}

/// Sets and clears the restrictions of a mount. Later mounts on it do not propagate: else a container that may mount
/// would do so on the host, where the host shares the mount that this one was made of.
pub(crate) fn restrict(mount: &File, set: MountAttrFlags, clear: MountAttrFlags) -> io::Result<()> {
    let [set, clear] = [set, clear].map(|flags| flags.bits().into());
    let propagation = MountPropagationFlags::PRIVATE.bits().into();
    set_attributes(mount, &Attributes { set, clear, propagation, user_namespace: 0 })
}

/// Has the files of a mount that is mounted nowhere yet belong to the users to which this user namespace maps their owners.
pub(crate) fn map_users(mount: &File, user_namespace: &File) -> io::Result<()> {
    let set = MountAttrFlags::MOUNT_ATTR_IDMAP.bits().into();
    let user_namespace = user_namespace.as_raw_fd().unsigned_abs().into();
    set_attributes(mount, &Attributes { set, clear: 0, propagation: 0, user_namespace })
}

fn set_attributes(mount: &File, attributes: &Attributes) -> io::Result<()> {
    // SAFETY: an open mount, an empty name, and attributes of the size that is named.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const *attributes,
            size_of::<Attributes>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Mounts what was mounted nowhere on top of an open file or directory.
pub(crate) fn attach(mount: &File, place: &File) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(mount::move_mount(mount, c"", place, c"", flags)?)
}

/// Unmounts what is mounted there, unless it is in use.
pub(crate) fn unmount(place: &CStr) -> io::Result<()> {
    Ok(mount::unmount(place, UnmountFlags::NOFOLLOW)?)
}

/// Detaches what is mounted on a name in an open directory from the tree of files, in use or not. This changes this
/// process's working directory to that directory: the kernel has no other way to name a mount below a directory that
/// has no path here.
pub(crate) fn detach(directory: &File, name: &CStr) -> io::Result<()> {
    rustix::process::fchdir(directory)?;
    Ok(mount::unmount(name, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}

/// Lets this process see the files of a mount namespace. It must have one thread.
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?)
}
