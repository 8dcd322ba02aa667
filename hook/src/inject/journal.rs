//! Where the hook says what it did: one JSON line per container, to the system's log and to a file, and a count of the
//! containers that it refused.
//!
//! An engine shows a hook's standard error at best when it refuses, and some never do. All of them are opened before the
//! container's namespace is entered, and used from within it. What cannot be written is lost: a log must never be the
//! reason why a container does not start.

use super::refusal::RefusedContainer;
use crate::container::refusals::{self, Refusals};
use gpucap_plan::{Names, Node, Note};
use serde_json::json;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A longer file is put aside; there is one old one.
const LONGEST: u64 = 1 << 20;
const SYSTEM_LOG: &str = "/dev/log";
/// Facility `daemon` of syslog.
const DAEMON: u32 = 3 << 3;

/// How much a line matters, with the number that syslog has for it. The page on troubleshooting says the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Level {
    /// A container was refused.
    Error = 3,
    /// A container started, and gets less than it asked for, or its limit may not hold.
    Warning = 4,
    /// A container started under its limits.
    Info = 6,
}

impl Level {
    /// That of what the planner notes.
    pub(crate) fn of(note: &Note) -> Self {
        if note.is_warning { Self::Warning } else { Self::Info }
    }
}

/// The log of one run of the hook.
#[derive(Debug)]
pub(crate) struct Journal<'a> {
    node: &'a Node,
    pod: Option<String>,
    ways: Option<Ways>,
}

/// The ways, as far as there are any.
#[derive(Debug)]
struct Ways {
    system: Option<UnixDatagram>,
    file: Option<File>,
    refusals: Option<Refusals>,
}

impl<'a> Journal<'a> {
    /// A journal that is not open yet: most containers have no GPU, and no messages.
    pub(crate) const fn new(node: &'a Node) -> Self {
        Self { node, pod: None, ways: None }
    }

    /// Names the container of a pod in each line as `NAMESPACE/POD/CONTAINER`, as people know it.
    pub(crate) fn of(self, names: Option<Names>) -> Self {
        let whole = |it: Names| [it.namespace, it.pod, it.container].join("/");
        Self { pod: names.map(whole), ..self }
    }

    /// Opens what there is, unless it is open.
    pub(crate) fn open(&mut self) {
        self.ways();
    }

    fn ways(&mut self) -> &mut Ways {
        self.ways.get_or_insert_with(|| Ways::open(self.node))
    }

    /// Writes down that a container is not started, and counts it.
    pub(crate) fn refuse(&mut self, refusal: &RefusedContainer) {
        self.note(Level::Error, &refusal.container, &refusal.to_string());
        if let Some(refusals) = &self.ways().refusals {
            drop(refusals.count(refusal.reason.kind()));
        }
    }

    /// Writes what the planner warns of.
    pub(crate) fn warn(&mut self, container: &str, notes: &[Note]) {
        for note in notes.iter().filter(|note| note.is_warning) {
            self.note(Level::of(note), container, &note.text);
        }
    }

    /// Writes a line.
    pub(crate) fn note(&mut self, level: Level, container: &str, message: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let word = match level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
        };
        let mut line = json!({
            "time": now.as_secs(), "level": word, "container": container, "message": message,
        });
        if let Some(pod) = &self.pod {
            line["pod"] = json!(pod);
        }
        self.ways().write(level, &line.to_string());
    }
}

impl Ways {
    fn open(node: &Node) -> Self {
        let path = Path::new(&node.log_file);
        let file = append_to(path).and_then(|file| short(file, path));
        let refusals = Refusals::open(&refusals::directory(node)).ok();
        Self { system: system(), file: file.ok().filter(is_regular), refusals }
    }

    fn write(&mut self, level: Level, line: &str) {
        if let Some(file) = &mut self.file {
            // In one write, so that lines of containers that start together stay whole.
            drop(file.write_all(format!("{line}\n").as_bytes()));
        }
        if let Some(system) = &self.system {
            let mark = DAEMON | level as u32;
            drop(system.send(format!("<{mark}>gpucap[{}]: {line}", std::process::id()).as_bytes()));
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o640).custom_flags(flags).open(path)
}

/// Puts the log of this path aside if it is long, and returns the one to write to. A hook that puts it aside holds its
/// lock, and renames no other file: a second one would put the new log in the place of the old one.
fn short(file: File, path: &Path) -> io::Result<File> {
    let own = file.metadata()?;
    // While another hook puts it aside, it can get one more line.
    if own.len() <= LONGEST || file.try_lock().is_err() {
        return Ok(file);
    }
    let is_own = |there: &Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
    if fs::symlink_metadata(path).is_ok_and(|there| is_own(&there)) {
        drop(fs::rename(path, path.with_extension("log.old")));
    }
    append_to(path)
}

fn system() -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    // A log that is stuck must not hold up the container.
    socket.set_nonblocking(true).ok()?;
    socket.connect(SYSTEM_LOG).ok()?;
    Some(socket)
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_put_aside() {
        let path = std::env::temp_dir().join(format!("gpucap-journal-{}.log", std::process::id()));
        let run_dir = path.with_extension("run");
        fs::write(&path, vec![b'x'; 2 << 20]).expect("a file");
        let word = |path: &Path| path.display().to_string();
        let node = Node { log_file: word(&path), run_dir: word(&run_dir), ..Node::default() };
        let [namespace, pod, container] = ["n", "p", "c"].map(str::to_owned);
        let names = Names { namespace, pod, container };
        Journal::new(&node).of(Some(names)).note(Level::Info, "a", "b\nc");
        let text = fs::read_to_string(&path).expect("a log");
        assert!(text.ends_with("\n") && text.lines().count() == 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&line["container"], &line["message"]), (&"a".into(), &"b\nc".into()));
        assert_eq!(line["pod"], "n/p/c");
        let old = path.with_extension("log.old");
        assert_eq!(fs::metadata(&old).expect("the old one").len(), 2 << 20);
        fs::remove_file(path).and_then(|()| fs::remove_file(old)).expect("removed");
        fs::remove_dir_all(run_dir).expect("removed");
    }

    #[test]
    fn of_two_hooks_that_find_a_long_log_one_puts_it_aside() {
        let path = std::env::temp_dir().join(format!("gpucap-two-{}.log", std::process::id()));
        fs::write(&path, vec![b'x'; 2 << 20]).expect("a file");
        let [first, second] = [(), ()].map(|()| append_to(&path).expect("opened"));
        let mut first = short(first, &path).expect("put aside");
        first.write_all(b"first\n").expect("written");
        let mut second = short(second, &path).expect("was put aside");
        second.write_all(b"second\n").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("a log"), "first\nsecond\n");
        let old = path.with_extension("log.old");
        assert_eq!(fs::metadata(&old).expect("the old one").len(), 2 << 20);
        fs::remove_file(path).and_then(|()| fs::remove_file(old)).expect("removed");
    }
}
