//! What a device plugin or a DRA driver assigned, by its checkpoint on the node, is the container's limit.
//!
//! The pod asks for more in its own variables, and gets what was assigned. The card has four times the slice, so that a
//! quarter of it is what [`is_limited`] expects. The containers' cards are the stub's, whose UUID it is asked for.

use crate::container::{Container, json};
use crate::enforced::{begin, is_limited};
use crate::refused::refuses;
use crate::runtime::Runtime;
use crate::{SUCCESS, trials_of};
use gpucap_tests::{Driver, Result, Stop, World};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("a replica of the device plugin is that part of the card", replica),
        ("a claim of the DRA driver is its memory", claim),
        ("a fraction of KAI is that part of the card", fraction),
        ("the memory limit of NVIDIA's toolkit is one with any driver", toolkit),
        ("a checkpoint that cannot be used refuses a GPU", damaged),
        ("a checkpoint that is not there refuses what was assigned", missing),
    ])
}

/// The card that a container of the stub driver sees.
pub(crate) fn card() -> Result<String> {
    let mut actor = begin(&World::bare(Driver::Stub).actor()?)?;
    let answer = actor.call("uuid a 0 0")?;
    if answer.code != SUCCESS {
        return Err(Stop::fail(format!("uuid: {answer:?}")));
    }
    let hex = format!("{:016x}{:016x}", answer.value, answer.extra);
    actor.end()?.success()?;
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(format!("GPU-{}", parts.join("-")))
}

/// A checkpoint: its setting, its content for a card, and what an error calls it.
type Checkpoint = (&'static str, fn(&str) -> Value, &'static str);

const CHECKPOINTS: [Checkpoint; 2] = [
    ("kubelet_checkpoint", replicas, "the kubelet's checkpoint cannot be read: "),
    ("dra_checkpoint", claims, "the checkpoint of NVIDIA's DRA driver cannot be read: "),
];

/// One of four replicas is the container's; another one is another container's of its pod.
fn replicas(card: &str) -> Value {
    let replica = |number: u32| format!("{card}::{number}");
    let entry = |name: &str, number| {
        json!({
            "PodUID": "u1", "ContainerName": name, "ResourceName": "nvidia.com/gpu",
            "DeviceIDs": {"-1": [replica(number)]}, "AllocResp": "",
        })
    };
    let registered = [0, 1, 2, 3].map(replica);
    json!({
        "Data": {
            "PodDeviceEntries": [entry("init", 3), entry("app", 1)],
            "RegisteredDevices": {"nvidia.com/gpu": registered},
        },
        "Checksum": 1,
    })
}

/// The pod's claim takes 1 GiB of the card.
fn claims(card: &str) -> Value {
    json!({"version": "v2", "checksum": 1, "v1": {}, "v2": {"checksum": 2, "preparedClaims": {"c1": {
        "checkpointState": "PrepareCompleted",
        "status": {
            "allocation": {"devices": {"results": [{
                "request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0",
                "shareID": "s1", "consumedCapacity": {"memory": "1Gi"},
            }]}},
            "reservedFor": [{"resource": "pods", "name": "train", "uid": "u1"}],
        },
        "preparedDevices": [{"devices": [{
            "gpu": {"info": {"uuid": card}, "device": {"DeviceName": "gpu-0"}}, "mig": null,
        }], "configState": {"mpsControlDaemonID": ""}}],
        "name": "train-gpu", "namespace": "test",
    }}}})
}

/// A container of a pod that was assigned a part of the card, and asks for the whole.
fn assigned(runtime: Runtime, (key, content, _): Checkpoint) -> Result<Container> {
    let (container, card) = (Container::new(runtime)?, card()?);
    let path = container.path("node.json");
    let mut node = json(&path)?;
    node[key] = json!(container.path("checkpoint"));
    if key == "kubelet_checkpoint" {
        node["time_slicing"] = json!("enforce");
    }
    fs::write(path, node.to_string())?;
    fs::write(container.path("checkpoint"), content(&card).to_string())?;
    let visible = format!("NVIDIA_VISIBLE_DEVICES={card}");
    let variables = ["GPU_MEM_LIMIT=4Gi", "STUB_GPU_MEM=4GiB", visible.as_str()];
    let container = variables.into_iter().fold(container, Container::env);
    Ok(container.with(|config| {
        config["annotations"] = json!({
            "io.kubernetes.cri.sandbox-uid": "u1", "io.kubernetes.cri.container-name": "app",
        });
    }))
}

fn runs_limited(container: &Container) -> Result {
    let mut actor = begin(&container.run(&["/actor"])?)?;
    is_limited(&mut actor)?;
    actor.end()?.success().map(drop)
}

fn replica(runtime: Runtime) -> Result {
    runs_limited(&assigned(runtime, CHECKPOINTS[0])?)
}

fn claim(runtime: Runtime) -> Result {
    runs_limited(&assigned(runtime, CHECKPOINTS[1])?)
}

/// A container that asks for the whole card, and has these variables besides.
fn with(runtime: Runtime, variables: &[&str]) -> Result<Container> {
    let all =
        ["GPU_MEM_LIMIT=4Gi", "STUB_GPU_MEM=4GiB"].into_iter().chain(variables.iter().copied());
    Ok(all.fold(Container::new(runtime)?, Container::env))
}

fn fraction(runtime: Runtime) -> Result {
    runs_limited(&with(runtime, &["GPU_PORTION=0.25", "RUNAI_NUM_OF_GPUS=0.25"])?)
}

fn toolkit(runtime: Runtime) -> Result {
    let variables = ["NVIDIA_GPU_MEMORY_REQUEST=512", "NVIDIA_GPU_MEMORY_LIMIT=1024"];
    runs_limited(&with(runtime, &variables)?)
}

fn damaged(runtime: Runtime) -> Result {
    for checkpoint in CHECKPOINTS {
        let container = assigned(runtime, checkpoint)?;
        let path = container.path("checkpoint");
        let whole = fs::read(&path)?;
        fs::write(&path, &whole[..whole.len() / 2])?;
        refuses(&container, checkpoint.2)?;
        fs::write(&path, whole)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
        refuses(&container, "checkpoint: others than root can write it")?;
    }
    Ok(())
}

fn missing(runtime: Runtime) -> Result {
    for checkpoint in CHECKPOINTS {
        let container = assigned(runtime, checkpoint)?;
        fs::remove_file(container.path("checkpoint"))?;
        refuses(&container, "checkpoint: not there")?;
        // The plugin itself sees all cards, and has to start before there is a checkpoint.
        runs_limited(&container.env("NVIDIA_VISIBLE_DEVICES=all").env("GPU_MEM_LIMIT=1Gi"))?;
    }
    Ok(())
}
