//! Lines on standard error: what an administrator reads with `kubectl logs`.
//!
//! A state that stays is said once, when it begins and when it changes. A line that cannot be written is dropped: the
//! driver goes on.

use std::fmt::Display;
use std::io::Write;

/// Prints one line.
pub(crate) fn line(text: impl Display) {
    let text = text.to_string().replace('\n', " ");
    drop(writeln!(std::io::stderr().lock(), "gpucap-dra: {text}"));
}

/// A state that is looked at again and again.
#[derive(Debug, Default)]
pub(crate) struct Said(Option<String>);

impl Said {
    /// Prints the line, if it is another one than the last time.
    pub(crate) fn now(&mut self, text: &str) {
        if self.0.as_deref() != Some(text) {
            line(text);
            self.0 = Some(text.to_owned());
        }
    }
}
