//! What the chart renders: its objects agree with one another, with the scripts and with what containerd is told.
//!
//! Each rule holds for each set of options in [`SETS`].

use crate::{deploy, ended, expect, manifest, script, tree};
use gpucap_tests::chart::{self, NAMESPACE};
use gpucap_tests::{Build, Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("manifests: each image has its registry and a version, ours the one option", images),
        trial("manifests: what a pod refers to is there", references),
        trial("manifests: each object is in the namespace, unless its kind has none", namespaced),
        trial("manifests: what enters the node is no more than it must be", privileges),
        trial("manifests: the node's places are those of the script", places),
        trial("manifests: leaving a node has the rights and places of coming", leaving),
        trial(
            "manifests: containerd is told of the handler, and passes on the annotations",
            handler,
        ),
    ]
}

/// Everything that the chart can do at once.
pub(crate) const ALL: &str = "nri.enabled=true,dra.enabled=true,metrics.enabled=true,\
    metrics.podMonitor.enabled=true,metrics.rules.enabled=true,metrics.rules.hami=true,\
    metrics.dashboard.enabled=true,metrics.networkPolicy.enabled=true,\
    metrics.networkPolicy.from[0].podSelector.matchLabels.app=prometheus,\
    settings.kubelet_checkpoint=/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint,\
    settings.dra_checkpoint=/var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json,\
    image.pullSecrets[0].name=registry,runtimeClass.required.enabled=true,\
    runtimeClass.required.namespaces.team=a";

/// Sets of options, by a name.
pub(crate) const SETS: [(&str, &str); 8] = [
    ("defaults", "uninstall=false"),
    ("nri", "nri.enabled=true"),
    ("metrics", "metrics.enabled=true,settings.run_dir=/srv/run"),
    ("samples", "metrics.enabled=true,metrics.sample=true"),
    ("dra", "dra.enabled=true,node.kubelet=/srv/kubelet"),
    ("all", ALL),
    ("leaving", "uninstall=true"),
    (
        "all leaving",
        "uninstall=true,nri.enabled=true,metrics.enabled=true,dra.enabled=true,\
         runtimeClass.required.enabled=true",
    ),
];

/// The objects of a set of options.
pub(crate) fn with(options: &str) -> Result<Vec<Value>> {
    chart::rendered(&["--set", options])
}

/// The DaemonSet of this name, with these options.
pub(crate) fn daemonset(name: &str, options: &str) -> Result<Value> {
    chart::object(&with(options)?, "DaemonSet", name)
}

/// The examples, and each object of each set of options, with a name.
pub(crate) fn all() -> Result<Vec<(String, Value)>> {
    let names = tree(&deploy().join("examples"))?;
    let examples = names.iter().map(|name| format!("examples/{name}"));
    let mut all: Vec<_> =
        examples.map(|name| Ok((name.clone(), manifest(&name)?))).collect::<Result<_>>()?;
    for (set, options) in SETS {
        let named = |it: Value| (format!("{set}: {} {}", it["kind"], it["metadata"]["name"]), it);
        all.extend(with(options)?.into_iter().map(named));
    }
    expect(all.len() >= 60, || format!("only {} objects", all.len()))?;
    Ok(all)
}

/// The pod that an object describes.
fn pod(object: &Value) -> Option<&Value> {
    let spec = object.get("spec")?;
    let pod = spec.pointer("/template/spec").unwrap_or(spec);
    pod.get("containers").map(|_| pod)
}

