//! Makes and writes the held page of a container ([`gpucap_core::page::held`]): `all/NAME.held`.
//!
//! As the share file it is root's, and containers see it on read-only mounts. It is written in place, since the container's
//! processes have it mapped, and goes with the usage page; what it says is [kept](super::debts) for the next container in that
//! place.

use super::share::names;
use super::store::ALL;
use crate::sys::Map;
use crate::sys::at::{self, OFlags};
use gpucap_core::page::{held, held::HeldPage, share};
use gpucap_core::units::{ComputeLimit, Share};
use gpucap_core::uuid::Uuid;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// On which GPUs something is owed, and until when, in ns since 1970.
pub(crate) type Owed = BTreeMap<Uuid, u64>;

/// Makes it, with its memory allocated, or finds the one that a hook has made for this container before. The container is held
/// back for what is owed in its place.
pub(super) fn make(all: &File, page: &CStr, owed: &Owed) -> io::Result<File> {
    let [_, name] = names(page, held::SUFFIX)?;
    let file = at::open(all, &name, OFlags::RDWR | OFlags::CREATE, 0o644)?;
    // Every user of the container reads it.
    file.set_permissions(Permissions::from_mode(0o644))?;
    at::allocate(&file, HeldPage::SIZE)?;
    let held = Map::<HeldPage>::writable(&file)?;
    held.get().format();
    let owed: Vec<_> = owed.iter().map(|(gpu, until)| (*gpu, *until)).collect();
    held.get().write_debts(&owed);
    Ok(file)
}

/// Copies that of this page.
///
/// # Errors
/// There is none that this version understands.
pub(super) fn copy(all: &File, page: &CStr) -> io::Result<Map<HeldPage>> {
    known(Map::copy(&open(all, page, OFlags::RDONLY)?)?)
}

fn open(all: &File, page: &CStr, access: OFlags) -> io::Result<File> {
    let [_, name] = names(page, held::SUFFIX)?;
    // Not blocking: a process may have a lease on it.
    at::open(all, &name, access | OFlags::NONBLOCK, 0)
}

fn known(page: Map<HeldPage>) -> io::Result<Map<HeldPage>> {
    if page.get().is_known() { Ok(page) } else { Err(ErrorKind::InvalidData.into()) }
}

/// The page of a container, by its first process.
#[derive(Debug)]
pub(crate) struct OfContainer {
    all: File,
    page: CString,
}

impl OfContainer {
    /// Finds it.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn find(directory: &Path, (pid, start_time): (u32, u64)) -> io::Result<Self> {
        let page = fs::read_link(directory.join(format!("{pid}-{start_time}")))?;
        let page = CString::new(page.file_name().unwrap_or_default().as_bytes())?;
        Ok(Self { all: File::open(directory.join(ALL))?, page })
    }

    /// Returns the most that the container may have of a GPU's time; `None` if it has no limit.
    ///
    /// # Errors
    /// It cannot be read at the moment.
    pub(crate) fn most(&self, gpu: Uuid) -> io::Result<Option<Share>> {
        let [_, name] = names(&self.page, share::SUFFIX)?;
        let file = at::open(&self.all, &name, OFlags::RDONLY | OFlags::NONBLOCK, 0)?;
        let mut text = Vec::new();
        file.take(share::MAX_BYTES as u64 + 1).read_to_end(&mut text)?;
        Ok(share::limit_of(&text, gpu).map(ComputeLimit::most))
    }

    /// Maps its held page. As long as it is mapped no process can take a lease on it (`fcntl(2)`).
    ///
    /// # Errors
    /// It has none, as those that an earlier hook made, or it cannot be opened at the moment.
    pub(crate) fn map(&self) -> io::Result<Map<HeldPage>> {
        let file = open(&self.all, &self.page, OFlags::RDWR)?;
        if file.metadata()?.len() < HeldPage::SIZE {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        known(Map::writable(&file)?)
    }

    /// Returns from which GPUs it is held back, for whatever reason, and for how long from this time in ns since 1970.
    pub(crate) fn held_for(&self, now: u64) -> Vec<(Uuid, u64)> {
        copy(&self.all, &self.page)
            .map_or_else(|_| Vec::new(), |page| page.get().held(now).collect())
    }
}
