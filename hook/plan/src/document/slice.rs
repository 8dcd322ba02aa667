//! What a CDI device says to the hook that it brings, in the words of the hook: the slice of a claim, or variables.
//!
//! ```text
//! gpucap hook createRuntime --slice id=<name>,gpu=GPU-<uuid>,mem=10737418240,cores=30,for=<namespace>/<claim>
//! gpucap hook createRuntime --limit GPU_MEM_LIMIT=GPU-<uuid>=4GiB
//! ```
//!
//! The hook finds the words of all its entries in `config.json`, where the engine has put them from the CDI devices of
//! the container. A pod's author writes no hooks, so nothing in them is the author's. Read strictly: a word that this
//! version does not know may be a limit.

use std::fmt;
use std::str::FromStr;

use gpucap_core::units::{Bytes, Share};
use gpucap_core::uuid::DeviceName;
use serde_json::Value;

use crate::encoding::json;

/// The words with which each entry of the hook begins, before the stage.
pub(crate) const WORDS: [&str; 2] = ["gpucap", "hook"];
/// The word before a slice.
pub(crate) const OPTION: &str = "--slice";
/// The word before a variable. Of two devices in a container the engine keeps the variables of one, but the hooks of both.
pub(crate) const LIMIT: &str = "--limit";
/// The stages at which a hook of ours enforces, by their keys in `config.json`.
const ENFORCING: [&str; 2] = ["createRuntime", "prestart"];

/// A part of one GPU that a container is to have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Slice {
    /// The name of its CDI device. One slice has one, and one container at a time has the slice.
    pub id: String,
    /// The GPU.
    pub gpu: DeviceName,
    /// What it may hold of the GPU's memory.
    pub memory: Bytes,
    /// Its part of the GPU's time.
    pub cores: Share,
    /// The claim that it is for, `namespace/name`: for people.
    pub claim: String,
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, gpu, memory, cores, claim } = self;
        // Bytes and parts in full: nothing is rounded on the way.
        write!(f, "id={id},gpu={gpu},mem={},cores={cores},for={claim}", memory.0)
    }
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [mut id, mut gpu, mut mem, mut cores, mut claim] = [None; 5];
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or("not key=value")?;
            let place = match key {
                "id" => &mut id,
                "gpu" => &mut gpu,
                "mem" => &mut mem,
                "cores" => &mut cores,
                "for" => &mut claim,
                _ => return Err(format!("{key}: no key of this version")),
            };
            if place.replace(value).is_some() {
                return Err(format!("{key}: twice"));
            }
        }
        let needed = |key: &str, value: Option<&'_ str>| {
            let value = value.filter(|value| !value.is_empty());
            value.map(str::to_owned).ok_or_else(|| format!("no {key}"))
        };
        let gpu = needed("gpu", gpu)?.parse().map_err(|why| format!("gpu: {why}"))?;
        let memory = needed("mem", mem)?.parse().map_err(|why| format!("mem: {why}"))?;
        let cores = needed("cores", cores)?.parse().map_err(|why| format!("cores: {why}"))?;
        Ok(Self { id: needed("id", id)?, gpu, memory, cores, claim: needed("for", claim)? })
    }
}

/// What the hooks of this `config.json` have behind this option, as it is written there, each once.
pub(crate) fn written(config: &Value, option: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for stage in ENFORCING {
        for hook in json::list(config, &["hooks", stage]) {
            let words: Vec<&str> = json::list(hook, &["args"]).filter_map(Value::as_str).collect();
            if words.get(..WORDS.len()) != Some(&WORDS[..]) {
                continue;
            }
            let values = words.windows(2).filter(|pair| pair.first() == Some(&option));
            let values = values.filter_map(|pair| pair.get(1).map(|value| (*value).to_owned()));
            for value in values {
                if !found.contains(&value) {
                    found.push(value);
                }
            }
        }
    }
    found
}
