//! What `ci/run --list` shows of the steps: their names, what each proves, and how long it took when it last ran.
//!
//! The times are those of this machine, read from the logs of the target directory, so they are never out of date; a
//! step that has not run there has none.

use gpucap_tests::{Result, Scratch, Stop, project};
use std::path::Path;
use std::process::Command;

/// Runs the shortest step in a target directory of its own and lists the steps before and after.
pub(crate) fn listed_with_their_times() -> Result {
    let target = Scratch::new()?;
    let before = ci_run(target.path(), "--list")?;
    ci_run(target.path(), "fmt")?;
    let after = ci_run(target.path(), "--list")?;
    let timed = |listed: &str| {
        let timed = listed.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (step, seconds) = (words.next()?, words.next()?.parse::<u32>().ok()?);
            (words.next() == Some("s") && seconds < 600).then(|| step.to_owned())
        });
        timed.collect::<Vec<_>>()
    };
    if timed(&before).is_empty() && timed(&after) == ["fmt"] {
        return Ok(());
    }
    Err(Stop::fail(format!("before `ci/run fmt`:\n{before}\nand after it:\n{after}")))
}

fn ci_run(target: &Path, argument: &str) -> Result<String> {
    let mut run = Command::new(project().join("ci/run"));
    let output = run.arg(argument).env("CARGO_TARGET_DIR", target).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
