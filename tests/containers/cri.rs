//! containerd as the kubelet meets it: pods, through its CRI, on a node that `gpucap configure containerd` has told.
//!
//! Each test has a containerd of its own, of each release that can be had here, in its usual places ([`Enclosure`]).

use crate::container::json;
use crate::enclosure::{Enclosure, Userland};
use crate::enforced::{ASKS, answers_of_a_slice};
use crate::mounts::ours;
use crate::pods::{Node, Pod, are_the_same, conventions, no_network, seen_by_itself};
use crate::{expect, trials_of_releases};
use gpucap_tests::{Build, Driver, Result, Stop};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of_releases(
        "containerd, CRI",
        &[
            ("a pod of its handler is limited, first process and what is executed", limited),
            ("the annotations of each convention reach the planner", annotations),
            ("a pod with users of its own is limited", own_users),
            ("pods that share a card read each other's usage pages", peers),
            ("a pod that asks for nothing is as it would be without us", the_same),
            ("what was configured can be taken out again", undone),
        ],
    )
}

pub(crate) const CONFIG: &str = "/etc/containerd/config.toml";
const SPECIFICATION: &str = "/etc/gpucap/base-spec.json";
pub(crate) const READY: &str = "containerd successfully booted";

/// A machine with a containerd and a file of its own defaults, as most administrators begin; it does not run yet.
pub(crate) fn machine(userland: Userland) -> Result<(Enclosure, String)> {
    let enclosure = Enclosure::new(userland, "usr/bin/containerd")?;
    let text = enclosure.output(&["containerd", "config", "default"])?;
    // Less than what this process has itself cannot be given without CAP_SYS_RESOURCE.
    let text = text.replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true");
    no_network(&enclosure)?;
    fs::create_dir(enclosure.path("/etc/containerd"))?;
    fs::write(enclosure.path(CONFIG), &text)?;
    Ok((enclosure, text))
}

/// `gpucap configure containerd` in it, as an administrator says it.
pub(crate) fn configure(enclosure: &Enclosure, options: &[&str]) -> Result<String> {
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    enclosure.output(&[&[gpucap.as_str(), "configure", "containerd"], options].concat())
}

/// A node whose containerd has our handler.
fn node(userland: Userland) -> Result<Node> {
    let (enclosure, written) = machine(userland)?;
    configure(&enclosure, &[])?;
    serving(enclosure, &written)
}

/// The same of a machine that was told already, whose configuration once was this.
pub(crate) fn serving(enclosure: Enclosure, written: &str) -> Result<Node> {
    let daemon = enclosure.daemon(&["containerd"], READY)?;
    // The pod's own image is named in the configuration; ours goes by that name.
    let image = written.split(['"', '\'']).find(|it| it.contains("/pause:"));
    let image = image.ok_or_else(|| Stop::fail("no image for a pod's sandbox"))?;
    Node::new(enclosure, daemon, "/run/containerd/containerd.sock", image, |enclosure, file| {
        enclosure.output(&["ctr", "--namespace", "k8s.io", "image", "import", file]).map(drop)
    })
}

fn limited(userland: Userland) -> Result {
    let node = node(userland)?;
    let pod = node.pod("gpucap", json!({}))?;
    let first = format!("{ASKS}; exec sleep infinity");
    let container = pod.container("app", &["sh", "-c", &first], ("GPU_MEM_LIMIT", "1Gi"))?;
    answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
    // By now it has said what it saw itself.
    pod.first_was_limited("app")?;
    untouched_sandbox(&node, &pod, &container)?;
    let said = pod.refused()?;
    expect(said.contains("environment GPU_MEM_LIMIT=\"abc\""), || said)?;
    // Without our class nothing of ours is there, whatever the pod asks for.
    let other = node.pod("", json!({"gpucap/mem": "1Gi"}))?;
    let free = other.container("free", &["sleep", "infinity"], ("GPU_MEM_LIMIT", "1Gi"))?;
    let mounts = other.exec(&free, &["cat", "/proc/self/mountinfo"])?;
    expect(!mounts.contains(" /.gpucap"), || mounts)?;
    let query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader"];
    if Driver::Real("535").nvidia_smi().is_ok() {
        let seen = pod.exec(&container, &query)?;
        expect(seen.trim() == "1024 MiB", || seen)?;
    }
    other.end()?;
    pod.end()?;
    let records = fs::read_dir(node.enclosure.path("/run/gpucap/containers"))?.count();
    expect(records == 0, || format!("{records} records of pods that are over"))
}

/// The pod's own process sees nothing of what its container has.
fn untouched_sandbox(node: &Node, pod: &Pod<'_>, container: &str) -> Result {
    let tasks = node.enclosure.output(&["ctr", "--namespace", "k8s.io", "task", "ls"])?;
    let mounts = |id: &str| -> Result<String> {
        let task = tasks.lines().find(|line| line.starts_with(id));
        let pid = task.and_then(|line| line.split_whitespace().nth(1));
        let pid = pid.ok_or_else(|| Stop::fail(format!("no {id} in: {tasks}")))?;
        Ok(fs::read_to_string(node.enclosure.path(&format!("/proc/{pid}/mountinfo")))?)
    };
    expect(mounts(container)?.contains(" /.gpucap "), || "the container has no mount".into())?;
    let mounts = mounts(&pod.id)?;
    expect(ours(&mounts).is_empty(), || format!("the sandbox was touched: {mounts}"))
}

fn annotations(userland: Userland) -> Result {
    conventions(&node(userland)?, "gpucap")
}

fn the_same(userland: Userland) -> Result {
    let node = node(userland)?;
    are_the_same(&seen_by_itself(&node, "gpucap")?, &seen_by_itself(&node, "")?)
}

fn own_users(userland: Userland) -> Result {
    let node = node(userland)?;
    let version = node.enclosure.output(&["containerd", "--version"])?;
    if version.contains(" 1.6.") {
        return Err(Stop::skip("containerd 1.6 has no users of their own for pods"));
    }
    node.limits_own_users("gpucap")
}

fn peers(userland: Userland) -> Result {
    let node = node(userland)?;
    node.shows_peers("gpucap")?;
    node.has_no_pages()
}

fn undone(userland: Userland) -> Result {
    let (enclosure, written) = machine(userland)?;
    let dry = configure(&enclosure, &["--dry-run"])?;
    expect(fs::read_to_string(enclosure.path(CONFIG))? == written, || format!("changed: {dry}"))?;
    let before = enclosure.output(&["containerd", "config", "dump"])?;
    configure(&enclosure, &[])?;
    let during = enclosure.output(&["containerd", "config", "dump"])?;
    let gone: Vec<_> = before.lines().filter(|line| !during.contains(line)).collect();
    expect(gone.is_empty(), || format!("lost from what containerd reads: {gone:?}"))?;
    expect(during.contains(SPECIFICATION) && !before.contains(SPECIFICATION), || during)?;
    let base = json(&enclosure.path(SPECIFICATION))?;
    expect(base["hooks"]["createRuntime"].is_array(), || base.to_string())?;
    enclosure.stop(&enclosure.daemon(&["containerd"], READY)?)?;
    configure(&enclosure, &["--undo"])?;
    expect(fs::read_to_string(enclosure.path(CONFIG))? == written, || "not as it was".into())?;
    expect(!enclosure.path(SPECIFICATION).exists(), || "the specification is left".into())?;
    let after = enclosure.output(&["containerd", "config", "dump"])?;
    expect(after == before, || after)?;
    enclosure.daemon(&["containerd"], READY).map(drop)
}
