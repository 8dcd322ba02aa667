//! A `config.json` before and after, and what must not change in it.

use super::*;
use gpucap_plan::Node;
use oci_spec::runtime::Spec;
use std::path::Path;

/// As an engine writes it, with fields of a later specification at every level.
const BEFORE: &str = r#"{
    "ociVersion": "1.2.0",
    "process": {
        "terminal": false,
        "user": {"uid": 0, "gid": 0},
        "args": ["sh"],
        "env": ["PATH=/bin", "GPU_MEM_LIMIT=99Gi", "LAST=1"],
        "cwd": "/",
        "ofProcess": {"z": 1, "a": 2}
    },
    "root": {"path": "rootfs"},
    "hooks": {"prestart": [{"path": "/usr/bin/nvidia", "ofHook": true}]},
    "linux": {
        "resources": {"memory": {"limit": 9223372036854775807}, "cpu": {"shares": 18446744073709551615}},
        "namespaces": [{"type": "mount"}]
    },
    "of2030": [1.5, null, {}]
}"#;

const AFTER: &str = r#"{
    "ociVersion": "1.2.0",
    "process": {
        "terminal": false,
        "user": {"uid": 0, "gid": 0},
        "args": ["sh"],
        "env": ["PATH=/bin", "GPU_MEM_LIMIT=4GiB", "LAST=1", "GPU_CORE_PCT=30%"],
        "cwd": "/",
        "ofProcess": {"z": 1, "a": 2}
    },
    "root": {"path": "rootfs"},
    "hooks": {
        "prestart": [{"path": "/usr/bin/nvidia", "ofHook": true}],
        "createRuntime": [
            {"path": "/usr/bin/gpucap", "args": ["gpucap", "hook", "createRuntime"],
             "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "timeout": 10}
        ],
        "poststop": [
            {"path": "/usr/bin/gpucap", "args": ["gpucap", "hook", "poststop"],
             "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "timeout": 10}
        ]
    },
    "linux": {
        "resources": {"memory": {"limit": 9223372036854775807}, "cpu": {"shares": 18446744073709551615}},
        "namespaces": [{"type": "mount"}]
    },
    "of2030": [1.5, null, {}]
}"#;

fn hooks(config: &str) -> Hooks<'_> {
    Hooks { program: Path::new("/usr/bin/gpucap"), config: Path::new(config) }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn variables() -> Vec<(&'static str, String)> {
    vec![("GPU_MEM_LIMIT", "4GiB".into()), ("GPU_CORE_PCT", "30%".into())]
}

fn edited(text: &str) -> Result<String, Missing> {
    let mut value = parsed(text);
    limit(&mut value, &variables(), hooks(Node::PATH))?;
    Ok(value.to_string())
}

#[test]
fn only_variables_and_the_hook_are_added() {
    assert_eq!(edited(BEFORE), Ok(parsed(AFTER).to_string()));
}

#[test]
fn a_second_time_changes_nothing() {
    assert_eq!(edited(AFTER), Ok(parsed(AFTER).to_string()));
}

#[test]
fn what_comes_out_is_a_specification() {
    let spec: Spec = serde_json::from_str(&edited(BEFORE).expect("edited")).expect("a spec");
    let hooks = spec.hooks().as_ref().and_then(|hooks| hooks.create_runtime().as_ref());
    assert_eq!(hooks.map(Vec::len), Some(1));
}

#[test]
fn what_is_missing_is_made() {
    for text in [
        r#"{"process":{}}"#,
        r#"{"process":{"env":null},"hooks":null}"#,
        r#"{"process":{"env":[]},"hooks":{"createRuntime":null}}"#,
    ] {
        let value = parsed(&edited(text).expect(text));
        assert_eq!(value["process"]["env"], json!(["GPU_MEM_LIMIT=4GiB", "GPU_CORE_PCT=30%"]));
        assert_eq!(value["hooks"]["createRuntime"].as_array().map(Vec::len), Some(1), "{text}");
    }
}

#[test]
fn what_is_of_another_form_is_refused() {
    for (text, missing) in [
        ("[]", "process"),
        ("{}", "process"),
        (r#"{"process":{"env":"A=1"}}"#, "process.env"),
        (r#"{"process":{},"hooks":[]}"#, "hooks"),
        (r#"{"process":{},"hooks":{"createRuntime":{}}}"#, "hooks"),
    ] {
        assert_eq!(edited(text), Err(Missing(missing)), "{text}");
    }
}

#[test]
fn a_variable_that_stands_twice_stands_once() {
    let text =
        r#"{"process":{"env":["GPU_MEM_LIMIT=1","A=2","GPU_MEM_LIMIT=3","GPU_MEM_LIMITS=4"]}}"#;
    let value = parsed(&edited(text).expect("edited"));
    let env = json!(["GPU_MEM_LIMIT=4GiB", "A=2", "GPU_MEM_LIMITS=4", "GPU_CORE_PCT=30%"]);
    assert_eq!(value["process"]["env"], env);
}

#[test]
fn the_hook_reads_the_configuration_that_the_wrapper_read() {
    let args = json!(["gpucap", "hook", "poststop", "--config", "/x.json"]);
    assert_eq!(hooks("/x.json").at("poststop")["args"], args);
}

#[test]
fn another_hook_of_the_same_program_is_another_hook() {
    let other =
        r#"{"process":{},"hooks":{"createRuntime":[{"path":"/usr/bin/gpucap","args":["x"]}]}}"#;
    let value = parsed(&edited(other).expect("edited"));
    assert_eq!(value["hooks"]["createRuntime"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_joining_process_gets_what_the_container_has() {
    let config = parsed(AFTER);
    let mut process = parsed(r#"{"args":["sh"],"env":["GPU_CORE_PCT=99"]}"#);
    assert!(like(&mut process, &config));
    assert_eq!(process["env"], json!(["GPU_CORE_PCT=30%", "GPU_MEM_LIMIT=4GiB"]));
    assert!(!like(&mut process, &config), "nothing is left to change");
    let mut other = parsed(r#"{"args":["sh"]}"#);
    assert!(!like(&mut other, &parsed(r#"{"process":{"env":["A=1"]}}"#)), "nothing to show");
    assert_eq!(other, parsed(r#"{"args":["sh"]}"#));
}

#[test]
fn a_joining_process_gets_each_variable_that_shows_a_limit() {
    let env: Vec<String> = SHOWN.iter().map(|name| format!("{name}=1")).collect();
    let config = json!({"process": {"env": env}});
    let mut process = json!({});
    assert!(like(&mut process, &config));
    assert_eq!(process["env"], config["process"]["env"]);
}
