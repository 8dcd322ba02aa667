//! Files that are whole or not there: written beside their place, synced, and renamed.
//!
//! A driver that is killed at any moment leaves the file as it was before or as it was to be. What it leaves beside is
//! written over by the next one. A reader of `.json` files never sees a part of one.

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file, after making its directory.
pub(crate) fn write(path: &Path, text: &str) -> Result {
    let new = path.with_extension("new");
    let replace = || {
        let directory = path.parent().unwrap_or_else(|| Path::new("/"));
        fs::create_dir_all(directory)?;
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(directory)?.sync_all()
    };
    let written = replace();
    if written.is_err() {
        drop(fs::remove_file(&new));
    }
    written.map_err(Error::file(path))
}

/// Removes a file; one that is not there is removed already.
pub(crate) fn remove(path: &Path) -> Result {
    match fs::remove_file(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(Error::file(path)(why)),
        _ => Ok(()),
    }
}

/// Returns the text of a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(Error::file(path)(why)),
    }
}
