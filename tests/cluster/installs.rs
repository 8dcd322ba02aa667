//! The chart on a real API server: Helm installs it, its hooks do what they are for, and it leaves nothing behind; once with
//! its defaults, and once with all that it offers.
//!
//! What restarts containerd is the test: a process of the pod that asks for it would end with its pod.

use crate::cluster::{Cluster, NODE, cluster};
use crate::containerd::CONFIG;
use crate::kubectl::show;
use crate::manifests::{IMAGE, WAITS, container, pod, request, template};
use crate::{expect, images, programs, waited};
use gpucap_tests::{Driver, Output, Result, chart, fetched, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;

/// What the chart runs on the node to restart containerd: asks the test, and waits until it has done so.
const RESTART: &str = "/run/restart-containerd";
const ASKED: &str = "/run/restart-asked";
/// The command that it puts on the node.
const COMMAND: &str = "/opt/gpucap/current/bin/gpucap";
/// Where the chart is installed.
const OWN: &str = "--namespace=gpucap";
/// All options that are off.
const OPTIONS: &str = "dra.enabled=true,dra.interval=1,nri.enabled=true,metrics.enabled=true,\
    metrics.sample=true,metrics.podMonitor.enabled=true,metrics.networkPolicy.enabled=true,\
    metrics.networkPolicy.from[0].ipBlock.cidr=192.0.2.0/24,metrics.dashboard.enabled=true,\
    metrics.rules.enabled=true,metrics.rules.hami=true,runtimeClass.required.enabled=true,\
    runtimeClass.required.namespaces.team=a";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "helm installs the chart, its hooks test and keep it, and it leaves the node",
            defaults,
        ),
        trial("helm installs all options, each does what it is for, and nothing is left", options),
    ]
}

/// Runs Helm as the administrator.
fn helm(cluster: &Cluster, words: &[&str]) -> Result<Output> {
    let program = programs::seen(&fetched::in_path("helm")?, &cluster.scratch)?;
    let program = program.display().to_string();
    let start = ["env", "HOME=/run", "KUBECONFIG=/run/kubernetes/admin.conf", &program];
    cluster.daemons.run(&[&start[..], words].concat())?.output()
}

/// What it prints, which is a part of the transcript.
fn shows(cluster: &Cluster, words: &[&str]) -> Result<Output> {
    let output = helm(cluster, words)?;
    let Output { stdout, stderr, .. } = &output;
    show(&format!("$ helm {}\n{stdout}{stderr}", words.join(" ")));
    Ok(output)
}

/// Restarts containerd when the node's pod asks for it, and waits until the DaemonSet is there.
fn rolled_out(cluster: &Cluster) -> Result {
    let asked = cluster.daemons.enclosure.path(ASKED);
    let waited = waited("the installer", || Ok(asked.exists().then_some(())));
    waited.map_err(|stop| {
        let kubectl = cluster.kubectl();
        let said = kubectl.output(&["logs", "daemonset/gpucap", OWN, "--all-containers"]);
        let events = kubectl.output(&["events", OWN]);
        stop.explained(|why| format!("{why}: {said:?}\n{events:?}"))
    })?;
    cluster.restart_containerd()?;
    fs::remove_file(asked)?;
    all_ready(cluster, "gpucap")
}

/// Waits until the pods of a DaemonSet are ready.
fn all_ready(cluster: &Cluster, set: &str) -> Result {
    let kubectl = cluster.kubectl();
    let set = format!("daemonset/{set}");
    let done = kubectl.shows(&["rollout", "status", &set, OWN, "--timeout=120s"]);
    done.map(drop).map_err(|stop| {
        let said = kubectl.output(&["logs", &set, OWN, "--all-containers"]);
        let events = kubectl.output(&["events", OWN]);
        stop.explained(|why| format!("{why}: {said:?}\n{events:?}"))
    })
}

/// The node before the chart, and how the chart gets there and away.
struct Chart<'a> {
    cluster: &'a Cluster,
    directory: String,
    config: String,
}

