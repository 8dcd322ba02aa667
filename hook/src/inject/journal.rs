//! Where the hook says what it did: one JSON line per container, to the system's log and to a file.
//!
//! An engine shows a hook's standard error at best when it refuses, and some never do. Both ways are opened before the
//! container's namespace is entered, and used from within it. A line that cannot be written is lost: a log must never
//! be the reason why a container does not start.

use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A longer file is put aside; there is one old one.
const LONGEST: u64 = 1 << 20;
const SYSTEM_LOG: &str = "/dev/log";
/// Facility `daemon` of syslog.
const DAEMON: u32 = 3 << 3;

/// How much a line matters, with the number that syslog has for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Level {
    /// A container was refused.
    Error = 3,
    /// A container started, and something is worth knowing.
    Warning = 4,
    /// A container started under its limits.
    Info = 6,
}

/// The log of one run of the hook.
#[derive(Debug)]
pub(crate) struct Journal<'a> {
    path: &'a Path,
    ways: Option<Ways>,
}

/// Both ways, as far as there are any.
#[derive(Debug)]
struct Ways {
    system: Option<UnixDatagram>,
    file: Option<File>,
}

impl<'a> Journal<'a> {
    /// A journal that is not open yet: most containers have no GPU, and no messages.
    pub(crate) const fn new(path: &'a Path) -> Self {
        Self { path, ways: None }
    }

    /// Opens what there is, unless it is open.
    pub(crate) fn open(&mut self) {
        self.ways.get_or_insert_with(|| Ways::open(self.path));
    }

    /// Writes a line.
    pub(crate) fn note(&mut self, level: Level, container: &str, message: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let word = match level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
        };
        let line = json!({
            "time": now.as_secs(), "level": word, "container": container, "message": message,
        });
        self.ways.get_or_insert_with(|| Ways::open(self.path)).write(level, &line.to_string());
    }
}

impl Ways {
    fn open(path: &Path) -> Self {
        if fs::metadata(path).is_ok_and(|metadata| metadata.len() > LONGEST) {
            drop(fs::rename(path, path.with_extension("log.old")));
        }
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o640).custom_flags(flags).open(path);
        Self { system: system(), file: file.ok().filter(is_regular) }
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
        fs::write(&path, vec![b'x'; 2 << 20]).expect("a file");
        Journal::new(&path).note(Level::Info, "a", "b\nc");
        let text = fs::read_to_string(&path).expect("a log");
        assert!(text.ends_with("\n") && text.lines().count() == 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&line["container"], &line["message"]), (&"a".into(), &"b\nc".into()));
        let old = path.with_extension("log.old");
        assert_eq!(fs::metadata(&old).expect("the old one").len(), 2 << 20);
        fs::remove_file(path).and_then(|()| fs::remove_file(old)).expect("removed");
    }
}
