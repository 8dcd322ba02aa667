//! The directory of the usage pages, and the file system in it: its lock, and room for one more file.
//!
//! The file system is of a size of its own, so that containers which make their pages longer fill nothing else; what
//! they have taken beyond their pages is taken back when a page needs the room. That is not possible where the owner of a page
//! has a lease on it: then the file system becomes larger, up to [`MOST_BYTES`]. What a container writes counts against its own
//! limit of memory (memory cgroup) as long as it is there; a page that is removed has no more than its length, since other
//! containers may have it open. A process that makes a file or unmounts holds the lock.

use crate::container::mounts::NO_PRIVILEGES;
use crate::sys::at::{self, OFlags};
use crate::sys::mount::{self, MountAttrFlags};
use gpucap_core::page::UsagePage;
use rustix::fs::fstatvfs;
use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// The name of the file system's mountpoint.
pub(super) const ALL: &str = "all";
/// How many containers have room for their pages, three files each, and how many more each time that it becomes larger.
const CONTAINERS: u64 = 860;
/// How many files there may be, and how many more then: what an extended attribute takes is taken from that, and older kernels
/// count it against no limit of memory.
const FILES: u64 = 3072;
const MORE_FILES: u64 = 64;
/// It becomes no larger than this.
const MOST_BYTES: u64 = 1 << 30;
/// How often space is made for a file: a container may fill it again in between.
const MOST_ROOM: u32 = 3;
/// How often a hook asks for the lock that another one has for a fraction of a millisecond. No container waits longer.
const MOST_TRIES: u32 = 500;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The file system of all pages, made if there is none. The caller has the lock.
pub(super) fn mounted(path: &Path, directory: &File, label: Option<&str>) -> io::Result<File> {
    let path = path.join(ALL);
    make_directory(&path, 0o755)?;
    let all = File::open(&path)?;
    if is_mounted(directory, &all)? {
        return Ok(all);
    }
    let label = label.map(|label| CString::new(without_categories(label))).transpose()?;
    let [size, files] = [size(), FILES].map(|number| CString::new(number.to_string()));
    let (size, files) = (size?, files?);
    let mut options = vec![(c"size", size.as_c_str()), (c"nr_inodes", &files), (c"mode", c"0755")];
    options.extend(label.as_ref().map(|label| (c"context", label.as_c_str())));
    let forbidden = NO_PRIVILEGES | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let new = mount::new_tmpfs(&options, forbidden)?;
    mount::attach(&new, &all)?;
    Ok(new)
}

/// The size of the file system where a page of memory has `page` bytes: a file takes whole ones.
pub(super) const fn bytes(page: u64) -> u64 {
    CONTAINERS * (UsagePage::SIZE.next_multiple_of(page) + 2 * page)
}

/// Makes it larger.
fn grow(all: &Path) -> io::Result<()> {
    let all = File::open(all)?;
    let now = fstatvfs(&all)?;
    let size = now.f_blocks.saturating_mul(now.f_frsize).saturating_add(size());
    if size > MOST_BYTES {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let files = now.f_files.saturating_add(MORE_FILES);
    let [size, files] = [size, files].map(|number| CString::new(number.to_string()));
    mount::change_options(&all, &[(c"size", &size?), (c"nr_inodes", &files?)])
}

fn size() -> u64 {
    bytes(rustix::param::page_size() as u64)
}

/// Returns whether this is another file system than that of its parent directory.
pub(super) fn is_mounted(directory: &File, all: &File) -> io::Result<bool> {
    Ok(directory.metadata()?.dev() != all.metadata()?.dev())
}

/// A label without the categories that tell containers apart: all of them read there.
pub(super) fn without_categories(label: &str) -> String {
    label.splitn(5, ':').take(4).collect::<Vec<_>>().join(":")
}

/// Makes a file, and room for it where containers have taken more than their pages.
pub(super) fn with_room<T>(directory: &Path, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let is_full = |made: &io::Result<T>| {
        made.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::StorageFull)
    };
    let all = directory.join(ALL);
    let mut made = make();
    for _ in 0..MOST_ROOM {
        for more in [cut_back, grow] {
            if !is_full(&made) {
                return made;
            }
            more(&all)?;
            made = make();
        }
    }
    made
}

/// Takes from each container what it has made its page longer by, and the extended attributes that it has given it.
pub(super) fn cut_back(all: &Path) -> io::Result<()> {
    for entry in fs::read_dir(all)? {
        // Not blocking: the owner of the page may hold a lease on it.
        let page =
            OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(entry?.path());
        let Ok(page) = page else { continue };
        shorten(&page)?;
    }
    Ok(())
}

/// Takes from a page what it has beyond the length of one, and its extended attributes.
fn shorten(page: &File) -> io::Result<()> {
    // A failure leaves the attributes of this page alone; those of others may be enough.
    let _ = at::remove_attributes(page);
    let (length, taken) = (page.metadata()?.len(), page.metadata()?.blocks() * 512);
    if length.max(taken) > UsagePage::SIZE {
        // What was taken beyond the end goes with a new end that is no farther than the old one.
        page.set_len(length.min(UsagePage::SIZE))?;
        page.set_len(UsagePage::SIZE)?;
    }
    Ok(())
}

/// Removes a file if it is there. What another container has it open for is not more than a page: it has none of what the one
/// that has ended made it longer by. A process of that one which has it mapped still may live, so it is not emptied.
pub(super) fn remove(all: &File, name: &CStr) -> io::Result<()> {
    if let Ok(file) = at::open(all, name, OFlags::WRONLY | OFlags::NONBLOCK, 0) {
        let _ = shorten(&file);
    }
    match at::remove(all, name, false) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

pub(super) fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Keeps other hooks from making or unmounting anything, until the file is closed.
pub(super) fn lock(directory: &Path) -> io::Result<File> {
    let file = File::open(directory)?;
    for _ in 0..MOST_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            Err(TryLockError::Error(why)) => return Err(why),
        }
    }
    Err(io::Error::other("another hook does not come to an end"))
}
