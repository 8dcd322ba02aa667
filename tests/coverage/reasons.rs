//! The list of names that are not intercepted, each with its reason: `reasons.txt`, which says how
//! to read it.

use gpucap_tests::{Result, Stop};

/// One line of the list.
#[derive(Debug)]
pub(crate) struct Reason {
    pattern: String,
    /// Why it is not intercepted.
    pub(crate) why: String,
}

impl Reason {
    /// Whether the line speaks of this name.
    pub(crate) fn covers(&self, symbol: &str) -> bool {
        matches(&self.pattern, symbol) || matches(&self.pattern, base(symbol))
    }

    /// Whether the name has to become a row.
    pub(crate) fn is_gap(&self) -> bool {
        self.why.starts_with("later:")
    }

    /// The name or names that it speaks of.
    pub(crate) fn pattern(&self) -> &str {
        &self.pattern
    }
}

/// Reads the list.
pub(crate) fn read(text: &str) -> Result<Vec<Reason>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let reason = |line: &str| {
        let (pattern, why) = line.split_once(' ').unwrap_or((line, ""));
        let reason = Reason { pattern: pattern.into(), why: why.trim().into() };
        if reason.why.trim_start_matches("later:").trim().is_empty() {
            return Err(Stop::fail(format!("{pattern}: no reason")));
        }
        Ok(reason)
    };
    lines.map(reason).collect()
}

/// The name without its version and stream form.
fn base(symbol: &str) -> &str {
    let name = symbol.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    match name.rsplit_once("_v") {
        Some((base, version)) if version.parse::<u32>().is_ok() => base,
        _ => name,
    }
}

/// Whether `name` is as the pattern says, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|left| {
            (0..=left.len()).any(|skipped| left.get(skipped..).is_some_and(|at| matches(rest, at)))
        }),
    }
}
