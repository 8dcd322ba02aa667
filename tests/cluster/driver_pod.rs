//! `gpucap-dra` as the chart runs it: a pod of its own image, with the account, the rights and the mounts of the chart's
//! DaemonSet, in the place of the process that the other tests have.
//!
//! Pods have no network to the API server's service here, which is made by other programs: this one has the node's network,
//! and the server's address in its environment.

use crate::cluster::{CARDS, Cluster, NODE, cluster};
use crate::daemons::ADDRESS;
use crate::image::{add, add_tools, archive_that_runs};
use crate::manifests::{WAITS, container, pod, request, template};
use crate::{expect, waited};
use gpucap_tests::{Build, Result, Scratch, chart, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The image.
const REPOSITORY: &str = "localhost/gpucap-dra";
/// Where the installer puts a release on the node.
const RELEASE: &str = "/opt/gpucap";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the driver serves claims from a pod of its image, as the chart runs it", serves)]
}

/// Makes the image, and gives it to containerd.
fn image(cluster: &Cluster) -> Result {
    let scratch = Scratch::new()?;
    let root = scratch.path().join("root");
    for place in
        ["proc", "dev", "tmp", "etc", "var/run/cdi", "var/lib/kubelet", "usr/lib64", "usr/lib"]
    {
        fs::create_dir_all(root.join(place))?;
    }
    for link in ["lib64", "lib"] {
        std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link))?;
    }
    add_tools(&root, &["nsenter"])?;
    add(&root, &Build::dra()?, "gpucap/gpucap-dra")?;
    let name = format!("{REPOSITORY}:{}", env!("CARGO_PKG_VERSION"));
    let file = archive_that_runs(&root, &name, &["/gpucap/gpucap-dra"], &[])?;
    cluster.import(&file.display().to_string())
}

/// Has the node the files of a release, as the installer leaves them.
fn release(cluster: &Cluster) -> Result {
    let gpucap = cluster.installation.gpucap();
    let link = |from: &Path, to: &str| {
        let directory = format!("{RELEASE}/current/{to}");
        cluster.daemons.enclosure.output(&["mkdir", "-p", &directory])?;
        let words = ["ln", "-s", &from.display().to_string(), &directory];
        cluster.daemons.enclosure.output(&words).map(drop)
    };
    link(&gpucap, "bin")?;
    link(&gpucap.with_file_name("gpucap-driver"), "lib")
}

/// The chart's DaemonSet, with the way to the API server that this node has.
fn daemon_set() -> Result<Value> {
    let values = format!(
        "dra.enabled=true,dra.image.repository={REPOSITORY},image.pullPolicy=Never,dra.interval=1,node.run="
    );
    let rendered = chart::rendered(&["--namespace=gpucap", "--set", &values])?;
    let mut set = chart::object(&rendered, "DaemonSet", "gpucap-dra")?;
    let spec = &mut set["spec"]["template"]["spec"];
    spec["hostNetwork"] = json!(true);
    if let Some(variables) = spec["containers"][0]["env"].as_array_mut() {
        variables.push(json!({"name": "KUBERNETES_SERVICE_HOST", "value": ADDRESS}));
        variables.push(json!({"name": "KUBERNETES_SERVICE_PORT", "value": "6443"}));
    }
    Ok(set)
}

fn serves() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    image(&cluster)?;
    release(&cluster)?;
    cluster.daemons.end("driver", "TERM")?;
    kubectl.prints(&["label", "node", NODE, "gpucap/node=true"])?;
    kubectl.apply(&[daemon_set()?])?;
    let said = || kubectl.output(&["logs", "daemonset/gpucap-dra", "--namespace=gpucap"]);
    let registered = waited("the registration of the pod's driver", || {
        Ok(said()?.stdout.contains("the kubelet has registered it").then_some(()))
    });
    registered.map_err(|stop| {
        let events = kubectl.output(&["events", "--namespace=gpucap"]);
        stop.explained(|why| format!("{why}: {:?}\n{events:?}", said()))
    })?;
    expect(cluster.card_names()?.len() == CARDS, || format!("{:?}", said()))?;
    kubectl.namespace("fromapod")?;
    kubectl.apply(&[
        template("fromapod", "part", &[request("gpu", None, "3Gi", 30)]),
        pod("fromapod", "one", "part", &[container("app", WAITS)]),
    ])?;
    kubectl.pod("fromapod", "one", "Running")?;
    let limits = kubectl.exec("fromapod", "one", &["cat", "/.gpucap/limits"])?;
    let is_slice = ["source=slice", "mem=3221225472", "core=30%"];
    expect(is_slice.iter().all(|line| limits.contains(line)), || limits)?;
    // A pod of the driver that goes, as in an upgrade, takes nothing along; the next one undoes the claim.
    let words = ["restart", "daemonset/gpucap-dra", "--namespace=gpucap"];
    kubectl.prints(&[&["rollout"], &words[..]].concat())?;
    let words = ["status", "daemonset/gpucap-dra", "--namespace=gpucap", "--timeout=120s"];
    kubectl.prints(&[&["rollout"], &words[..]].concat())?;
    kubectl.exec("fromapod", "one", &["cat", "/.gpucap/limits"])?;
    kubectl.end_namespace("fromapod")?;
    waited("the end of the claim's CDI file", || {
        Ok(cluster.cdi_files()?.is_empty().then_some(()))
    })?;
    expect(cluster.checkpoint()?.is_empty(), || format!("{:?}", said()))?;
    kubectl.prints(&[
        "delete",
        "daemonset",
        "gpucap-dra",
        "--namespace=gpucap",
        "--cascade=foreground",
    ])?;
    kubectl.prints(&["label", "node", NODE, "gpucap/node-"])?;
    cluster.daemons.enclosure.output(&["rm", "-r", RELEASE])?;
    cluster.daemons.start_again("driver")?;
    cluster.card_names().map(drop)
}
