//! Docker: it has no place for hooks, but for other runtimes. Ours gives each container that asks the hook, and becomes
//! the runtime that Docker would have called.

use super::{Change, Options, read};
use crate::error::{Error, Result};
use crate::hooks::Hooks;
use gpucap_plan::Node;
use serde_json::{Map, Value, json};
use std::path::Path;

const FILE: &str = "/etc/docker/daemon.json";
/// The runtime that `docker run --runtime` names.
const NAME: &str = "gpucap";

/// What becomes of the daemon's configuration.
pub(super) fn change(options: &Options, hooks: Hooks<'_>) -> Result<Change> {
    let path = options.file.as_deref().unwrap_or_else(|| Path::new(FILE));
    let text = read(path)?;
    let before = text.clone().unwrap_or_default();
    let mut words = vec!["runtime".to_owned()];
    if hooks.config != Path::new(Node::PATH) {
        words.push(format!("--gpucap-config={}", hooks.config.display()));
    }
    let runtime = json!({"path": hooks.program, "runtimeArgs": words});
    let wrong = |why| Error::Configure(format!("{}: {why}", path.display()));
    let after = if options.undo {
        let after = remove(&before, &runtime).map_err(wrong)?;
        text.map(|_| after)
    } else {
        Some(add(&before, runtime).map_err(wrong)?)
    };
    Change::of(path, after)
}

/// What makes the daemon see it. A reload leaves what a file no longer speaks of as it was.
pub(super) const fn advice(options: &Options) -> &'static str {
    if options.undo { "restart dockerd" } else { "reload dockerd (SIGHUP)" }
}

fn add(text: &str, runtime: Value) -> std::result::Result<String, String> {
    let mut daemon = parse(text)?;
    let runtimes = daemon.entry("runtimes").or_insert_with(|| json!({}));
    let runtimes = runtimes.as_object_mut().ok_or("runtimes is no object")?;
    match runtimes.get(NAME) {
        Some(held) if *held != runtime => Err(format!("runtimes.{NAME} is another one: {held}")),
        Some(_) => Ok(text.to_owned()),
        None => {
            runtimes.insert(NAME.into(), runtime);
            Ok(written(&daemon, text))
        }
    }
}

fn remove(text: &str, runtime: &Value) -> std::result::Result<String, String> {
    let mut daemon = parse(text)?;
    let Some(runtimes) = daemon.get_mut("runtimes").and_then(Value::as_object_mut) else {
        return Ok(text.to_owned());
    };
    if runtimes.get(NAME) != Some(runtime) {
        return Ok(text.to_owned());
    }
    runtimes.shift_remove(NAME);
    if runtimes.is_empty() {
        daemon.shift_remove("runtimes");
    }
    Ok(written(&daemon, text))
}

/// The object of a file; an empty file is an empty one.
fn parse(text: &str) -> std::result::Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|why| why.to_string())
}

/// With the indentation that the file has. No text of JSON has a line break in it, so each line is a line.
fn written(daemon: &Map<String, Value>, like: &str) -> String {
    let second = like.lines().nth(1).unwrap_or_default();
    let indent = &second[..second.len() - second.trim_start().len()];
    let indent = if indent.is_empty() { "    " } else { indent };
    let text = format!("{:#}", Value::Object(daemon.clone()));
    let line = |line: &str| {
        let words = line.trim_start();
        // Two blanks for each level is how it was written.
        format!("{}{words}\n", indent.repeat((line.len() - words.len()) / 2))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> Value {
        json!({"path": "/usr/bin/gpucap", "runtimeArgs": ["runtime"]})
    }

    #[test]
    fn what_was_there_stays_to_the_letter() {
        let two = "{\n  \"log-driver\": \"journald\",\n  \"debug\": true\n}\n";
        let tabs =
            "{\n\t\"runtimes\": {\n\t\t\"nvidia\": {\n\t\t\t\"path\": \"x\"\n\t\t}\n\t}\n}\n";
        for text in [two, tabs] {
            let added = add(text, runtime()).expect("a configuration");
            let value: Value = serde_json::from_str(&added).expect("JSON");
            assert_eq!(value["runtimes"][NAME], runtime());
            assert_eq!(
                add(&added, runtime()).as_ref(),
                Ok(&added),
                "a second time changes nothing"
            );
            assert_eq!(remove(&added, &runtime()).as_deref(), Ok(text));
            assert_eq!(remove(text, &runtime()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn a_new_file_is_made_and_a_wrong_one_is_left() {
        assert!(add("", runtime()).is_ok_and(|text| text.starts_with("{\n    \"runtimes\": {\n")));
        for text in ["[]", "{", "{\"runtimes\": 1}", "{\"runtimes\": {\"gpucap\": {}}}"] {
            assert!(add(text, runtime()).is_err(), "{text}");
        }
    }
}
