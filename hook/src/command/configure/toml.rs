//! A file of TOML, read for an edit that keeps everything else to the byte.
//!
//! The parser's message is one line without the place in the file, so that it can stand behind the file's name.

use toml_edit::{DocumentMut, TomlError};

/// The document that has this text.
///
/// # Errors
/// It is no TOML.
pub(super) fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|why: TomlError| why.message().to_owned())
}
