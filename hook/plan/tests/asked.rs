//! The limits file contains the limits of the container's own variables, which each of its processes inherits; and
//! the notes on a container that asked for nothing, or that may remove its limit.

use crate::case::{decided, notes};
use gpucap_core::config::Config;
use gpucap_plan::{Note, Plan};
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
    assert_eq!(notes(&decision), expected);
}

#[test]
fn names_that_are_nearly_those_of_a_limit_are_named() {
    for (name, meant) in [
        ("GPU_MEM_LIMT", "GPU_MEM_LIMIT"),
        ("gpu_mem_limit", "GPU_MEM_LIMIT"),
        ("GPU_MEMORY_LIMIT", "GPU_MEM_LIMIT"),
        ("GPU_CORES_PCT", "GPU_CORE_PCT"),
        ("NVIDIA_GPU_MEMORY_LIMITS", "NVIDIA_GPU_MEMORY_LIMIT"),
    ] {
        let entry = format!("{name}=4Gi");
        let expected = format!("environment {name} is not read: is {meant} meant?");
        assert_eq!(notes(&decided(&json!({"env": [entry]}))).join("\n"), expected);
        // Beside a limit that counts, too.
        let both = decided(&json!({"env": [entry, "GPU_CORE_PCT=30"]}));
        assert!(notes(&both).contains(&expected.as_str()), "{both:?}");
    }
    for other in ["CUDA_VISIBLE_DEVICES=0", "PATH=/bin", "GPU_MEM_LIMIT=", "GPU_NAME=a", "GPU=1"] {
        assert_eq!(notes(&decided(&json!({"env": [other]}))), [""; 0], "{other}");
    }
    let alone = decided(&json!({"env": ["GPU_PORTION=0.5", "NVIDIA_GPU_MEMORY_REQUEST=1"]}));
    assert_eq!(
        notes(&alone),
        [
            "environment GPU_PORTION limits nothing without RUNAI_NUM_OF_GPUS",
            "environment NVIDIA_GPU_MEMORY_REQUEST limits nothing without NVIDIA_GPU_MEMORY_LIMIT",
        ]
    );
    let domain = decided(&json!({"annotations": {"gpucup/mem": "4Gi", "example.com/mem": "4Gi"}}));
    assert_eq!(notes(&domain), ["annotation gpucup/mem is not read: is the domain gpucap meant?"]);
}

#[test]
fn names_without_end_are_compared_in_bounds() {
    let names = (0..200_000).map(|number| format!("GPU_{number:0>40}=1"));
    let env: Vec<_> =
        names.chain((0..20).map(|it| format!("GPU_MEM_LIMIT{it:0>2}\u{1b}=1"))).collect();
    assert_eq!(notes(&decided(&json!({"env": env}))), [""; 0]);
    let near: Vec<_> = (10..40).map(|it| format!("GPU_MEM_LIMIT{it}=1")).collect();
    assert_eq!(decided(&json!({"env": near})).notes.len(), 8);
}

#[test]
fn a_container_whose_programs_may_mount_is_noted() {
    let case = |kernel: bool| json!({"env": ["GPU_MEM_LIMIT=4Gi"], "user_namespaces": kernel});
    let is_noted =
        |case: &Value| notes(&decided(case)).iter().any(|note| note.contains("user namespaces"));
    assert_eq!([is_noted(&case(true)), is_noted(&case(false))], [true, false]);
}

