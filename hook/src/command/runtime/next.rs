//! The runtime that comes after us: the first of the node's list that is there and is not us.

use crate::exit::Exit;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where a runtime is looked for besides `PATH`, which engines' daemons often have no good one of.
const PLACES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// None of these exists.
#[derive(Debug)]
pub(super) struct NoNext(pub(super) Vec<String>);

/// Becomes the next runtime, with these words.
pub(super) fn become_it(names: &[String], line: &[OsString]) -> crate::error::Result<Exit> {
    let path = find(names).ok_or_else(|| NoNext(names.to_vec()))?;
    let why = Command::new(&path).args(line).exec();
    Err(crate::error::Error::Start { program: path.display().to_string(), why })
}

/// What the next runtime says of a container's state.
pub(super) fn state(names: &[String], globals: &[OsString], id: &OsStr) -> Option<Vec<u8>> {
    let mut command = Command::new(find(names)?);
    command.args(globals).arg("state").arg(id).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok()?;
    output.status.success().then_some(output.stdout)
}

fn find(names: &[String]) -> Option<PathBuf> {
    let own = env::current_exe().and_then(fs::metadata).ok();
    let is_own = |found: &fs::Metadata| {
        own.as_ref().is_some_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
    };
    let usable = |path: &PathBuf| match fs::metadata(path) {
        Ok(found) => found.is_file() && found.mode() & 0o111 != 0 && !is_own(&found),
        Err(_) => false,
    };
    names.iter().flat_map(|name| places(name)).find(usable)
}

fn places(name: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![name.into()];
    }
    let set = env::var_os("PATH").unwrap_or_default();
    let all = [set.as_os_str(), OsStr::new(PLACES)];
    all.into_iter().flat_map(env::split_paths).map(|place| place.join(name)).collect()
}
