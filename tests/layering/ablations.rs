//! Patches that leave a part of the meter out (`bench/ablations`), held against the code that they change.
//!
//! `ci/ablations` applies them, which takes minutes. What makes them go stale is seen in their text: the lines that a
//! hunk removes and those around them stand in the named file exactly once. Git may find a block elsewhere than where
//! its hunk says, and a block that stands there twice could be changed in the wrong place.

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
    if said("cell: ").is_none_or(|cell| !BENCHES.iter().any(|bench| cell.starts_with(bench))) {
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
    }
    found
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
