//! The DaemonSet with more in it: the plugin for NRI, and the metrics.
//!
//! Each is a container of the node's own command: its words are known to that command, its places are those of the node,
//! and it has no right that it does not need.

use crate::manifests::{ALL, daemonset};
use crate::{ended, expect};
use gpucap_tests::{Build, Result, Stop, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "option: the plugin sees the node's places as they are, and cannot write them",
            || places("nri", 6),
        ),
        trial("option: so do the metrics", || places("metrics", 3)),
        trial("option: the installer switches NRI on", installer),
        trial(
            "option: the plugin is the node's own command, called with words that it knows",
            || {
                // An index that is none, so that it ends.
                words(
                    "nri",
                    |words| words.extend(["--index", "none"].map(str::to_owned)),
                    "a plugin has a name",
                )
            },
        ),
        trial("option: so are the metrics, at the port that is told", metrics_words),
        trial(
            "option: it has no rights but its owner's, and is ready by a file of its own",
            rights,
        ),
        trial("option: the metrics may look at every process, and change nothing", metrics_rights),
        trial("option: metrics that sample are a process of the node", samples),
    ]
}

/// The container of an option, which has its name, and the pod with all options.
fn container(component: &str) -> Result<(Value, Value)> {
    let pod = daemonset("gpucap", ALL)?["spec"]["template"]["spec"].take();
    let mut containers = pod["containers"].as_array().into_iter().flatten();
    let container = containers.find(|it| it["name"] == component).cloned();
    Ok((container.ok_or_else(|| Stop::fail(format!("no {component}")))?, pod))
}

fn places(component: &str, expected: usize) -> Result {
    let (container, pod) = container(component)?;
    let mut count = 0;
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        let volumes = pod["volumes"].as_array().into_iter().flatten();
        let named: Vec<&Value> = volumes.filter(|it| it["name"] == mount["name"]).collect();
        let [volume] = named[..] else { return Err(Stop::fail(format!("{mount}: {named:?}"))) };
        let Some(path) = volume["hostPath"]["path"].as_str() else { continue };
        // What the settings and the hook name is named by its path on the node.
        expect(mount["mountPath"] == path && mount["readOnly"] == true, || mount.to_string())?;
        count += 1;
    }
    expect(count == expected, || format!("{count} places of the node"))
}

fn installer() -> Result {
    let (_, pod) = container("nri")?;
    let installer = &pod["initContainers"][0]["args"];
    expect(*installer == json!(["install", "--nri"]), || installer.to_string())
}

/// Runs a container's command, changed so that it ends; it then says so. A word that it does not know would end it otherwise.
fn words(component: &str, change: impl FnOnce(&mut Vec<String>), says: &str) -> Result {
    let (container, _) = container(component)?;
    let words = container["command"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    let program = words.remove(0);
    expect(program == "/opt/gpucap/current/bin/gpucap", || program.clone())?;
    let named = words.iter().find_map(|word| word.strip_prefix("--program="));
    expect(named.is_none_or(|named| named == program), || format!("{words:?}"))?;
    change(&mut words);
    let said = ended(Command::new(Build::shipped()?.gpucap()?).args(words), false)?;
    expect(said.contains(&format!("gpucap: {component}: {says}")), || said.clone())
}

fn metrics_words() -> Result {
    let object = daemonset("gpucap", "metrics.enabled=true")?;
    let (container, _) = container("metrics")?;
    let port = container["ports"][0]["containerPort"].to_string();
    let told = &object["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"];
    expect(*told == json!(port), || format!("{told}, not {port}"))?;
    let other = TcpListener::bind("127.0.0.1:0")?;
    let taken = other.local_addr()?.to_string();
    let change = |words: &mut Vec<String>| {
        let listen = format!("--listen=0.0.0.0:{port}");
        let place = words.iter().position(|word| *word == listen);
        place.into_iter().for_each(|place| words[place] = format!("--listen={taken}"));
    };
    // Whose words follow depends on the C library: what ships has another than glibc.
    words("metrics", change, &format!("{taken}: address "))
}

fn metrics_rights() -> Result {
    let (container, pod) = container("metrics")?;
    let security = &container["securityContext"];
    let looks = security["capabilities"]
        == json!({"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]})
        && security["allowPrivilegeEscalation"] == false
        && security["readOnlyRootFilesystem"] == true;
    expect(looks && pod["hostPID"] == true, || security.to_string())
}

fn samples() -> Result {
    let object = daemonset("gpucap", "metrics.enabled=true,metrics.sample=true")?;
    let containers = object["spec"]["template"]["spec"]["containers"].as_array();
    let metrics = containers.into_iter().flatten().find(|it| it["name"] == "metrics");
    let metrics = metrics.ok_or_else(|| Stop::fail("no metrics"))?;
    let words = ["nsenter", "-t", "1", "-m", "/opt/gpucap/current/bin/gpucap", "metrics"];
    let through = "--through=systemd-run --quiet --pipe --wait --collect";
    let words = [&words[..], &["--listen=0.0.0.0:9744", "--sample", through]].concat();
    expect(metrics["command"] == json!(words), || metrics["command"].to_string())?;
    let added = &metrics["securityContext"]["capabilities"]["add"];
    let expected = json!(["SYS_PTRACE", "DAC_READ_SEARCH", "SYS_ADMIN", "SYS_CHROOT"]);
    expect(*added == expected, || added.to_string())
}

fn rights() -> Result {
    let (plugin, pod) = container("nri")?;
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
