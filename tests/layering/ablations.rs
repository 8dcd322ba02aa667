//! Patches that leave a part of the meter out (`bench/ablations`), held against the code that they change.
//!
//! `ci/ablations` applies them, which takes minutes. What makes them go stale is seen in their text: the lines that a
//! hunk removes and those around them stand in the named file exactly once. Git may find a block elsewhere than where
//! its hunk says, and a block that stands there twice could be changed in the wrong place.
//!
//! What stays has its cell named where it is: the file that a patch changes names the cell in a comment.

use crate::rules::Fault;
use crate::source::Source;

/// Where the patches are.
pub(crate) const PATCHES: &str = "bench/ablations/";

/// What runs a cell.
const BENCHES: [&str; 4] = ["judge ", "accuracy ", "lending ", "attacks "];

/// Returns what is wrong with a patch: a line that is missing at its head, and blocks that do not fit these files.
pub(crate) fn stale(patch: &Source, sources: &[Source]) -> Vec<Fault> {
    let mut found = Vec::new();
    let head = patch.text.split("\n--- ").next().unwrap_or_default();
    let said = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if said("part: ").is_none_or(str::is_empty) {
        found.push((1, "no line `part: ` says what it leaves out".to_owned()));
    }
    let cell = said("cell: ").filter(|cell| BENCHES.iter().any(|bench| cell.starts_with(bench)));
    if cell.is_none() {
        found.push((1, "no line `cell: ` says which bench and cell miss it".to_owned()));
    }
    let hunks = hunks(&patch.text);
    if hunks.is_empty() {
        found.push((1, "it changes nothing".to_owned()));
    }
    for (line, path, before) in hunks {
        let file = sources.iter().find(|source| source.path == path);
        let count = file.map_or(0, |file| blocks(&file.text, &before));
        if count != 1 {
            found.push((line, format!("stands {count} times in {path}: {}", before.trim_end())));
        }
        let is_named = |name: &str| file.is_some_and(|file| names(&comments(&file.text), name));
        if let Some(name) = cell.map(name_of).filter(|name| !is_named(name)) {
            found.push((line, format!("no comment in {path} names `{name}`")));
        }
    }
    found
}

/// Returns what comments call a cell: its name up to the share in percent, without the bench and what it is a part of.
/// Of a name that is one word, the bench is a part.
fn name_of(cell: &str) -> &str {
    let cell = cell.trim_end_matches(" --quick");
    let Some((_, name)) = cell.split_once(' ').filter(|(_, name)| name.contains(' ')) else {
        return cell;
    };
    let name = name.trim_start_matches("mixes: ");
    let is_percent = |part: &str| {
        let part = part.split(", ").next().unwrap_or_default().trim_start_matches('[');
        part.starts_with(|sign: char| sign.is_ascii_digit()) && !part.contains(' ')
    };
    let end = name.match_indices(", ").find(|(at, comma)| is_percent(&name[at + comma.len()..]));
    end.map_or(name, |(at, _)| &name[..at])
}

/// Whether a text names a cell: not only one whose name begins with this one.
fn names(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, found)| {
        !text[at + found.len()..].starts_with(|next: char| next.is_alphanumeric())
    })
}

/// Returns the comments of a file as one line.
fn comments(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    let words = lines.flat_map(|line| line.trim_start_matches(['/', '!']).split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// The hunks of a patch: the line of each, its file, and what stands there before the change.
fn hunks(patch: &str) -> Vec<(usize, &str, String)> {
    let mut hunks: Vec<(usize, &str, String)> = Vec::new();
    let mut path = "";
    for (number, line) in (1..).zip(patch.lines()) {
        if let Some(named) = line.strip_prefix("--- a/") {
            path = named;
        } else if line.starts_with("@@ ") {
            hunks.push((number, path, String::new()));
        } else if let Some((_, _, before)) = hunks.last_mut()
            && let Some(kept) = line.strip_prefix(' ').or_else(|| line.strip_prefix('-'))
            && !line.starts_with("--- ")
        {
            before.push_str(kept);
            before.push('\n');
        }
    }
    hunks
}

/// How often a block of whole lines stands in a text.
fn blocks(text: &str, block: &str) -> usize {
    let starts_line = |at: usize| at == 0 || text[..at].ends_with('\n');
    text.match_indices(block).filter(|(at, _)| starts_line(*at)).count()
}
