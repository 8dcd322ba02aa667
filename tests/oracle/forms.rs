//! What `cuGetProcAddress` has to answer: `tests/fixtures/proc_address.txt`.

use gpucap_tests::{Result, Stop, project};
use std::collections::BTreeMap;

/// The meaning of every name.
#[derive(Debug)]
pub(crate) struct Forms {
    names: BTreeMap<String, Name>,
}

/// The functions that one name means, each with the version from which on it does.
#[derive(Debug)]
struct Name {
    plain: Vec<(u32, String)>,
    /// For callers that ask for per-thread default streams.
    per_thread: Vec<(u32, String)>,
}

/// What a request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning<'a> {
    /// This function.
    Symbol(&'a str),
    /// The driver does not know the name.
    Unknown,
    /// The driver knows the name, but only for callers of a later version.
    TooOld,
}

impl Forms {
    /// Reads the fixture.
    pub(crate) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(project().join("tests/fixtures/proc_address.txt"))?;
        let mut names = BTreeMap::new();
        for line in text.lines() {
            let (name, forms) = line.split_once(' ').ok_or_else(|| Stop::fail(line))?;
            let (plain, per_thread) = forms.split_once(" | ").unwrap_or((forms, forms));
            let name_forms =
                Name { plain: read(name, plain)?, per_thread: read(name, per_thread)? };
            names.insert(name.to_owned(), name_forms);
        }
        Ok(Self { names })
    }

    /// Each name with the versions at which it is worth asking.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (&str, Vec<u32>)> {
        self.names.iter().map(|(name, forms)| {
            let both = forms.plain.iter().chain(&forms.per_thread);
            let mut versions: Vec<_> = both.flat_map(|(since, _)| [since - 1, *since]).collect();
            versions.extend([12_000, 99_999]);
            versions.sort_unstable();
            versions.dedup();
            (name.as_str(), versions)
        })
    }

    /// What a driver whose newest version is `newest` has to answer.
    pub(crate) fn meaning(&self, name: &str, version: u32, flags: u64, newest: u32) -> Meaning<'_> {
        let Some(name) = self.names.get(name) else { return Meaning::Unknown };
        let forms = if flags == 2 { &name.per_thread } else { &name.plain };
        let mut known = forms.iter().filter(|(since, _)| *since <= newest).peekable();
        if known.peek().is_none() {
            return Meaning::Unknown;
        }
        known
            .filter(|(since, _)| *since <= version)
            .max_by_key(|(since, _)| since)
            .map_or(Meaning::TooOld, |(_, symbol)| Meaning::Symbol(symbol))
    }
}

/// `2000 3020_v2`: versions, each with what is added to the name.
fn read(name: &str, forms: &str) -> Result<Vec<(u32, String)>> {
    let form = |word: &str| {
        let digits = word.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(word.len());
        let (since, suffix) = word.split_at(digits);
        let since = since.parse().map_err(|error| Stop::fail(format!("{name} {word}: {error}")))?;
        Ok((since, format!("{name}{suffix}")))
    };
    forms.split_whitespace().map(form).collect()
}
