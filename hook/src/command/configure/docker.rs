//! Docker: it has no place for hooks, but for other runtimes. Ours gives each container that asks the hook, and becomes
//! the runtime that Docker would have called.

use super::change::{Change, read};
use super::json;
use super::options::Options;
use crate::error::{Error, Result};
use crate::inject::hooks::Hooks;
use gpucap_plan::Node;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;

const FILE: &str = "/etc/docker/daemon.json";
/// The runtime that `docker run --runtime` names.
const NAME: &str = "gpucap";
/// By this word the command is a runtime.
const WORD: &str = "runtime";
/// The object of the file that it is in.
const RUNTIMES: &str = "runtimes";
/// What an empty file is to be, before anything is in it. One that held just this counts as empty.
const NEW: &str = "{\n}\n";

/// What becomes of the daemon's configuration.
pub(super) fn change(options: &Options, hooks: Hooks<'_>) -> Result<Change> {
    let path = options.file.as_deref().unwrap_or_else(|| Path::new(FILE));
    let text = read(path)?;
    let mut words = vec![WORD.to_owned()];
    if hooks.config != Path::new(Node::PATH) {
        words.push(format!("--gpucap-config={}", hooks.config.display()));
    }
    let runtime = json!({"path": hooks.program, "runtimeArgs": words});
    let wrong = |why| Error::Configure(format!("{}: {why}", path.display()));
    let after = match text.as_deref() {
        Some(text) if options.undo && !text.trim().is_empty() => remove(text),
        text if options.undo => Ok(text.map(str::to_owned)),
        text => add(text.unwrap_or_default(), &runtime).map(Some),
    };
    Ok(Change { path: path.to_owned(), after: after.map_err(wrong)?, before: text })
}

/// What makes the daemon see it. A reload leaves what a file no longer speaks of as it was.
pub(super) const fn advice(options: &Options) -> &'static str {
    if options.undo { "restart dockerd" } else { "reload dockerd (SIGHUP)" }
}

fn add(text: &str, runtime: &Value) -> json::Result<String> {
    let text = if text.trim().is_empty() { NEW } else { text };
    let daemon = json::whole(text);
    let Some(runtimes) = json::members(text, &daemon)?.remove(RUNTIMES) else {
        return json::with(text, &daemon, RUNTIMES, &json!({NAME: runtime}));
    };
    match held(text, &runtimes)? {
        Some(held) if held == *runtime => Ok(text.to_owned()),
        Some(held) if !is_ours(&held) => Err(not_ours(&held)),
        Some(_) => json::replaced(text, &runtimes, NAME, runtime),
        None => json::with(text, &runtimes, NAME, runtime),
    }
}

/// Whether a runtime is this command, in whatever place and with whichever configuration of the node.
fn is_ours(runtime: &Value) -> bool {
    let words = runtime.get("runtimeArgs").and_then(Value::as_array);
    words.and_then(|words| words.first()).and_then(Value::as_str) == Some(WORD)
}

fn not_ours(held: &Value) -> String {
    format!("runtimes.{NAME} was not made by gpucap: rename or remove it there: {held}")
}

/// `None`: there would be nothing in the file but what was put there.
fn remove(text: &str) -> json::Result<Option<String>> {
    let daemon = json::whole(text);
    let Some(runtimes) = json::members(text, &daemon)?.remove(RUNTIMES) else {
        return Ok(Some(text.to_owned()));
    };
    let Some(runtime) = &held(text, &runtimes)? else { return Ok(Some(text.to_owned())) };
    if !is_ours(runtime) {
        return Err(not_ours(runtime));
    }
    let alone = json::without(text, &runtimes, NAME)?;
    let bare = json::without(text, &daemon, RUNTIMES)?;
    // Which keys existed before is determined by trial: the previous text is the one that gives this text again when the
    // runtime is added.
    Ok(match () {
        () if add("", runtime).as_deref() == Ok(text) => None,
        () if add(&bare, runtime).as_deref() == Ok(text) => Some(bare),
        () => Some(alone),
    })
}

/// What goes by our name among the runtimes.
fn held(text: &str, runtimes: &Range<usize>) -> json::Result<Option<Value>> {
    let wrong = |why| format!("{RUNTIMES}: {why}");
    let place = json::members(text, runtimes).map_err(wrong)?.remove(NAME);
    let value = place.map(|place| serde_json::from_str(&text[place]));
    value.transpose().map_err(|why| why.to_string())
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
        for text in [two, tabs, "{}", "{\"runtimes\":{}}", "{\n  \"runtimes\": {\n  }\n}"] {
            let added = add(text, &runtime()).expect("a configuration");
            let value: Value = serde_json::from_str(&added).expect("JSON");
            assert_eq!(value["runtimes"][NAME], runtime());
            let again = add(&added, &runtime());
            assert_eq!(again.as_ref(), Ok(&added), "a second time changes nothing");
            assert_eq!(remove(&added), Ok(Some(text.into())));
            assert_eq!(remove(text), Ok(Some(text.into())));
        }
    }

    #[test]
    fn what_an_administrator_added_since_stays() {
        let added = add("", &runtime()).expect("a configuration");
        let more = added.replacen('{', "{\n    \"debug\": true,", 1);
        assert_eq!(remove(&more).ok().flatten().as_deref(), Some("{\n    \"debug\": true\n}\n"));
    }

    #[test]
    fn the_command_in_another_place_is_the_same_runtime() {
        for text in ["", "{\"debug\": true}", "{\n\t\"runtimes\": {\n\t\t\"a\": {}\n\t}\n}\n"] {
            let old = add(text, &json!({"path": "/src/gpucap", "runtimeArgs": ["runtime"]}));
            let new = add(&old.expect("a configuration"), &runtime()).expect("a configuration");
            assert_eq!(Ok(&new), add(text, &runtime()).as_ref(), "as if it had been the first");
            let none = Some(text.to_owned()).filter(|text| !text.is_empty());
            assert_eq!(remove(&new), Ok(none));
        }
        // What only has the name is neither replaced nor removed.
        let other =
            "{\"runtimes\": {\"gpucap\": {\"path\": \"/x\", \"runtimeArgs\": [\"other\"]}}}";
        for result in [add(other, &runtime()).err(), remove(other).err()] {
            assert!(result.is_some_and(|why| why.contains("was not made by gpucap")));
        }
    }

    #[test]
    fn a_new_file_is_made_and_a_wrong_one_is_left() {
        let made = add("", &runtime()).expect("a configuration");
        assert!(made.starts_with("{\n    \"runtimes\": {\n"), "{made}");
        assert_eq!(remove(&made), Ok(None));
        for text in ["[]", "{", "{\"runtimes\": 1}", "{\"runtimes\": {\"gpucap\": {}}}"] {
            assert!(add(text, &runtime()).is_err(), "{text}");
        }
    }
}
