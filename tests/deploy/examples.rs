//! Each example gets the slice that it shows; the validation passes for a slice and fails for a card.

use crate::manifests::with;
use crate::{ended, expect, manifests, script};
use gpucap_tests::chart;
use gpucap_tests::{Build, Result, Scratch, Stop, project, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("examples: the planner gives each the slice that it shows", slices),
        trial("examples: there is one for each source that a pod can use", each_source),
        trial("examples: the validation passes for its slice alone", validation),
    ]
}

/// An example, and what comes of it.
struct Example {
    file: &'static str,
    /// The source that is heard, by its name in the node's configuration.
    source: &'static str,
    /// What the scheduler and the device plugin of this convention add to what the pod's author wrote.
    annotations: &'static [(&'static str, &'static str)],
    env: &'static [(&'static str, &'static str)],
    /// A file of the node that assigns it its slice: its content, and the settings with `$FILE` for its path.
    file_of_node: Option<(&'static str, &'static str)>,
    /// What `gpucap explain` says of it.
    slice: &'static str,
}

/// One that has all that counts in it.
const fn whole(file: &'static str, source: &'static str, slice: &'static str) -> Example {
    Example { file, source, annotations: &[], env: &[], file_of_node: None, slice }
}

const EXAMPLES: &[Example] = &[
    whole("ack", "ack", "*: memory 2GiB, time 30%"),
    whole("annotations", "annotation", "*: memory 4GiB, time 30%"),
    Example {
        env: &[("NVIDIA_VISIBLE_DEVICES", "GPU-01010101-0101-0101-0101-010101010101")],
        file_of_node: Some((
            r#"{"version":"v2","v2":{"preparedClaims":{"1":{"checkpointState":"PrepareCompleted",
                "status":{"reservedFor":[{"resource":"pods","uid":"u1"}],"allocation":{"devices":{"results":[
                {"driver":"gpu.nvidia.com","device":"gpu-0","consumedCapacity":{"memory":"10Gi"}}]}}},
                "preparedDevices":[{"devices":[{"gpu":{"info":
                {"uuid":"GPU-01010101-0101-0101-0101-010101010101"},"device":{"DeviceName":"gpu-0"}}}]}]}}}}"#,
            r#"{"dra_checkpoint": "$FILE"}"#,
        )),
        ..whole("dra", "dra", "GPU-01010101-0101-0101-0101-010101010101: memory 10GiB")
    },
    whole("egpu", "egpu", "*: memory 2GiB, time 50%"),
    whole("environment", "environment", "*: memory 4GiB, time 30%"),
    Example {
        env: &[("ALIYUN_COM_GPU_MEM_CONTAINER", "3"), ("ALIYUN_COM_GPU_MEM_DEV", "15")],
        ..whole("gpushare", "gpushare", "*: memory 3GiB and at most 20%")
    },
    whole("hami", "hami", "*: memory 3000MiB, time 30%"),
    Example {
        env: &[("GPU_PORTION", "0.25"), ("RUNAI_NUM_OF_GPUS", "0.25")],
        ..whole("kai", "kai", "*: memory 25%, time 25%")
    },
    Example {
        annotations: &[(
            "scheduling.koordinator.sh/device-allocated",
            r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory-ratio":"50"}}]}"#,
        )],
        ..whole("koordinator", "koordinator", "*: memory 50%, time 50%")
    },
    whole("mig", "environment", "*: memory 2GiB"),
    whole("mps", "mps", "*: memory 2GB, time 30%"),
    whole("nvidia", "nvidia", "*: memory 2GiB"),
    whole("profile", "environment", "*: memory 5GiB, time 14.28%"),
    Example {
        env: &[("NVIDIA_VISIBLE_DEVICES", "GPU-01010101-0101-0101-0101-010101010101")],
        file_of_node: Some((
            r#"{"Data":{"PodDeviceEntries":[{"PodUID":"u1","ContainerName":"work","ResourceName":"nvidia.com/gpu",
                "DeviceIDs":{"-1":["GPU-01010101-0101-0101-0101-010101010101::2"]},"AllocResp":""}],
                "RegisteredDevices":{"nvidia.com/gpu":["GPU-01010101-0101-0101-0101-010101010101::3"]}},"Checksum":1}"#,
            r#"{"time_slicing": "enforce", "kubelet_checkpoint": "$FILE"}"#,
        )),
        ..whole(
            "replicas",
            "time-slicing",
            "GPU-01010101-0101-0101-0101-010101010101: memory 25%, time 25%",
        )
    },
    whole("slice", "slice", "GPU-01010101-0101-0101-0101-010101010101: memory 10GiB, time 30%"),
    whole("time-slicing", "environment", "*: memory 4GiB, time 30%"),
    Example {
        env: &[("CUDA_MEM_LIMIT_0", "2048m"), ("CUDA_CORE_LIMIT_0", "30")],
        ..whole("vgpu-manager", "vgpu-manager", "*: memory 2GiB, time 30%")
    },
    Example {
        annotations: &[(
            "volcano.sh/vgpu-ids-new",
            "GPU-01010101-0101-0101-0101-010101010101,NVIDIA,3000,30:;",
        )],
        ..whole(
            "volcano",
            "volcano",
            "GPU-01010101-0101-0101-0101-010101010101: memory 3000MiB, time 30%",
        )
    },
];
/// What an engine puts into `config.json` from the CDI device of the claim.
const PREPARED: &str = r#"{"createRuntime": [{"path": "/opt/gpucap/current/bin/gpucap", "args": ["gpucap", "hook",
    "createRuntime", "--slice",
    "id=1,gpu=GPU-01010101-0101-0101-0101-010101010101,mem=10737418240,cores=30%,for=default/slice"]}]}"#;

