//! The file beside the ledger of a `gpucap run`, through which its limits change while it runs
//! (`gpucap_core::limits::run`): made by `run`, written by `limit`, read by `status` and `explain`.
//!
//! It is the user's own, as the variables are that the run is held by. So a run is changed by its user alone, who could
//! shorten the file: another user's, even root's, mapping of it would be at the mercy of that.

use super::ledgers::Name;
use super::root::open_directory;
use crate::sys::at::{self, OFlags};
use crate::sys::{self, Map};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::live::LivePage;
use gpucap_core::limits::run::{self, TEXT};
use std::ffi::CString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::Path;

/// The limits of a run: at its start, and as they have changed since.
pub(crate) struct RunFile {
    /// What it was started with.
    pub(crate) limits: LimitsFile,
    /// What was said since.
    pub(crate) page: Map<LivePage>,
}

/// Makes the file of a run that this process becomes.
pub(crate) fn make(ledger: &Path, limits: &LimitsFile) -> io::Result<()> {
    let place = Place::of(ledger).ok_or(io::ErrorKind::InvalidInput)?;
    match DirBuilder::new().mode(0o700).create(&place.directory) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(why),
        _ => {}
    }
    let directory = place.open()?;
    // One of this name is this process's, from before it became what calls this.
    match at::remove(&directory, &place.name, false) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    drop(at::create(&directory, &place.name, 0o600)?);
    let file = at::open(&directory, &place.name, OFlags::RDWR, 0)?;
    write(&file, limits).inspect_err(|_| drop(at::remove(&directory, &place.name, false)))
}

fn write(file: &File, limits: &LimitsFile) -> io::Result<()> {
    at::allocate(file, LivePage::SIZE)?;
    file.write_all_at(limits.write().as_bytes(), TEXT as u64)?;
    let page = Map::<LivePage>::writable(file)?;
    page.get().lay_out(limits).map_err(|_too_many| io::Error::other("too many GPUs"))
}

/// What the file says now, as a copy. `None`: the run was given none.
pub(crate) fn copy(ledger: &Path) -> io::Result<Option<RunFile>> {
    let file = open_file(ledger, OFlags::RDONLY)?;
    file.map(|file| RunFile::copy(&file)).transpose()
}

/// The same, to be written by the user whose run it is. `None`: the run was given none.
pub(crate) fn open(ledger: &Path) -> io::Result<Option<RunFile>> {
    if let Some(place) = Place::of(ledger).filter(|place| place.uid != sys::uid()) {
        let why = format!("it is a run of user {}, who alone can change it", place.uid);
        return Err(io::Error::other(why));
    }
    let Some(file) = open_file(ledger, OFlags::RDWR)? else { return Ok(None) };
    if file.metadata()?.len() < LivePage::SIZE {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    RunFile::of(&file, Map::writable(&file)?).map(Some)
}

impl RunFile {
    /// What an open file says now.
    pub(crate) fn copy(file: &File) -> io::Result<Self> {
        Self::of(file, Map::copy(file)?)
    }

    fn of(mut file: &File, page: Map<LivePage>) -> io::Result<Self> {
        let other_version = || io::Error::other("it is not a page of this version");
        if !page.get().is_known() {
            return Err(other_version());
        }
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(TEXT as u64))?;
        let most = run::MOST_BYTES.saturating_sub(TEXT) as u64;
        file.take(most + 1).read_to_end(&mut text)?;
        let limits = LimitsFile::parse(&text).map_err(|_| other_version())?;
        Ok(Self { limits, page })
    }
}

/// The file, if there is one that belongs to the user whom its ledger's name names.
fn open_file(ledger: &Path, access: OFlags) -> io::Result<Option<File>> {
    let Some(place) = Place::of(ledger) else { return Ok(None) };
    let open = || at::open(&place.open()?, &place.name, access | OFlags::NONBLOCK, 0);
    let file = match open() {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let metadata = file.metadata()?;
    let is_right = metadata.is_file() && metadata.uid() == place.uid;
    if is_right { Ok(Some(file)) } else { Err(io::ErrorKind::PermissionDenied.into()) }
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

    /// The directory, if it is the user's: in /dev/shm each user can take any name that is free.
    fn open(&self) -> io::Result<File> {
        let (parent, name) = self.directory.rsplit_once('/').ok_or(io::ErrorKind::InvalidInput)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let found = at::open(&open_directory(Path::new(parent))?, &CString::new(name)?, flags, 0)?;
        let is_right = found.metadata()?.uid() == self.uid;
        if is_right { Ok(found) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}
