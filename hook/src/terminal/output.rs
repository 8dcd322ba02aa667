//! What the command says: results on standard output, everything else on standard error.

use crate::error::{Error, Result};
use anstream::AutoStream;
use std::fmt::Display;
use std::io::{self, Write};

/// Writes a result, with its colours where they are shown. A reader that has seen enough (`gpucap status | head`) is not a failure.
pub(crate) fn print(text: &str) -> Result {
    let mut out = AutoStream::auto(io::stdout().lock());
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What becomes of a result that was written.
pub(crate) fn printed(result: io::Result<()>) -> Result {
    match result {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(why)),
        _ => Ok(()),
    }
}

/// Writes a remark or a complaint: one line. Names in it may be anyone's, and are free to have control characters.
pub(crate) fn notice(line: impl Display) {
    let line = line.to_string().replace(char::is_control, "?");
    // A failure is ignored: there is no other output.
    drop(writeln!(io::stderr(), "gpucap: {line}"));
}