impl<'a> Chart<'a> {
    /// Installs it with these options.
    fn install(cluster: &'a Cluster, options: &str) -> Result<Self> {
        let enclosure = &cluster.daemons.enclosure;
        let config = fs::read_to_string(enclosure.path(CONFIG))?;
        let directory = chart::directory().display().to_string();
        let body = format!("#!/bin/sh\n: >{ASKED}\nwhile [ -e {ASKED} ]; do sleep 0.1; done\n");
        fs::write(enclosure.path(RESTART), body)?;
        enclosure.output(&["chmod", "755", RESTART])?;
        cluster.kubectl().prints(&["label", "node", NODE, "gpucap/node=true"])?;
        let image = images::REPOSITORY;
        let values = format!(
            "image.repository={image},image.pullPolicy=Never,node.restart={RESTART},node.run=,\
             validate.image={IMAGE},validate.resource=cpu,{options}"
        );
        shows(cluster, &["install", "gpucap", &directory, OWN, "--set", &values])?.success()?;
        rolled_out(cluster)?;
        expect(enclosure.path(COMMAND).exists(), || "the node has no command".into())?;
        Ok(Self { cluster, directory, config })
    }

    /// What its hooks do: the one tests a pod's limit, the other keeps Helm from forgetting the nodes.
    fn hooks(&self) -> Result {
        if Driver::Real("535").nvidia_smi().is_ok() {
            let tested = shows(self.cluster, &["test", "gpucap", OWN])?.success()?;
            let holds = tested.stderr.contains("in MiB: 2048");
            expect(holds, || format!("{tested:?}"))?;
        }
        let kept = shows(self.cluster, &["uninstall", "gpucap", OWN])?;
        let way = "helm rollback gpucap 1 -n gpucap";
        let says = ["gpucap is on the nodes", way].iter().all(|it| kept.stderr.contains(it));
        expect(kept.code() == Some(1) && says, || format!("{kept:?}"))?;
        // Without it Helm upgrades nothing from now on.
        shows(self.cluster, &["rollback", "gpucap", "1", OWN])?.success().map(drop)
    }

    /// Takes it from the node and then from the cluster, and looks for what is left.
    fn leave(self) -> Result {
        let (cluster, kubectl) = (self.cluster, self.cluster.kubectl());
        let words = ["upgrade", "gpucap", &self.directory, OWN, "--reuse-values", "--set"];
        let leave = ["uninstall=true,maxUnavailable=100%"];
        shows(cluster, &[&words[..], &leave].concat())?.success()?;
        rolled_out(cluster)?;
        shows(cluster, &["uninstall", "gpucap", OWN])?.success()?;
        let enclosure = &cluster.daemons.enclosure;
        expect(!enclosure.path(COMMAND).exists(), || "the node has the command".into())?;
        let after = fs::read_to_string(enclosure.path(CONFIG))?;
        expect(after == self.config, || after)?;
        let left = left(cluster)?;
        expect(left.is_empty(), || format!("{left:?}"))?;
        kubectl.prints(&["label", "node", NODE, "gpucap/node-"]).map(drop)
    }
}

/// All objects of the release in the cluster, of any kind.
fn left(cluster: &Cluster) -> Result<Vec<String>> {
    let kubectl = cluster.kubectl();
    let kinds = kubectl.prints(&["api-resources", "--verbs=list", "-o", "name"])?;
    let kinds: Vec<_> = kinds.lines().collect();
    let own = |object: &&Value| {
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] == "gpucap"
    };
    let objects = kubectl.list(&[&kinds.join(","), "--all-namespaces"])?;
    let name = |it: &Value| format!("{} {}", it["kind"], it["metadata"]["name"]);
    Ok(objects.iter().filter(own).map(name).collect())
}

fn defaults() -> Result {
    let cluster = cluster()?;
    images::installer(&cluster)?;
    // Leaving a node takes the files of its DRA driver, which here is the whole cluster's and stays.
    let chart = Chart::install(&cluster, "node.kubelet=/run/no-kubelet")?;
    chart.hooks()?;
    chart.leave()
}

/// The kinds of the operator of Prometheus, which take anything.
fn monitoring() -> Vec<Value> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let kinds = [("PodMonitor", "podmonitors"), ("PrometheusRule", "prometheusrules")];
    let kinds = kinds.map(|(kind, plural)| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
            "spec": {
                "group": "monitoring.coreos.com", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        })
    });
    kinds.into()
}

