//! What a variable or file held, made fit for one line of a log.
//!
//! Printable ASCII stays, everything else is escaped, and the rest is cut: a hostile value can
//! neither forge a second line nor flood the log.

use core::fmt;

/// At most [`Excerpt::LONGEST`] bytes of a value, quoted and escaped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Excerpt(String);

impl Excerpt {
    /// Bytes of the value that are shown.
    pub const LONGEST: usize = 60;

    /// The beginning of `value`.
    #[must_use]
    pub fn new(value: &[u8]) -> Self {
        let (shown, more) = match value.split_at_checked(Self::LONGEST) {
            Some((shown, rest)) if !rest.is_empty() => (shown, "..."),
            _ => (value, ""),
        };
        Self(format!("\"{}{more}\"", shown.escape_ascii()))
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
