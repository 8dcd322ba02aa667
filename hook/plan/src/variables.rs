//! A plan in the words of our variables and annotations, for the front ends that can set a container's environment.
//!
//! The limits file is what holds; the variables let a person see the limit, and hold where there is no file. They are
//! read again by the hook, and then count as one more source: so one is only written if it says exactly what the plan
//! says. Nothing is better than a variable that would raise what another one said.

use gpucap_core::config::GPU_MEM_LIMIT;
use gpucap_core::config::{CorePolicy, CorePriority};
use gpucap_core::config::{GPU_CORE_MAX_PCT, GPU_CORE_PCT, GPU_CORE_POLICY, GPU_CORE_PRIORITY};
use gpucap_core::limits::LimitsFile;
use gpucap_core::limits::file::{Entry, Key, MemoryLimit};
use gpucap_core::units::{ComputeLimit, Share};
use std::fmt::Display;

use crate::convention::annotation;
use crate::document::node::Node;

/// The variables that show a limit: memory, time, and what is lent beside it.
pub const SHOWN: [&str; 5] = [
    GPU_MEM_LIMIT.name,
    GPU_CORE_PCT.name,
    GPU_CORE_POLICY.name,
    GPU_CORE_MAX_PCT.name,
    GPU_CORE_PRIORITY.name,
];

/// [`SHOWN`], as far as they can say it.
#[must_use]
pub fn variables(limits: &LimitsFile) -> Vec<(&'static str, String)> {
    said(SHOWN, limits)
}

/// The same in annotations, whose values have the same form.
#[must_use]
pub fn annotations(node: &Node, limits: &LimitsFile) -> Vec<(String, String)> {
    let names = [
        annotation::MEM,
        annotation::CORE,
        annotation::POLICY,
        annotation::MAX,
        annotation::PRIORITY,
    ];
    said(names.map(|name| annotation::key(node, name)), limits)
}

/// Memory and time, each under its name.
fn said<T>(names: [T; 5], limits: &LimitsFile) -> Vec<(T, String)> {
    let entries = &limits.entries;
    let memory = |entry: &Entry| match entry.memory {
        MemoryLimit { bytes: Some(_), part: Some(_) } => Err(Unsayable),
        MemoryLimit { bytes: Some(bytes), .. } => Ok(Some(bytes.to_string())),
        MemoryLimit { part, .. } => Ok(part.map(|part| part.to_string())),
    };
    // Of low priority the share is for older libraries, and no part of the plan.
    let share = |entry: &Entry| entry.core.filter(|_| !entry.low_priority);
    let core = |entry: &Entry| Ok(share(entry).map(|core| core.to_string()));
    // Beside one that borrows, another GPU keeps what it has by a most of its own.
    let lends = entries.iter().any(|entry| entry.core_max.is_some());
    let most = |entry: &Entry| entry.compute().map(ComputeLimit::most).filter(|_| lends);
    let most = |entry: &Entry| {
        let most = most(entry).filter(|most| *most < Share::FULL);
        Ok(most.map(|most| most.to_string()))
    };
    let all = |of: fn(&Entry) -> bool| !entries.is_empty() && entries.iter().all(of);
    let bursts = |entry: &Entry| entry.core_max.is_some() && !entry.low_priority;
    let values = [
        value(entries, memory),
        value(entries, core),
        all(bursts).then(|| CorePolicy::Burst.to_string()),
        value(entries, most),
        all(|entry| entry.low_priority).then(|| CorePriority::Low.to_string()),
    ];
    names.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
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
