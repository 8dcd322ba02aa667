//! The node's cards as the scheduler has them, and that they follow the driver and its cards.

use crate::cluster::{CARDS, DRIVER, NODE, cluster};
use crate::manifests::{WAITS, container, pod, request, template};
use crate::{expect, waited};
use gpucap_tests::{Result, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("each card is a device that several claims may have parts of", devices),
        trial("the driver writes no slice of another node", other_node),
        trial(
            "the health of a card is in the status of its pod, and a lost one is given to none",
            lost,
        ),
        trial("without the driver no claim is prepared, and with it again the pod starts", removed),
    ]
}

fn devices() -> Result {
    let cluster = cluster()?;
    let devices = cluster.devices()?;
    let is_whole = |device: &Value| {
        device["allowMultipleAllocations"] == true
            && device["capacity"]["memory"]["value"] == "8Gi"
            && device["capacity"]["cores"]["value"] == "100"
    };
    let fits = devices.len() == CARDS && devices.iter().all(is_whole);
    expect(fits, || format!("{devices:?}"))?;
    waited("the driver's registration", || {
        let log = cluster.daemons.log("driver");
        Ok(log.contains("the kubelet has registered it").then_some(()))
    })
}

/// The policy of the chart, with the token that the driver has.
fn other_node() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "other"},
        "spec": {
            "driver": DRIVER, "nodeName": "node2",
            "pool": {"name": "node2", "generation": 1, "resourceSliceCount": 1}, "devices": [],
        },
    });
    let path = "/run/kubernetes/other.json";
    std::fs::write(cluster.daemons.enclosure.path(path), slice.to_string())?;
    let driver =
        ["--kubeconfig", "/run/kubernetes/driver.conf", "create", "--validate=false", "-f", path];
    let refused = kubectl.output(&driver)?;
    let why = "the driver writes the slices of its own node alone";
    expect(refused.code() == Some(1) && refused.stderr.contains(why), || refused.stderr)
}

fn lost() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    let cards = cluster.card_names()?;
    kubectl.namespace("lost")?;
    kubectl.apply(&[
        template("lost", "part", &[request("gpu", Some(&cards[1]), "1Gi", 10)]),
        pod("lost", "before", "part", &[container("app", WAITS)]),
    ])?;
    kubectl.pod("lost", "before", "Running")?;
    let health = |wanted: &'static str| {
        move |pods: &[Value]| {
            let all = pods.iter().flat_map(|pod| pod["status"]["containerStatuses"].as_array());
            let status = all.flatten().flat_map(|it| it["allocatedResourcesStatus"].as_array());
            let resources = status.flatten().flat_map(|it| it["resources"].as_array()).flatten();
            resources.into_iter().any(|it| it["health"] == wanted)
        }
    };
    kubectl.wait(&["pods", "--namespace=lost"], "a healthy card", health("Healthy"))?;
    // The machine has one card less than before.
    cluster.cards(&[("STUB_GPU_COUNT", "1")])?;
    kubectl.wait(&["pods", "--namespace=lost"], "an unhealthy card", health("Unhealthy"))?;
    let tainted = waited("a taint", || {
        let devices = cluster.devices()?;
        let taints = |device: &Value| device["taints"][0]["key"] == "slice.gpucap.io/lost";
        Ok(devices.iter().any(taints).then_some(devices))
    })?;
    expect(tainted.len() == CARDS, || format!("{tainted:?}"))?;
    kubectl.apply(&[pod("lost", "after", "part", &[container("app", WAITS)])])?;
    kubectl.event("lost", "after", "cannot allocate all claims")?;
    cluster.cards(&[])?;
    kubectl.pod("lost", "after", "Running")?;
    kubectl.wait(&["pods", "--namespace=lost"], "a healthy card", health("Healthy"))?;
    kubectl.end_namespace("lost")
}

fn removed() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("removed")?;
    kubectl.apply(&[
        template("removed", "part", &[request("gpu", None, "1Gi", 10)]),
        pod("removed", "before", "part", &[container("app", WAITS)]),
    ])?;
    kubectl.pod("removed", "before", "Running")?;
    cluster.daemons.end("driver", "TERM")?;
    kubectl.apply(&[pod("removed", "after", "part", &[container("app", WAITS)])])?;
    kubectl.event("removed", "after", "Failed to prepare dynamic resources")?;
    // What runs goes on.
    let actor = kubectl.actor("removed", "before", "app")?;
    drop(actor);
    cluster.daemons.start_again("driver")?;
    kubectl.pod("removed", "after", "Running")?;
    let slices = kubectl.list(&["resourceslices"])?;
    expect(slices.len() == 1 && slices[0]["spec"]["nodeName"] == NODE, || format!("{slices:?}"))?;
    kubectl.end_namespace("removed")
}
