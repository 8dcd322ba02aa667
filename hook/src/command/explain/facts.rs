//! What is to be found out of a process: collected here, judged in `verdict`.
//!
//! The library decides by the environment and the files that the process itself sees, so everything is read through
//! `/proc/PID/root`. An environment is the one the program was started with; one that it changed later is not seen.

use crate::elf::Loading;
use crate::given::Given;
use crate::ledgers::{self, BY_HOOK, Look, Name};
use crate::preload;
use crate::proc::{self, Process};
use crate::sys::{self, Map};
use gpucap_core::config::{GPUCAP_LEDGER, Lookup};
use gpucap_core::ledger::Kind;
use gpucap_core::limits::live::{self, LivePage};
use gpucap_core::limits::{Broken, FileProblem, Limits, file};
use gpucap_core::uuid::Uuid;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Everything that counts.
pub(super) struct Facts {
    /// The process; `None`: one that would be started from here.
    pub(super) process: Option<Seen>,
    /// What is set for it.
    pub(super) limits: Result<Option<Limits>, Broken>,
    /// Whether there is a limits file.
    pub(super) has_file: bool,
    /// What that file gives, and what the host has said since.
    pub(super) given: Vec<Given>,
    /// What asks the loader for the library.
    pub(super) asked_by: Vec<Asking>,
    /// The ledger that it uses, or would.
    pub(super) ledger: PathBuf,
    /// What it holds, by that ledger.
    pub(super) holds: Vec<Held>,
}

/// What is to be seen of a process that runs.
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) command: String,
    /// The library as it is mapped, if it is.
    pub(super) mapped: Option<String>,
    pub(super) loading: Loading,
    /// It has rights that its caller has not, so the loader ignored `LD_PRELOAD`.
    pub(super) secure: bool,
}

/// A list of the loader that names the library.
pub(super) struct Asking {
    /// `LD_PRELOAD` or `/etc/ld.so.preload`.
    pub(super) list: &'static str,
    pub(super) library: PathBuf,
    /// Whether the process finds a file there.
    pub(super) is_there: bool,
}

/// What a process holds of a device.
pub(super) struct Held {
    pub(super) uuid: Uuid,
    pub(super) cap: u64,
    pub(super) used: u64,
    pub(super) context: u64,
    pub(super) refusals: u64,
}

const EVERYWHERE: &str = "/etc/ld.so.preload";

impl Facts {
    /// Those of a process that runs.
    pub(super) fn of(process: Process) -> io::Result<Self> {
        let environment = process.environment()?;
        let root = process.path("root");
        let value = |name: &str| environment.get(name).map(OsStr::to_owned);
        let seen = Seen {
            pid: process.0,
            command: process.command().unwrap_or_default(),
            mapped: process.mapped(preload::LIBRARY)?,
            loading: Loading::of(&process.program_head()?),
            secure: process.secure().unwrap_or(false),
        };
        let mut facts = Self::collect(&value, &root, process, process.uid()?);
        facts.holds = held(&inside(&root, &facts.ledger), process).unwrap_or_default();
        facts.process = Some(seen);
        Ok(facts)
    }

    /// Those of a process that would be started from here.
    pub(super) fn of_here() -> io::Result<Self> {
        let value = |name: &str| env::var_os(name);
        Ok(Self::collect(&value, Path::new("/"), Process::own(), sys::uid()))
    }

    fn collect(
        value: &dyn Fn(&str) -> Option<OsString>,
        root: &Path,
        process: Process,
        uid: u32,
    ) -> Self {
        let file = limits_file(&inside(root, Path::new(file::PATH)));
        let has_file = file.is_some();
        let lookup: Lookup<'_> = &|name| value(name).map(|value| value.as_bytes().to_vec());
        let read = file.as_ref().map(|read| read.as_deref().map_err(Clone::clone));
        let limits = Limits::load(lookup, read);
        let given = limits.as_ref().ok().and_then(|limits| limits.as_ref()?.file());
        let given = given.map(|file| Given::all(file, page(root).as_ref().map(Map::get)));
        let configured = value(GPUCAP_LEDGER.name).filter(|path| !path.is_empty());
        let ledger = if has_file && inside(root, Path::new(BY_HOOK)).exists() {
            BY_HOOK.into()
        } else if let Some(path) = configured.filter(|_| !has_file) {
            PathBuf::from(path)
        } else {
            let mount_namespace = process.namespace("mnt").unwrap_or(0);
            Name::Shared { uid, mount_namespace }.path()
        };
        let everywhere = fs::read(inside(root, Path::new(EVERYWHERE))).unwrap_or_default();
        let lists = [
            ("LD_PRELOAD", value("LD_PRELOAD").unwrap_or_default()),
            (EVERYWHERE, OsStr::from_bytes(&everywhere).to_owned()),
        ];
        let asked_by = lists.iter().filter_map(|(list, text)| {
            let library = preload::named(text)?.to_owned();
            let is_there = inside(root, &library).is_file();
            Some(Asking { list, library, is_there })
        });
        let asked_by = asked_by.collect();
        let given = given.unwrap_or_default();
        Self { process: None, limits, has_file, given, asked_by, ledger, holds: Vec::new() }
    }
}

/// The path by which we see what a process sees under `path`.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The limits file, judged as the library judges it.
fn limits_file(path: &Path) -> Option<Result<Vec<u8>, FileProblem>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(why)
            if why.raw_os_error().is_some_and(|it| [libc::ENOENT, libc::ENOTDIR].contains(&it)) =>
        {
            return None;
        }
        Err(why) => return Some(Err(FileProblem::Unreadable(why.raw_os_error().unwrap_or(0)))),
    };
    Some(if !metadata.is_file() {
        Err(FileProblem::NotAFile)
    } else if metadata.len() > file::MAX_BYTES as u64 {
        Err(FileProblem::TooLong)
    } else if !sys::on_read_only_mount(path) {
        Err(FileProblem::Writable)
    } else {
        fs::read(path).map_err(|why| FileProblem::Unreadable(why.raw_os_error().unwrap_or(0)))
    })
}

/// What the host has said since the container started, if it has such a page.
fn page(root: &Path) -> Option<Map<LivePage>> {
    // Not blocking: who can unmount the page can put a fifo in its place.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let page = inside(root, Path::new(live::PATH));
    let file = OpenOptions::new().read(true).custom_flags(flags).open(page).ok()?;
    Map::copy(&file).ok().filter(|page: &Map<LivePage>| page.get().is_known())
}

/// What the ledger says of this process. A process in another pid namespace goes by another number there.
fn held(ledger: &Path, process: Process) -> Option<Vec<Held>> {
    let Look::Ledger(map) = ledgers::look(ledger) else { return None };
    let ledger = map.get();
    let own = ledger
        .processes()
        .find(|slot| slot.identity.pid == process.0 && proc::runs(&slot.identity) == Some(true))?;
    let uuid = |book| ledger.devices().find(|device| device.device == book).map(|it| it.uuid);
    let held = own.books().filter_map(|book| {
        Some(Held {
            uuid: Uuid(uuid(book.device)?),
            cap: book.cap,
            used: book.used,
            context: book.kinds.get(Kind::Context as usize).copied()?,
            refusals: book.refusals,
        })
    });
    Some(held.collect())
}
