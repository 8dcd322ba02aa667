//! Each example gets the slice that it shows; the validation passes for a slice and fails for a card.

use crate::{ended, expect, manifest, manifests, script};
use gpucap_tests::{Build, Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("examples: the planner gives each the slice that it shows", slices),
        trial("examples: the validation passes for its slice alone", validation),
    ]
}

/// What `gpucap explain` says of each.
const SLICES: &[(&str, &str)] = &[
    ("ack", "*: memory 2GiB, time 30%"),
    ("annotations", "*: memory 4GiB, time 30%"),
    ("environment", "*: memory 4GiB, time 30%"),
    ("hami", "*: memory 3000MiB, time 30%"),
    ("profile", "*: memory 5GiB, time 14.28%"),
];

fn slices() -> Result {
    let settings = manifest("settings.yaml")?;
    let node = settings["data"]["config.json"].as_str().unwrap_or_default();
    let mut seen = Vec::new();
    for (file, pod) in manifests::all()? {
        let Some(name) = file.strip_prefix("examples/").and_then(|it| it.strip_suffix(".yaml"))
        else {
            continue;
        };
        let slice = SLICES.iter().find(|it| it.0 == name);
        let (_, slice) = slice.ok_or_else(|| Stop::fail(format!("{name} is in no table")))?;
        let said = explained(&pod, node)?;
        expect(said.contains(slice), || format!("{name}: no `{slice}` in: {said}"))?;
        seen.push(name.to_owned());
    }
    expect(seen.len() == SLICES.len(), || format!("only {seen:?}"))
}

/// What the hook would do with the pod's container, on a node with these settings.
fn explained(pod: &Value, node: &str) -> Result<String> {
    let scratch = Scratch::new()?;
    let env = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let env: Vec<_> =
        env.iter().map(|it| format!("{}={}", text(&it["name"]), text(&it["value"]))).collect();
    let config = json!({
        "ociVersion": "1.0.2",
        "process": {"args": ["nvidia-smi"], "env": env, "cwd": "/"},
        "root": {"path": "rootfs"},
        "linux": {"namespaces": [{"type": "mount"}]},
        "annotations": pod["metadata"].get("annotations").unwrap_or(&json!({})),
    });
    fs::write(scratch.path().join("config.json"), config.to_string())?;
    fs::write(scratch.path().join("node.json"), node)?;
    let mut explain = Command::new(Build::shipped()?.gpucap()?);
    explain.arg("explain").arg(scratch.path());
    ended(explain.arg("--config").arg(scratch.path().join("node.json")), true)
}

fn validation() -> Result {
    let job = manifest("validate.yaml")?;
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    expect(container["env"] == json!([{"name": "GPU_MEM_LIMIT", "value": "2Gi"}]), || {
        format!("the script compares with 2048 MiB, not {}", container["env"])
    })?;
    let words: Option<Vec<_>> =
        container["command"].as_array().and_then(|it| it.iter().map(Value::as_str).collect());
    let words = words.ok_or_else(|| Stop::fail("no command"))?;
    let path = env::var("PATH").map_err(Stop::fail)?;
    for (smi, passes) in [
        ("echo 2048", true),
        ("echo 2048; echo 2048", true),
        ("echo 81920", false),
        ("echo 2048; echo 81920", false),
        ("echo '[N/A]'", false),
        (":", false),
        ("echo 2048; exit 9", false),
    ] {
        let scratch = Scratch::new()?;
        script(&scratch.path().join("nvidia-smi"), smi)?;
        let mut run = Command::new(words[0]);
        run.args(&words[1..]).env("PATH", format!("{}:{path}", scratch.path().display()));
        ended(&mut run, passes)?;
    }
    Ok(())
}
