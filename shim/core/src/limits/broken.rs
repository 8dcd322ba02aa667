//! Why limits that are set cannot be used: everything for one clear line.

use core::fmt;

use super::file::document::{MAX_BYTES, PATH};
use super::file::error::FileError;
use crate::config::ConfigError;
use crate::errno::Errno;

/// The limits cannot be used, and the process fails closed. Prints as one line: which variable or
/// file, what it held, what is allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Broken {
    /// A variable.
    Variable(ConfigError),
    /// The limits file.
    File(FileProblem),
}

/// Why the limits file is not accepted. The first four are found by the code that opens the file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileProblem {
    /// It is not on a read-only mount: the hook did not put it there.
    Writable,
    /// It is there and cannot be read: the error number of the system.
    Unreadable(i32),
    /// It is not a regular file.
    NotAFile,
    /// It is longer than [`MAX_BYTES`].
    TooLong,
    /// A percentage in it is less than one byte of this GPU.
    LessThanAByte,
    /// What it says.
    Content(FileError),
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writable => {
                f.write_str("is not on a read-only mount; only the hook may place it")
            }
            Self::Unreadable(error) => write!(f, "cannot be read: {}", Errno(*error)),
            Self::NotAFile => f.write_str("is not a regular file; only the hook may place it"),
            Self::TooLong => write!(f, "is longer than {} bytes", MAX_BYTES),
            Self::LessThanAByte => f.write_str("gives less than one byte of this GPU"),
            Self::Content(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FileProblem {}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(error) => error.fmt(f),
            Self::File(problem) => write!(f, "{} {problem}", PATH),
        }
    }
}

impl core::error::Error for Broken {}

impl From<ConfigError> for Broken {
    fn from(error: ConfigError) -> Self {
        Self::Variable(error)
    }
}

impl From<FileProblem> for Broken {
    fn from(problem: FileProblem) -> Self {
        Self::File(problem)
    }
}
