//! What the host remembers of each container under limits: one small file, for `gpucap status`.
//!
//! ```text
//! <run_dir>/containers/ID@PID-START.json
//! ```
//!
//! The name identifies the owner: the container, and number and start time of its first process. So a record is stale
//! exactly if that process has ended; no notification of the container's end is needed, and each later hook removes
//! the stale ones. The ledger itself is in the container: [`Record::open`] reaches it through that process.

use crate::container::native_limit::NativeLimitSet;
use crate::container::slices::Slices;
use crate::container::waiting::Waiting;
use crate::error::reason;
use crate::node::proc::Process;
use crate::sys::at;
use gpucap_core::limits::LimitsFile;
use gpucap_plan::{ContainerIdentity, Names, Node, State};
use serde_json::{Value, json};
use std::ffi::CString;
use std::fs::{self, DirBuilder, DirEntry, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const ENDING: &str = ".json";
/// The content. For a record of another version only its name is used.
const VERSION: u32 = 1;

/// A container under a limit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Record {
    /// The id by which the engine knows it.
    pub(crate) container: String,
    /// Its first process.
    pub(crate) pid: u32,
    /// When that process started.
    pub(crate) start_time: u64,
    /// What it has in common with each container that an engine starts in its place.
    pub(crate) place: String,
    /// How people know it, as the engine annotated it.
    pub(crate) names: Option<Names>,
    /// What it was given, if the record says so in a form that is understood.
    pub(crate) limits: Option<String>,
    /// What of it the driver keeps too.
    pub(crate) native_limits: Option<NativeLimitSet>,
    /// The slices of claims that it has.
    pub(crate) slices: Slices,
    /// The UIDs of its pod, as the engine annotated it: one, unless the pod's author wrote another.
    pub(crate) pod_uids: Vec<String>,
    /// Its first process as it waited to be started, if that could be seen.
    pub(crate) waiting: Option<Waiting>,
}

/// What has become of slices that a container asked for.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Claimed {
    /// It has them. The containers of these ids had one of them, were never started, and have ended.
    After(Vec<String>),
    /// The container of this id has one of them.
    By(String),
}

/// The directory, open: also from within a container's namespace.
#[derive(Debug)]
pub(crate) struct Records(File);

impl Records {
    /// Opens it, after making it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(path)?;
        super::root::open_directory(path).map(Self)
    }

    /// Writes one, whole or not at all.
    pub(crate) fn write(&self, record: &Record) -> io::Result<()> {
        let name = record.file();
        let (new, name) = (CString::new(format!("{name}.new"))?, CString::new(name)?);
        // Left by a process that was killed while writing.
        drop(at::remove(&self.0, &new, false));
        at::create(&self.0, &new, 0o600)?.write_all(record.text().as_bytes())?;
        at::rename(&self.0, &new, &name)
    }

    /// Removes one.
    pub(crate) fn remove(&self, record: &Record) -> io::Result<()> {
        at::remove(&self.0, &CString::new(record.file())?, false)
    }

    /// Writes one for its slices, unless another container has one of them: each would have the whole of it. Written
    /// before the others are read, so that of two that start at once each sees the other, and at most one has it.
    ///
    /// A container in whose place this one is made, and which was never started, is ended: it would wait for ever.
    ///
    /// # Errors
    /// It cannot be written, or a record of a container that is not over cannot be read: that one may have the slice.
    pub(crate) fn occupy(&self, path: &Path, record: &Record) -> io::Result<Claimed> {
        self.write(record)?;
        let is_other = |other: &Record| {
            (other.pid, other.start_time) != (record.pid, record.start_time)
                && other.slices.meet(&record.slices)
        };
        let found = all_or_none(path).inspect_err(|_| drop(self.remove(record)))?;
        let others: Vec<Record> = found.into_iter().filter(is_other).collect();
        let stays = |other: &&Record| !other.is_replaced_by(record);
        // None is ended for nothing.
        let holder = others.iter().find(stays).or_else(|| others.iter().find(|it| !it.end()));
        if let Some(holder) = holder {
            self.remove(record)?;
            return Ok(Claimed::By(holder.container.clone()));
        }
        // What is left of them is stale.
        others.iter().for_each(|other| drop(self.remove(other)));
        Ok(Claimed::After(others.into_iter().map(|other| other.container).collect()))
    }
}

