//! What a front end changes in `config.json`: variables in, the hook in, and everything else as it was.
//!
//! The document is edited as it is, not read into types and written again: a type drops what it does not know, and the
//! next runtime may need that. Pure; doing it twice does nothing more.

use crate::inject::hooks::{Hooks, STAGES};
use gpucap_plan::SHOWN;
use serde_json::{Map, Value, json};

/// The document is not what it should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("config.json has no {0} of the right form")]
pub(super) struct Missing(&'static str);

/// Adds the variables and, once, the hooks.
pub(super) fn limit(
    config: &mut Value,
    variables: &[(&str, String)],
    hooks: Hooks<'_>,
) -> Result<(), Missing> {
    let process = config.get_mut("process").and_then(Value::as_object_mut);
    set(process.ok_or(Missing("process"))?, variables).ok_or(Missing("process.env"))?;
    let config = config.as_object_mut().ok_or(Missing("object"))?;
    STAGES.iter().try_for_each(|stage| add(config, stage, hooks.at(stage))).ok_or(Missing("hooks"))
}

/// Gives a process the variables that the container's `config.json` has for us; whether anything changed.
pub(super) fn like(process: &mut Value, config: &Value) -> bool {
    let entries = config.pointer("/process/env").and_then(Value::as_array);
    let variables: Vec<(&str, String)> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.as_str()?.split_once('='))
        .filter_map(|(name, value)| {
            let name = SHOWN.into_iter().find(|own| *own == name)?;
            Some((name, value.to_owned()))
        })
        .collect();
    let before = process.get("env").cloned();
    let set = process.as_object_mut().and_then(|process| set(process, &variables));
    set.is_some() && process.get("env") != before.as_ref()
}

/// Sets variables in `env`, each at the place where it stood first.
fn set(process: &mut Map<String, Value>, variables: &[(&str, String)]) -> Option<()> {
    if variables.is_empty() {
        return Some(());
    }
    let env = process.entry("env").or_insert_with(|| json!([]));
    if env.is_null() {
        *env = json!([]);
    }
    let env = env.as_array_mut()?;
    for (name, value) in variables {
        let is_it = |entry: &Value| {
            entry
                .as_str()
                .and_then(|entry| entry.split_once('='))
                .is_some_and(|(own, _)| own == *name)
        };
        let entry = json!(format!("{name}={value}"));
        let first = env.iter().position(is_it);
        env.retain(|entry| !is_it(entry));
        match first {
            Some(at) => env.insert(at, entry),
            None => env.push(entry),
        }
    }
    Some(())
}

fn add(config: &mut Map<String, Value>, stage: &str, hook: Value) -> Option<()> {
    let hooks = config.entry("hooks").or_insert_with(|| json!({}));
    if hooks.is_null() {
        *hooks = json!({});
    }
    let stage = hooks.as_object_mut()?.entry(stage).or_insert_with(|| json!([]));
    if stage.is_null() {
        *stage = json!([]);
    }
    let stage = stage.as_array_mut()?;
    let same = |one: &Value| ["path", "args"].iter().all(|key| one.get(key) == hook.get(key));
    if !stage.iter().any(same) {
        stage.push(hook);
    }
    Some(())
}

#[cfg(test)]
mod tests;
