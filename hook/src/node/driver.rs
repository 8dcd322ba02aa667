//! What only a program that loads the driver's libraries can find out or do: `gpucap-driver` does it, and this asks it.
//!
//! This command is static, so that it runs on each node whatever its C library, and loads nothing. The other program
//! is dynamic, is in the directory of the library, and is started for the tasks that need it: `gpucap calibrate`,
//! `gpucap metrics --sample`, and a container with a native limit. For any other container the hook starts nothing.
//!
//! It gets an environment of our making: what an engine or a container's author has set must not name a library that
//! root loads. Neither its answer nor its end is waited for without a bound, so that a driver that hangs is a failure
//! and not a container that hangs.

use crate::node::preload;
use crate::node::proc::Process;
use crate::sys;
use crate::sys::process::Handle;
use gpucap_plan::Node;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program's name.
pub(crate) const PROGRAM: &str = "gpucap-driver";
/// How long it may take to end once it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// A longer answer is none.
const LONGEST: usize = 1 << 20;

/// The program, and the way it is started.
#[derive(Debug)]
pub(crate) struct Driver {
    program: PathBuf,
    libraries: Option<String>,
}

impl Driver {
    /// The program beside this command.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find(node: &Node) -> Result<Self, String> {
        let own = Process::own().path("exe").read_link();
        let own = own.map_err(|why| crate::error::reason(&why))?;
        let program = preload::find_named(&own, PROGRAM).map_err(|places| {
            let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            format!("{PROGRAM} not found in {}", places.join(" "))
        })?;
        Ok(Self { program, libraries: node.driver_libraries.clone() })
    }

    fn command(&self, words: &[String], through: &[String]) -> Command {
        let mut command = match through {
            [] => Command::new(&self.program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                // What it becomes may not have its environment.
                let libraries = self.libraries.iter().map(|path| format!("LD_LIBRARY_PATH={path}"));
                command.args(rest).arg("env").args(libraries).arg(&self.program);
                command
            }
        };
        command.args(words).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
        command.envs(self.libraries.as_ref().map(|path| ("LD_LIBRARY_PATH", path)));
        command
    }

    fn unable(&self, why: &std::io::Error) -> String {
        format!("{}: {}", self.program.display(), crate::error::reason(why))
    }

    /// Starts it with these words, to be followed until the result is dropped; by the words of another program if there
    /// are any.
    ///
    /// # Errors
    /// It cannot be started: one line.
    pub(crate) fn follow(&self, words: &[String], through: &[String]) -> Result<Following, String> {
        let child = self.command(words, through).spawn().map_err(|why| self.unable(&why))?;
        Ok(Following { child, text: Vec::new() })
    }

    /// The lines that it answers to these words, without the last. `shown` is the one device that CUDA is to show.
    ///
    /// # Errors
    /// It cannot be started, has not answered in this time, or could not do it: one line.
    pub(crate) fn ask(
        &self,
        words: &[String],
        shown: Option<&str>,
        most: Duration,
    ) -> Result<Vec<String>, String> {
        let mut command = self.command(words, &[]);
        command.envs(shown.map(|name| ("CUDA_VISIBLE_DEVICES", name)));
        let unable = |why| self.unable(&why);
        let mut child = command.spawn().map_err(unable)?;
        let end = Instant::now() + most;
        let text = answer(&mut child, most);
        if text.is_err() {
            // A process that is stuck in the kernel is not waited for either.
            drop(child.kill());
        } else {
            // Until then it holds memory of the card, which the next question may be about.
            end_by(&mut child, end);
        }
        let text = text.map_err(|why| format!("{PROGRAM}: {why}"))?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        match lines.pop() {
            Some(last) if last == "done" => Ok(lines),
            Some(last) => Err(last.strip_prefix("error ").unwrap_or(&last).to_owned()),
            None => Err(format!("{PROGRAM} said nothing")),
        }
    }
}

/// A process of it whose lines are read as they come, ended with this value.
#[derive(Debug)]
pub(crate) struct Following {
    child: Child,
    text: Vec<u8>,
}

/// A longer line is none.
const LONGEST_LINE: usize = 4096;

impl Following {
    /// The lines that come within this time, as soon as there are some.
    ///
    /// # Errors
    /// It has ended, or its line has no end.
    pub(crate) fn lines(&mut self, most: Duration) -> Result<Vec<String>, String> {
        let Some(output) = self.child.stdout.as_mut() else { return Err("no output".into()) };
        if !sys::readable(output, most).map_err(|why| crate::error::reason(&why))? {
            return Ok(Vec::new());
        }
        let mut piece = [0; 4096];
        match output.read(&mut piece) {
            Ok(0) => return Err(format!("{PROGRAM} has ended")),
            Ok(length) => self.text.extend_from_slice(piece.get(..length).unwrap_or_default()),
            Err(why) => return Err(crate::error::reason(&why)),
        }
        let whole = self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if self.text.len() - whole > LONGEST_LINE {
            return Err(format!("{PROGRAM}: too long a line"));
        }
        let lines: Vec<u8> = self.text.drain(..whole).collect();
        Ok(String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.child.kill());
        end_by(&mut self.child, Instant::now() + ENDS_WITHIN);
    }
}

/// Waits for a process's end until this moment. One that is stuck in the kernel by then is left behind.
fn end_by(child: &mut Child, end: Instant) {
    let left = end.saturating_duration_since(Instant::now());
    if Handle::open(child.id()).and_then(|handle| handle.ends(left)).unwrap_or(false) {
        drop(child.wait());
    } else {
        drop(child.kill());
    }
}

/// What it prints until it closes its output.
fn answer(child: &mut Child, most: Duration) -> Result<String, String> {
    let Some(mut output) = child.stdout.take() else { return Err("no output".into()) };
    let (end, mut text, mut piece) = (Instant::now() + most, Vec::new(), [0; 4096]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if !sys::readable(&output, left).map_err(|why| crate::error::reason(&why))? {
            return Err(format!("no answer in {} s", most.as_secs()));
        }
        match output.read(&mut piece) {
            Ok(0) => return Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok(length) if text.len() + length <= LONGEST => {
                text.extend_from_slice(piece.get(..length).unwrap_or_default());
            }
            Ok(_) => return Err("too much of an answer".into()),
            Err(why) => return Err(crate::error::reason(&why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_program_is_waited_for_only_as_long_as_its_answer() {
        let driver = Driver { program: "/bin/sh".into(), libraries: None };
        let words = ["-c", "echo first; echo done; exec sleep 60 >&-"].map(str::to_owned);
        let begun = Instant::now();
        let lines = driver.ask(&words, None, Duration::from_secs(1));
        assert_eq!(lines, Ok(vec!["first".to_owned()]));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }
}
