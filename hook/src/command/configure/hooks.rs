//! The hook as engines want it described: for the base specification of containerd, and as a file in the directory of
//! hooks that podman and CRI-O read.
//!
//! The environment is named and not empty: without it some runtimes hand a hook that of the container.

use super::{Change, Options};
use crate::error::Result;
use serde_json::{Value, json};
use std::path::Path;

/// Both engines read this directory.
const FILE: &str = "/etc/containers/oci/hooks.d/gpucap.json";
/// After this many seconds a runtime takes the hook for stuck, and refuses the container.
const TIMEOUT: u32 = 10;

/// The hook at a stage.
pub(super) fn hook(program: &Path, stage: &str) -> Value {
    json!({
        "path": program,
        "args": ["gpucap", "hook", stage],
        "env": ["PATH=/usr/sbin:/usr/bin"],
        "timeout": TIMEOUT,
    })
}

/// The file in the directory of hooks. Whether a container has a GPU cannot be told there by a limit set by hand, so
/// the hook is called for all, and leaves the others alone.
pub(super) fn change(options: &Options, program: &Path) -> Result<Change> {
    let path = options.file.as_deref().unwrap_or_else(|| Path::new(FILE));
    let value = json!({
        "version": "1.0.0",
        "hook": hook(program, "createRuntime"),
        "when": {"always": true},
        "stages": ["createRuntime"],
    });
    Change::of(path, (!options.undo).then(|| format!("{value:#}\n")))
}
