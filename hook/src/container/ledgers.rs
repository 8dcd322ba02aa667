//! The ledger files of this machine: their names, how they are found and read, and when one of them is swept.
//!
//! ```text
//! /dev/shm/gpucap-UID-MNT                     shared by the processes of a user and mount namespace (container)
//! /dev/shm/gpucap-UID-run-PIDNS-PID-START     of one `gpucap run`: who made it, and when that process started
//! /dev/shm/gpucap-UID-pages/LEDGER            the usage page of the processes that have this ledger
//! /dev/shm/gpucap-UID-runs/LEDGER             of a run: its limits at the start, and the page that changes them
//! ```
//!
//! `run` becomes the program, so no process is left to remove its ledger: later runs of its user do, and `gpucap gc` of
//! root. A file is removed only if it belongs to the user that its name says, its maker has ended, no slot of it belongs
//! to a process that may live, and no process of this user has it in its environment: such a process may still be before
//! its first GPU call. The files beside a ledger are removed when it is gone.

#[cfg(test)]
mod tests;

use crate::container::records::Record;
use crate::error::reason;
use crate::node::proc::environment::{Environment, environments};
use crate::node::proc::{self, PidNamespaces, Process, Snapshot, Whereabouts};
use crate::sys::{self, LedgerMap, at};
use gpucap_core::config::{GPUCAP_LEDGER, LedgerPath, Value};
use gpucap_core::ledger::Ledger;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory of ledgers that no hook has placed.
pub(crate) const DIRECTORY: &str = "/dev/shm";
/// Where the hook places that of a container.
pub(crate) const BY_HOOK: &str = "/.gpucap/ledger";

/// What the name of a ledger file says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Name {
    /// Shared by a user's processes in one mount namespace.
    Shared { uid: u32, mount_namespace: u64 },
    /// Made by one `gpucap run`.
    Run { uid: u32, pid_namespace: u64, pid: u32, start_time: u64 },
}

impl Name {
    /// That of a ledger which this process makes now.
    pub(crate) fn of_run(uid: u32, process: Process) -> io::Result<Self> {
        let stat = process.stat()?.ok_or(io::ErrorKind::InvalidData)?;
        let pid_namespace = process.namespace("pid").ok_or(io::ErrorKind::NotFound)?;
        Ok(Self::Run { uid, pid_namespace, pid: process.0, start_time: stat.start_time })
    }

    /// What a file's name says, if it is one of a ledger.
    pub(crate) fn parse(file: &str) -> Option<Self> {
        let fields: Vec<&str> = file.strip_prefix("gpucap-")?.split('-').collect();
        let name = match fields[..] {
            [uid, mount_namespace] => Self::Shared {
                uid: uid.parse().ok()?,
                mount_namespace: mount_namespace.parse().ok()?,
            },
            [uid, "run", pid_namespace, pid, start_time] => Self::Run {
                uid: uid.parse().ok()?,
                pid_namespace: pid_namespace.parse().ok()?,
                pid: pid.parse().ok()?,
                start_time: start_time.parse().ok()?,
            },
            _ => return None,
        };
        // No second spelling (`+1`, `01`) is a name.
        (name.file() == file).then_some(name)
    }

    /// The user of its processes.
    pub(crate) fn uid(self) -> u32 {
        match self {
            Self::Shared { uid, .. } | Self::Run { uid, .. } => uid,
        }
    }

    fn file(self) -> String {
        match self {
            Self::Shared { uid, mount_namespace } => format!("gpucap-{uid}-{mount_namespace}"),
            Self::Run { uid, pid_namespace, pid, start_time } => {
                format!("gpucap-{uid}-run-{pid_namespace}-{pid}-{start_time}")
            }
        }
    }

    /// The path of the file.
    pub(crate) fn path(self) -> PathBuf {
        Path::new(DIRECTORY).join(self.file())
    }

    /// What the path of a ledger says.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::parse(path.strip_prefix(DIRECTORY).ok()?.to_str()?)
    }
}

/// Makes an empty file for the processes of a run; the first of them that uses a GPU makes it a ledger. What there is
/// under its name already is ours, from before this process became what calls this: the name has our start in it.
/// Returns whether there was none.
pub(crate) fn make(path: &Path) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = match options.create_new(true).open(path) {
        Ok(file) => {
            // Whatever the umask.
            file.set_permissions(Permissions::from_mode(0o600))?;
            return Ok(true);
        }
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
            options.create_new(false).open(path)?
        }
        Err(why) => return Err(why),
    };
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.uid() == sys::uid() {
        Ok(false)
    } else {
        Err(io::Error::other("there is something else of this name"))
    }
}

/// The reason where a user has no right to read a file: most ledgers are other users'.
pub(crate) const DENIED: &str = "permission denied";

/// What a look at a ledger file gives.
pub(crate) enum Look {
    /// A ledger.
    Ledger(LedgerMap),
    /// An empty file: no process has used a GPU yet.
    Unused,
    /// It cannot be read, or not by this version: the reason, [`DENIED`] where this user has no right to.
    No(String),
}

