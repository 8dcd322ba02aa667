//! Why a limits file is refused.

use core::fmt;

use super::document::VERSION;
use crate::config::Excerpt;

/// The fault in the file, and its line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileError {
    /// The fault.
    pub why: ContentError,
    /// The line that is wrong, or the beginning of the file.
    pub held: Excerpt,
}

/// The fault in the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContentError {
    /// Longer than [`MAX_BYTES`](super::MAX_BYTES).
    TooLong,
    /// Does not end with the checksum of what stands before it.
    Checksum,
    /// Does not begin with the version that we know.
    Version,
    /// Not UTF-8.
    NotUtf8,
    /// Not `key=value`.
    NotAPair,
    /// A value that its key does not allow.
    Value,
    /// A key or a GPU for the second time.
    Twice,
    /// A limit before any `gpu=`.
    WithoutGpu,
    /// A most or a low priority of a GPU without `core=`.
    WithoutShare,
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "is too long",
            Self::Checksum => "is damaged: its checksum does not fit",
            Self::Version => return write!(f, "has a version other than {VERSION}"),
            Self::NotUtf8 => "is not text",
            Self::NotAPair => "has a line that is not key=value",
            Self::Value => "has a value that cannot be used",
            Self::Twice => "says something twice",
            Self::WithoutGpu => "has a limit that belongs to no GPU",
            Self::WithoutShare => "has a core_max or core_priority without core",
        })
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, held } = self;
        write!(f, "{why}: {held}; only the hook of the same version may write it")
    }
}

impl core::error::Error for FileError {}
