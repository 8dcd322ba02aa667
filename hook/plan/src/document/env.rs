//! The environment of a container, in the order in which it is written.
//!
//! A name may come twice: the pod's value stands behind the plugin's, the device's behind the user's, and a program
//! takes the first (libc) or the last (shells, engines). All values count: a convention is read once for every
//! [reading](Env::readings), and the minimum of all holds.
//!
//! A pod's author writes as many variables as a request to the API server has room for. So a reading has those alone
//! that some convention reads, and how many, how long and how many times over is bounded: the cost is that of one pass
//! over the list, and what exceeds the bounds is refused.

use gpucap_core::config::Excerpt;
use std::collections::BTreeMap;

use crate::reason::Reason;

/// `NAME=value`, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Env(Vec<(String, String)>);

/// An environment with one value for each name, of the variables that some convention reads.
#[derive(Debug, Default)]
pub(crate) struct Reading<'a>(BTreeMap<&'a str, &'a str>);

/// The variables that some convention reads.
pub(crate) const HEARD: [&str; 25] = [
    "ALIYUN_COM_GPU_MEM_CONTAINER",
    "ALIYUN_COM_GPU_MEM_DEV",
    "ALIYUN_COM_GPU_MEM_IDX",
    "ALIYUN_COM_GPU_MEM_POD",
    "AMP_VGPU_ENABLE",
    "CUDA_CORE_LIMIT",
    "CUDA_DEVICE_MEMORY_LIMIT",
    "CUDA_DEVICE_SM_LIMIT",
    "CUDA_MEM_LIMIT",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "GPU_CORE_MAX_PCT",
    "GPU_CORE_PCT",
    "GPU_CORE_POLICY",
    "GPU_CORE_PRIORITY",
    "GPU_MEM_LIMIT",
    "GPU_MEM_PER_DEVICE",
    "GPU_PORTION",
    "GPU_PROFILE",
    "GPU_UTIL_PER_DEVICE",
    "MANAGER_VISIBLE_DEVICES",
    "NVIDIA_GPU_MEMORY_LIMIT",
    "NVIDIA_GPU_MEMORY_REQUEST",
    "NVIDIA_VISIBLE_DEVICES",
    "RUNAI_NUM_OF_GPUS",
];
/// The same, with the number of a GPU behind it.
const NUMBERED: [&str; 5] = [
    "CUDA_CORE_LIMIT_",
    "CUDA_DEVICE_MEMORY_LIMIT_",
    "CUDA_DEVICE_SM_LIMIT_",
    "CUDA_MEM_LIMIT_",
    "MANAGER_VISIBLE_DEVICE_",
];
/// More readings than engines and people make; what has more was made to be misread.
const MOST: usize = 64;
/// More variables of GPUs than the largest machine has GPUs for, and more bytes than the longest lists of them take.
const MOST_NAMES: usize = 256;
const MOST_BYTES: usize = 64 << 10;

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
    /// There are too many, or there is too much in each.
    pub(crate) fn readings(&self) -> Result<Vec<Reading<'_>>, Reason> {
        let values = self.heard()?;
        let mut readings = vec![Reading::default()];
        for (name, values) in values {
            if readings.len().saturating_mul(values.len()) > MOST {
                let held = Excerpt::new(values.join(" ").as_bytes());
                let why = "with others, set to too many different values".to_owned();
                return Err(Reason::Value { source: format!("environment {name}"), held, why });
            }
            let Some((first, others)) = values.split_first() else { continue };
            let more: Vec<_> = others
                .iter()
                .flat_map(|value| readings.iter().map(|reading| reading.with(name, value)))
                .collect();
            for reading in &mut readings {
                reading.0.insert(name, first);
            }
            readings.extend(more);
        }
        Ok(readings)
    }

    /// The different values of each variable that is read.
    fn heard(&self) -> Result<BTreeMap<&str, Vec<&str>>, Reason> {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut bytes = 0_usize;
        for (name, value) in self.iter().filter(|(name, _)| is_heard(name)) {
            let held = values.entry(name).or_default();
            if held.contains(&value.trim()) {
                continue;
            }
            bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
            held.push(value.trim());
            let (names, several) = (values.len(), values.get(name).map_or(0, Vec::len));
            if names > MOST_NAMES || bytes > MOST_BYTES || several > MOST {
                let why = format!(
                    "too much is set: at most {MOST_NAMES} variables of GPUs, {MOST} values of one and {MOST_BYTES} \
                     bytes in all are read"
                );
                return Err(Reason::value("environment", name, why));
            }
        }
        Ok(values)
    }
}

