//! The hook's entry, as this machine has it: where the program is.
//!
//! The form of the entry, its words and its timeout are `gpucap_plan`'s, since a CDI device of another program has the
//! same one.

use crate::error::reason;
use crate::node::inputs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, io};

pub(crate) use gpucap_plan::entry::{Hooks, STAGES, is_in};

/// Returns the path of this command that outlives upgrades: where releases are installed side by side (`install.sh`),
/// that of the link to the current one. A path with a version in it would disappear with that version, and the hook
/// of every container with it.
pub(crate) fn program() -> io::Result<PathBuf> {
    let own = env::current_exe()?;
    Ok(behind_link(&own).unwrap_or(own))
}

/// Whether an engine can call this program with this configuration of the node: it would find out with the first container.
///
/// # Errors
/// It cannot: the file, and what is wrong with it.
pub(crate) fn check(program: &Path, config: &Path) -> Result<(), String> {
    let of_program = |why: &str| format!("{}: {why}", program.display());
    let metadata = fs::metadata(program).map_err(|why| of_program(&reason(&why)))?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(of_program("not a program that can be executed"));
    }
    inputs::node(config).map(drop).map_err(|why| why.to_string())
}

fn behind_link(own: &Path) -> Option<PathBuf> {
    // <prefix>/versions/<version>/bin/gpucap
    let [_, _, versions, prefix] = own.ancestors().skip(1).take(4).collect::<Vec<_>>()[..] else {
        return None;
    };
    let inside = own.strip_prefix(versions).ok()?.iter().skip(1).collect::<PathBuf>();
    let link = prefix.join("current").join(inside);
    (versions.ends_with("versions") && link.canonicalize().ok()? == own).then_some(link)
}
