//! What a pod gets of a card, and that the scheduler gives no part of one twice.

use crate::cluster::{Cluster, cluster};
use crate::expect;
use crate::manifests::{WAITS, container, pod, request, template};
use gpucap_tests::{Answer, Driver, Result, trial};
use libtest_mimic::Trial;
use serde_json::Value;

const GIB: u64 = 1 << 30;
const SUCCESS: u64 = 0;
const OUT_OF_MEMORY: u64 = 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("of two claims of 60 % on one card the second waits for the first", one_waits),
        trial("three claims of 30 % share a card, and each has its own limit", three_share),
        trial("a pod sees its part, and gets no more of the card", seen),
    ]
}

/// Pods of one namespace, each with this part of the first card.
fn pods(cluster: &Cluster, space: &str, names: &[&str], memory: &str, cores: u32) -> Result {
    let kubectl = cluster.kubectl();
    let card = &cluster.card_names()?[0];
    kubectl.namespace(space)?;
    let own = template(space, "part", &[request("gpu", Some(card), memory, cores)]);
    let pods = names.iter().map(|name| pod(space, name, "part", &[container("app", WAITS)]));
    kubectl.apply(&[own].into_iter().chain(pods).collect::<Vec<_>>())
}

fn one_waits() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    pods(&cluster, "waits", &["one", "two"], "1Gi", 60)?;
    let running = |pods: &[Value]| pods.iter().any(|pod| pod["status"]["phase"] == "Running");
    let pods = kubectl.wait(&["pods", "--namespace=waits"], "a pod that runs", running)?;
    let of = |running: bool| {
        let is_it = |pod: &&Value| (pod["status"]["phase"] == "Running") == running;
        let name = pods.iter().find(is_it).map(|pod| pod["metadata"]["name"].clone());
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let (first, second) = (of(true), of(false));
    kubectl.event("waits", &second, "0/1 nodes are available: 1 cannot allocate all claims")?;
    kubectl.prints(&["delete", "pod", "--namespace=waits", &first])?;
    kubectl.pod("waits", &second, "Running")?;
    kubectl.end_namespace("waits")
}

fn three_share() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    let names = ["a", "b", "c"];
    pods(&cluster, "share", &names, "2Gi", 30)?;
    let mut actors = Vec::new();
    for name in names {
        kubectl.pod("share", name, "Running")?;
        actors.push(kubectl.actor("share", name, "app")?);
    }
    for actor in &mut actors {
        let total = actor.call("total d 0")?;
        let expected = Answer { code: SUCCESS, value: 2 * GIB, extra: 0 };
        expect(total == expected, || format!("{total:?}"))?;
        // What the others hold is no matter: 1.5 GiB, with 256 MiB for the context, and no more.
        let (fits, more) = (3 * GIB / 2, GIB / 2);
        actor.expect(&[(&format!("alloc a {fits}"), SUCCESS)])?;
        actor.expect(&[(&format!("alloc b {more}"), OUT_OF_MEMORY)])?;
    }
    kubectl.end_namespace("share")
}

fn seen() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    pods(&cluster, "seen", &["p"], "3Gi", 30)?;
    kubectl.pod("seen", "p", "Running")?;
    let mut actor = kubectl.actor("seen", "p", "app")?;
    let total = actor.call("total d 0")?;
    expect(total.value == 3 * GIB, || format!("{total:?}"))?;
    actor.expect(&[(&format!("alloc a {}", 3 * GIB), OUT_OF_MEMORY)])?;
    let limits = kubectl.exec("seen", "p", &["cat", "/.gpucap/limits"])?;
    let says = |line: &str| limits.lines().any(|it| it.trim_end() == line);
    let expected = [format!("mem={}", 3 * GIB), "core=30%".into(), "source=slice".into()];
    expect(expected.iter().all(|line| says(line)), || limits.clone())?;
    // The node knows whose it is, and what it holds.
    let gpucap = cluster.installation.gpucap().display().to_string();
    let status = cluster.daemons.run(&[&gpucap, "status", "--json"])?.output()?.success()?.stdout;
    let status: Value = serde_json::from_str(&status).map_err(gpucap_tests::Stop::fail)?;
    let text = status.to_string();
    expect(text.contains("\"p\"") && text.contains(&(3 * GIB).to_string()), || text.clone())?;
    if Driver::Real("535").nvidia_smi().is_ok() {
        let query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader"];
        let shown = kubectl.exec("seen", "p", &query)?;
        expect(shown.trim() == "3072 MiB", || shown)?;
    }
    kubectl.end_namespace("seen")
}
