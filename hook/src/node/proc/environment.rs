//! The environments that processes were started with.

use crate::node::proc::{Process, whole};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

impl Process {
    /// The environment that it was started with, as [`environments`] reads it.
    pub(crate) fn environment(self) -> io::Result<Environment> {
        let mut read = Err(io::ErrorKind::WouldBlock.into());
        environments(iter::once(self), |_, environment| read = environment);
        read
    }

    /// What is seen of its environment now.
    fn environment_now(self) -> io::Result<Seen> {
        let file = File::open(self.path("environ"))?;
        let bytes = whole(&file)?;
        // Of memory that is given up while it is read, Linux gives no more than was read.
        let is_whole = !bytes.is_empty() && file.read_at(&mut [0], 0)? > 0;
        let end = self.stat()?.and_then(|stat| stat.end_of_environment);
        Ok(match end {
            None => Seen::Whole(Environment(bytes)),
            Some(_) if is_whole => Seen::Whole(Environment(bytes)),
            Some(0) => Seen::Begins,
            Some(_) => Seen::Nothing,
        })
    }
}

/// The variables of a process.
pub(crate) struct Environment(Vec<u8>);

/// What is seen of an environment at one moment.
enum Seen {
    Whole(Environment),
    /// None, of a process that has one: it is empty, or was given up while it was read.
    Nothing,
    /// That the process begins to execute a program.
    Begins,
}

/// Reads the environments that processes were started with. While a process begins to execute a program it seems to have
/// none, so that is believed only if it lasts; the error is of the kind [`io::ErrorKind::WouldBlock`] if the program has
/// not begun then. However many seem to have none, they are waited for together.
pub(crate) fn environments(
    processes: impl Iterator<Item = Process>,
    mut read: impl FnMut(Process, io::Result<Environment>),
) {
    const LOOKS: u32 = 10;
    let mut left: Vec<Process> = processes.collect();
    for look in 1..=LOOKS {
        left.retain(|process| {
            let environment = match process.environment_now() {
                Ok(Seen::Whole(environment)) => Ok(environment),
                Ok(_) if look < LOOKS => return true,
                Ok(Seen::Nothing) => Ok(Environment(Vec::new())),
                Ok(Seen::Begins) => Err(io::ErrorKind::WouldBlock.into()),
                Err(why) => Err(why),
            };
            read(*process, environment);
            false
        });
        if left.is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

impl Environment {
    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        let mut entries = self.0.split(|&byte| byte == 0);
        let value =
            entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        value.map(OsStr::from_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::proc::is_gone;
    use std::process::Command;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = Environment(b"XA=0\0A=1\0AB=2\0A=3\0EMPTY=\0".to_vec());
        let value = |name| environment.get(name).and_then(OsStr::to_str);
        assert_eq!((value("A"), value("AB"), value("XA")), (Some("1"), Some("2"), Some("0")));
        assert_eq!((value("EMPTY"), value("B")), (Some(""), None));
    }

    #[test]
    fn a_process_that_executes_programs_is_never_without_its_environment() {
        // Each shell executes the next.
        let script = r#"n=$1; [ "$n" = 0 ] || exec sh -c "$0" "$0" $((n-1))"#;
        let mut shells = Command::new("sh");
        let mut shells =
            shells.args(["-c", script, script, "300"]).env("A", "1").spawn().expect("sh");
        let mut reads = 0;
        while shells.try_wait().expect("a child").is_none() {
            match Process(shells.id()).environment() {
                Ok(found) if found.get("A").is_some() => reads += 1,
                Ok(_) => {
                    // It is ending.
                    let stat = Process(shells.id()).stat().expect("/proc").expect("a stat");
                    let none = stat.end_of_environment.is_none();
                    assert!(none, "no environment after {reads} reads: {stat:?}");
                }
                Err(why) => {
                    assert!(is_gone(&why) || why.kind() == io::ErrorKind::WouldBlock, "{why}");
                }
            }
        }
        assert!(reads > 0);
    }

    #[test]
    fn processes_without_an_environment_are_waited_for_together() {
        let start = |name: Option<&str>| {
            let mut sleep = Command::new("sleep");
            sleep.arg("60").env_clear().envs(name.map(|name| (name, "1")));
            sleep.spawn().expect("sleep")
        };
        let mut children = [start(None), start(None), start(Some("A"))];
        let mut found = Vec::new();
        let processes = children.iter().map(|child| Process(child.id()));
        environments(processes, |process, environment| {
            found.push((process.0, environment.map(|it| it.get("A").is_some()).ok()));
        });
        for child in &mut children {
            child.kill().expect("it lives");
            child.wait().expect("a child");
        }
        let [first, second, last] = children.map(|child| child.id());
        assert_eq!(
            found,
            [(last, Some(true)), (first, Some(false)), (second, Some(false))],
            "none of them holds up the one behind it"
        );
    }
}
