//! What `ci/run --list` shows of the steps: their names, what each proves, and how long it took when it last ran.
//!
//! The times are those of this machine, read from the logs of the target directory, so they are never out of date; of a
//! step that has not run there it is the one in `ci/times`, marked with `~`, if there is one.

use gpucap_tests::{Result, Scratch, Stop, project};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the shortest step in a target directory of its own and lists the steps before and after.
pub(crate) fn listed_with_their_times() -> Result {
    let target = Scratch::new()?;
    let known = fs::read_to_string(project().join("ci/times"))?;
    let before = ci_run(target.path(), "--list")?;
    ci_run(target.path(), "fmt")?;
    let after = ci_run(target.path(), "--list")?;
    let timed = |listed: &str, mark: &str| {
        let timed = listed.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (step, seconds) =
                (words.next()?, words.next()?.strip_prefix(mark)?.parse::<u32>().ok()?);
            (words.next() == Some("s") && seconds < 600).then(|| step.to_owned())
        });
        timed.collect::<Vec<_>>()
    };
    let is_elsewhere =
        |step: &String| known.lines().any(|line| line.starts_with(&format!("{step} ")));
    let marked = timed(&before, "~");
    let is_right = timed(&before, "").is_empty()
        && timed(&after, "") == ["fmt"]
        && !marked.is_empty()
        && marked.len() == known.lines().filter(|line| !line.starts_with('#')).count()
        && marked.iter().all(is_elsewhere);
    if is_right {
        return Ok(());
    }
    Err(Stop::fail(format!("before `ci/run fmt`:\n{before}\nand after it:\n{after}")))
}

fn ci_run(target: &Path, argument: &str) -> Result<String> {
    let mut run = Command::new(project().join("ci/run"));
    let output = run.arg(argument).env("CARGO_TARGET_DIR", target).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
