//! The manifests: their form, and that they agree with one another, with the scripts and with what containerd is told.

use crate::option::{self, COMPONENTS};
use crate::{deploy, ended, expect, manifest, script, shape, tree, yaml};
use gpucap_tests::{Build, Result, Scratch, Stop, project, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("manifests: each has the fields of its kind, and no other", forms),
        trial("manifests: a fault in the form is found", bites),
        trial(
            "manifests: each image has its registry and a version, ours the one of this release",
            images,
        ),
        trial("manifests: what a pod refers to is there", references),
        trial("manifests: what enters the node is no more than it must be", privileges),
        trial("manifests: the node's places are those of the script", places),
        trial("manifests: leaving a node has the rights and places of coming", leaving),
        trial(
            "manifests: containerd is told of the handler, and passes on the annotations",
            handler,
        ),
        trial("manifests: kustomize builds them, in the namespace", kustomized),
        trial("manifests: the manual's overlays put in the registry and the settings", overlays),
    ]
}

/// Each manifest, with its name.
pub(crate) fn all() -> Result<Vec<(String, Value)>> {
    let names = tree(&deploy())?.into_iter().filter(|name| name.ends_with(".yaml"));
    let mut all: Vec<_> =
        names.map(|name| Ok((name.clone(), manifest(&name)?))).collect::<Result<_>>()?;
    for component in COMPONENTS {
        all.push((format!("with {component}"), option::daemonset(&[component])?));
    }
    all.push(("with all components".into(), option::daemonset(&COMPONENTS)?));
    expect(all.len() >= 10, || format!("only {} manifests", all.len()))?;
    Ok(all)
}

/// The pod that an object describes.
fn pod(object: &Value) -> Option<&Value> {
    let spec = object.get("spec")?;
    Some(spec.pointer("/template/spec").unwrap_or(spec))
}

fn containers(object: &Value) -> Vec<&Value> {
    let lists = ["initContainers", "containers"];
    let lists = lists.iter().filter_map(|name| pod(object)?[name].as_array());
    lists.flatten().collect()
}

fn forms() -> Result {
    for (name, object) in all()? {
        let faults = shape::faults(&object);
        expect(faults.is_empty(), || format!("{name}: {faults:?}"))?;
    }
    Ok(())
}

fn bites() -> Result {
    let sound = manifest("daemonset.yaml")?;
    let container = "/spec/template/spec/containers/0";
    for (place, key, value) in [
        ("", "kind", json!("Daemonset")),
        ("/spec", "selectr", json!({})),
        ("/spec/template/spec", "hostPid", json!(true)),
        ("/spec/template/spec/nodeSelector", "gpucap/node", json!(true)),
        (container, "image", Value::Null),
        (container, "resources", json!({"limits": {"memory": null}})),
        (container, "command", json!("sleep")),
    ] {
        let mut broken = sound.clone();
        let object = broken.pointer_mut(place).ok_or_else(|| Stop::fail(place))?;
        object[key] = value;
        expect(!shape::faults(&broken).is_empty(), || format!("{place}/{key}: not found"))?;
    }
    Ok(())
}

