//! A file by which others see that a runtime asks us about its containers.
//!
//! It is there from when the runtime has told us what runs until the connection ends, and not when we begin. Who is
//! killed leaves it: a probe is asked of a process that lives.

use crate::error::{Error, Result};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The file, if anybody wants one.
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
    /// It cannot be made so: then nobody would know, and whoever asked for it is to see that.
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
