//! The page through which a container's limits change while it runs: laid out for it by the hook, written by the host.
//!
//! The file is in the container's own tmpfs, on a mount that the container can only read. The host writes through a
//! mount of the same file system that is nowhere in the container's tree: it enters the container's mount namespace
//! for the length of one command, clones the mount, and lifts the restriction of the clone (Linux 5.12).

use super::init::Init;
use super::records::Record;
use super::root;
use crate::sys::Map;
use crate::sys::at::{self, OFlags};
use crate::sys::mount::{self, MountAttrFlags};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::live::{LivePage, PATH};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

/// Its name beside the limits file.
pub(crate) const NAME: &CStr = c"live";
const OTHER_VERSION: &str = "it is not a page of this version";

const LEASED: &str = "a process of the container has a lease on it (fcntl)";

/// Makes the page of these limits; of more GPUs than it has room for, none, and then nothing changes later.
pub(crate) fn lay_out(inside: &File, limits: &LimitsFile) -> io::Result<()> {
    drop(at::create(inside, NAME, 0o444)?);
    let file = at::open(inside, NAME, OFlags::RDWR, 0)?;
    file.set_len(LivePage::SIZE)?;
    match Map::<LivePage>::writable(&file)?.get().lay_out(limits) {
        Ok(()) => Ok(()),
        Err(_too_many) => at::remove(inside, NAME, false),
    }
}

/// What the page of a container that runs says now, as a copy. `None`: it was given none, and nothing changes.
pub(crate) fn copy(record: &Record) -> io::Result<Option<Map<LivePage>>> {
    let Some(file) = record.open(PATH)? else { return Ok(None) };
    let page = Map::<LivePage>::copy(&file)?;
    if page.get().is_known() { Ok(Some(page)) } else { Err(io::Error::other(OTHER_VERSION)) }
}

/// The page of a container that runs, to be written. This process sees what the container sees from here on.
pub(crate) fn open(record: &Record) -> io::Result<Map<LivePage>> {
    let init = Init::of(record.pid)?;
    record.check()?;
    init.enter()?;
    let directory = root::open_directory(Path::new("/.gpucap"))?;
    let clone = mount::clone_of(&directory)?;
    mount::restrict(&clone, MountAttrFlags::empty(), MountAttrFlags::MOUNT_ATTR_RDONLY)?;
    let file = at::open(&clone, NAME, OFlags::RDWR | OFlags::NONBLOCK, 0).map_err(|why| {
        let is_leased = why.kind() == io::ErrorKind::WouldBlock;
        if is_leased { io::Error::other(LEASED) } else { why }
    })?;
    // A container that can unmount may have put something else there; a mapping beyond its end would end us.
    if file.metadata()?.len() < LivePage::SIZE {
        return Err(io::Error::other("it is shorter than a page"));
    }
    let page = Map::<LivePage>::writable(&file)?;
    if page.get().is_known() { Ok(page) } else { Err(io::Error::other(OTHER_VERSION)) }
}
