//! The rules for what can fail: a claim that cannot be held to its share is refused, in one line.

use crate::expect;
use crate::kubelet::waited;
use crate::node::{NAME, Node, claim, device, path, refused, share, well};
use crate::server::{Mood, SLICES};
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("failures: another claim under the name is refused", another_uid),
        trial("failures: a claim that is gone is refused", gone),
        trial("failures: a claim that is not allocated is refused", not_allocated),
        trial(
            "failures: without the API server, prepared claims are answered and new ones refused",
            away,
        ),
        trial("failures: amounts that were not counted are refused", not_counted),
        trial("failures: more memory than the card has is refused", beyond),
        trial("failures: a device of another node is refused", other_node),
        trial("failures: a lost card is refused, and no other one given", lost_card),
        trial(
            "failures: without a CDI directory nothing is offered or prepared, until there is one",
            no_directory,
        ),
        trial(
            "failures: beside NVIDIA's device plugin nothing is offered or prepared",
            beside_plugin,
        ),
        trial("failures: beside NVIDIA's DRA driver nothing is offered or prepared", beside_driver),
        trial(
            "failures: until the API server says what else offers the GPUs, nothing is prepared",
            rival_unknown,
        ),
        trial("failures: a checkpoint of another version ends the driver", other_version),
    ]
}

const ID: &str = "7f1c0000-0000-4000-8000-000000000001";

fn another_uid() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let shares = [share(&device(&node, 0)?, ID, "10Gi", "30")];
    let mut own = claim(&node, "1", &shares);
    own.uid = "00000000-0000-4000-8000-00000000000f".into();
    refused(&kubelet.prepare_one(&own)?, "another claim has this name now")?;
    // The same once it was prepared: the pod of the earlier claim has no place in the later one.
    let own = claim(&node, "1", &shares);
    well(kubelet.prepare_one(&own)?)?;
    let mut later = own.clone();
    later.uid = "00000000-0000-4000-8000-00000000000e".into();
    refused(&kubelet.prepare_one(&later)?, "another claim has this name now")?;
    expect(node.cdi_files().len() == 1, || format!("{:?}", node.cdi_files()))
}

fn gone() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let own = claim(&node, "1", &[share(&device(&node, 0)?, ID, "10Gi", "30")]);
    node.server.remove(&path("1"));
    refused(&kubelet.prepare_one(&own)?, "claim ns/1: there is no such claim any more")?;
    expect(node.cdi_files().is_empty(), || format!("{:?}", node.cdi_files()))
}

fn not_allocated() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let own = claim(&node, "1", &[]);
    refused(&kubelet.prepare_one(&own)?, "has no device of slice.gpucap.io")
}

fn away() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let own = claim(&node, "1", &[share(&card, ID, "10Gi", "30")]);
    let other = claim(&node, "2", &[share(&card, ID, "10Gi", "30")]);
    let before = well(kubelet.prepare_one(&own)?)?;
    node.server.set(Mood::Away);
    let during = well(kubelet.prepare_one(&own)?)?;
    expect(before == during, || format!("{before:?}, then {during:?}"))?;
    refused(&kubelet.prepare_one(&other)?, "the API server: claim ns/2: ")?;
    expect(kubelet.unprepare(&own)?.is_empty(), || "unprepare".into())?;
    node.server.set(Mood::Well);
    well(kubelet.prepare_one(&other)?).map(drop)
}

fn not_counted() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let mut result = share(&device(&node, 0)?, ID, "10Gi", "30");
    result["consumedCapacity"] = json!({"memory": "10Gi"});
    let own = claim(&node, "1", &[result.clone()]);
    refused(&kubelet.prepare_one(&own)?, "the scheduler has counted no cores")?;
    result["consumedCapacity"] = json!({"memory": "all of it", "cores": "30"});
    let own = claim(&node, "2", &[result]);
    refused(&kubelet.prepare_one(&own)?, "not an amount")?;
    expect(node.cdi_files().is_empty(), || format!("{:?}", node.cdi_files()))
}

fn beyond() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let own = claim(&node, "1", &[share(&card, ID, "85899345921", "30")]);
    refused(&kubelet.prepare_one(&own)?, "has less memory than that")?;
    well(kubelet.prepare_one(&claim(&node, "2", &[share(&card, ID, "80Gi", "30")]))?).map(drop)
}

fn other_node() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let mut result = share(&device(&node, 0)?, ID, "10Gi", "30");
    result["pool"] = json!("n2");
    let own = claim(&node, "1", &[result]);
    refused(&kubelet.prepare_one(&own)?, "is of the pool n2")?;
    let unknown = "gpu-99999999-0000-0000-0000-000000000000";
    let own = claim(&node, "2", &[share(unknown, ID, "10Gi", "30")]);
    refused(&kubelet.prepare_one(&own)?, "is not a GPU of this node")
}