impl<'a> Reading<'a> {
    /// That of the first values.
    ///
    /// # Errors
    /// There is too much in it.
    pub(crate) fn first(env: &'a Env) -> Result<Self, Reason> {
        let values = env.heard()?.into_iter();
        Ok(Self(values.filter_map(|(name, values)| Some((name, *values.first()?))).collect()))
    }

    fn with(&self, name: &'a str, value: &'a str) -> Self {
        let mut with = Self(self.0.clone());
        with.0.insert(name, value);
        with
    }

    /// The value of a variable; an empty one counts as not set, as in the shim.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        debug_assert!(is_heard(name), "{name} is read and not in the table");
        self.0.get(name).copied().filter(|value| !value.is_empty())
    }

    /// The variables `<prefix><number>`, by number.
    ///
    /// # Errors
    /// A number is one that no GPU has.
    pub(crate) fn numbered(&self, prefix: &str) -> Result<Vec<(u32, &'a str)>, Reason> {
        debug_assert!(NUMBERED.contains(&prefix), "{prefix} is read and not in the table");
        let mut found = Vec::new();
        for name in self.0.keys() {
            let Some(number) = number(name, prefix) else { continue };
            let number = number
                .parse()
                .map_err(|_| Reason::value("environment", name, "no GPU has such a number"))?;
            found.extend(self.get(name).map(|value| (number, value)));
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Whether some convention reads this variable.
pub(crate) fn is_heard(name: &str) -> bool {
    HEARD.contains(&name) || NUMBERED.iter().any(|prefix| number(name, prefix).is_some())
}

/// The number behind a prefix. A longer one is no GPU's, nor anything that a person can read.
fn number<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let number = name.strip_prefix(prefix)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(entries: impl IntoIterator<Item = String>) -> Env {
        let entries: Vec<String> = entries.into_iter().collect();
        Env::new(entries.iter().map(String::as_str))
    }

    #[test]
    fn what_no_convention_reads_is_in_no_reading() {
        let others = (0..20_000).map(|number| format!("GPU_{number:x}=1"));
        let env = env(others.chain(["GPU_MEM_LIMIT=1Gi".into(), "CUDA_VISIBLE_DEVICES=0".into()]));
        let readings = env.readings().expect("readings");
        let names: Vec<_> = readings.iter().flat_map(|it| it.0.keys()).collect();
        assert_eq!(names, [&"GPU_MEM_LIMIT"]);
    }

    #[test]
    fn every_combination_of_values_is_a_reading() {
        let entries = ["GPU_MEM_LIMIT=1", "GPU_CORE_PCT=5", "GPU_MEM_LIMIT=2", "GPU_CORE_PCT=6"];
        let env = Env::new(entries);
        let readings = env.readings().expect("readings");
        let value = |it: &Reading<'_>, name| it.get(name).map(str::to_owned).expect("a value");
        let mut both: Vec<_> = readings
            .iter()
            .map(|it| (value(it, "GPU_MEM_LIMIT"), value(it, "GPU_CORE_PCT")))
            .collect();
        both.sort();
        let pair = |one: &str, two: &str| (one.to_owned(), two.to_owned());
        assert_eq!(both, [pair("1", "5"), pair("1", "6"), pair("2", "5"), pair("2", "6")]);
    }

    #[test]
    fn more_than_a_machine_has_gpus_for_is_refused() {
        let numbered = |count: usize| {
            env((0..count).map(|number| format!("CUDA_DEVICE_MEMORY_LIMIT_{number}=1g")))
        };
        assert_eq!(numbered(MOST_NAMES).readings().expect("readings").len(), 1);
        assert!(numbered(MOST_NAMES + 1).readings().is_err());
        let long = |bytes: usize| env([format!("GPU_PROFILE={}", "0".repeat(bytes - 11))]);
        assert!(long(MOST_BYTES).readings().is_ok() && long(MOST_BYTES + 1).readings().is_err());
        let several = |count: usize| env((0..count).map(|value| format!("GPU_PROFILE={value}")));
        assert_eq!(several(MOST).readings().expect("readings").len(), MOST);
        assert!(several(MOST + 1).readings().is_err());
        let doubled = |count: usize| {
            env((0..count).flat_map(|name| [0, 1].map(|it| format!("CUDA_MEM_LIMIT_{name}={it}"))))
        };
        assert_eq!(doubled(6).readings().expect("readings").len(), 64);
        assert!(doubled(7).readings().is_err());
    }
}
