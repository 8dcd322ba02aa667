//! Directories: made for one user, listed, and the way to the files in them.
//!
//! A file is opened by its directory's descriptor, so that nothing put in the place of the directory leads elsewhere. The
//! system call behind the listing is called as such: it has no name in the C library before 2.30, and `opendir` would
//! allocate.

use super::errno::last_error;
use super::file::File;
use super::process::uid;
use core::ffi::{CStr, c_int};

/// An open directory, closed when dropped.
pub(crate) struct Directory(File);

impl Directory {
    /// Opens a directory, but none that a symbolic link leads to.
    pub(crate) fn open(path: &CStr) -> Result<Self, c_int> {
        File::open(path, libc::O_RDONLY | libc::O_DIRECTORY).map(Self)
    }

    /// Opens a directory that only this user may enter, and makes it if it does not exist. Refused if it belongs to
    /// another user.
    pub(crate) fn open_own(path: &CStr) -> Result<Self, c_int> {
        // SAFETY: a C string. What fails here shows when it is opened.
        if unsafe { libc::mkdir(path.as_ptr(), 0o700) } == 0 {
            // Whatever the umask.
            // SAFETY: the same.
            unsafe { libc::chmod(path.as_ptr(), 0o700) };
        }
        let directory = Self::open(path)?;
        let owner = directory.0.status(libc::S_IFDIR)?.st_uid;
        if owner == uid() { Ok(directory) } else { Err(libc::EPERM) }
    }

    /// Returns whether it belongs to this user, and no other one may change what is in it.
    pub(crate) fn is_own(&self) -> bool {
        const WRITERS: libc::mode_t = libc::S_IWGRP | libc::S_IWOTH;
        let is_own = |status: libc::stat| status.st_uid == uid() && status.st_mode & WRITERS == 0;
        self.0.status(libc::S_IFDIR).is_ok_and(is_own)
    }

    /// By which numbers the system knows it: of its file system, and there.
    pub(crate) fn identity(&self) -> Result<(u64, u64), c_int> {
        let status = self.0.status(libc::S_IFDIR)?;
        Ok((status.st_dev, status.st_ino))
    }

    /// Opens a file of this name in it, as [`File::open`] does.
    pub(crate) fn file(&self, name: &CStr, flags: c_int) -> Result<File, c_int> {
        let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NOCTTY;
        // SAFETY: an open descriptor and a C string; the mode is used only when the file is created.
        match unsafe { libc::openat(self.0.0, name.as_ptr(), flags, 0o600) } {
            -1 => Err(last_error()),
            descriptor => Ok(File(descriptor)),
        }
    }

    /// Returns whether an entry of this name exists in it; `None` if that is unknown.
    pub(crate) fn has(&self, name: &CStr) -> Option<bool> {
        // SAFETY: an open descriptor and a C string.
        match unsafe { libc::faccessat(self.0.0, name.as_ptr(), libc::F_OK, 0) } {
            0 => Some(true),
            _ => (last_error() == libc::ENOENT).then_some(false),
        }
    }

    /// Removes a file from it, if it may.
    pub(crate) fn remove(&self, name: &CStr) {
        // SAFETY: an open descriptor and a C string.
        unsafe { libc::unlinkat(self.0.0, name.as_ptr(), 0) };
    }

    /// The names that come next and are not known to be of something else than a file, in this place; `None` after the
    /// last ones.
    pub(crate) fn next<'a>(&self, place: &'a mut [u8]) -> Option<impl Iterator<Item = &'a CStr>> {
        let (address, length) = (place.as_mut_ptr(), place.len());
        // SAFETY: an open descriptor, and a place that is writable for its length.
        let count = unsafe { libc::syscall(libc::SYS_getdents64, self.0.0, address, length) };
        let filled = usize::try_from(count).ok().filter(|filled| *filled > 0)?;
        Some(files(place.get(..filled)?))
    }
}

/// The files of a listing as the kernel writes it: number, place, length of the record, kind, name.
fn files(mut listing: &[u8]) -> impl Iterator<Item = &CStr> {
    let records = core::iter::from_fn(move || {
        let length = u16::from_le_bytes([*listing.get(16)?, *listing.get(17)?]);
        let (record, rest) = listing.split_at_checked(usize::from(length).max(1))?;
        listing = rest;
        Some((*record.get(18)?, CStr::from_bytes_until_nul(record.get(19..)?).ok()?))
    });
    let may_be = |kind: u8| kind == libc::DT_REG || kind == libc::DT_UNKNOWN;
    records.filter_map(move |(kind, name)| may_be(kind).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 32 bytes.
    fn record(kind: u8, name: &str) -> Vec<u8> {
        let mut record = vec![0; 16];
        record.extend([32, 0, kind]);
        record.extend(name.as_bytes());
        record.resize(32, 0);
        record
    }

    #[test]
    fn only_what_may_be_a_file_is_listed() {
        let listing = [
            record(libc::DT_DIR, "."),
            record(libc::DT_REG, "page"),
            record(libc::DT_LNK, "link"),
            record(libc::DT_FIFO, "fifo"),
            record(libc::DT_UNKNOWN, "an entry"),
        ]
        .concat();
        let names: Vec<_> = files(&listing).collect();
        assert_eq!(names, [c"page", c"an entry"]);
    }

    #[test]
    fn a_listing_that_is_cut_off_ends_where_it_is_whole() {
        let listing = [record(libc::DT_REG, "a"), record(libc::DT_REG, "b")].concat();
        for end in 0..listing.len() {
            let part = listing.get(..end).unwrap_or_default();
            assert_eq!(files(part).count(), end / 32, "{end}");
        }
        assert_eq!(files(&[0; 64]).count(), 0, "a record of no length");
    }
}