/// Looks at a ledger file; changes nothing.
pub(crate) fn read(path: &Path) -> Look {
    let opened = OpenOptions::new()
        .read(true)
        // Not blocking: there may be a fifo in its place.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let seen = opened.and_then(|file| see(&file, Name::of(path)));
    seen.unwrap_or_else(|why| Look::No(reason(&why)))
}

/// Looks at the ledger of a container, which its processes can spoil as they like; changes nothing.
pub(crate) fn read_of(record: &Record) -> Look {
    let file =
        record.open(BY_HOOK).and_then(|file| file.ok_or_else(|| io::ErrorKind::NotFound.into()));
    let seen = file.and_then(|file| see(&file, None));
    seen.unwrap_or_else(|why| Look::No(reason(&why)))
}

/// Reads an open file. Its writers, for a file in /dev/shm every user, decide its content and its length at every
/// moment.
pub(crate) fn see(file: &File, name: Option<Name>) -> io::Result<Look> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Look::No("not a regular file".into()));
    }
    if name.is_some_and(|name| name.uid() != metadata.uid()) {
        return Ok(Look::No("it belongs to another user than its name says".into()));
    }
    match metadata.len() {
        0 => return Ok(Look::Unused),
        Ledger::SIZE => {}
        bytes => return Ok(Look::No(format!("has {bytes} bytes, a ledger has {}", Ledger::SIZE))),
    }
    let map = LedgerMap::copy(file)?;
    Ok(match map.get().check(metadata.len()) {
        Ok(()) => Look::Ledger(map),
        Err(why) => Look::No(why.to_string()),
    })
}

/// How many ledgers of /dev/shm are looked at: every user can make as many as there is memory for.
const MOST: usize = 1024;

/// Every ledger that is to be seen: in /dev/shm, the hook's, and the configured one. And how many of /dev/shm there are
/// beyond the most: this user's come first, then one of each other user in turn, by their owners whatever the names say.
pub(crate) fn all(configured: Option<PathBuf>) -> (Vec<PathBuf>, usize) {
    let owned = named().filter_map(|(path, _)| {
        let owner = fs::symlink_metadata(&path).ok()?.uid();
        Some((owner, path))
    });
    // In this order they are read, as far as there is room for what they hold.
    let (mut found, beyond) = first_of(owned, sys::uid());
    let by_hook = Path::new(BY_HOOK);
    if by_hook.exists() {
        found.insert(0, by_hook.to_owned());
    }
    let configured = configured.filter(|path| path.exists());
    if let Some(path) = configured
        && !found.contains(&path)
    {
        found.insert(0, path);
    }
    (found, beyond)
}

/// The most of these, and how many there are beyond.
fn first_of(found: impl Iterator<Item = (u32, PathBuf)>, own_uid: u32) -> (Vec<PathBuf>, usize) {
    let mut found: Vec<(u32, PathBuf)> = found.collect();
    found.sort();
    let mut counts = BTreeMap::new();
    let mut in_turn: Vec<(usize, u32, PathBuf)> = Vec::new();
    for (uid, path) in found {
        let count: &mut usize = counts.entry(uid).or_default();
        *count += usize::from(uid != own_uid);
        in_turn.push((*count, uid, path));
    }
    in_turn.sort();
    let beyond = in_turn.len().saturating_sub(MOST);
    (in_turn.into_iter().take(MOST).map(|(_, _, path)| path).collect(), beyond)
}

fn named() -> impl Iterator<Item = (PathBuf, Name)> {
    let entries = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = Name::parse(entry.file_name().to_str()?)?;
        Some((entry.path(), name))
    })
}

/// Removes unused ledgers of this user's runs, and what was beside a ledger that is gone. A ledger in an unknown state, or
/// that cannot be removed, stays. Returns how many ledgers were removed.
pub(crate) fn sweep() -> usize {
    let uid = sys::uid();
    let left = left_over(|owner| owner == uid).remove(&uid).unwrap_or_default();
    let swept = if left.is_empty() { 0 } else { remove(uid, &left, &InUse::by_processes_of(uid)) };
    sweep_beside(Path::new(DIRECTORY), uid);
    swept
}

/// Does the same for the runs of all users, if this process may look at theirs; else for its own.
pub(crate) fn sweep_all() -> usize {
    let swept = sweep();
    if !proc::sees_all() {
        return swept;
    }
    let left = left_over(|owner| owner != sys::uid());
    // A process of any user may have been started with such a ledger.
    let used = if left.is_empty() { InUse::default() } else { InUse::by_processes() };
    let of_others: usize = left.iter().map(|(uid, left)| remove(*uid, left, &used)).sum();
    let others: BTreeSet<u32> =
        named().map(|(_, name)| name.uid()).chain(left.into_keys()).collect();
    for uid in others.into_iter().filter(|uid| *uid != sys::uid()) {
        sweep_beside(Path::new(DIRECTORY), uid);
    }
    swept.saturating_add(of_others)
}

