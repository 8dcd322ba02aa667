//! Whether `/etc/ld.so.preload` stays what the hook makes of it, for every user of the container.
//!
//! glibc silently ignores a list that a process cannot read. And the kernel detaches a mount once its mountpoint is
//! removed in another mount namespace. So each directory on the path of the list must be searchable by all users,
//! belong to root and be writable by root alone (it could be renamed), and be on the mount of the container's root: a
//! directory of a volume can be changed by any other user of the volume. The directory of the list itself may be
//! writable by others, since a mountpoint is neither removed nor renamed in its own namespace.
//!
//! Looked at before the first program of the image runs; root in the container can change all of it afterwards.

use super::refusal::Reason;
use crate::container::mount_table::MountTable;
use crate::container::root::Root;
use crate::sys::at::{self, OFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

/// The list that glibc reads.
pub(super) const PRELOAD: &str = "/etc/ld.so.preload";
/// The bits of a directory that matter.
const ALL_ENTER: u32 = 0o001;
const OTHERS_WRITE: u32 = 0o022;

/// Checks all directories on the path of a directory, and the directory itself. `users_root` is the host's user that
/// is root of the container.
///
/// # Errors
/// One of them is not as it must be.
pub(super) fn check(
    root: &Root,
    directory: &str,
    users_root: u32,
    table: &MountTable,
) -> Result<(), Reason> {
    let unknown = |why| Reason::Place { path: PRELOAD, why };
    let way = root.way(directory).map_err(unknown)?;
    let own = table.mount_of(&root.open_path("").map_err(unknown)?).map_err(unknown)?;
    for (place, (name, directory)) in way.iter().enumerate() {
        let is_last = place + 1 == way.len();
        let wrong = |why| Reason::Way { directory: name.clone(), why };
        if table.mount_of(directory).map_err(unknown)? != own {
            return Err(wrong("is on another mount than its root, such as a volume"));
        }
        if let Some(why) = fault(directory, is_last, users_root).map_err(unknown)? {
            return Err(wrong(why));
        }
    }
    Ok(())
}

/// The same for an image whose root is available, without mounts, which it does not have yet: returns the directory
/// at fault, and the fault. The owner of the root is taken for root of the container.
pub(super) fn check_image(
    root: &Root,
    directory: &str,
) -> io::Result<Option<(String, &'static str)>> {
    let users_root = root.open_path("")?.metadata()?.uid();
    let way = match root.way(directory) {
        // The hook makes it.
        Err(why) if why.kind() == io::ErrorKind::NotFound => root.way("")?,
        way => way?,
    };
    for (place, (name, directory)) in way.iter().enumerate() {
        // The root is never the last: the directory is made in it.
        let is_last = place > 0 && place + 1 == way.len();
        if let Some(why) = fault(directory, is_last, users_root)? {
            return Ok(Some((name.clone(), why)));
        }
    }
    Ok(None)
}

fn fault(directory: &File, is_last: bool, root: u32) -> io::Result<Option<&'static str>> {
    let metadata = directory.metadata()?;
    Ok(if metadata.uid() != 0 && metadata.uid() != root {
        Some("does not belong to root")
    } else if !is_last && metadata.mode() & OTHERS_WRITE != 0 {
        Some("can be changed by other users than root")
    } else if metadata.mode() & ALL_ENTER == 0 {
        Some("cannot be entered by all users")
    } else if has_access_list(directory)? {
        Some("has an access control list, so some users may not enter it")
    } else {
        None
    })
}

fn has_access_list(directory: &File) -> io::Result<bool> {
    // The descriptor of a path gives no attributes.
    let directory = at::open(directory, c".", OFlags::DIRECTORY, 0)?;
    at::has_attribute(&directory, c"system.posix_acl_access")
}
