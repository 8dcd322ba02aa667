//! Markdown as far as tests look at it: the links of a document, and the anchors of its headings.
//!
//! Text in code, be it a block or a span, is no link. Anchors are those that mdBook and GitHub make. Links by reference are
//! not known: the documents have none.

use crate::{Result, Stop};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Fails with each link of the pages that leads nowhere: to no file, or to an anchor that the file lacks. How links and
/// anchors are found depends on the language. Addresses of hosts are not visited.
///
/// # Errors
/// A file cannot be read, or a link is dead.
pub fn none_dead(
    pages: &BTreeMap<PathBuf, String>,
    links: impl Fn(&str) -> Vec<String>,
    anchors: impl Fn(&str) -> BTreeSet<String>,
) -> Result {
    let mut dead = Vec::new();
    for (path, text) in pages {
        for link in links(text).into_iter().filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap_or(path).join(file),
            };
            let there = target.exists()
                && (anchor.is_empty() || {
                    let text = match pages.get(&target) {
                        Some(text) => text.clone(),
                        None => fs::read_to_string(&target)?,
                    };
                    anchors(&text).contains(anchor)
                });
            if !there {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    if dead.is_empty() { Ok(()) } else { Err(Stop::fail(dead.join("\n"))) }
}

/// The targets of inline links.
#[must_use]
pub fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.map(str::to_owned).collect()
}

/// The anchors of headings; a title that comes again gets a number.
#[must_use]
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        inside ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if inside || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let signs = title.trim().chars().filter_map(|sign| match sign {
            ' ' => Some('-'),
            sign if sign.is_alphanumeric() || "-_".contains(sign) => {
                Some(sign.to_ascii_lowercase())
            }
            _ => None,
        });
        let anchor: String = signs.collect();
        let again = (1..).map(|n| format!("{anchor}-{n}")).find(|it| !anchors.contains(it));
        anchors.insert(if anchors.contains(&anchor) { again.unwrap_or(anchor) } else { anchor });
    }
    anchors
}

/// The text without code.
fn prose(text: &str) -> String {
    let mut inside = false;
    let mut found = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        if !inside && !fence {
            // A span of code may not have a link in it; an odd mark begins none.
            let parts: Vec<_> = line.split('`').collect();
            let paired = parts.len() % 2 == 1;
            let outside = parts.iter().enumerate().filter(|(at, _)| at % 2 == 0 || !paired);
            found.push_str(&outside.map(|(_, part)| *part).collect::<Vec<_>>().join("`"));
            found.push('\n');
        }
    }
    found
}