fn lost_card() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let (stays, goes) = (device(&node, 0)?, device(&node, 1)?);
    let own = claim(&node, "1", &[share(&goes, ID, "10Gi", "30")]);
    well(kubelet.prepare_one(&own)?)?;
    node.cards(1, &[])?;
    let devices = node.published(|devices| devices.iter().any(|it| it["taints"].is_array()))?;
    let tainted: Vec<_> = devices.iter().filter(|it| it["taints"].is_array()).collect();
    let [lost] = &tainted[..] else { return Err(gpucap_tests::Stop::fail(format!("{devices:?}"))) };
    expect(lost["name"] == goes && lost["taints"][0]["effect"] == "NoSchedule", || {
        format!("{lost}")
    })?;
    refused(&kubelet.prepare_one(&own)?, "was lost")?;
    let other = claim(&node, "2", &[share(&stays, ID, "10Gi", "30")]);
    well(kubelet.prepare_one(&other)?)?;
    node.cards(2, &[])?;
    node.published(|devices| {
        devices.len() == 2 && devices.iter().all(|it| it["taints"].is_null())
    })?;
    well(kubelet.prepare_one(&own)?).map(drop)
}

fn no_directory() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let own = claim(&node, "1", &[share(&card, ID, "10Gi", "30")]);
    // Root may write into any directory: so it is none.
    node.forget_cdi()?;
    fs::write(node.cdi(), "")?;
    node.published(<[_]>::is_empty)?;
    refused(&kubelet.prepare_one(&own)?, "/cdi")?;
    fs::remove_file(node.cdi())?;
    node.published(|devices| devices.len() == 2)?;
    well(kubelet.prepare_one(&own)?).map(drop)
}

fn beside_plugin() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let before = claim(&node, "1", &[share(&card, ID, "10Gi", "30")]);
    well(kubelet.prepare_one(&before)?)?;
    let offers = |amount: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME, "uid": "node-uid"},
            "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu.shared": amount}},
        })
    };
    let place = format!("/api/v1/nodes/{NAME}");
    node.server.put(&place, offers("8"));
    node.published(<[_]>::is_empty)?;
    let later = claim(&node, "2", &[share(&card, ID, "10Gi", "30")]);
    refused(&kubelet.prepare_one(&later)?, "a device plugin, as nvidia.com/gpu.shared")?;
    // What was given before is not taken away.
    well(kubelet.prepare_one(&before)?)?;
    node.server.put(&place, offers("0"));
    node.published(|devices| devices.len() == 2)?;
    well(kubelet.prepare_one(&later)?).map(drop)
}

fn beside_driver() -> Result {
    let node = Node::start()?;
    let kubelet = node.kubelet()?;
    let card = device(&node, 0)?;
    let place = format!("{SLICES}/theirs");
    let theirs = |devices: serde_json::Value, node: &str| {
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "theirs"},
            "spec": {
                "driver": "gpu.nvidia.com", "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            },
        })
    };
    node.server.put(&place, theirs(json!([{"name": "gpu-0"}]), NAME));
    node.published(<[_]>::is_empty)?;
    let own = claim(&node, "1", &[share(&card, ID, "10Gi", "30")]);
    refused(&kubelet.prepare_one(&own)?, "the DRA driver gpu.nvidia.com")?;
    for harmless in [theirs(json!([{"name": "gpu-0"}]), "n2"), theirs(json!([]), NAME)] {
        node.server.put(&place, harmless);
        node.published(|devices| devices.len() == 2)?;
        well(kubelet.prepare_one(&own)?)?;
    }
    Ok(())
}

fn rival_unknown() -> Result {
    let mut node = Node::start()?;
    let card = device(&node, 0)?;
    let before = claim(&node, "1", &[share(&card, ID, "10Gi", "30")]);
    well(node.kubelet()?.prepare_one(&before)?)?;
    let published = node.published(|devices| devices.len() == 2)?;
    node.end_driver()?;
    // The server answers about claims and slices, and not about the node.
    let place = format!("/api/v1/nodes/{NAME}");
    node.server.remove(&place);
    node.start_driver()?;
    let kubelet = node.kubelet()?;
    let later = claim(&node, "2", &[share(&card, ID, "10Gi", "30")]);
    refused(&kubelet.prepare_one(&later)?, "is not known yet")?;
    waited(|| node.log().contains(&format!("node {NAME}: ")).then_some(()))?;
    refused(&kubelet.prepare_one(&later)?, "is not known yet")?;
    well(kubelet.prepare_one(&before)?)?;
    let still = node.published(|_| true)?;
    expect(still == published, || format!("{published:?}, then {still:?}"))?;
    node.server.put(
        &place,
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME, "uid": "node-uid"}}),
    );
    well(kubelet.prepare_once_known(&later)?).map(drop)
}

fn other_version() -> Result {
    let node = Node::without_driver()?;
    let place = node.path("k/plugins/slice.gpucap.io");
    fs::create_dir_all(&place)?;
    for (text, why) in [
        (r#"{"version": 9, "claims": {}}"#, "version 9: this one knows 1"),
        ("{\"version\": 1,", "EOF"),
        (r#"{"version": 1, "claims": {}, "more": 1}"#, "unknown field"),
    ] {
        fs::write(place.join("checkpoint.json"), text)?;
        let status = node.run_driver()?;
        expect(!status.success() && node.log().contains(why), || node.log())?;
        waited(|| (fs::read_to_string(place.join("checkpoint.json")).ok()? == text).then_some(()))?;
    }
    Ok(())
}
