//! The DaemonSet with `gpucap nri` in it: `hook/deploy/nri` changes the other by operations of JSON Patch.
//!
//! They are applied here too, so that every rule for manifests holds for what comes of them, with kubectl or without.

use crate::{ended, expect, manifest, yaml};
use gpucap_tests::{Build, Result, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "option: the plugin sees the node's places as they are, and cannot write them",
            places,
        ),
        trial("option: it is the node's own command, called with words that it knows", words),
        trial(
            "option: it has no rights but its owner's, and is ready by a file of its own",
            rights,
        ),
    ]
}

/// What comes of the operations.
pub(crate) fn daemonset() -> Result<Value> {
    let mut object = manifest("daemonset.yaml")?;
    let kustomization = manifest("nri/kustomization.yaml")?;
    for patch in kustomization["patches"].as_array().into_iter().flatten() {
        let target = (&patch["target"]["kind"], &patch["target"]["name"]);
        let own = (&object["kind"], &object["metadata"]["name"]);
        expect(target == own, || format!("it changes {target:?}"))?;
        for operation in yaml(patch["patch"].as_str().unwrap_or_default())? {
            for operation in operation.as_array().into_iter().flatten() {
                add(&mut object, operation)?;
            }
        }
    }
    Ok(object)
}

/// The only operation that we use.
fn add(object: &mut Value, operation: &Value) -> Result {
    let path = operation["path"].as_str().unwrap_or_default();
    let wrong = || Stop::fail(format!("it cannot be done: {operation}"));
    let (place, key) = path.rsplit_once('/').ok_or_else(wrong)?;
    let place = object.pointer_mut(place).filter(|_| operation["op"] == "add").ok_or_else(wrong)?;
    let value = operation["value"].clone();
    match place {
        Value::Array(list) if key == "-" => list.push(value),
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The plugin's container, and the pod.
fn plugin() -> Result<(Value, Value)> {
    let pod = daemonset()?["spec"]["template"]["spec"].take();
    let mut containers = pod["containers"].as_array().into_iter().flatten();
    let plugin = containers.find(|it| it["name"] == "nri").cloned();
    Ok((plugin.ok_or_else(|| Stop::fail("no plugin"))?, pod))
}

fn places() -> Result {
    let (plugin, pod) = plugin()?;
    let mut count = 0;
    for mount in plugin["volumeMounts"].as_array().into_iter().flatten() {
        let mut volumes = pod["volumes"].as_array().into_iter().flatten();
        let volume = volumes.find(|it| it["name"] == mount["name"]).cloned().unwrap_or_default();
        let Some(path) = volume["hostPath"]["path"].as_str() else { continue };
        // What the settings and the hook name is named by its path on the node.
        expect(mount["mountPath"] == path && mount["readOnly"] == true, || mount.to_string())?;
        count += 1;
    }
    expect(count == 5, || format!("{count} places of the node"))?;
    let installer = &pod["initContainers"][0]["args"];
    expect(*installer == json!(["install", "--nri"]), || installer.to_string())
}

fn words() -> Result {
    let (plugin, _) = plugin()?;
    let words: Vec<&str> =
        plugin["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let [program, words @ ..] = &words[..] else { return Err(Stop::fail("no command")) };
    let same = format!("--program={program}");
    expect(words.contains(&same.as_str()), || format!("{words:?}"))?;
    expect(*program == "/opt/gpucap/current/bin/gpucap", || (*program).into())?;
    // An index that is none, so that it ends; a word that it does not know would end it otherwise.
    let mut command = Command::new(Build::shipped()?.gpucap()?);
    let said = ended(command.args(words).args(["--index", "none"]), false)?;
    expect(said.contains("gpucap: nri: a plugin has a name"), || said.clone())
}

fn rights() -> Result {
    let (plugin, pod) = plugin()?;
    let security = &plugin["securityContext"];
    let bare = security["capabilities"] == json!({"drop": ["ALL"]})
        && security["allowPrivilegeEscalation"] == false
        && security["readOnlyRootFilesystem"] == true;
    expect(bare, || security.to_string())?;
    let probe = plugin.pointer("/readinessProbe/exec/command/2").and_then(Value::as_str);
    let file = probe.unwrap_or_default();
    let word = json!(format!("--ready-file={file}"));
    let words = plugin["command"].as_array();
    expect(words.is_some_and(|words| words.contains(&word)), || format!("{words:?}"))?;
    let place = file.rsplit_once('/').map_or("", |(place, _)| place);
    let mut mounts = plugin["volumeMounts"].as_array().into_iter().flatten();
    let mount = mounts.find(|it| it["mountPath"] == place).ok_or_else(|| Stop::fail(place))?;
    let mut volumes = pod["volumes"].as_array().into_iter().flatten();
    let own = volumes.any(|it| it["name"] == mount["name"] && it["emptyDir"].is_object());
    expect(own && mount["readOnly"].is_null(), || mount.to_string())
}
