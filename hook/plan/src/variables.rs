//! A plan in the words of our variables and annotations, for the front ends that can set a container's environment.
//!
//! The limits file is what holds; the variables let a person see the limit, and hold where there is no file. They are
//! read again by the hook, and then count as one more source: so one is only written if it says exactly what the plan
//! says. Nothing is better than a variable that would raise what another one said.

use gpucap_core::config::{GPU_CORE_PCT, GPU_MEM_LIMIT};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Key, MemoryCap};
use std::fmt::Display;

use crate::convention::annotation;
use crate::document::node::Node;

/// `GPU_MEM_LIMIT` and `GPU_CORE_PCT`, as far as they can say it.
#[must_use]
pub fn variables(limits: &LimitsFile) -> Vec<(&'static str, String)> {
    said([GPU_MEM_LIMIT.name, GPU_CORE_PCT.name], limits)
}

/// The same in annotations, whose values have the same form.
#[must_use]
pub fn annotations(node: &Node, limits: &LimitsFile) -> Vec<(String, String)> {
    said([annotation::MEM, annotation::CORE].map(|name| annotation::key(node, name)), limits)
}

/// Memory and time, each under its name.
fn said<T>([for_memory, for_core]: [T; 2], limits: &LimitsFile) -> Vec<(T, String)> {
    let memory = |entry: &Entry| match entry.memory {
        MemoryCap { bytes: Some(_), part: Some(_) } => Err(Unsayable),
        MemoryCap { bytes: Some(bytes), .. } => Ok(Some(bytes.to_string())),
        MemoryCap { part, .. } => Ok(part.map(|part| part.to_string())),
    };
    let core = |entry: &Entry| Ok(entry.core.map(|core| core.to_string()));
    let memory = (for_memory, value(&limits.entries, memory));
    let core = (for_core, value(&limits.entries, core));
    [memory, core].into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// No value of a variable says this.
struct Unsayable;

/// One value for every GPU, or a list of GPUs beside which all others are free.
fn value(
    entries: &[Entry],
    of: impl Fn(&Entry) -> Result<Option<String>, Unsayable>,
) -> Option<String> {
    let mut listed = Vec::new();
    let mut every = None;
    for entry in entries {
        match (entry.key, of(entry).ok()?) {
            (Key::Every, value) => every = value,
            (Key::Name(name), Some(value)) => listed.push(pair(name, &value)),
            (Key::Name(_), None) => {}
        }
    }
    match (every, entries) {
        (None, _) => (!listed.is_empty()).then(|| listed.join(",")),
        (Some(every), [_]) => Some(every),
        (Some(_), _) => None,
    }
}

fn pair(name: impl Display, value: &str) -> String {
    format!("{name}={value}")
}
