//! What a user does with slices, from the first look to the clean end, as one transcript (`ci/cluster`): each command, and
//! what it prints.
//!
//! Of two pods that ask for 60 % of one card the second waits, and the scheduler says why. Three pods of 30 % share it:
//! each sees its own part, the node's metrics have all of them, and they are gone with the pods.

use crate::cluster::{Cluster, cluster};
use crate::expect;
use crate::kubectl::show;
use crate::manifests::{WAITS, container, pod, request, template};
use gpucap_tests::{Answer, Driver, Result, trial};
use libtest_mimic::Trial;
use serde_json::Value;

const GIB: u64 = 1 << 30;
const SUCCESS: u64 = 0;
const OUT_OF_MEMORY: u64 = 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the story: of two claims of 60 % one waits, three of 30 % share a card", story)]
}

fn story() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    cluster.card_names()?;
    kubectl.shows(&["version"])?;
    kubectl.shows(&["get", "nodes"])?;
    let devices = "custom-columns=NODE:.spec.nodeName,GPU:.spec.devices[*].attributes.uuid.string,\
                   MEMORY:.spec.devices[*].capacity.memory.value,\
                   CORES:.spec.devices[*].capacity.cores.value";
    kubectl.shows(&["get", "resourceslices", "-o", devices])?;
    one_waits(&cluster)?;
    three_share(&cluster)?;
    ends(&cluster)
}

/// Pods of one namespace, each with this part of the first card.
fn pods(cluster: &Cluster, space: &str, names: &[&str], memory: &str, cores: u32) -> Result {
    let kubectl = cluster.kubectl();
    let card = &cluster.card_names()?[0];
    show(&format!("# {} pods of {cores} % and {memory} each, on one GPU", names.len()));
    kubectl.namespace(space)?;
    let own = template(space, "part", &[request("gpu", Some(card), memory, cores)]);
    let pods = names.iter().map(|name| pod(space, name, "part", &[container("app", WAITS)]));
    kubectl.shows_apply("pods.json", &[own].into_iter().chain(pods).collect::<Vec<_>>())
}

fn one_waits(cluster: &Cluster) -> Result {
    let kubectl = cluster.kubectl();
    pods(cluster, "waits", &["one", "two"], "1Gi", 60)?;
    let running = |pods: &[Value]| pods.iter().any(|pod| pod["status"]["phase"] == "Running");
    let pods = kubectl.wait(&["pods", "--namespace=waits"], "a pod that runs", running)?;
    let of = |running: bool| {
        let is_it = |pod: &&Value| (pod["status"]["phase"] == "Running") == running;
        let name = pods.iter().find(is_it).map(|pod| pod["metadata"]["name"].clone());
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let (first, second) = (of(true), of(false));
    kubectl.event("waits", &second, "0/1 nodes are available: 1 cannot allocate all claims")?;
    kubectl.shows(&["get", "pods", "-n", "waits"])?;
    let pod = format!("pod/{second}");
    let events = kubectl.shows(&["events", "-n", "waits", "--for", &pod])?;
    expect(events.contains("cannot allocate all claims"), || events)?;
    kubectl.shows(&["delete", "pod", "-n", "waits", &first])?;
    kubectl.pod("waits", &second, "Running")?;
    kubectl.shows(&["get", "pods", "-n", "waits"])?;
    kubectl.end_namespace("waits")
}

fn three_share(cluster: &Cluster) -> Result {
    let kubectl = cluster.kubectl();
    let names = ["a", "b", "c"];
    pods(cluster, "share", &names, "2Gi", 30)?;
    let mut actors = Vec::new();
    for name in names {
        kubectl.pod("share", name, "Running")?;
        actors.push(kubectl.actor("share", name, "app")?);
    }
    kubectl.shows(&["get", "pods,resourceclaims", "-n", "share"])?;
    for actor in &mut actors {
        let total = actor.call("total d 0")?;
        let expected = Answer { code: SUCCESS, value: 2 * GIB, extra: 0 };
        expect(total == expected, || format!("{total:?}"))?;
        // What the others hold is no matter: 1.5 GiB, with 256 MiB for the context, and no more.
        let (fits, more) = (3 * GIB / 2, GIB / 2);
        actor.expect(&[(&format!("alloc a {fits}"), SUCCESS)])?;
        actor.expect(&[(&format!("alloc b {more}"), OUT_OF_MEMORY)])?;
    }
    if Driver::Real("535").nvidia_smi().is_ok() {
        let query = ["--query-gpu=memory.total,memory.used", "--format=csv,noheader"];
        // The stub's NVML shows each card of the machine to each container.
        let card = format!("--id={}", cluster.card_names()?[0]);
        for name in names {
            let exec = ["exec", "-n", "share", name, "--", "nvidia-smi", &card];
            let shown = kubectl.shows(&[&exec[..], &query].concat())?;
            expect(shown.trim() == "2048 MiB, 1792 MiB", || shown)?;
        }
    }
    kubectl.shows(&["exec", "-n", "share", "a", "--", "cat", "/.gpucap/limits"])?;
    // Of each pod, as long as the processes hold the memory.
    let expected = names.map(|name| {
        let pod = format!("namespace=\"share\",pod=\"{name}\",container=\"app\"");
        [pod, format!("claim=\"{name}-gpu-"), format!(" {}.0", 7 * GIB / 4)]
    });
    let metrics = metrics(cluster)?;
    let has = |parts: &[String; 3]| {
        metrics.iter().any(|line| parts.iter().all(|part| line.contains(part)))
    };
    expect(expected.iter().all(has), || format!("{metrics:?}"))
}

/// Ends the pods that share, and all that is left of them.
fn ends(cluster: &Cluster) -> Result {
    let kubectl = cluster.kubectl();
    kubectl.shows(&["delete", "namespace", "share"])?;
    crate::waited("the end of all claims on the node", || {
        let (files, claims) = (cluster.cdi_files()?, cluster.checkpoint()?);
        Ok((files.is_empty() && claims.is_empty()).then_some(()))
    })?;
    let left = kubectl.shows(&["get", "resourceclaims", "--all-namespaces"])?;
    expect(left.is_empty(), || left)?;
    let left = metrics(cluster)?;
    expect(left.is_empty(), || format!("{left:?}"))?;
    let files = cluster.shows(&["ls", "/run/cdi", "/run/gpucap/containers"])?;
    expect(files == "/run/cdi:\n\n/run/gpucap/containers:\n", || files)
}

/// The memory that each container uses, as the node's metrics have it.
fn metrics(cluster: &Cluster) -> Result<Vec<String>> {
    let gpucap = cluster.installation.gpucap();
    let text = cluster.daemons.run(&[gpucap.display().to_string().as_str(), "metrics"])?;
    let text = text.output()?.success()?.stdout;
    let own = |line: &&str| line.starts_with("gpucap_memory_used_bytes{kind=\"container\"");
    let lines: Vec<String> = text.lines().filter(own).map(str::to_owned).collect();
    let command = "gpucap metrics | grep 'memory_used_bytes{kind=\"container\"'";
    show(&format!("$ {command}\n{}", lines.join("\n")));
    Ok(lines)
}