fn containers(object: &Value) -> Vec<&Value> {
    let lists = ["initContainers", "containers"];
    let lists = lists.iter().filter_map(|name| pod(object)?[name].as_array());
    lists.flatten().collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn images() -> Result {
    let version = env!("CARGO_PKG_VERSION");
    let [own, dra] = ["gpucap", "gpucap-dra"].map(|name| format!("{name}:{version}"));
    for (name, object) in all()? {
        for container in containers(&object) {
            let image = container["image"].as_str().unwrap_or_default();
            let pinned = match image.split_once(':') {
                Some(("gpucap", _)) => image == own,
                Some(("gpucap-dra", _)) => image == dra && name.ends_with(" \"gpucap-dra\""),
                // CRI-O knows of no registry by itself.
                Some((name, tag)) => {
                    name.starts_with("docker.io/")
                        && tag.starts_with(|sign: char| sign.is_ascii_digit())
                }
                None => false,
            };
            expect(pinned, || format!("{name}: {image}"))?;
        }
    }
    // The DRA driver's image is beside the other one, or has a name of its own.
    let set =
        "image.repository=r.example/a/gpucap,image.tag=v2,image.pullPolicy=Always,dra.enabled=true";
    let other = format!("{set},dra.image.repository=r.example/b/dra,dra.image.tag=v3");
    for (set, driver) in [(set, "r.example/a/gpucap-dra:v2"), (&other, "r.example/b/dra:v3")] {
        for object in with(set)?.iter().filter(|it| it["metadata"]["name"] != "gpucap-validate") {
            let of_driver = object["metadata"]["name"] == "gpucap-dra";
            let expected = if of_driver { driver } else { "r.example/a/gpucap:v2" };
            for container in containers(object) {
                let image = (&container["image"], &container["imagePullPolicy"]);
                let fits = image == (&json!(expected), &json!("Always"));
                expect(fits, || format!("{container}: not {expected}"))?;
            }
        }
    }
    let text = fs::read_to_string(deploy().join("Containerfile"))?;
    let are_both = [own, dra].iter().all(|image| text.contains(&format!("REGISTRY/{image} ")))
        && text.contains("\nFROM docker.io/library/busybox:1.");
    expect(are_both, || text)
}

fn references() -> Result {
    let class = chart::object(&with("uninstall=false")?, "RuntimeClass", "gpucap")?;
    let named = |value: &Value, key: &str| -> Vec<String> {
        list(value).filter_map(|it| it[key].as_str().map(str::to_owned)).collect()
    };
    for (name, object) in all()? {
        let Some(pod) = pod(&object) else { continue };
        let volumes = named(&pod["volumes"], "name");
        let mut mounts = Vec::new();
        for container in containers(&object) {
            mounts.extend(named(&container["volumeMounts"], "name"));
        }
        for mount in &mounts {
            expect(volumes.contains(mount), || format!("{name}: no volume {mount}"))?;
        }
        for volume in &volumes {
            expect(mounts.contains(volume), || format!("{name}: no container mounts {volume}"))?;
        }
        if let Some(labels) =
            object.pointer("/spec/selector/matchLabels").and_then(Value::as_object)
        {
            let template = &object["spec"]["template"]["metadata"]["labels"];
            let selects = labels.iter().all(|(key, value)| template[key] == *value);
            expect(selects, || format!("{name}: {labels:?} selects no {template}"))?;
            // Both go where pods of the class go, and nowhere else; no taint keeps them from it.
            let (own, other) = (&pod["nodeSelector"], &class["scheduling"]["nodeSelector"]);
            expect(!own.is_null() && own == other, || format!("{name}: {own}, not {other}"))?;
            let all = json!([{"operator": "Exists"}]);
            expect(pod["tolerations"] == all, || format!("{name}: {}", pod["tolerations"]))?;
        }
        if let Some(runtime) = pod["runtimeClassName"].as_str() {
            expect(class["metadata"]["name"] == runtime, || format!("{name}: {runtime}"))?;
        }
    }
    let tolerations = json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]);
    expect(class["scheduling"]["tolerations"] == tolerations, || class.to_string())?;
    let objects = with("uninstall=false")?;
    let pod = chart::object(&objects, "DaemonSet", "gpucap")?["spec"]["template"]["spec"].take();
    let named = list(&pod["volumes"]).find_map(|it| it["configMap"]["name"].as_str());
    chart::object(&objects, "ConfigMap", named.unwrap_or_default()).map(drop)
}

/// Kinds that are in no namespace.
const GLOBAL: [&str; 6] = [
    "RuntimeClass",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "DeviceClass",
];

fn namespaced() -> Result {
    for (name, object) in all()?.iter().filter(|(name, _)| !name.starts_with("examples/")) {
        let is_global = GLOBAL.iter().any(|it| object["kind"] == *it);
        let namespace = &object["metadata"]["namespace"];
        let fits = if is_global { namespace.is_null() } else { *namespace == NAMESPACE };
        expect(fits, || format!("{name}: {namespace}"))?;
        let version = &object["metadata"]["labels"]["app.kubernetes.io/version"];
        expect(*version == env!("CARGO_PKG_VERSION"), || format!("{name}: {version}"))?;
    }
    Ok(())
}

fn privileges() -> Result {
    for options in ["uninstall=false", "uninstall=true"] {
        let object = daemonset("gpucap", options)?;
        let spec = pod(&object).ok_or_else(|| Stop::fail(options))?;
        expect(spec["automountServiceAccountToken"] == false, || format!("{options}: a token"))?;
        let security = |list: &str| &spec[list][0]["securityContext"];
        let (enters, stays) = (security("initContainers"), security("containers"));
        let added = &enters["capabilities"]["add"];
        let exact = *added == json!(["SYS_PTRACE", "SYS_ADMIN", "SYS_CHROOT"]);
        expect(exact && enters["privileged"] == false, || format!("{options}: {enters}"))?;
        let bare = stays["capabilities"] == json!({"drop": ["ALL"]})
            && stays["runAsNonRoot"] == true
            && stays["allowPrivilegeEscalation"] == false;
        expect(bare, || format!("{options}: {stays}"))?;
    }
    for (name, object) in all()?.iter().filter(|(name, _)| !name.starts_with("examples/")) {
        // The one of `helm test` is a pod as users have them.
        for container in containers(object).iter().filter(|it| it["name"] != "validate") {
            let security = &container["securityContext"];
            let closed = security["readOnlyRootFilesystem"] == true
                && security["capabilities"]["drop"] == json!(["ALL"])
                && security["allowPrivilegeEscalation"].is_boolean()
                && security["seccompProfile"]["type"] == "RuntimeDefault"
                && container["resources"]["limits"]["memory"].is_string();
            expect(closed, || format!("{name}: {container}"))?;
        }
    }
    Ok(())
}