fn options() -> Result {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl();
    // The stub's NVML shows each card of the machine to each container, and the chart's test wants all limited.
    cluster.end_driver()?;
    cluster.cards(&[("STUB_GPU_COUNT", "1")])?;
    images::installer(&cluster)?;
    images::driver(&cluster)?;
    kubectl.apply(&monitoring())?;
    let kinds =
        ["crd/podmonitors.monitoring.coreos.com", "crd/prometheusrules.monitoring.coreos.com"];
    let words = ["wait", "--for=condition=Established", "--timeout=60s"];
    kubectl.prints(&[&words[..], &kinds].concat())?;
    let chart = Chart::install(&cluster, OPTIONS)?;
    all_ready(&cluster, "gpucap-dra")?;
    cluster.card_devices(1)?;
    chart.hooks()?;
    for object in [
        "podmonitor/gpucap",
        "networkpolicy/gpucap-metrics",
        "configmap/gpucap-dashboard",
        "prometheusrule/gpucap",
        "prometheusrule/gpucap-hami",
        "service/gpucap-metrics",
    ] {
        kubectl.prints(&["get", object, OWN])?;
    }
    pods(&cluster)?;
    chart.leave()?;
    kubectl.delete(&monitoring())?;
    cluster.cards(&[])?;
    cluster.start_driver()
}

/// A pod with a claim and one of no runtime class have their limits, and the metrics have both.
fn pods(cluster: &Cluster) -> Result {
    let kubectl = cluster.kubectl();
    kubectl.namespace("options")?;
    let mut asks = pod("options", "asks", "part", &[container("app", WAITS)]);
    asks["spec"]["resourceClaims"] = json!([]);
    asks["spec"]["containers"][0]["resources"] = json!({});
    let limit = json!([{"name": "GPU_MEM_LIMIT", "value": "1Gi"}]);
    asks["spec"]["containers"][0]["env"] = limit;
    kubectl.apply(&[
        template("options", "part", &[request("gpu", None, "3Gi", 30)]),
        pod("options", "claims", "part", &[container("app", WAITS)]),
        asks,
    ])?;
    let expected = [
        ("claims", &["source=slice", "mem=3221225472", "core=30%"][..]),
        ("asks", &["GPU_MEM_LIMIT=1GiB", "mem=1073741824"]),
    ];
    let mut actors = Vec::new();
    for (name, lines) in expected {
        kubectl.pod("options", name, "Running")?;
        let limits = kubectl.exec("options", name, &["cat", "/.gpucap/limits"])?;
        expect(lines.iter().all(|line| limits.contains(line)), || limits)?;
        let mut actor = kubectl.actor("options", name, "app")?;
        actor.expect(&[("alloc a 1048576", 0)])?;
        actors.push(actor);
    }
    let own = ["pods", OWN, "-l", "app.kubernetes.io/name=gpucap"];
    let installers = kubectl.list(&own)?;
    let name = installers.first().and_then(|pod| pod["metadata"]["name"].as_str());
    let place =
        format!("/api/v1/namespaces/gpucap/pods/{}:9744/proxy/metrics", name.unwrap_or_default());
    let mut metrics = String::new();
    let seen = waited("the metrics of both pods", || {
        metrics = kubectl.prints(&["get", "--raw", &place])?;
        let has = |name: &str| {
            let pod = format!("namespace=\"options\",pod=\"{name}\"");
            let own =
                |line: &str| line.starts_with("gpucap_memory_used_bytes") && line.contains(&pod);
            metrics.lines().any(own)
        };
        Ok(expected.iter().all(|(name, _)| has(name)).then_some(()))
    });
    seen.map_err(|stop| stop.explained(|why| format!("{why}: {metrics}")))?;
    drop(actors);
    // A pod of the driver that goes, as in an upgrade, takes nothing along; the next one undoes the claim.
    kubectl.prints(&["rollout", "restart", "daemonset/gpucap-dra", OWN])?;
    all_ready(cluster, "gpucap-dra")?;
    kubectl.exec("options", "claims", &["cat", "/.gpucap/limits"])?;
    kubectl.end_namespace("options")?;
    waited("the end of the claim", || {
        let left = (cluster.cdi_files()?, cluster.checkpoint()?);
        Ok((left.0.is_empty() && left.1.is_empty()).then_some(()))
    })
}
