//! The file beside the ledger of a `gpucap run`, through which its limits change while it runs
//! (`gpucap_core::limits::run`): made by `run`, written by `limit`, read by `status` and `explain`.
//!
//! It is the user's own, as the variables are that the run is held by. So a run is changed by its user alone, who could
//! shorten the file: another user's, even root's, mapping of it would be at the mercy of that.

use super::ledgers::Name;
use super::root::open_directory;
use crate::error::reason;
use crate::sys::at::{self, OFlags};
use crate::sys::{self, Map};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::live::LivePage;
use gpucap_core::limits::run::{self, MOST_BYTES, TEXT};
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The limits of a run: at its start, and as they have changed since.
pub(crate) struct RunFile {
    /// What it was started with.
    pub(crate) limits: LimitsFile,
    /// What was said since.
    pub(crate) page: Map<LivePage>,
}

/// Makes the file of a run that this process becomes; without limits, removes what it had.
///
/// # Errors
/// It cannot be made: why, with its path.
pub(crate) fn make(ledger: &Path, limits: Option<&LimitsFile>) -> Result<(), String> {
    let Some(place) = Place::of(ledger) else {
        return Err("the number of its user is that of any user without one".into());
    };
    place.make(limits).map_err(|why| place.failed(&format!("cannot be made: {}", reason(&why))))
}

/// What the file says now, as a copy. `None`: the run has none.
///
/// # Errors
/// There is one, and it cannot be used: why, with its path.
pub(crate) fn copy(ledger: &Path) -> Result<Option<RunFile>, String> {
    let Some(place) = Place::of(ledger) else { return Ok(None) };
    let file = place.open_file(OFlags::RDONLY)?;
    file.map(|file| RunFile::copy(&file).map_err(|why| place.failed(&why))).transpose()
}

/// The same, to be written by the user whose run it is.
///
/// # Errors
/// It is not this user's, or it cannot be used: why.
pub(crate) fn open(ledger: &Path) -> Result<Option<RunFile>, String> {
    let Some(place) = Place::of(ledger) else { return Ok(None) };
    if place.uid != sys::uid() {
        return Err(format!("it is a run of user {}, who alone can change it", place.uid));
    }
    let opened = |file: File| {
        if file.metadata().is_ok_and(|metadata| metadata.len() >= LivePage::SIZE) {
            RunFile::of(&file, Map::writable(&file).map_err(|why| reason(&why))?)
        } else {
            Err("has not the size of a page".into())
        }
    };
    let file = place.open_file(OFlags::RDWR)?;
    file.map(|file| opened(file).map_err(|why| place.failed(&why))).transpose()
}

/// Whether a directory is one in which this user keeps these files. In /dev/shm each user can take any name that is free.
pub(crate) fn is_kept_by(uid: u32, directory: &Metadata) -> bool {
    directory.is_dir() && directory.uid() == uid && directory.mode() & 0o022 == 0
}

impl RunFile {
    /// What an open file says now.
    ///
    /// # Errors
    /// It cannot be used: why, as it follows its path.
    pub(crate) fn copy(file: &File) -> Result<Self, String> {
        Self::of(file, Map::copy(file).map_err(|_| "has not the size of a page")?)
    }

    fn of(file: &File, page: Map<LivePage>) -> Result<Self, String> {
        if !page.get().is_known() {
            return Err("is not a page of this version".into());
        }
        let mut text = vec![0; MOST_BYTES - TEXT];
        let length = file.read_at(&mut text, TEXT as u64).map_err(|why| reason(&why))?;
        let limits = run::limits(text.get(..length).unwrap_or_default())?;
        Ok(Self { limits, page })
    }
}

/// Where the file of a run is.
struct Place {
    directory: String,
    name: CString,
    uid: u32,
}

impl Place {
    fn of(ledger: &Path) -> Option<Self> {
        let uid = Name::of(ledger)?.uid();
        let (directory, name) = run::place(ledger.to_str()?, uid)?;
        Some(Self { directory, name: CString::new(name).ok()?, uid })
    }

    fn failed(&self, why: &str) -> String {
        format!("{}/{} {why}", self.directory, self.name.to_string_lossy())
    }

    /// The directory; `None` if it is not the user's.
    fn open(&self) -> io::Result<Option<File>> {
        let (parent, name) = self.directory.rsplit_once('/').ok_or(io::ErrorKind::InvalidInput)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let parent = open_directory(Path::new(parent))?;
        match at::open(&parent, &CString::new(name)?, flags, 0) {
            Ok(found) => Ok(is_kept_by(self.uid, &found.metadata()?).then_some(found)),
            // ELOOP and ENOTDIR: something else has its name.
            Err(why) if matches!(why.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => Ok(None),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The file, if there is one that belongs to the user.
    fn open_file(&self, access: OFlags) -> Result<Option<File>, String> {
        let open = || match self.open()? {
            Some(directory) => at::open(&directory, &self.name, access | OFlags::NONBLOCK, 0),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let file = match open() {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(|why| self.failed(&reason(&why)))?,
        };
        match file.metadata() {
            Ok(metadata) if !metadata.is_file() => Err(self.failed("is not a regular file")),
            Ok(metadata) if metadata.uid() == self.uid => Ok(Some(file)),
            Ok(metadata) => Err(self.failed(&format!("belongs to user {}", metadata.uid()))),
            Err(why) => Err(self.failed(&reason(&why))),
        }
    }

    fn make(&self, limits: Option<&LimitsFile>) -> io::Result<()> {
        if limits.is_some() {
            match DirBuilder::new().mode(0o700).create(&self.directory) {
                // Whatever the umask.
                Ok(()) => fs::set_permissions(&self.directory, Permissions::from_mode(0o700))?,
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(why),
            }
        }
        let (directory, limits) = match (self.open()?, limits) {
            (Some(directory), limits) => (directory, limits),
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let why = "cannot be made: its directory belongs to another user, or others may write to it";
                return Err(io::Error::other(why));
            }
        };
        let Some(limits) = limits else {
            return match at::remove(&directory, &self.name, false) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
                _ => Ok(()),
            };
        };
        // One of this name is this process's, from before it became what calls this; its children may have it mapped.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
        let file = at::open(&directory, &self.name, flags, 0o600)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        write(&file, limits).inspect_err(|_| drop(at::remove(&directory, &self.name, false)))
    }
}

fn write(file: &File, limits: &LimitsFile) -> io::Result<()> {
    let text = limits.write();
    let length = TEXT.saturating_add(text.len());
    if length > MOST_BYTES {
        return Err(io::Error::other("would be too long"));
    }
    // Beyond that the kernel would end this process.
    if length as u64 > sys::file_size_limit() {
        return Err(io::Error::other("would be larger than the limit of file sizes (ulimit -f)"));
    }
    at::allocate(file, LivePage::SIZE)?;
    file.write_all_at(&[0; TEXT], 0)?;
    file.write_all_at(text.as_bytes(), TEXT as u64)?;
    file.set_len(length as u64)?;
    let page = Map::<LivePage>::writable(file)?;
    page.get().lay_out(limits).map_err(|_too_many| io::Error::other("has no room for as many GPUs"))
}
