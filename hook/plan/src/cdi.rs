//! A CDI device that is a slice: what engines read from a file of `/etc/cdi` or `/var/run/cdi`.
//!
//! The device brings the hook that enforces ([`Hooks`]), and with it the limit. One file holds the devices that end
//! together. Where the files are and how they are written is the caller's to know.

use serde_json::{Value, json};

use crate::document::slice::Slice;
use crate::entry::{Hooks, STAGES};

/// What the device is: vendor and class.
pub const KIND: &str = "gpucap/slice";
/// The first version that has everything we say, so that old engines read it too.
const VERSION: &str = "0.5.0";

/// The file with one device, whose limit is in these variables: for people in the environment, and for the hook in its
/// words, since a second device of the container replaces the former.
#[must_use]
pub fn file(name: &str, variables: &[(&str, String)], hooks: Hooks<'_>) -> Value {
    let env: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let hooks: Vec<Value> =
        STAGES.iter().map(|stage| named(hooks.with_limits(stage, variables), stage)).collect();
    document(json!([{"name": name, "containerEdits": {"env": env, "hooks": hooks}}]))
}

/// The file with one device for each slice, each with the hook that has it in its words: of two devices in one container
/// neither replaces what the other says, as it would with variables.
#[must_use]
pub fn slices(slices: &[Slice], hooks: Hooks<'_>) -> Value {
    let device = |slice: &Slice| {
        let entry = |stage: &&str| named(hooks.with_slice(stage, slice), stage);
        let hooks: Vec<Value> = STAGES.iter().map(entry).collect();
        json!({"name": slice.id, "containerEdits": {"hooks": hooks}})
    };
    document(slices.iter().map(device).collect())
}

/// The entry of a hook as CDI has it.
fn named(mut hook: Value, stage: &str) -> Value {
    if let Some(hook) = hook.as_object_mut() {
        hook.insert("hookName".into(), json!(stage));
    }
    hook
}

fn document(devices: Value) -> Value {
    json!({"cdiVersion": VERSION, "kind": KIND, "devices": devices})
}

/// Whether CDI allows this as the name of a device; so also as the name of a file.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let ends = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
    ends(name.chars().next())
        && ends(name.chars().last())
        && name.len() <= 200
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || "_-.:".contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::node::Node;

    #[test]
    fn the_device_is_this() {
        let hooks = Hooks { program: "/usr/bin/gpucap".as_ref(), config: Node::PATH.as_ref() };
        let hook = |stage: &str, more: &[&str]| {
            let words = [&["gpucap", "hook", stage], more].concat();
            json!({
                "path": "/usr/bin/gpucap", "args": words,
                "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "timeout": 10, "hookName": stage,
            })
        };
        let edits = json!({
            "env": ["GPU_MEM_LIMIT=4GiB"], "hooks": [
                hook("createRuntime", &["--limit", "GPU_MEM_LIMIT=4GiB"]), hook("poststop", &[]),
            ],
        });
        assert_eq!(
            file("job7", &[("GPU_MEM_LIMIT", "4GiB".into())], hooks),
            json!({
                "cdiVersion": "0.5.0", "kind": "gpucap/slice",
                "devices": [{"name": "job7", "containerEdits": edits}],
            })
        );
    }

    #[test]
    fn a_name_is_what_cdi_allows() {
        for name in ["a", "7", "job-7", "0a1b:2_c.d"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", "a-", ".", "..", "a/b", "../x", "a b", "\u{e9}"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