/// Removes the records of ended containers; records whose container's state is unknown stay. Returns how many were
/// removed.
pub(crate) fn sweep(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let stale = entries.filter(|entry| {
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner);
        owner.is_some_and(|(_, pid, start_time)| Process(pid).has_ended(start_time))
    });
    stale.filter(|entry| fs::remove_file(entry.path()).is_ok()).count()
}

/// The records of containers that are not over, by id, as far as they can be read.
pub(crate) fn all(directory: &Path) -> Vec<Record> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut records: Vec<Record> = files.filter_map(|file| read(&file).ok()?).collect();
    sort(&mut records);
    records
}

/// All records of containers that are not over.
///
/// # Errors
/// One of them cannot be read: its file is named.
fn all_or_none(directory: &Path) -> io::Result<Vec<Record>> {
    let mut records = Vec::new();
    for file in fs::read_dir(directory)? {
        let file = file?;
        records.extend(read(&file).map_err(|why| {
            io::Error::other(format!("{}: {}", file.path().display(), reason(&why)))
        })?);
    }
    sort(&mut records);
    Ok(records)
}

fn sort(records: &mut [Record]) {
    records.sort_by(|a, b| (&a.container, a.pid).cmp(&(&b.container, b.pid)));
}

/// The record in a file of the directory. `None`: it is no record, or its container is over.
fn read(file: &DirEntry) -> io::Result<Option<Record>> {
    let name = file.file_name();
    let name = name.to_str().and_then(|name| owner(name.strip_suffix(ENDING)?));
    let Some((container, pid, start_time)) = name else { return Ok(None) };
    if Process(pid).has_ended(start_time) {
        return Ok(None);
    }
    match fs::read(file.path()) {
        // Another hook has just removed it.
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Record::parse(container, pid, start_time, &text?).map(Some),
    }
}

/// What an engine starts again has the same: a name in a pod, or an id and a bundle.
fn place(state: &State) -> String {
    ContainerIdentity::place(&state.annotations).unwrap_or_else(|| {
        let mut bundle = DefaultHasher::new();
        state.bundle.hash(&mut bundle);
        format!("{}@{:016x}", state.id, bundle.finish())
    })
}

/// Whether a container's id can be part of a file's name.
pub(crate) fn is_id(text: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || "_-.+:".contains(sign);
    (1..=200).contains(&text.len()) && !text.starts_with('.') && text.chars().all(fits)
}

impl Record {
    /// Whether the container goes by this word: the beginning of its id, `NAMESPACE/POD` or `NAMESPACE/POD/CONTAINER`.
    pub(crate) fn is_called(&self, word: &str) -> bool {
        let named = self.names.as_ref().is_some_and(|Names { namespace, pod, container }| {
            let rest = word.strip_prefix(namespace.as_str()).and_then(|it| it.strip_prefix('/'));
            rest.is_some_and(|rest| match rest.split_once('/') {
                Some(parts) => parts == (pod, container),
                None => rest == pod,
            })
        });
        named || !word.is_empty() && self.container.starts_with(word)
    }

    /// The record of a container that waits to be started.
    ///
    /// # Errors
    /// It does not wait any more.
    pub(crate) fn of(
        state: &State,
        pid: u32,
        limits: &LimitsFile,
        native_limits: Option<NativeLimitSet>,
        slices: Slices,
    ) -> io::Result<Self> {
        let stat = Process(pid).stat()?.ok_or(io::ErrorKind::InvalidData)?;
        let pods = ContainerIdentity::all_of(&state.annotations).into_iter();
        Ok(Self {
            container: state.id.clone(),
            place: place(state),
            pid,
            start_time: stat.start_time,
            names: Names::of(&state.annotations),
            limits: Some(limits.write()),
            native_limits,
            slices,
            pod_uids: pods.map(|pod| pod.pod_uid).collect(),
            waiting: Waiting::of(Process(pid)).filter(|_| state.waits()),
        })
    }

    /// Whether another container was made in its place: of the same name in the same pod, and after it.
    fn is_replaced_by(&self, later: &Self) -> bool {
        let same = self.names == later.names && self.pod_uids == later.pod_uids;
        self.names.is_some() && same && self.start_time < later.start_time
    }

    /// Ends it if it was never started. Returns whether it is over.
    fn end(&self) -> bool {
        let (pid, start_time) = (self.pid, self.start_time);
        let ended = self.waiting.is_some_and(|it| it.end(pid, start_time).unwrap_or_default());
        ended || Process(pid).has_ended(start_time)
    }