fn places() -> Result {
    let object = daemonset("gpucap", "uninstall=false")?;
    let spec = pod(&object).ok_or_else(|| Stop::fail("no pod"))?;
    let text = fs::read_to_string(deploy().join("node.sh"))?;
    for (variable, volume) in [("PREFIX", "prefix"), ("ETC", "etc")] {
        let of = |it: &&Value| it["name"] == volume;
        let host = list(&spec["volumes"]).find(of).and_then(|it| it["hostPath"]["path"].as_str());
        let mut mounts = list(&spec["initContainers"][0]["volumeMounts"]);
        let mount = mounts.find(of).and_then(|it| it["mountPath"].as_str());
        let host = host.ok_or_else(|| Stop::fail(volume))?;
        expect(text.contains(&format!("${{{variable}:-{host}}}")), || host.to_owned())?;
        expect(mount == Some(&format!("/host{host}")), || format!("{mount:?}"))?;
    }
    expect(text.contains("${HOST-/host}"), || "HOST".into())?;
    let env: Vec<_> = list(&spec["initContainers"][0]["env"]).collect();
    for it in &env {
        let (name, value) = (it["name"].as_str(), it["value"].as_str());
        let (name, value) = (name.unwrap_or_default(), value.unwrap_or_default());
        let is_default = |sign| text.contains(&format!("${{{name}{sign}{value}}}"));
        expect(is_default(":-") || is_default("-"), || it.to_string())?;
    }
    expect(env.len() == 4, || format!("{env:?}"))
}

fn leaving() -> Result {
    let coming = daemonset("gpucap", "uninstall=false")?["spec"]["template"]["spec"].take();
    let leaving = daemonset("gpucap", "uninstall=true")?["spec"]["template"]["spec"].take();
    for key in ["nodeSelector", "tolerations", "hostPID"] {
        expect(coming[key] == leaving[key], || format!("{key}: {}", leaving[key]))?;
    }
    let container = |pod: &Value, key: &str| pod["initContainers"][0][key].clone();
    for key in ["image", "env", "securityContext", "resources"] {
        let (one, other) = (container(&coming, key), container(&leaving, key));
        expect(!one.is_null() && one == other, || format!("{key}: {other}"))?;
    }
    expect(container(&coming, "args") == json!(["install"]), || "install".into())?;
    expect(container(&leaving, "args") == json!(["uninstall"]), || "uninstall".into())?;
    let places = |pod: &Value| -> Vec<Value> {
        list(&pod["volumes"]).filter(|it| it["hostPath"].is_object()).cloned().collect()
    };
    expect(places(&coming) == places(&leaving), || "the node's places differ".into())
}

/// What a pod's author writes for a scheduler alone; no source reads it.
const OF_A_SCHEDULER: [&str; 1] = ["gpu-fraction"];

fn handler() -> Result {
    let scratch = Scratch::new()?;
    script(&scratch.path().join("ctr"), "echo '{}'")?;
    let path = env::var("PATH").map_err(Stop::fail)?;
    let mut configure = Command::new(Build::shipped()?.gpucap()?);
    configure.args(["configure", "containerd", "--dry-run", "--file"]);
    configure.arg(scratch.path().join("config.toml"));
    configure.env("PATH", format!("{}:{path}", scratch.path().display()));
    let told = ended(&mut configure, true)?;
    let class = chart::object(&with("uninstall=false")?, "RuntimeClass", "gpucap")?;
    let handler = class["handler"].as_str().unwrap_or_default();
    expect(told.contains(&format!("runtimes.{handler}]")), || told.clone())?;
    for (name, object) in all()?.iter().filter(|(name, _)| name.starts_with("examples/")) {
        let annotations = object["metadata"]["annotations"].as_object().cloned();
        let annotations = annotations.unwrap_or_default();
        for key in annotations.keys().filter(|key| !OF_A_SCHEDULER.contains(&key.as_str())) {
            let domain = key.split('/').next().unwrap_or(key);
            expect(told.contains(&format!("\"{domain}/*\"")), || format!("{name}: {key}: {told}"))?;
        }
    }
    Ok(())
}
