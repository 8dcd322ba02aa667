//! The chart on a real API server: Helm installs it, its hooks do what they are for, and it leaves nothing behind.
//!
//! The image is made here, of the files of a release and a few tools. What restarts containerd is the test: a process of
//! the pod that asks for it would end with its pod. The DRA driver's own objects are those of the whole cluster
//! ([`crate::cluster`]).

use crate::cluster::{Cluster, NODE, cluster};
use crate::containerd::CONFIG;
use crate::image::{add_tools, archive_that_runs};
use crate::kubectl::show;
use crate::manifests::IMAGE;
use crate::{expect, programs};
use gpucap_tests::{Build, Driver, Output, Result, Scratch, chart, fetched, project, trial};
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The image, without the version.
const REPOSITORY: &str = "localhost/gpucap";
/// What it has beside the files of the release: all that `node.sh` runs.
const TOOLS: [&str; 17] = [
    "cat", "chmod", "cmp", "cp", "dirname", "env", "grep", "ln", "mkdir", "mv", "nsenter",
    "readlink", "rm", "rmdir", "sh", "sleep", "tail",
];
/// What the chart runs on the node to restart containerd: asks the test, and waits until it has done so.
const RESTART: &str = "/run/restart-containerd";
const ASKED: &str = "/run/restart-asked";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(
        "helm installs the chart, its hooks test and keep it, and it leaves the node",
        installs,
    )]
}

/// Makes the chart's image, and gives it to containerd.
fn image(cluster: &Cluster, version: &str) -> Result {
    let (scratch, build) = (Scratch::new()?, Build::shipped()?);
    let root = scratch.path().join("root");
    for place in
        ["proc", "dev", "tmp", "etc", "settings", "host/opt", "host/etc", "usr/lib64", "usr/lib"]
    {
        fs::create_dir_all(root.join(place))?;
    }
    for link in ["lib64", "lib"] {
        std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link))?;
    }
    add_tools(&root, &TOOLS)?;
    let deploy = project().join("hook/deploy");
    let put = |from: &Path, to: &str| -> Result {
        let to = root.join("gpucap").join(to);
        fs::create_dir_all(to.parent().unwrap_or(&root))?;
        Ok(fs::copy(from, to).map(drop)?)
    };
    for name in ["install.sh", "uninstall.sh", "node.sh"] {
        put(&deploy.join(name), name)?;
    }
    put(&build.gpucap()?, "files/bin/gpucap")?;
    put(&build.shim()?, "files/lib/libgpucap.so")?;
    put(&build.driver()?, "files/lib/gpucap-driver")?;
    fs::write(root.join("gpucap/VERSION"), format!("{version}\n"))?;
    fs::write(root.join("gpucap/PROCESSOR"), format!("{}\n", std::env::consts::ARCH))?;
    let name = format!("{REPOSITORY}:{version}");
    let file = archive_that_runs(&root, &name, &["/gpucap/node.sh"], &[])?;
    cluster.import(&file.display().to_string())
}

/// Runs Helm as the administrator.
fn helm(cluster: &Cluster, words: &[&str]) -> Result<Output> {
    let program = programs::seen(&fetched::in_path("helm")?, &cluster.scratch)?;
    let program = program.display().to_string();
    let start = ["env", "HOME=/run", "KUBECONFIG=/run/kubernetes/admin.conf", &program];
    cluster.daemons.run(&[&start[..], words].concat())?.output()?.success()
}

/// The same, as a part of the transcript.
fn shows(cluster: &Cluster, words: &[&str]) -> Result {
    let printed = helm(cluster, words)?.stdout;
    show(&format!("$ helm {}\n{printed}", words.join(" ")));
    Ok(())
}

/// Restarts containerd when the node's pod asks for it, and waits until the DaemonSet is there.
fn rolled_out(cluster: &Cluster) -> Result {
    let asked = cluster.daemons.enclosure.path(ASKED);
    let waited = crate::waited("the installer", || Ok(asked.exists().then_some(())));
    waited.map_err(|stop| {
        let kubectl = cluster.kubectl();
        let words = ["daemonset/gpucap", "--namespace=gpucap", "--all-containers"];
        let said = kubectl.output(&[&["logs"], &words[..]].concat());
        let events = kubectl.output(&["events", "--namespace=gpucap"]);
        stop.explained(|why| format!("{why}: {said:?}\n{events:?}"))
    })?;
    cluster.restart_containerd()?;
    fs::remove_file(asked)?;
    let words = ["rollout", "status", "daemonset/gpucap", "--namespace=gpucap", "--timeout=120s"];
    cluster.kubectl().shows(&words).map(drop)
}

