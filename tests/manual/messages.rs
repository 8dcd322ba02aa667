//! Messages that the documentation explains: each stands in the sources of the command or of the library, word for word.
//!
//! A table of messages stands between `<!-- messages of ...` and `<!-- end of messages -->`; the first cell of each row is
//! the message, or the part of it that is the same each time. A message that changes thus changes on its page.

use gpucap_tests::{Result, Stop, project};
use std::fs;
use std::path::Path;

/// Looks each of them up.
pub(crate) fn of_pages() -> Result {
    let page = fs::read_to_string(project().join("docs/src/troubleshooting.md"))?;
    let tables = page.split("<!-- messages of ").skip(1);
    let rows = tables.filter_map(|table| table.split("<!-- end of messages -->").next());
    let rows = rows.flat_map(str::lines).filter_map(|row| row.strip_prefix("| `"));
    let messages: Vec<_> = rows.filter_map(|row| row.split("` |").next()).collect();
    if messages.len() < 15 {
        return Err(Stop::fail(format!("only {} messages found", messages.len())));
    }
    let mut code = String::new();
    for folder in ["hook/src", "hook/plan/src", "shim/core/src", "shim/src"] {
        read(&project().join(folder), &mut code)?;
    }
    let unknown: Vec<_> = messages.iter().filter(|message| !code.contains(**message)).collect();
    if unknown.is_empty() { Ok(()) } else { Err(Stop::fail(format!("in no source: {unknown:#?}"))) }
}

/// Appends the sources below a directory. A literal that goes on after a line's end is one line here.
fn read(directory: &Path, code: &mut String) -> Result {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, code)?;
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let mut pieces = text.split("\\\n");
        code.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            code.push_str(piece.trim_start());
        }
    }
    Ok(())
}
