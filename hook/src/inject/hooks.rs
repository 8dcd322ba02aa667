//! The hook's entry, as this machine has it: where the program is.
//!
//! The form of the entry, its words and its timeout are `gpucap_plan`'s, since a CDI device of another program has the
//! same one.

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

fn behind_link(own: &Path) -> Option<PathBuf> {
    // <prefix>/versions/<version>/bin/gpucap
    let [_, _, versions, prefix] = own.ancestors().skip(1).take(4).collect::<Vec<_>>()[..] else {
        return None;
    };
    let inside = own.strip_prefix(versions).ok()?.iter().skip(1).collect::<PathBuf>();
    let link = prefix.join("current").join(inside);
    (versions.ends_with("versions") && link.canonicalize().ok()? == own).then_some(link)
}