    /// What it was given, read again.
    pub(crate) fn limits(&self) -> Option<LimitsFile> {
        LimitsFile::parse(self.limits.as_ref()?.as_bytes()).ok()
    }

    /// Where a file of the container is, seen from the host.
    pub(crate) fn path_of(&self, path: &str) -> PathBuf {
        Process(self.pid).path(&format!("root{path}"))
    }

    /// Opens a regular file of the container to be read; no link that it has laid leads out of its root. `None`: there is
    /// none.
    pub(crate) fn open(&self, path: &str) -> io::Result<Option<File>> {
        let root = super::root::open_directory(&Process(self.pid).path("root"))?;
        self.check()?;
        super::root::Root::new(root).open(path)
    }

    /// What was just opened of its first process is of no other: that process has not ended, so that none has taken its
    /// number.
    pub(crate) fn check(&self) -> io::Result<()> {
        let over = Process(self.pid).has_ended(self.start_time);
        if over { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    /// What no other container has at any time: two engines may give one id to two containers.
    pub(crate) fn key(&self) -> String {
        format!("{}@{}-{}", self.container, self.pid, self.start_time)
    }

    fn file(&self) -> String {
        format!("{}{ENDING}", self.key())
    }

    fn text(&self) -> String {
        let Self {
            container, place, names, limits, native_limits, slices, pod_uids, waiting, ..
        } = self;
        let mut value = json!({"version": VERSION, "container": container, "limits": limits});
        if let Some(Names { namespace, pod, container }) = names {
            value["names"] = json!({"namespace": namespace, "pod": pod, "container": container});
        }
        value["driver"] = json!(native_limits.as_ref().map(NativeLimitSet::record));
        value["place"] = json!(place);
        if !slices.is_empty() {
            slices.write(&mut value);
            value["pod_uids"] = json!(pod_uids);
            value["waiting"] = json!(waiting.map(Waiting::record));
        }
        format!("{value:#}\n")
    }

    /// Part by part, not as a whole: a part of an earlier or a later release that cannot be read must not hide the others, of
    /// which the slices decide whether another container may start.
    fn parse(container: &str, pid: u32, start_time: u64, text: &[u8]) -> io::Result<Self> {
        let value: Value =
            serde_json::from_slice(text).map_err(|_| io::Error::other("it is not JSON"))?;
        let known = value["version"] == VERSION;
        let word = |value: &Value| value.as_str().filter(|_| known).map(str::to_owned);
        let name = |key: &str| word(&value["names"][key]);
        let names = || {
            let (namespace, pod) = (name("namespace")?, name("pod")?);
            Some(Names { namespace, pod, container: name("container")? })
        };
        let limits = word(&value["limits"]);
        let place = word(&value["place"]).unwrap_or_else(|| container.to_owned());
        let (container, names) = (container.to_owned(), names());
        let native_limits = NativeLimitSet::of_record(&value["driver"]);
        let slices = Slices::of_record(&value);
        let pod_uids = value["pod_uids"].as_array().into_iter().flatten();
        let pod_uids = pod_uids.filter_map(Value::as_str).map(str::to_owned).collect();
        let waiting = Waiting::of_record(&value["waiting"]);
        Ok(Self {
            container,
            place,
            pid,
            start_time,
            names,
            limits,
            native_limits,
            slices,
            pod_uids,
            waiting,
        })
    }
}

/// Container, number and start time, of a file's name.
fn owner(name: &str) -> Option<(&str, u32, u64)> {
    let name = name.strip_suffix(".new").unwrap_or(name);
    let name = name.strip_suffix(ENDING).unwrap_or(name);
    let (container, process) = name.split_once('@')?;
    let (pid, start_time) = first_process(process)?;
    is_id(container).then_some((container, pid, start_time))
}

/// Number and start time of a container's first process: `PID-START`.
pub(crate) fn first_process(text: &str) -> Option<(u32, u64)> {
    let (pid, start_time) = text.split_once('-')?;
    Some((pid.parse().ok()?, start_time.parse().ok()?))
}

/// The directory of the records.
pub(crate) fn directory(node: &Node) -> PathBuf {
    Path::new(&node.run_dir).join("containers")
}

#[cfg(test)]
mod tests;
