//! What the scheduler is told of the cards.

use crate::expect;
use crate::kubelet::waited;
use crate::node::{DRIVER, NAME, Node};
use crate::server::{Mood, SLICES};
use gpucap_tests::{Result, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("slices: a card is what claims can have of it", published),
        trial("slices: what the driver keeps for itself is not offered", reserved),
        trial("slices: a card that uses the machine's memory has what CUDA says", unified),
        trial(
            "slices: what has not changed is not written again, by a new driver neither",
            unchanged,
        ),
        trial("slices: a card that comes is published with the next generation", another_card),
        trial(
            "slices: a slice that was deleted comes back, and one of an older name goes",
            kept_up,
        ),
        trial("slices: they are published once the API server is there", late_server),
        trial("slices: without an answer of NVIDIA's driver nothing new is said", no_answer),
        trial("slices: a card with MIG instances is not offered", with_mig),
    ]
}

fn slice(node: &Node) -> Result<Value> {
    let slices = node.server.slices();
    let [slice] = &slices[..] else { return Err(Stop::fail(format!("{slices:?}"))) };
    Ok(slice.clone())
}

fn published() -> Result {
    let node = Node::start()?;
    let devices = node.published(|devices| devices.len() == 2)?;
    let slice = slice(&node)?;
    let spec = &slice["spec"];
    let pool = json!({"name": NAME, "generation": 1, "resourceSliceCount": 1});
    expect(spec["driver"] == DRIVER && spec["nodeName"] == NAME && spec["pool"] == pool, || {
        spec.to_string()
    })?;
    let owner = &slice["metadata"]["ownerReferences"][0];
    expect(owner["kind"] == "Node" && owner["uid"] == "node-uid", || owner.to_string())?;
    for device in &devices {
        let uuid = device["attributes"]["uuid"]["string"].as_str().unwrap_or_default();
        expect(device["name"] == uuid.to_lowercase(), || device.to_string())?;
        let policy = |whole: &str, least: &str| json!({"value": whole, "requestPolicy": {"default": whole, "validRange": {"min": least, "step": "1"}}});
        let capacity = json!({"memory": policy("80Gi", "1Mi"), "cores": policy("100", "1")});
        expect(device["capacity"] == capacity, || device["capacity"].to_string())?;
        expect(device["allowMultipleAllocations"] == true, || device.to_string())?;
        let attributes = &device["attributes"];
        for (name, value) in [
            ("productName", json!({"string": "Stub GPU"})),
            ("architecture", json!({"string": "Ampere"})),
            ("cudaComputeCapability", json!({"version": "8.0.0"})),
            ("driverVersion", json!({"version": "595.10.1"})),
            ("cudaDriverVersion", json!({"version": "13.5.0"})),
        ] {
            expect(attributes[name] == value, || format!("{name}: {}", attributes[name]))?;
        }
        let address = &attributes["resource.kubernetes.io/pciBusID"]["string"];
        expect(address.as_str().is_some_and(|it| it.starts_with("0000:")), || {
            attributes.to_string()
        })?;
    }
    expect(devices[0]["name"] != devices[1]["name"], || format!("{devices:?}"))
}

fn reserved() -> Result {
    let mut node = Node::without_driver()?;
    node.cards(1, &[("STUB_GPU_MEM", "24GiB"), ("STUB_GPU_RESERVED", "500MiB")])?;
    node.start_driver()?;
    let devices = node.published(|devices| devices.len() == 1)?;
    let memory = &devices[0]["capacity"]["memory"]["value"];
    expect(*memory == "24076Mi", || memory.to_string())
}

/// NVML has no figures of such cards, and CUDA has an order of its own: each is found by its UUID.
fn unified() -> Result {
    for shared in ["off", "on"] {
        let mut node = Node::without_driver()?;
        let settings = [("STUB_GPU_MEM", "128GiB,24GiB"), ("STUB_GPU_ORDER", "reverse")];
        node.cards(2, &[settings.as_slice(), &[("STUB_GPU_SHARED_MEMORY", shared)]].concat())?;
        node.start_driver()?;
        let devices = node.published(|devices| devices.len() == 2)?;
        let sizes: Vec<_> = devices.iter().map(|it| &it["capacity"]["memory"]["value"]).collect();
        expect(sizes == ["128Gi", "24Gi"], || format!("{shared}: {devices:?}"))?;
    }
    Ok(())
}

fn unchanged() -> Result {
    let mut node = Node::start()?;
    node.published(|devices| devices.len() == 2)?;
    let (writes, before) = (node.server.writes(), slice(&node)?);
    rounds(&node, 2)?;
    node.end_driver()?;
    node.start_driver()?;
    drop(node.kubelet()?);
    rounds(&node, 2)?;
    expect(node.server.writes() == writes && slice(&node)? == before, || {
        format!("{} writes", node.server.writes())
    })
}

/// Waits until the driver has asked for the cards this number of times more.
fn rounds(node: &Node, count: usize) -> Result {
    let asked =
        || node.installation.asked().lines().filter(|line| line.starts_with("asked cards")).count();
    let before = asked();
    waited(|| (asked() >= before + count).then_some(()))
}

fn another_card() -> Result {
    let node = Node::start()?;
    node.published(|devices| devices.len() == 2)?;
    let generation =
        |node: &Node| Ok::<_, Stop>(slice(node)?["spec"]["pool"]["generation"].as_i64());
    expect(generation(&node)? == Some(1), || "not the first".into())?;
    node.cards(3, &[])?;
    node.published(|devices| devices.len() == 3)?;
    expect(generation(&node)? == Some(2), || "not the second".into())
}

fn kept_up() -> Result {
    let node = Node::start()?;
    node.published(|devices| devices.len() == 2)?;
    let mut older = slice(&node)?;
    let name = older["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    node.server.remove(&format!("{SLICES}/{name}"));
    older["metadata"]["name"] = json!("older");
    node.server.put(&format!("{SLICES}/older"), older.clone());
    older["metadata"]["name"] = json!("n2");
    older["spec"]["nodeName"] = json!("n2");
    node.server.put(&format!("{SLICES}/n2"), older);
    let names = || {
        let mut names: Vec<_> =
            node.server.slices().iter().map(|it| it["metadata"]["name"].clone()).collect();
        names.sort_by_key(Value::to_string);
        names
    };
    waited(|| (names() == [json!(name.clone()), json!("n2")]).then_some(()))
}

fn late_server() -> Result {
    let mut node = Node::without_driver()?;
    node.server.set(Mood::Away);
    node.start_driver()?;
    // The kubelet can have it before.
    drop(node.kubelet()?);
    expect(node.server.slices().is_empty(), || "from where".into())?;
    node.server.set(Mood::Well);
    node.published(|devices| devices.len() == 2).map(drop)
}

fn no_answer() -> Result {
    let node = Node::start()?;
    node.published(|devices| devices.len() == 2)?;
    let before = slice(&node)?;
    node.installation.script("echo 'error no NVIDIA driver is found'; exit 1")?;
    waited(|| node.log().contains("no NVIDIA driver is found").then_some(()))?;
    rounds(&node, 2)?;
    expect(slice(&node)? == before, || "another slice".into())
}

fn with_mig() -> Result {
    let mut node = Node::without_driver()?;
    node.cards(2, &[("STUB_GPU_MIG", "0=10GiB+20GiB")])?;
    node.start_driver()?;
    node.published(|devices| devices.len() == 1)?;
    expect(node.log().contains("1 with MIG instances, which are not published"), || node.log())
}