/// Runs a hook of the chart as Helm would: how its Job ended, and what it said. Helm itself first compares a hook with what
/// the server says of the API, and not every build of the server says it in Helm's form.
fn hook(cluster: &Cluster, name: &str) -> Result<(String, String)> {
    let kubectl = cluster.kubectl();
    let hooks = helm(cluster, &["get", "hooks", "gpucap", "--namespace", "gpucap"])?;
    let job = chart::object(&chart::documents(&hooks.stdout)?, "Job", name)?;
    kubectl.apply(&[job])?;
    let words = ["jobs", "--namespace=gpucap"];
    let ended = |jobs: &[Value]| {
        let job = jobs.iter().find(|job| job["metadata"]["name"] == name)?;
        let conditions = job["status"]["conditions"].as_array()?;
        let ends = ["Complete", "Failed"].into_iter();
        ends.map(str::to_owned).find(|end| conditions.iter().any(|it| it["type"] == end.as_str()))
    };
    let jobs = kubectl.wait(&words, "the end of a hook", |jobs| ended(jobs).is_some())?;
    let said = kubectl.prints(&["logs", &format!("job/{name}"), "--namespace=gpucap"])?;
    show(&format!("# {name}: {said}"));
    kubectl.prints(&["delete", "job", name, "--namespace=gpucap"])?;
    Ok((ended(&jobs).unwrap_or_default(), said))
}

fn installs() -> Result {
    let cluster = cluster()?;
    let (kubectl, enclosure) = (cluster.kubectl(), &cluster.daemons.enclosure);
    let before = fs::read_to_string(enclosure.path(CONFIG))?;
    image(&cluster, env!("CARGO_PKG_VERSION"))?;
    let body = format!("#!/bin/sh\n: >{ASKED}\nwhile [ -e {ASKED} ]; do sleep 0.1; done\n");
    fs::write(enclosure.path(RESTART), body)?;
    enclosure.output(&["chmod", "755", RESTART])?;
    kubectl.prints(&["label", "node", NODE, "gpucap/node=true"])?;
    let chart = chart::directory().display().to_string();
    // Leaving a node takes the files of its DRA driver, which here is the whole cluster's and stays.
    let values = format!(
        "image.repository={REPOSITORY},image.pullPolicy=Never,node.restart={RESTART},node.run=,\
         node.kubelet=/run/no-kubelet,validate.image={IMAGE},validate.resource=cpu"
    );
    // `tests/deploy` compares the chart with the API's schemas; not every build of the server has them.
    let words = ["gpucap", &chart, "--namespace", "gpucap", "--disable-openapi-validation"];
    shows(&cluster, &[&["install"], &words[..], &["--set", &values]].concat())?;
    rolled_out(&cluster)?;
    let command = enclosure.path("/opt/gpucap/current/bin/gpucap");
    expect(command.exists(), || "the node has no command".into())?;
    if Driver::Real("535").nvidia_smi().is_ok() {
        let (ended, said) = hook(&cluster, "gpucap-validate")?;
        expect(ended == "Complete" && said.contains("in MiB: 2048"), || said)?;
    }
    let (ended, said) = hook(&cluster, "gpucap-is-on-nodes")?;
    expect(ended == "Failed" && said.contains("gpucap is on the nodes"), || said)?;
    let leave = ["--reuse-values", "--set", "uninstall=true,maxUnavailable=100%"];
    shows(&cluster, &[&["upgrade"], &words[..], &leave].concat())?;
    rolled_out(&cluster)?;
    shows(&cluster, &["uninstall", "gpucap", "--namespace", "gpucap"])?;
    expect(!command.exists(), || "the node has the command".into())?;
    let after = fs::read_to_string(enclosure.path(CONFIG))?;
    expect(after == before, || after)?;
    let left =
        kubectl.list(&["runtimeclasses,configmaps,daemonsets,jobs", "--namespace=gpucap"])?;
    let own = |object: &&Value| {
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] == "gpucap"
    };
    let left: Vec<_> = left.iter().filter(own).collect();
    expect(left.is_empty(), || format!("{left:?}"))?;
    kubectl.prints(&["label", "node", NODE, "gpucap/node-"]).map(drop)
}
