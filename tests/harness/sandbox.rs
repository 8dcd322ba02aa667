//! A mount namespace for one program, with a `/dev` of its own and perhaps a limits file: `sandbox.sh` says how.

use crate::{Result, Scratch, Stop, project};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The beginning of a command that makes the place; what is to run there follows. `directory` is the run's own. With
/// `limits`, which is how the mount may be used (`ro`, `rw`), its folder `limits` is shown as `/.gpucap`.
pub(crate) fn command(directory: &Path, limits: Option<&str>) -> Result<Command> {
    let mut command = script(options()?);
    let place = |name: &str| -> Result<PathBuf> {
        let path = directory.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    };
    command.arg(place("dev")?);
    match limits {
        Some(mode) => command.args([place("root")?, place("limits")?]).arg(mode),
        None => command.args(["", "", ""]),
    };
    Ok(command)
}

/// Runs `sandbox.sh`, which explains its arguments.
fn script(options: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(options).args(["--propagation", "private", "sh", "-e"]);
    command.arg(project().join("tests/harness/sandbox.sh"));
    command
}

/// The options with which a mount namespace can be had here: as root, else as root of a user namespace.
fn options() -> Result<&'static [&'static str]> {
    static OPTIONS: OnceLock<Result<&'static [&'static str]>> = OnceLock::new();
    let find = || {
        let scratch = Scratch::new()?;
        let mut why = String::new();
        for options in [&["--mount"][..], &["--map-root-user", "--mount"]] {
            let mut command = script(options);
            match command.arg(scratch.path()).args(["", "", "", "true"]).output() {
                Ok(output) if output.status.success() => return Ok(options),
                Ok(output) => why = String::from_utf8_lossy(&output.stderr).trim().into(),
                Err(error) => why = format!("unshare: {error}"),
            }
        }
        Err(Stop::skip(format!("no mount namespace can be had here: {why}")))
    };
    OPTIONS.get_or_init(find).clone()
}
