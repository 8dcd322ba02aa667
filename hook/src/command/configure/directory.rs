//! podman and CRI-O: a file in the directory of hooks that both read by default. podman's manual names one below
//! `/etc` too, which it reads only if `hooks_dir` says so.

use super::change::Change;
use super::hooks_dir;
use super::options::Options;
use crate::error::Result;
use crate::inject::hooks::{Hooks, STAGES};
use serde_json::json;
use std::path::Path;

const FILE: &str = "/usr/share/containers/oci/hooks.d/gpucap.json";

/// What becomes of the file. Whether a limit was set by hand cannot be asked there, so the hook is called for every
/// container, and leaves the others alone. It has one stage in a file; what `poststop` does, the next start does too.
pub(super) fn change(options: &Options, hooks: Hooks<'_>) -> Result<Change> {
    let path = options.file.as_deref().unwrap_or_else(|| Path::new(FILE));
    if options.undo {
        return Change::without_ours(path);
    }
    if options.file.is_none() {
        hooks_dir::must_lead_to(path, options.engine, Path::new("/"))?;
    }
    let [stage, _] = STAGES;
    let value = json!({
        "version": "1.0.0",
        "hook": hooks.at(stage),
        "when": {"always": true},
        "stages": [stage],
    });
    Change::to_ours(path, format!("{value:#}\n"))
}

/// The engines that it concerns: the directory is shared by both.
pub(super) const fn advice(options: &Options) -> &'static str {
    if options.undo {
        "podman and CRI-O, where they read this directory, limit no container from the next one on"
    } else {
        "podman and CRI-O, where they read this directory, both have it for the next container"
    }
}
