//! JSON files that an engine wrote, read and replaced.
//!
//! A file is replaced in one step by another of the same owner and mode: a runtime that reads it meanwhile sees the old
//! or the new one, and a crash leaves one of them.

use crate::gather;
use serde_json::Value;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// The document in a file.
pub(super) fn read_json(path: &Path) -> io::Result<Value> {
    Ok(serde_json::from_slice(&gather::read(path)?)?)
}

/// Puts a document into the place of a file.
pub(super) fn replace(path: &Path, value: &Value) -> io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let path = fs::canonicalize(path)?;
    let old = fs::metadata(&path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".gpucap-{}", std::process::id()));
    let new = path.with_file_name(name);
    let written = write(&new, &old, value).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        drop(fs::remove_file(&new));
    }
    written
}

/// Adds a line to a log.
pub(super) fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

fn write(path: &Path, old: &fs::Metadata, value: &Value) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    fchown(&file, Some(old.uid()), Some(old.gid()))?;
    file.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o7777))
}
