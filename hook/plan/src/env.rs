//! The environment of a container, in the order in which it is written.
//!
//! A name may come twice: the pod's value stands behind the plugin's, the device's behind the user's, and who reads it
//! takes the first (libc) or the last (shells, engines). Each value is somebody's word, so each is heard: a convention
//! is asked once for every [reading](Env::readings), and the minimum does the rest.

use gpucap_core::config::Excerpt;
use std::collections::BTreeMap;

use crate::reason::Reason;

/// `NAME=value`, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Env(Vec<(String, String)>);

/// The variables that some convention reads begin with one of these. Of others a second value is nobody's word.
const HEARD: [&str; 6] =
    ["GPU_", "CUDA_", "ALIYUN_COM_GPU", "AMP_VGPU", "MANAGER_", "NVIDIA_VISIBLE"];
/// More readings than engines and people make; what has more was made to be misread.
const MOST: usize = 64;

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

    /// The environments that this one can be taken for: each has one value for each name, and every combination of
    /// values is one of them.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn readings(&self) -> Result<Vec<Self>, Reason> {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, value) in self.iter() {
            if HEARD.iter().any(|prefix| name.starts_with(prefix)) {
                let held = values.entry(name).or_default();
                if !held.contains(&value.trim()) {
                    held.push(value.trim());
                }
            }
        }
        let mut readings = vec![Self::default()];
        for (name, values) in values {
            if readings.len().saturating_mul(values.len()) > MOST {
                let held = Excerpt::new(values.join(" ").as_bytes());
                let why = "with others, set to too many different values".to_owned();
                return Err(Reason::Value { source: format!("environment {name}"), held, why });
            }
            let one = |value: &&str| (name.to_owned(), (*value).to_owned());
            readings = readings
                .iter()
                .flat_map(|reading| values.iter().map(one).map(|pair| reading.with(pair)))
                .collect();
        }
        Ok(readings)
    }

    fn with(&self, pair: (String, String)) -> Self {
        Self(self.0.iter().cloned().chain([pair]).collect())
    }

    /// The value of a variable of a reading; an empty one counts as not set, as in the shim.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.iter().find(|(own, _)| *own == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    /// The variables `<prefix><number>` of a reading, by number.
    ///
    /// # Errors
    /// A number is one that no GPU has.
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
            found.extend(self.get(name).map(|value| (number, value)));
        }
        found.sort_unstable();
        Ok(found)
    }
}