fn images() -> Result {
    let own = format!("gpucap-installer:{}", env!("CARGO_PKG_VERSION"));
    let dra = format!("gpucap-dra:{}", env!("CARGO_PKG_VERSION"));
    for (name, object) in all()? {
        for container in containers(&object) {
            let image = container["image"].as_str().unwrap_or_default();
            let pinned = match image.split_once(':') {
                Some(("gpucap-installer", _)) => image == own,
                Some(("gpucap-dra", _)) => image == dra,
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
    let text = fs::read_to_string(deploy().join("Containerfile"))?;
    let is_one = |text: &str, own: &str| {
        text.contains(own) && text.contains("\nFROM docker.io/library/busybox:1.")
    };
    expect(is_one(&text, &own), || text)?;
    let text = fs::read_to_string(deploy().join("dra/Containerfile"))?;
    expect(is_one(&text, &dra), || text)
}

fn references() -> Result {
    let class = manifest("runtimeclass.yaml")?;
    let named = |list: &Value, key: &str| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|it| it[key].as_str().map(str::to_owned)).collect()
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
        if let Some(labels) = object.pointer("/spec/selector/matchLabels") {
            let template = &object["spec"]["template"]["metadata"]["labels"];
            expect(labels == template, || format!("{name}: {labels} selects no {template}"))?;
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
    let settings = manifest("settings.yaml")?;
    let volumes = manifest("daemonset.yaml")?["spec"]["template"]["spec"]["volumes"].clone();
    let name = &settings["metadata"]["name"];
    let mut volumes = volumes.as_array().into_iter().flatten();
    expect(volumes.any(|it| it["configMap"]["name"] == *name), || format!("{name} is not mounted"))
}

fn privileges() -> Result {
    for name in ["daemonset.yaml", "uninstall/daemonset.yaml"] {
        let object = manifest(name)?;
        let spec = pod(&object).ok_or_else(|| Stop::fail(name))?;
        expect(spec["automountServiceAccountToken"] == false, || format!("{name}: a token"))?;
        let security = |list: &str| &spec[list][0]["securityContext"];
        let (enters, stays) = (security("initContainers"), security("containers"));
        let added = &enters["capabilities"]["add"];
        let exact = *added == json!(["SYS_PTRACE", "SYS_ADMIN", "SYS_CHROOT"]);
        expect(exact && enters["privileged"] == false, || format!("{name}: {enters}"))?;
        let bare = stays["capabilities"] == json!({"drop": ["ALL"]})
            && stays["runAsNonRoot"] == true
            && stays["allowPrivilegeEscalation"] == false;
        expect(bare, || format!("{name}: {stays}"))?;
        for container in containers(&object) {
            let security = &container["securityContext"];
            let closed = security["readOnlyRootFilesystem"] == true
                && security["capabilities"]["drop"] == json!(["ALL"]);
            expect(closed, || format!("{name}: {security}"))?;
        }
    }
    Ok(())
}

fn places() -> Result {
    let object = manifest("daemonset.yaml")?;
    let spec = pod(&object).ok_or_else(|| Stop::fail("no pod"))?;
    let text = fs::read_to_string(deploy().join("node.sh"))?;
    let list = |list: &Value| list.as_array().cloned().unwrap_or_default();
    for (variable, volume) in [("PREFIX", "prefix"), ("ETC", "etc")] {
        let volumes = list(&spec["volumes"]);
        let of = |it: &&Value| it["name"] == volume;
        let host = volumes.iter().find(of).and_then(|it| it["hostPath"]["path"].as_str());
        let mounts = list(&spec["initContainers"][0]["volumeMounts"]);
        let mount = mounts.iter().find(of).and_then(|it| it["mountPath"].as_str());
        let host = host.ok_or_else(|| Stop::fail(volume))?;
        expect(text.contains(&format!("${{{variable}:-{host}}}")), || host.to_owned())?;
        expect(mount == Some(&format!("/host{host}")), || format!("{mount:?}"))?;
    }
    expect(text.contains("${HOST-/host}"), || "HOST".into())
}

fn leaving() -> Result {
    let (mut comes, mut leaves) =
        (manifest("daemonset.yaml")?, manifest("uninstall/daemonset.yaml")?);
    let coming = comes["spec"]["template"]["spec"].take();
    let leaving = leaves["spec"]["template"]["spec"].take();
    for key in ["nodeSelector", "tolerations", "hostPID"] {
        expect(coming[key] == leaving[key], || format!("{key}: {}", leaving[key]))?;
    }
    let container = |pod: &Value, key: &str| pod["initContainers"][0][key].clone();
    for key in ["image", "securityContext", "resources"] {
        let (one, other) = (container(&coming, key), container(&leaving, key));
        expect(one == other, || format!("{key}: {other}"))?;
    }
    expect(container(&coming, "args") == json!(["install"]), || "install".into())?;
    expect(container(&leaving, "args") == json!(["uninstall"]), || "uninstall".into())?;
    let places = |pod: &Value| -> Vec<Value> {
        let list = pod["volumes"].as_array().cloned().unwrap_or_default();
        list.into_iter().filter(|it| it["hostPath"].is_object()).collect()
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
    let class = manifest("runtimeclass.yaml")?;
    let handler = class["handler"].as_str().unwrap_or_default();
    expect(told.contains(&format!("runtimes.{handler}]")), || told.clone())?;
    for (name, object) in all()? {
        let annotations = object["metadata"]["annotations"].as_object().cloned();
        let annotations = annotations.unwrap_or_default();
        for key in annotations.keys().filter(|key| !OF_A_SCHEDULER.contains(&key.as_str())) {
            let domain = key.split('/').next().unwrap_or(key);
            expect(told.contains(&format!("\"{domain}/*\"")), || format!("{name}: {key}: {told}"))?;
        }
    }
    Ok(())
}

/// Kinds that are in no namespace.
const GLOBAL: [&str; 7] = [
    "Namespace",
    "RuntimeClass",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "DeviceClass",
];

/// What kustomize makes of a directory.
fn kustomize(directory: &Path) -> Result<Vec<Value>> {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return Err(Stop::skip("kubectl is missing"));
    }
    yaml(&ended(Command::new("kubectl").arg("kustomize").arg(directory), true)?)
}

fn kustomized() -> Result {
    let scratch = Scratch::new()?;
    let path = |name: &str| scratch.path().join(name);
    ended(Command::new("cp").arg("-R").arg(deploy()).arg(path("deploy")), true)?;
    fs::create_dir(path("overlay"))?;
    let overlay = "resources: [../deploy]\ncomponents: [../deploy/nri, ../deploy/metrics]\n";
    fs::write(path("overlay/kustomization.yaml"), overlay)?;
    for (place, least) in
        [("deploy", 4), ("overlay", 4), ("deploy/uninstall", 1), ("deploy/dra", 7)]
    {
        let objects = kustomize(&path(place))?;
        expect(objects.len() >= least, || format!("{place}: {objects:?}"))?;
        for object in objects {
            let faults = shape::faults(&object);
            expect(faults.is_empty(), || format!("{place}: {faults:?}"))?;
            let daemonset = (&object["kind"], &object["metadata"]["name"]);
            if place == "overlay" && daemonset == (&json!("DaemonSet"), &json!("gpucap")) {
                let spec = &option::daemonset(&COMPONENTS)?["spec"];
                expect(object["spec"] == *spec, || format!("{object}, not {spec}"))?;
            }
            let is_global = GLOBAL.iter().any(|it| object["kind"] == *it);
            expect(is_global || object["metadata"]["namespace"] == "gpucap", || {
                format!("{place}: {object}")
            })?;
        }
    }
    Ok(())
}

/// A part of the manual's page, without the marks of its language.
fn shown(name: &str) -> Result<String> {
    let page = fs::read_to_string(project().join("docs/src/kubernetes.md"))?;
    let behind = page.split(&format!("<!-- {name}: a test builds it -->\n```yaml\n")).nth(1);
    let text = behind.and_then(|it| it.split("```\n").next());
    text.map(str::to_owned).ok_or_else(|| Stop::fail(format!("no {name} in the manual")))
}

/// Built beside a release, as the manual has it, for coming and for leaving.
fn overlays() -> Result {
    let scratch = Scratch::new()?;
    let release = scratch.path().join(concat!("gpucap-", env!("CARGO_PKG_VERSION")));
    fs::create_dir(&release)?;
    ended(Command::new("cp").arg("-R").arg(deploy()).arg(release.join("deploy")), true)?;
    let coming = shown("overlay")? + &shown("patch")?;
    let leaving = coming.replace("/deploy\n", "/deploy/uninstall\n");
    let with_plugin = coming.clone() + &shown("component")?;
    let with_metrics = coming.clone() + &shown("metrics")?;
    let each = [
        ("gpucap", &coming, 2),
        ("gpucap-nri", &with_plugin, 3),
        ("gpucap-metrics", &with_metrics, 3),
        ("gpucap-leave", &leaving, 2),
    ];
    for (name, text, count) in each {
        let directory = scratch.path().join(name);
        fs::create_dir(&directory)?;
        fs::write(directory.join("kustomization.yaml"), text)?;
        let objects = kustomize(&directory)?;
        let set = objects.iter().find(|it| it["kind"] == "DaemonSet");
        let set = set.ok_or_else(|| Stop::fail(name))?;
        let own = concat!("REGISTRY/gpucap-installer:", env!("CARGO_PKG_VERSION"));
        let containers = containers(set);
        let ours = containers.len() == count && containers.iter().all(|it| it["image"] == own);
        let env = &containers[0]["env"];
        expect(ours && env[0]["name"] == "CONTAINERD" && env[1]["name"] == "RESTART", || {
            set.to_string()
        })?;
    }
    Ok(())
}
