//! The environment of a container, in the order in which it is written.
//!
//! A name may come twice: the pod's value stands behind the plugin's, and who reads it takes the first (libc) or the
//! last (shells). Where we would have to choose, we refuse.

use crate::reason::Reason;

/// `NAME=value`, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Env(Vec<(String, String)>);

impl Env {
    /// Of the list in `config.json`. What has no `=` sets nothing.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let pairs = entries.into_iter().filter_map(|entry| entry.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a variable, trimmed; an empty one counts as not set, as in the shim.
    ///
    /// # Errors
    /// It is set twice, to different values.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Reason> {
        let mut values = self.iter().filter(|(own, _)| *own == name).map(|(_, value)| value.trim());
        let Some(first) = values.next() else { return Ok(None) };
        match values.find(|value| *value != first) {
            Some(other) => {
                let why = format!("set twice, first to {first:?}: which one counts cannot be told");
                Err(Reason::value(format!("environment {name}"), other, why))
            }
            None => Ok(Some(first).filter(|value| !value.is_empty())),
        }
    }

    /// The variables `<prefix><number>`, by number.
    ///
    /// # Errors
    /// One is set twice, or what follows the prefix is no number while it looks like one.
    pub(crate) fn numbered(&self, prefix: &str) -> Result<Vec<(u32, &str)>, Reason> {
        let mut found = Vec::new();
        for (name, held) in self.iter() {
            let Some(number) = name.strip_prefix(prefix) else { continue };
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let number = number.parse().map_err(|_| {
                Reason::value(format!("environment {name}"), held, "no GPU has such a number")
            })?;
            if let Some(value) = self.one(name)? {
                found.push((number, value));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}