/// Sources of the node: no pod says anything of them.
const OF_THE_NODE: [&str; 2] = ["allocation", "kubelet"];

fn slices() -> Result {
    let settings = chart::object(&with("uninstall=false")?, "ConfigMap", "gpucap-settings")?;
    let node = settings["data"]["config.json"].as_str().unwrap_or_default();
    let mut seen = 0;
    for (file, pod) in manifests::all()? {
        let Some(name) = file.strip_prefix("examples/").and_then(|it| it.strip_suffix(".yaml"))
        else {
            continue;
        };
        let example = EXAMPLES.iter().find(|it| it.file == name);
        let example = example.ok_or_else(|| Stop::fail(format!("{name} is in no table")))?;
        let said = explained(&pod, example, node)?;
        expect(said.contains(example.slice), || {
            format!("{name}: no `{}` in: {said}", example.slice)
        })?;
        let heard = said.contains(&format!(" ({}): ", example.source));
        expect(heard, || format!("{name}: {} says nothing in: {said}", example.source))?;
        seen += 1;
    }
    expect(seen == EXAMPLES.len(), || format!("only {seen}"))
}

/// By the manual's table, which the planner's own tests compare with the planner.
fn each_source() -> Result {
    let page = fs::read_to_string(project().join("docs/src/request-formats.md"))?;
    let rows = page.split("<!-- sources: ").nth(1).and_then(|it| it.split("<!-- end").next());
    let rows = rows.unwrap_or_default().lines().filter_map(|row| row.strip_prefix("| `"));
    let names: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    expect(names.len() >= 12, || format!("{names:?}"))?;
    let shown = |name: &&&str| EXAMPLES.iter().any(|it| it.source == **name);
    let missing: Vec<_> =
        names.iter().filter(|name| !OF_THE_NODE.contains(name) && !shown(name)).collect();
    expect(missing.is_empty(), || format!("no example for {missing:?}"))
}

/// What the hook would do with the pod's container, on a node with these settings.
fn explained(pod: &Value, example: &Example, node: &str) -> Result<String> {
    let scratch = Scratch::new()?;
    let env = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let own = env.iter().map(|it| format!("{}={}", text(&it["name"]), text(&it["value"])));
    let added = example.env.iter().map(|(name, value)| format!("{name}={value}"));
    let env: Vec<_> = own.chain(added).collect();
    let mut annotations = pod["metadata"].get("annotations").cloned().unwrap_or(json!({}));
    annotations["io.kubernetes.cri.sandbox-uid"] = json!("u1");
    annotations["io.kubernetes.cri.container-name"] = pod["spec"]["containers"][0]["name"].clone();
    for (name, value) in example.annotations {
        annotations[*name] = json!(value);
    }
    let hooks = if example.source == "slice" { PREPARED } else { "{}" };
    let hooks: Value = serde_json::from_str(hooks).map_err(Stop::fail)?;
    let config = json!({
        "hooks": hooks, "ociVersion": "1.0.2",
        "process": {"args": ["nvidia-smi"], "env": env, "cwd": "/"},
        "root": {"path": "rootfs"},
        "linux": {"namespaces": [{"type": "mount"}]},
        "annotations": annotations,
    });
    fs::write(scratch.path().join("config.json"), config.to_string())?;
    let mut node = node.to_owned();
    if let Some((content, settings)) = example.file_of_node {
        let file = scratch.path().join("file");
        fs::write(&file, content)?;
        node = settings.replace("$FILE", &file.display().to_string());
    }
    fs::write(scratch.path().join("node.json"), node)?;
    let mut explain = Command::new(Build::shipped()?.gpucap()?);
    explain.arg("explain").arg(scratch.path());
    ended(explain.arg("--config").arg(scratch.path().join("node.json")), true)
}

fn validation() -> Result {
    let job = chart::object(&with("uninstall=false")?, "Job", "gpucap-validate")?;
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
