//! The limits file contains the limits of the container's own variables, which each of its processes inherits; and
//! the notes on a container that asked for nothing, or that may remove its limit.

use crate::case::decided;
use gpucap_core::config::Config;
use gpucap_plan::Plan;
use serde_json::{Value, json};

fn asked(case: &Value) -> Config {
    match decided(case).plan {
        Plan::Limits(file) => file.asked,
        other => panic!("{other:?}"),
    }
}

fn memory(case: &Value) -> Option<String> {
    asked(case).memory.map(|list| list.to_string())
}

#[test]
fn variables_that_limit_are_recorded() {
    let asked = asked(&json!({"env": [
        "GPU_MEM_LIMIT= 4096Mi ", "GPU_CORE_PCT=30", "GPU_PROFILE=0=1g", "GPUCAP_LOG=debug",
        "GPUCAP_CONTEXT_MEM=nonsense",
    ]}));
    let said = |text: Option<String>| text.unwrap_or_default();
    assert_eq!(said(asked.memory.as_ref().map(ToString::to_string)), "4GiB");
    assert_eq!(said(asked.core.as_ref().map(ToString::to_string)), "30%");
    assert_eq!(said(asked.profile.as_ref().map(ToString::to_string)), "0=1g");
    let others = Config { memory: None, core: None, profile: None, ..asked };
    assert_eq!(others, Config::default());
}

#[test]
fn words_of_others_are_not_ours() {
    let hami = json!({"env": ["CUDA_DEVICE_MEMORY_LIMIT_0=1000m"]});
    let annotation = json!({"annotations": {"gpucap/mem": "4Gi"}});
    assert_eq!([asked(&hami), asked(&annotation)], [Config::default(), Config::default()]);
}

#[test]
fn of_several_values_the_inherited_one_is_unknown() {
    assert_eq!(memory(&json!({"env": ["GPU_MEM_LIMIT=4Gi", "GPU_MEM_LIMIT=8Gi"]})), None);
    let same = json!({"env": ["GPU_MEM_LIMIT=4Gi", "GPU_MEM_LIMIT=4Gi"]});
    assert_eq!(memory(&same).as_deref(), Some("4GiB"));
}

#[test]
fn a_node_that_does_not_hear_them_leaves_them_to_the_process() {
    let case = json!({
        "env": ["GPU_MEM_LIMIT=4Gi", "CUDA_DEVICE_MEMORY_LIMIT_0=1000m"],
        "node": {"sources": ["hami"]},
    });
    assert_eq!(memory(&case), None);
}

#[test]
fn annotations_that_may_have_been_meant_are_named() {
    let case = json!({"annotations": {
        "nvidia.com/gpumem": "3000", "hami.io/\u{1b}x": "1", "example.com/gpu": "1",
    }});
    let decision = decided(&case);
    assert_eq!(decision.plan, Plan::NotAsked);
    let expected = [r"hami.io/\u{1b}x", "nvidia.com/gpumem"]
        .map(|key| format!("annotation {key} says no limit that is known here"));
    assert_eq!(decision.notes, expected);
}

#[test]
fn a_container_whose_programs_may_mount_is_noted() {
    let case = |kernel: bool| json!({"env": ["GPU_MEM_LIMIT=4Gi"], "user_namespaces": kernel});
    let is_told =
        |case: &Value| decided(case).notes.iter().any(|note| note.contains("user namespaces"));
    assert_eq!([is_told(&case(true)), is_told(&case(false))], [true, false]);
}
