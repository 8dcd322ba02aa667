//! How much a run does, and how it ends: what every bench takes and returns.

use std::fmt;

/// Why a bench ended early.
#[derive(Debug, Clone)]
pub enum Stop {
    /// It lacks its means; the rest goes on.
    Skip(String),
    /// Something is wrong.
    Fail(String),
}

impl Stop {
    /// A failure with this text.
    pub fn fail(text: impl fmt::Display) -> Self {
        Self::Fail(text.to_string())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::fail(error)
    }
}

/// What most functions here return.
pub type Result<T = ()> = std::result::Result<T, Stop>;

/// How much a run takes upon itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Enough to see that everything works; the times mean nothing.
    Quick,
    /// Enough to believe the medians on a machine that others use too.
    Full,
}

impl Effort {
    /// One of two counts.
    #[must_use]
    pub const fn pick(self, quick: usize, full: usize) -> usize {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}
