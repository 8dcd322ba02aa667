//! A file by which others see that a runtime asks us about its containers.
//!
//! The file exists from the time when the runtime has listed its containers until the connection ends, and not from
//! the start of the plugin. A killed plugin leaves the file: a probe must also check that the process lives.

use crate::error::{Error, Result};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The file, if one is requested.
#[derive(Debug)]
pub(super) struct Ready(Option<PathBuf>);

impl Ready {
    /// Not yet.
    ///
    /// # Errors
    /// One that is there cannot be taken away.
    pub(super) fn new(file: Option<PathBuf>) -> Result<Self> {
        let ready = Self(file);
        ready.set(false)?;
        Ok(ready)
    }

    /// Whether it is to be there.
    ///
    /// # Errors
    /// If it cannot be made: the caller relies on it.
    pub(super) fn set(&self, is_ready: bool) -> Result {
        let Some(path) = &self.0 else { return Ok(()) };
        let done = match is_ready {
            true => fs::write(path, ""),
            false => fs::remove_file(path).or_else(|why| match why.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(why),
            }),
        };
        done.map_err(|why| Error::File { path: path.clone(), why })
    }
}
