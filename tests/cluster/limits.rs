//! What a pod gets of a card.

use crate::cluster::cluster;
use crate::expect;
use crate::manifests::{WAITS, container, pod, request, template};
use gpucap_tests::{Driver, Result, trial};
use libtest_mimic::Trial;
use serde_json::Value;

const GIB: u64 = 1 << 30;
const OUT_OF_MEMORY: u64 = 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a pod sees its part, and gets no more of the card", seen)]
}

fn seen() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    kubectl.namespace("seen")?;
    let card = &cluster.card_names()?[0];
    let part = template("seen", "part", &[request("gpu", Some(card), "3Gi", 30)]);
    kubectl.apply(&[part, pod("seen", "p", "part", &[container("app", WAITS)])])?;
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
        // The stub's NVML shows each card of the machine to each container.
        let card = format!("--id={card}");
        let query = ["nvidia-smi", &card, "--query-gpu=memory.total", "--format=csv,noheader"];
        let shown = kubectl.exec("seen", "p", &query)?;
        expect(shown.trim() == "3072 MiB", || shown)?;
    }
    kubectl.end_namespace("seen")
}
