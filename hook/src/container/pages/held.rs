//! Writes the held file of a container's usage page ([`gpucap_core::page::held`]): `all/NAME.held`.
//!
//! As the share file it is root's, and containers see it on a read-only mount. Where the node holds containers back each of
//! them has one, without a line as long as it may have what it asks for: a process that cannot read it while there is one
//! makes no launch. It goes with the page.

use super::share::{names, remove_if_there};
use super::store::{ALL, with_room};
use crate::sys::at;
use gpucap_core::page::{held, share};
use gpucap_core::units::Share;
use gpucap_core::uuid::Uuid;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

    /// Returns the most that the container may have of a GPU's time; `None` if that is not known.
    pub(crate) fn most(&self, gpu: Uuid) -> Option<Share> {
        let [_, name] = names(&self.page, share::SUFFIX).ok()?;
        let file = at::open(&self.all, &name, at::OFlags::RDONLY, 0).ok()?;
        let mut text = Vec::new();
        file.take(share::MAX_BYTES as u64 + 1).read_to_end(&mut text).ok()?;
        Some(share::limit_of(&text, gpu)?.most())
    }

    /// Does not hold the container back, whatever was written before.
    pub(crate) fn release(&self) -> io::Result<()> {
        let [_, name] = names(&self.page, held::SUFFIX)?;
        remove_if_there(&self.all, &name)
    }

    /// Holds the container back until these times.
    pub(crate) fn hold(&self, directory: &Path, until: &[(Uuid, u64)]) -> io::Result<()> {
        let [new, name] = names(&self.page, held::SUFFIX)?;
        let text = held::write(until.iter().copied());
        with_room(directory, || {
            drop(at::remove(&self.all, &new, false));
            at::create(&self.all, &new, 0o644)?.write_all(text.as_bytes())
        })?;
        at::rename(&self.all, &new, &name)
    }
}
