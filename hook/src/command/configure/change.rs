//! One file of an engine, as it is and as it is to be.
//!
//! What another program made is neither overwritten nor removed: a file that is to become ours alone must be ours
//! already, or not be there. A change is shown as the lines that go and come, and made at once and whole.

use crate::error::{Error, Result};
use crate::inject::hooks;
use crate::node::replace::{self, Survives};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that comes or goes as a whole is shown to this length.
const MOST_LINES: usize = 40;

/// A file as it is, and as it is to be; without text, it is not there.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Change {
    /// Of a file that is ours alone and is to become this.
    pub(super) fn to_ours(path: &Path, after: String) -> Result<Self> {
        let before = read(path)?;
        match &before {
            Some(text) if !text.trim().is_empty() && !is_ours(text) => Err(Error::Configure(
                format!("{}: not made by gpucap; move it away, or name another", path.display()),
            )),
            _ => Ok(Self { path: path.to_owned(), before, after: Some(after) }),
        }
    }

    /// Of a file that is to go, if it is ours.
    pub(super) fn without_ours(path: &Path) -> Result<Self> {
        let before = read(path)?;
        let after = before.clone().filter(|text| !is_ours(text));
        Ok(Self { path: path.to_owned(), before, after })
    }

    /// The lines that go and those that come; of a long file that is all ours, how many there are, unless all are wanted.
    pub(super) fn shown(&self, verbose: bool) -> String {
        let (what, whole) = match (&self.before, &self.after) {
            (None, Some(text)) => ("new", text),
            (Some(text), None) => ("goes", text),
            _ => ("", &String::new()),
        };
        let count = whole.lines().count();
        if count > MOST_LINES && !verbose {
            return format!(
                "{}: {what}, {count} lines; --verbose shows them\n",
                self.path.display()
            );
        }
        let lines = |text: &Option<String>| -> Vec<String> {
            text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
        };
        let (before, after) = (lines(&self.before), lines(&self.after));
        let same = |pair: &(&String, &String)| pair.0 == pair.1;
        let head = before.iter().zip(&after).take_while(same).count();
        let rest = (&before[head..], &after[head..]);
        let tail = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(same).count();
        let gone = rest.0[..rest.0.len() - tail].iter().map(|line| format!("-{line}\n"));
        let come = rest.1[..rest.1.len() - tail].iter().map(|line| format!("+{line}\n"));
        format!("{}\n{}", self.path.display(), gone.chain(come).collect::<String>())
    }

    /// Changes the file, at once and whole; its owner and mode stay.
    pub(super) fn make(&self) -> io::Result<()> {
        let Some(text) = &self.after else { return replace::remove(&self.path) };
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        replace::replace(&self.path, text.as_bytes(), Survives::Machine)
    }
}

/// A file that cannot be read or changed.
pub(super) fn wrong(path: &Path, why: &io::Error) -> Error {
    let root = if why.kind() == io::ErrorKind::PermissionDenied { "; run it as root" } else { "" };
    Error::Configure(format!("{}: {}{root}", path.display(), crate::error::reason(why)))
}

/// Whether the document of a file has our hook.
fn is_ours(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|document| hooks::is_in(&document))
}

/// The text of a file; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(wrong(path, &why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_shown_and_nothing_else() {
        let text = |text: &str| Some(text.to_owned());
        let change = |before, after| Change { path: "/f".into(), before, after }.shown(false);
        assert_eq!(change(text("a\nb\nc\n"), text("a\nx\ny\nc\n")), "/f\n-b\n+x\n+y\n");
        assert_eq!(change(None, text("a\n")), "/f\n+a\n");
        assert_eq!(change(text("a\n"), None), "/f\n-a\n");
        assert_eq!(change(text("a\na\n"), text("a\na\na\n")), "/f\n+a\n");
    }

    #[test]
    fn a_long_file_that_is_all_ours_is_counted() {
        let text = |lines: usize| Some("a\n".repeat(lines));
        let shown =
            |before, after, verbose| Change { path: "/f".into(), before, after }.shown(verbose);
        let (short, long) = (text(MOST_LINES), text(MOST_LINES + 1));
        assert_eq!(shown(None, long.clone(), false), "/f: new, 41 lines; --verbose shows them\n");
        assert_eq!(shown(long.clone(), None, false), "/f: goes, 41 lines; --verbose shows them\n");
        for (after, verbose, lines) in [(short, false, 41), (long.clone(), true, 42)] {
            assert_eq!(shown(None, after, verbose).lines().count(), lines);
        }
        assert_eq!(shown(Some(String::new()), long, false).lines().count(), 42, "a change");
    }
}
