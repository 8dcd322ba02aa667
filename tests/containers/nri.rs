//! containerd with the plugin: pods of any runtime class are limited, by the hook that the plugin brings.
//!
//! Each release from 1.7 on, told by `gpucap configure containerd --nri`. What the plugin is not there for, the handler
//! `gpucap` still does: the plugin shows, the hook enforces.

use crate::cri::{CONFIG, READY, configure, machine, serving};
use crate::enclosure::{Daemon, Userland};
use crate::enforced::{ASKS, answers_of_a_slice};
use crate::pods::Node;
use crate::{expect, trials_of_releases};
use gpucap_tests::{Build, Result, Stop};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of_releases(
        "containerd, NRI",
        &[
            ("a pod of any class is limited, and sees its limit in what is executed", limited),
            ("a refusal is what the kubelet is told, and the next container is made", refused),
            ("the handler holds without the plugin and beside one that hangs", without),
            ("the plugin comes back to a containerd that was restarted", restarted),
            ("containerd starts a plugin that is installed", launched),
        ],
    )
}

/// What the plugin says once it is asked.
const ASKED: &str = "asks 10-gpucap";

/// Where containerd looks for plugins, moved to a place that is the enclosure's own.
const PLUGINS: [&str; 2] = ["/opt/nri/plugins", "/etc/nri/plugins"];

/// A node whose containerd has NRI, and finds the plugin installed or not.
fn node(userland: Userland, is_installed: bool) -> Result<Node> {
    let (enclosure, written) = machine(userland)?;
    if !written.contains("io.containerd.nri.v1.nri") {
        return Err(Stop::skip("this containerd is older than 1.7, and has no NRI"));
    }
    let [theirs, ours] = PLUGINS;
    fs::write(enclosure.path(CONFIG), written.replace(theirs, ours))?;
    fs::create_dir_all(enclosure.path(ours))?;
    if is_installed {
        let file = enclosure.path(&format!("{ours}/10-gpucap"));
        symlink(Build::shipped()?.gpucap()?, file)?;
    }
    configure(&enclosure, &["--nri"])?;
    serving(enclosure, &written)
}

/// The plugin, once it is asked.
fn plugin(node: &Node) -> Result<Daemon> {
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    node.enclosure.daemon(&[&gpucap, "nri", "--ready-file", "/run/ready"], ASKED)
}

/// A pod of this class with a container that asks for 1 GiB is limited; what a command in it sees in its environment.
fn seen(node: &Node, class: &str, annotations: &Value) -> Result<String> {
    let pod = node.pod(class, annotations.clone())?;
    let container = pod.container("app", &["sleep", "infinity"], ("GPU_MEM_LIMIT", "1Gi"))?;
    answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
    let env = pod.exec(&container, &["env"])?;
    let limits = pod.exec(&container, &["cat", "/.gpucap/limits"])?;
    let core = annotations.get("gpucap/core-pct").map_or("", |_| "core=30%\n");
    let entry = format!("\ngpu=*\nmem=1073741824\n{core}");
    expect(limits.contains(&entry), || format!("no {entry} in {limits}"))?;
    let info = ["ctr", "--namespace", "k8s.io", "container", "info", &container];
    let info: Value = serde_json::from_str(&node.enclosure.output(&info)?).map_err(Stop::fail)?;
    for stage in ["createRuntime", "poststop"] {
        let hooks = info["Spec"]["hooks"][stage].as_array().map_or(0, Vec::len);
        expect(hooks == 1, || format!("{hooks} hooks at {stage}"))?;
    }
    pod.end()?;
    Ok(env)
}

/// A pod of no class and its container are not limited.
fn is_free(node: &Node, env: (&str, &str)) -> Result {
    let pod = node.pod("", json!({}))?;
    let container = pod.container("free", &["sleep", "infinity"], env)?;
    let mounts = pod.exec(&container, &["cat", "/proc/self/mountinfo"])?;
    expect(!mounts.contains(" /.gpucap"), || mounts)?;
    pod.end()
}

fn limited(userland: Userland) -> Result {
    let node = node(userland, false)?;
    let _plugin = plugin(&node)?;
    for class in ["", "gpucap"] {
        // Of which containerd passes on nothing, where there is no handler of ours.
        let env = seen(&node, class, &json!({"gpucap/core-pct": "30"}))?;
        for entry in ["\nGPU_MEM_LIMIT=1GiB\n", "\nGPU_CORE_PCT=30%\n"] {
            expect(format!("\n{env}").contains(entry), || {
                format!("{class:?}: no {entry} in {env}")
            })?;
        }
    }
    is_free(&node, ("NONE", ""))?;
    expect(node.enclosure.path("/run/ready").exists(), || "it does not say that it is ready".into())
}

fn refused(userland: Userland) -> Result {
    let node = node(userland, false)?;
    let _plugin = plugin(&node)?;
    let pod = node.pod("", json!({}))?;
    let said = pod.refused()?;
    let says = "gpucap: nri: container bad of pod test/";
    let why = "is not made: environment GPU_MEM_LIMIT=\"abc\"";
    expect(said.contains(says) && said.contains(why), || said)?;
    pod.end()?;
    seen(&node, "", &json!({})).map(drop)
}

fn without(userland: Userland) -> Result {
    let node = node(userland, false)?;
    let plugin = plugin(&node)?;
    // containerd waits two seconds for its answer, and then does without.
    node.enclosure.signal(&plugin, "STOP")?;
    let env = seen(&node, "gpucap", &json!({}))?;
    expect(!env.contains("GPU_MEM_LIMIT=1GiB"), || format!("it did not hang: {env}"))?;
    node.enclosure.signal(&plugin, "CONT")?;
    plugin.says(ASKED)?;
    let env = seen(&node, "", &json!({}))?;
    expect(env.contains("GPU_MEM_LIMIT=1GiB"), || format!("it did not come back: {env}"))?;
    node.enclosure.signal(&plugin, "KILL")?;
    seen(&node, "gpucap", &json!({}))?;
    // What the manual says of pods of other classes.
    is_free(&node, ("GPU_MEM_LIMIT", "1Gi"))
}

fn restarted(userland: Userland) -> Result {
    let mut node = node(userland, false)?;
    let plugin = plugin(&node)?;
    node.enclosure.stop(&node.daemon)?;
    plugin.says("trying again")?;
    expect(!node.enclosure.path("/run/ready").exists(), || "ready without a containerd".into())?;
    node.daemon = node.enclosure.daemon(&["containerd"], READY)?;
    plugin.says(ASKED)?;
    seen(&node, "", &json!({})).map(drop)
}

fn launched(userland: Userland) -> Result {
    let node = node(userland, true)?;
    let env = seen(&node, "", &json!({}))?;
    expect(env.contains("GPU_MEM_LIMIT=1GiB"), || env)
}
