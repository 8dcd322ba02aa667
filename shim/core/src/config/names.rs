//! Variables with our prefix that we do not know: a newer hook, or a slip of the pen.
//!
//! The shim warns of them, the hook refuses them; both name the variable that was probably meant.

use core::fmt;

use super::OPTIONS;

/// A variable that carries our prefix and is not in the table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownName {
    /// As it was written.
    pub name: String,
    /// The known name that is at most three edits away, if there is one.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown variable {}", self.name.escape_debug())?;
        match self.nearest {
            Some(known) => write!(f, "; did you mean {known}?"),
            None => Ok(()),
        }
    }
}

/// Those of `names` that begin with `GPUCAP_` and are not in the table.
pub fn unknown_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<UnknownName> {
    let known = |name: &str| OPTIONS.iter().any(|row| row.name == name);
    names
        .into_iter()
        .filter(|name| name.starts_with("GPUCAP_") && !known(name))
        .map(|name| UnknownName { name: name.to_owned(), nearest: nearest(name) })
        .collect()
}

fn nearest(name: &str) -> Option<&'static str> {
    OPTIONS
        .iter()
        .map(|row| (edits(name.as_bytes(), row.name.as_bytes()), row.name))
        .filter(|&(edits, _)| edits <= 3)
        .min()
        .map(|(_, known)| known)
}

/// Insertions, deletions and replacements that turn `from` into `to` (Levenshtein).
fn edits(from: &[u8], to: &[u8]) -> usize {
    // The row for the prefix of `from` read so far: edits to each prefix of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (read, &byte) in from.iter().enumerate() {
        let mut left = read.saturating_add(1);
        let mut diagonal = core::mem::replace(row.first_mut().unwrap_or(&mut 0), left);
        for (cell, &wanted) in row.iter_mut().skip(1).zip(to) {
            let replaced = diagonal.saturating_add(usize::from(byte != wanted));
            diagonal = *cell;
            *cell = replaced.min(diagonal.min(left).saturating_add(1));
            left = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}