#[test]
fn what_becomes_of_a_wish_to_borrow_is_said() {
    let notes = |env: &[&str], lending: &str| {
        let decision = decided(&json!({"env": env, "node": {"lending": lending}}));
        let lines = notes(&decision).into_iter().map(str::to_owned);
        let of_time = |note: &String| note.contains("GPU time") || note.contains("maximum");
        lines.filter(of_time).collect::<Vec<_>>()
    };
    let burst = ["GPU_CORE_PCT=30", "GPU_CORE_POLICY=burst"];
    let ignored = "is ignored: this node lends no GPU time (lending: off), so the share is fixed";
    assert_eq!(notes(&burst, "off"), [format!("burst {ignored}")]);
    let low = ["GPU_CORE_PCT=30", "GPU_CORE_PRIORITY=low"];
    assert_eq!(notes(&low, "off"), [format!("low priority {ignored}")]);
    let alone = ["GPU_MEM_LIMIT=4Gi", "GPU_CORE_POLICY=burst"];
    let nothing = "burst changes nothing: no source gives a share of GPU time";
    assert_eq!(notes(&alone, "allowed"), [nothing]);
    for (env, lending) in [(&burst, "allowed"), (&low, "always")] {
        assert_eq!(notes(env, lending), Vec::<String>::new());
    }
    assert_eq!(notes(&["GPU_CORE_PCT=30"], "off"), Vec::<String>::new());
    let most = ["GPU_CORE_PCT=30", "GPU_CORE_MAX_PCT=50"];
    let fixed = [&most[..], &["GPU_CORE_POLICY=fixed"]].concat();
    let vain = "a maximum changes nothing without burst: the share is fixed";
    for (env, lending) in
        [(&most[..], "off"), (&most, "allowed"), (&fixed, "allowed"), (&fixed, "always")]
    {
        assert_eq!(notes(env, lending), [vain], "{env:?} {lending}");
    }
    let lowers = ["GPU_CORE_PCT=30", "GPU_CORE_MAX_PCT=20"];
    for (env, lending) in
        [(&most[..], "always"), (&lowers, "off"), (&["GPU_CORE_MAX_PCT=20"], "off")]
    {
        assert_eq!(notes(env, lending), Vec::<String>::new(), "{env:?} {lending}");
    }
}

#[test]
fn a_note_warns_where_less_is_given_than_asked_for_or_the_limit_may_not_hold() {
    for (case, warnings) in [
        (json!({"env": ["GPU_MEM_LIMT=4Gi"]}), "is not read"),
        (json!({"env": ["GPU_CORE_PCT=30", "GPU_CORE_POLICY=burst"]}), "is ignored"),
        (json!({"env": ["GPU_MEM_LIMIT=2048"]}), "is 2048Mi meant?"),
        (json!({"env": ["GPU_MEM_LIMIT=4Gi", "CUDA_DISABLE_CONTROL=true"]}), "is ignored"),
        (json!({"env": ["GPU_MEM_LIMIT=4Gi"], "user_namespaces": true}), "user namespaces"),
        (json!({"env": ["GPU_MEM_LIMIT=4Gi"], "calibration": "{"}), "run `gpucap calibrate`"),
    ] {
        let all = decided(&case).notes;
        let is_it = |note: &Note| note.is_warning && note.text.contains(warnings);
        assert!(all.iter().any(is_it), "{case}: {all:?}");
    }
    for (case, note) in [
        (
            json!({"env": ["GPU_MEM_LIMIT=4Gi"], "node": {"native_limits": "auto"}}),
            "the library alone does",
        ),
        (json!({"annotations": {"nvidia.com/gpumem": "3000"}}), "says no limit"),
    ] {
        let all = decided(&case).notes;
        let is_it = |it: &Note| !it.is_warning && it.text.contains(note);
        assert!(all.iter().any(is_it), "{case}: {all:?}");
    }
}

#[test]
fn of_low_priority_an_older_library_holds_what_was_asked_for() {
    let written = |env: &[&str]| {
        let case = json!({"env": env, "node": {"lending": "allowed"}});
        let Plan::Limits(file) = decided(&case).plan else { panic!("{env:?}") };
        file.entries
            .iter()
            .filter_map(|entry| entry.core)
            .map(|it| it.percent())
            .collect::<Vec<_>>()
    };
    assert_eq!(written(&["GPU_CORE_PRIORITY=low"]), [1]);
    assert_eq!(written(&["GPU_CORE_PRIORITY=low", "GPU_CORE_PCT=30"]), [30]);
    assert_eq!(written(&["GPU_CORE_PRIORITY=low", "GPU_CORE_PCT=30", "GPU_CORE_MAX_PCT=20"]), [20]);
}
