//! The facts about a process: collected here, evaluated in `verdict`.
//!
//! The library decides by the environment and the files that the process itself sees, so everything is read below
//! `/proc/PID/root`, by a path walk that cannot leave it: links belong to the process, files may be fifos or endless,
//! and a ledger may be truncated by any process of the container. Each read is bounded, and anything but a regular
//! file counts as absent. The environment is the one that the program was started with; later changes are not seen.

use crate::container::effective_limit::EffectiveLimit;
use crate::container::ledgers::{self, BY_HOOK, Look, Name};
use crate::container::root::{self, Root, open_directory};
use crate::container::run_file::{self, RunFile};
use crate::error::reason;
use crate::node::elf::Loading;
use crate::node::preload;
use crate::node::proc::Process;
use crate::sys::at::{self, StatVfsMountFlags};
use crate::sys::{self, Map};
use gpucap_core::config::{GPUCAP_LEDGER, Lookup};
use gpucap_core::ledger::{Identity, Kind};
use gpucap_core::limits::live::{self, LivePage};
use gpucap_core::limits::{FileProblem, Limits, file, run};
use gpucap_core::uuid::Uuid;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything that counts.
pub(super) struct Facts {
    /// The process; `None`: one that would be started from here.
    pub(super) process: Option<Seen>,
    /// The limits that are set for it, below those of a run that it is in.
    pub(super) limits: Result<Option<Limits>, String>,
    /// Whether there is a limits file.
    pub(super) has_file: bool,
    /// What that file gives, or of a run the one beside its ledger, and what was said since.
    pub(super) effective: Vec<EffectiveLimit>,
    /// What asks the loader for the library.
    pub(super) asked_by: Vec<Asking>,
    /// The ledger that it uses, or would.
    pub(super) ledger: PathBuf,
    /// What it holds, by that ledger; or why that is not known.
    pub(super) holds: Result<Vec<Holding>, String>,
}

/// What can be seen of a running process.
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
pub(super) struct Holding {
    pub(super) uuid: Uuid,
    pub(super) limit: u64,
    pub(super) used: u64,
    pub(super) context: u64,
    pub(super) refusals: u64,
}

const EVERYWHERE: &str = "/etc/ld.so.preload";
/// A list of the loader that is longer was made to be.
const LONGEST_LIST: u64 = 1 << 20;

impl Facts {
    /// Those of a process that runs.
    pub(super) fn of(process: Process) -> io::Result<Self> {
        let environment = process.environment()?;
        let root = Root::new(open_directory(&process.path("root"))?);
        let value = |name: &str| environment.get(name).map(OsStr::to_owned);
        let seen = Seen {
            pid: process.0,
            command: process.command().unwrap_or_default(),
            mapped: process.mapped(preload::LIBRARY)?,
            loading: Loading::of(&process.program_head()?),
            secure: process.secure().unwrap_or(false),
        };
        let mut facts = Self::collect(&value, &root, process, process.uid()?);
        facts.holds = held(&root, &facts.ledger, process);
        facts.process = Some(seen);
        Ok(facts)
    }

    /// Those of a process that would be started from here.
    pub(super) fn of_here() -> io::Result<Self> {
        let value = |name: &str| env::var_os(name);
        let root = Root::new(open_directory(Path::new("/"))?);
        Ok(Self::collect(&value, &root, Process::own(), sys::uid()))
    }

    fn collect(
        value: &dyn Fn(&str) -> Option<OsString>,
        root: &Root,
        process: Process,
        uid: u32,
    ) -> Self {
        let file = limits_file(root);
        let has_file = file.is_some();
        let lookup: Lookup<'_> = &|name| value(name).map(|value| value.as_bytes().to_vec());
        let read = file.as_ref().map(|read| read.as_deref().map_err(Clone::clone));
        let mut limits = Limits::load(lookup, read).map_err(|broken| broken.to_string());
        let configured = ledgers::configured(value(GPUCAP_LEDGER.name).as_deref());
        let ledger = if has_file && root.open_path(BY_HOOK).is_ok() {
            BY_HOOK.into()
        } else if let Some(path) = configured.filter(|_| !has_file) {
            path
        } else {
            let mount_namespace = process.namespace("mnt").unwrap_or(0);
            Name::Shared { uid, mount_namespace }.path()
        };
        let mut page = page(root);
        if let Ok(Some(own)) = &limits
            && !has_file
        {
            match limits_of_run(root, &ledger, uid) {
                Ok(None) => {}
                Ok(Some(run)) => (limits, page) = (Ok(Some(own.below(run.limits))), Some(run.page)),
                Err(why) => limits = Err(why),
            }
        }
        let effective = limits.as_ref().ok().and_then(|limits| limits.as_ref()?.file());
        let page = page.as_ref().map(Map::get);
        let effective = effective.map(|file| EffectiveLimit::all(file, page)).unwrap_or_default();
        let everywhere = open(root, Path::new(EVERYWHERE)).ok().flatten();
        let everywhere = everywhere.and_then(|file| root::read(file, LONGEST_LIST).ok());
        let lists = [
            ("LD_PRELOAD", value("LD_PRELOAD").unwrap_or_default()),
            (EVERYWHERE, OsString::from_vec(everywhere.unwrap_or_default())),
        ];
        let asked_by = lists.iter().filter_map(|(list, text)| {
            let library = preload::named(text)?.to_owned();
            let is_there = is_file(root, &library);
            Some(Asking { list, library, is_there })
        });
        let asked_by = asked_by.collect();
        Self { process: None, limits, has_file, effective, asked_by, ledger, holds: Ok(Vec::new()) }
    }
}

