//! Facts about processes from `/proc`.
//!
//! Everything here is read at the moment of the question and may be stale at the next. Of other users' processes little
//! is to be seen; what cannot be read is `None`, and never taken for a fact.

pub(crate) mod environment;

use gpucap_core::ledger::Identity;
use gpucap_core::process::{FIRST_PID_NAMESPACE, Stat};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process, by its number in our pid namespace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// This one.
    pub(crate) fn own() -> Self {
        Self(std::process::id())
    }

    /// Every process that is to be seen.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Self))
    }

    /// A file of it.
    pub(crate) fn path(self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.0.to_string()).join(name)
    }

    /// Its `stat`.
    pub(crate) fn stat(self) -> io::Result<Option<Stat>> {
        Ok(Stat::parse(&fs::read(self.path("stat"))?))
    }

    /// The process that made it, or that has taken the place of that one.
    pub(crate) fn parent(self) -> Option<Self> {
        Some(Self(self.stat().ok()??.parent))
    }

    /// Whether the process that had this number and started then has ended. In doubt, no.
    pub(crate) fn has_ended(self, start_time: u64) -> bool {
        match self.stat() {
            Ok(Some(stat)) => stat.ended || stat.start_time != start_time,
            Ok(None) => false,
            Err(why) => is_gone(&why),
        }
    }

    /// The user whose rights it has. (The file itself is root's if the process may not be dumped.)
    pub(crate) fn uid(self) -> io::Result<u32> {
        let status = fs::read(self.path("status"))?;
        let status = String::from_utf8_lossy(&status);
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let effective = users.and_then(|users| users.split_whitespace().nth(1)?.parse().ok());
        effective.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The inode of a namespace that it is in: `mnt`, `pid`.
    pub(crate) fn namespace(self, kind: &str) -> Option<u64> {
        Some(fs::metadata(self.path("ns").join(kind)).ok()?.ino())
    }

    /// Its number in the pid namespace that it is in.
    pub(crate) fn innermost_number(self) -> Option<u32> {
        self.numbers()?.pop()
    }

    /// Its numbers, in our pid namespace first.
    fn numbers(self) -> Option<Vec<u32>> {
        let status = fs::read(self.path("status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        numbers.split_whitespace().map(|number| number.parse().ok()).collect()
    }

    /// The beginning of its command line, fit for one line; its name if there is none.
    pub(crate) fn command(self) -> Option<String> {
        let (words, _) =
            beginning(&File::open(self.path("cmdline")).ok()?, LONGEST_COMMAND).ok()?;
        let words = words.strip_suffix(b"\0").unwrap_or(&words);
        if words.is_empty() {
            return Some(printable(&fs::read(self.path("comm")).ok()?));
        }
        let words: Vec<String> = words.split(|&byte| byte == 0).map(printable).collect();
        Some(words.join(" "))
    }

    /// Its mount table. Any user may fill that of a mount namespace of his own, with gigabytes.
    pub(crate) fn mounts(self) -> io::Result<Vec<u8>> {
        whole(&File::open(self.path("mountinfo"))?)
    }

    /// The file of our library that is mapped in it, if any is.
    pub(crate) fn mapped(self, library: &str) -> io::Result<Option<String>> {
        let maps = whole(&File::open(self.path("maps"))?)?;
        Ok(mapped_file(&String::from_utf8_lossy(&maps), library))
    }

    /// Whether the loader had to ignore `LD_PRELOAD`, because the program has rights that its caller has not.
    pub(crate) fn secure(self) -> Option<bool> {
        const AT_SECURE: u64 = 23;
        let words = fs::read(self.path("auxv")).ok()?;
        let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        while let (Some(kind), Some(value)) = (words.next(), words.next()) {
            if kind == AT_SECURE {
                return Some(value != 0);
            }
        }
        None
    }

    /// The head of its program's file.
    pub(crate) fn program_head(self) -> io::Result<Vec<u8>> {
        head(&self.path("exe"))
    }
}

/// How much of a command line is shown: a process chooses its own, of megabytes if it likes.
const LONGEST_COMMAND: usize = 512;
/// An environment, or a list of mappings or mounts, that is longer was made to be.
const LONGEST: usize = 16 << 20;

/// The first part of a file, as far as `elf` looks.
pub(crate) fn head(path: &Path) -> io::Result<Vec<u8>> {
    Ok(beginning(&File::open(path)?, crate::node::elf::HEAD)?.0)
}

/// The first bytes of a file, and whether there are more.
fn beginning(file: &File, most: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() > most;
    bytes.truncate(most);
    Ok((bytes, more))
}

/// A file of a process, all of it.
fn whole(file: &File) -> io::Result<Vec<u8>> {
    match beginning(file, LONGEST)? {
        (bytes, false) => Ok(bytes),
        (_, true) => Err(io::Error::other(format!("has more than {LONGEST} bytes"))),
    }
}

/// What has become of the owner of a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Whereabouts {
    /// It runs, as this process here.
    Runs(Process),
    /// It has ended.
    Ended,
    /// Unknown: its number means nothing here.
    Unknown,
}

/// The processes of this machine at one moment, for many questions: those of other pid namespaces are looked for once,
/// however many slots of ledgers name such namespaces.
#[derive(Default)]
pub(crate) struct Snapshot(OnceCell<Members>);

/// Every process that is to be seen, by the pid namespace that it is in and its number there.
type Members = BTreeMap<(u64, u32), Process>;

impl Snapshot {
    /// What has become of the owner of a slot. One of another pid namespace is found if ours is above it, which shows by
    /// any process of it that is to be seen here.
    pub(crate) fn find(&self, owner: &Identity) -> Whereabouts {
        let namespace = owner.pid_namespace;
        let process = if Process::own().namespace("pid") == Some(namespace) {
            Some(Process(owner.pid))
        } else {
            let members = self.0.get_or_init(members);
            if members.range((namespace, 0)..=(namespace, u32::MAX)).next().is_none() {
                return Whereabouts::Unknown;
            }
            members.get(&(namespace, owner.pid)).copied()
        };
        let Some(process) = process else { return Whereabouts::Ended };
        match process.stat() {
            Ok(Some(stat)) if stat.runs(owner) => Whereabouts::Runs(process),
            Ok(Some(_)) => Whereabouts::Ended,
            Err(error) if is_gone(&error) => Whereabouts::Ended,
            Ok(None) | Err(_) => Whereabouts::Unknown,
        }
    }
}

fn members() -> Members {
    let place = |it: Process| Some(((it.namespace("pid")?, it.innermost_number()?), it));
    Process::all().filter_map(place).collect()
}

/// The pid namespaces that have processes, as of the first question: `/proc` is gone through once, however many there are.
#[derive(Default)]
pub(crate) struct PidNamespaces(OnceCell<Option<BTreeSet<u64>>>);

impl PidNamespaces {
    /// Whether one is known to have no process: one that has lost its first process gets none again, and all of them are
    /// below the machine's first one. Of other users' processes there only root sees in which one they are.
    pub(crate) fn has_none_in(&self, pid_namespace: u64) -> bool {
        let used = self.0.get_or_init(used_namespaces);
        used.as_ref().is_some_and(|used| !used.contains(&pid_namespace))
    }
}

/// `None` if that of a process is not known.
fn used_namespaces() -> Option<BTreeSet<u64>> {
    let mut used = BTreeSet::from([FIRST_PID_NAMESPACE]);
    if Process::own().namespace("pid") != Some(FIRST_PID_NAMESPACE) {
        return None;
    }
    for process in Process::all() {
        match fs::metadata(process.path("ns/pid")) {
            Ok(namespace) => drop(used.insert(namespace.ino())),
            Err(why) if is_gone(&why) => {}
            // One with one number is in ours.
            Err(_) if process.numbers().is_some_and(|numbers| numbers.len() == 1) => {}
            Err(_) => return None,
        }
    }
    Some(used)
}

/// Whether this process sees those of all users and their environments, whatever the options of `/proc`.
pub(crate) fn sees_all() -> bool {
    const CAP_SYS_PTRACE: u64 = 1 << 19;
    let status = fs::read_to_string(Process::own().path("status")).unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    effective.is_some_and(|set| set & CAP_SYS_PTRACE != 0)
}

/// Whether an error means that the process is not there any more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

fn mapped_file(maps: &str, library: &str) -> Option<String> {
    maps.lines().find_map(|line| {
        let path = line.get(line.find('/')?..)?;
        let file = path.strip_suffix(" (deleted)").unwrap_or(path);
        (Path::new(file).file_name()? == library).then(|| printable(path.as_bytes()))
    })
}

/// Untrusted text, made fit for one line and free of a terminal's control sequences.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end().chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_mapped_only_under_its_own_name() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 1    /opt/my lib/libgpucap.so\n";
        assert_eq!(mapped_file(maps, "libgpucap.so").as_deref(), Some("/opt/my lib/libgpucap.so"));
        for other in
            ["7f00-7f01 r-xp 0 08:01 1 /a/libgpucap.so.old", "7f00 rw-p 0 0:0 0 [heap]", ""]
        {
            assert_eq!(mapped_file(other, "libgpucap.so"), None);
        }
        let named = "7f00-7f01 r-xp 0 08:01 1 /a\u{1b}]0;x\u{7}/libgpucap.so";
        assert_eq!(mapped_file(named, "libgpucap.so").as_deref(), Some("/a?]0;x?/libgpucap.so"));
        let replaced = "7f00-7f01 r-xp 0 08:01 1 /a/libgpucap.so (deleted)";
        assert!(mapped_file(replaced, "libgpucap.so").is_some(), "it is mapped all the same");
    }

    #[test]
    fn a_command_cannot_break_its_line() {
        assert_eq!(printable(b"a\nb\x1b[31m\n"), "a?b?[31m");
    }

    #[test]
    fn this_process_runs() {
        let own = Process::own();
        let stat = own.stat().expect("/proc").expect("a stat");
        let owner = Identity {
            pid_namespace: own.namespace("pid").expect("/proc"),
            pid: own.0,
            start_time: stat.start_time,
            image: stat.start_of_stack,
        };
        let here = Snapshot::default();
        assert_eq!(here.find(&owner), Whereabouts::Runs(own));
        let earlier = Identity { start_time: stat.start_time + 1, ..owner };
        assert_eq!(here.find(&earlier), Whereabouts::Ended);
        assert_eq!(here.find(&Identity { pid_namespace: 1, ..owner }), Whereabouts::Unknown);
        assert!(
            !PidNamespaces::default().has_none_in(owner.pid_namespace),
            "this process is in it"
        );
        assert_eq!(own.innermost_number(), Some(own.0));
        assert_eq!(own.parent(), Some(Process(std::os::unix::process::parent_id())));
        assert_eq!(own.secure(), Some(false));
    }
}
