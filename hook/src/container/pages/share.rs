//! Writes the share file of a usage page ([`gpucap_core::page::share`]): `all/NAME.share`.
//!
//! Only the node writes it: it is root's, and containers see it on a read-only mount. It is written under another name
//! and renamed, so that a reader sees one version or the next. Writing has two steps, [`ShareFile::prepare`] and
//! [`ShareFile::publish`]: the first takes the memory that the second needs, which `gpucap limit` calls when it sees the
//! container's files in place of the host's.

use super::store::{ALL, is_mounted, lock, remove, with_room};
use crate::container::records;
use crate::sys::at;
use gpucap_core::limits::file::Key;
use gpucap_core::page::{held, share};
use gpucap_core::units::ComputeLimit;
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What follows the name of a page in those of the files that the node writes beside it, and after that until they are
/// complete.
pub(super) const BESIDE: [&str; 2] = [share::SUFFIX, held::SUFFIX];
pub(super) const UNFINISHED: &str = ".new";

/// A share file that is about to be written.
#[derive(Debug)]
pub(crate) struct ShareFile {
    all: File,
    file: File,
    /// Its name until it is published, and then.
    names: [CString; 2],
    /// Keeps hooks from removing anything in the mean time, if nothing else does.
    _lock: Option<File>,
}

impl ShareFile {
    /// Makes the file under its other name, with memory for the longest text.
    pub(super) fn prepare(all: File, page: &CStr) -> io::Result<Self> {
        let names = names(page, share::SUFFIX)?;
        let [new, _] = &names;
        // Left by a hook that was killed while writing.
        remove(&all, new)?;
        let file = at::create(&all, new, 0o644)?;
        at::allocate(&file, share::MAX_BYTES as u64)?;
        Ok(Self { all, file, names, _lock: None })
    }

    /// Does so for a container that runs; `None` if it has no page.
    pub(crate) fn of(directory: &Path, record: &records::Record) -> io::Result<Option<Self>> {
        let link = directory.join(format!("{}-{}", record.pid, record.start_time));
        let Ok(page) = fs::read_link(&link) else { return Ok(None) };
        let lock = lock(directory)?;
        record.check()?;
        let page = CString::new(page.file_name().unwrap_or_default().as_bytes())?;
        let all = File::open(directory.join(ALL))?;
        if !is_mounted(&lock, &all)? {
            return Err(io::Error::other("this mount namespace does not have their file system"));
        }
        let file = with_room(directory, || Self::prepare(all.try_clone()?, &page))?;
        Ok(Some(Self { _lock: Some(lock), ..file }))
    }

    /// Puts these limits in the place of those that were there, at once. `None` is an entry without a compute limit.
    pub(crate) fn publish(
        mut self,
        limits: impl IntoIterator<Item = (Key, Option<ComputeLimit>)>,
    ) -> io::Result<()> {
        let text = share::write(limits);
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)?;
        let [new, name] = &self.names;
        at::rename(&self.all, new, name)
    }
}

/// Removes a page and what the node has written beside it, as far as they are there.
pub(super) fn remove_page(all: &File, page: &CStr) -> io::Result<()> {
    remove(all, page)?;
    for suffix in BESIDE {
        names(page, suffix)?.iter().try_for_each(|name| remove(all, name))?;
    }
    Ok(())
}

/// The names of such a file: until it is complete, and then.
pub(super) fn names(page: &CStr, suffix: &str) -> io::Result<[CString; 2]> {
    let name = |ending: &str| CString::new([page.to_bytes(), ending.as_bytes()].concat());
    Ok([name(&format!("{suffix}{UNFINISHED}"))?, name(suffix)?])
}