/// The ledgers of runs that have ended, of the users that are wanted, by their owner: what another user has laid under such a
/// name is none. At most [`MOST`] of each user at a time.
fn left_over(wants: impl Fn(u32) -> bool) -> BTreeMap<u32, Vec<PathBuf>> {
    let is_owned = |path: &Path, uid| {
        fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.uid() == uid)
    };
    let found: Vec<(PathBuf, Name)> =
        named().filter(|(path, name)| wants(name.uid()) && is_owned(path, name.uid())).collect();
    // What begins from now on has none of these names.
    let namespaces = PidNamespaces::default();
    let mut left: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
    for (path, name) in found {
        let uid = name.uid();
        if left.get(&uid).is_none_or(|left| left.len() < MOST)
            && maker_has_ended(name, uid, &namespaces)
        {
            left.entry(uid).or_default().push(path);
        }
    }
    left
}

/// Removes those of this user's that are not in use. Processes were asked after the ledgers were listed: what was started
/// since has a ledger that is not among them.
fn remove(uid: u32, left: &[PathBuf], used: &InUse) -> usize {
    if used.is_unknown_of(uid) {
        return 0;
    }
    let is_over = |path: &&PathBuf| !used.ledgers.contains(*path) && is_deserted(path);
    // Another process may have removed one in the mean time.
    left.iter().filter(is_over).filter(|path| fs::remove_file(path).is_ok()).count()
}

fn sweep_beside(directory: &Path, uid: u32) {
    for kind in ["pages", "runs"] {
        // What is open is what is changed: a link of another user might lead to files that are none of these, and take
        // the place of the name at any time.
        let Ok(files) = own_directory(&directory.join(format!("gpucap-{uid}-{kind}")), uid) else {
            continue;
        };
        let found = fs::read_dir(format!("/proc/self/fd/{}", files.as_raw_fd()));
        for file in found.into_iter().flatten().flatten() {
            let ledger = fs::symlink_metadata(directory.join(file.file_name()));
            if ledger.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
                && let Ok(name) = CString::new(file.file_name().as_bytes())
            {
                // Another process may have removed it in the mean time.
                let _ = at::remove(&files, &name, false);
            }
        }
    }
}

/// Opens a directory of this user.
fn own_directory(path: &Path, uid: u32) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let owner = directory.metadata()?.uid();
    if owner == uid { Ok(directory) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Whether the process that made a run's file is known to have ended: of the runs of this user.
pub(crate) fn maker_has_ended(name: Name, own_uid: u32, namespaces: &PidNamespaces) -> bool {
    let Name::Run { uid, pid_namespace, pid, start_time } = name else { return false };
    if uid != own_uid {
        return false;
    }
    if Process::own().namespace("pid") != Some(pid_namespace) {
        return namespaces.has_none_in(pid_namespace);
    }
    Process(pid).has_ended(start_time)
}

/// The ledger that the value of [`GPUCAP_LEDGER`] names, read as the library reads it; `None` if it names none.
pub(crate) fn configured(value: Option<&OsStr>) -> Option<PathBuf> {
    let path = LedgerPath::parse(value?.to_str()?.trim()).ok()?;
    Some(path.as_str().into())
}

/// The ledgers that living processes have in their environment.
#[derive(Default)]
struct InUse {
    ledgers: BTreeSet<PathBuf>,
    /// The users of whom a process has an environment that cannot be read.
    unknown: BTreeSet<u32>,
    /// Whether there is one whose user is not known.
    is_unknown: bool,
}

impl InUse {
    /// By those of all users.
    fn by_processes() -> Self {
        let mut found = Self::default();
        environments(Process::all(), |process, environment| match environment {
            Ok(environment) => found.add(&environment),
            Err(why) if proc::is_gone(&why) => {}
            Err(_) => match process.uid() {
                Ok(user) => found.unknown.extend([user]),
                Err(why) => found.is_unknown |= !proc::is_gone(&why),
            },
        });
        found
    }

    /// By those of this user, as far as their environments can be read: unknown is only what executes a program.
    fn by_processes_of(uid: u32) -> Self {
        let mut found = Self::default();
        let own = Process::all().filter(|process| process.uid().is_ok_and(|user| user == uid));
        environments(own, |_, environment| match environment {
            Ok(environment) => found.add(&environment),
            Err(why) => found.is_unknown |= why.kind() == io::ErrorKind::WouldBlock,
        });
        found
    }

    fn add(&mut self, environment: &Environment) {
        self.ledgers.extend(configured(environment.get(GPUCAP_LEDGER.name)));
    }

    /// Whether processes of this user may have others.
    fn is_unknown_of(&self, uid: u32) -> bool {
        self.is_unknown || self.unknown.contains(&uid)
    }
}

fn is_deserted(path: &Path) -> bool {
    match read(path) {
        Look::Ledger(map) => {
            let (here, namespaces) = (Snapshot::default(), PidNamespaces::default());
            map.get().processes().all(|it| match here.find(&it.identity) {
                Whereabouts::Ended => true,
                Whereabouts::Runs(_) => false,
                Whereabouts::Unknown => namespaces.has_none_in(it.identity.pid_namespace),
            })
        }
        Look::Unused => true,
        Look::No(_) => false,
    }
}