/// Opens what the process finds at a path, if that is a regular file. No link, and nothing else that the process has
/// laid there, leads out of its root or makes us wait.
fn open(root: &Root, path: &Path) -> io::Result<Option<File>> {
    root.open(path.to_str().ok_or(io::ErrorKind::InvalidFilename)?)
}

fn is_file(root: &Root, path: &Path) -> bool {
    let found = path.to_str().and_then(|path| root.open_path(path).ok());
    found.and_then(|found| found.metadata().ok()).is_some_and(|metadata| metadata.is_file())
}

/// The limits file, judged as the library judges it.
fn limits_file(root: &Root) -> Option<Result<Vec<u8>, FileProblem>> {
    let absent = [libc::ENOENT, libc::ENOTDIR];
    match lookup(root) {
        Ok(read) => Some(read),
        Err(why) if why.raw_os_error().is_some_and(|it| absent.contains(&it)) => None,
        Err(why) => Some(Err(FileProblem::Unreadable(why.raw_os_error().unwrap_or(0)))),
    }
}

fn lookup(root: &Root) -> io::Result<Result<Vec<u8>, FileProblem>> {
    let path = Path::new(file::PATH);
    let directory = path.parent().and_then(Path::to_str).unwrap_or_default();
    let name = path.file_name().unwrap_or_default();
    let place = root.place(directory, &CString::new(name.as_bytes())?)?;
    let found = place.top()?;
    let metadata = found.metadata()?;
    Ok(if !metadata.is_file() {
        Err(FileProblem::NotAFile)
    } else if metadata.len() > file::MAX_BYTES as u64 {
        Err(FileProblem::TooLong)
    } else if !at::mount_flags(&found)?.contains(StatVfsMountFlags::RDONLY) {
        Err(FileProblem::Writable)
    } else {
        let file = place.open()?.ok_or(io::ErrorKind::NotFound)?;
        Ok(root::read(file, file::MAX_BYTES as u64)?)
    })
}

/// What the host has said since the container started, if it has such a page.
fn page(root: &Root) -> Option<Map<LivePage>> {
    let file = open(root, Path::new(live::PATH)).ok().flatten()?;
    Map::copy(&file).ok().filter(|page: &Map<LivePage>| page.get().is_known())
}

/// The file of the run whose ledger this is; none if it is of no run, or that has none.
///
/// # Errors
/// There is a file, which the library refuses.
fn limits_of_run(root: &Root, ledger: &Path, uid: u32) -> Result<Option<RunFile>, String> {
    let place = ledger.to_str().and_then(|ledger| run::place(ledger, uid));
    let Some((directory, name)) = place else { return Ok(None) };
    let found = root.open_path(&directory).and_then(|directory| directory.metadata());
    if !found.is_ok_and(|found| run_file::is_kept_by(uid, &found)) {
        return Ok(None);
    }
    let path = format!("{directory}/{name}");
    let failed = |why: &str| format!("{path} {why}");
    let file = open(root, Path::new(&path)).map_err(|why| failed(&reason(&why)))?;
    let Some(file) = file else {
        let is_there = root.open_path(&path).is_ok();
        return if is_there { Err(failed("is not a regular file")) } else { Ok(None) };
    };
    match file.metadata().map(|metadata| metadata.uid()) {
        Ok(owner) if owner == uid => {}
        _ => return Err(failed("belongs to another user")),
    }
    RunFile::copy(&file).map(Some).map_err(|why| failed(&why))
}

/// What the ledger says of this process, or why that is not known. It is the process's own file, in the words of its own
/// pid namespace.
fn held(root: &Root, ledger: &Path, process: Process) -> Result<Vec<Holding>, String> {
    let file = open(root, ledger).map_err(|why| reason(&why))?;
    let Some(file) = file else { return Ok(Vec::new()) };
    let look = ledgers::see(&file, Name::of(ledger)).map_err(|why| reason(&why))?;
    let map = match look {
        Look::Ledger(map) => map,
        Look::Unused => return Ok(Vec::new()),
        Look::No(why) => return Err(why),
    };
    let unknown = || "its number in its own pid namespace cannot be read".to_owned();
    let pid_namespace = process.namespace("pid").ok_or_else(unknown)?;
    let pid = process.innermost_number().ok_or_else(unknown)?;
    let stat = process.stat().ok().flatten().ok_or_else(unknown)?;
    let ledger = map.get();
    let is_own = |owner: &Identity| {
        (owner.pid_namespace, owner.pid) == (pid_namespace, pid) && stat.runs(owner)
    };
    let own = ledger.processes().find(|slot| is_own(&slot.identity));
    let uuid = |account| ledger.devices().find(|device| device.device == account).map(|it| it.uuid);
    let held = own.iter().flat_map(|own| own.accounts()).filter_map(|account| {
        Some(Holding {
            uuid: Uuid(uuid(account.device)?),
            limit: account.limit,
            used: account.used,
            context: account.kinds.get(Kind::Context as usize).copied()?,
            refusals: account.refusals,
        })
    });
    Ok(held.collect())
}
