//! JSON files that an engine wrote, read and replaced.
//!
//! A file is replaced in one step ([`crate::node::replace`]): a runtime that reads it at the same time sees the old or the
//! new one, and a crash leaves one of them.

use crate::node::inputs;
use crate::node::replace::{self, Survives};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The document in a file.
pub(super) fn read_json(path: &Path) -> io::Result<Value> {
    Ok(serde_json::from_slice(&inputs::read(path)?)?)
}

/// Puts a document into the place of a file.
pub(super) fn replace(path: &Path, value: &Value) -> io::Result<()> {
    // It is part of one container, which does not outlive the machine either.
    replace::replace(path, &serde_json::to_vec(value)?, Survives::Process)
}

/// Adds a line to a log.
pub(super) fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}
