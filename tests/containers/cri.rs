//! containerd as the kubelet meets it: pods, through its CRI, on a node that `gpucap configure containerd` has told.
//!
//! Each test has a containerd of its own, of each release that can be had here, in its usual places ([`Enclosure`]). A
//! pod has the network of its node: no plugin for networks is asked for.

use crate::capped::{ASKS, answers_of_a_slice};
use crate::cgroups::Cgroups;
use crate::container::{json, unique};
use crate::enclosure::{Daemon, Enclosure, Userland};
use crate::image::{Image, add_nvidia_smi, archive};
use crate::{expect, trials_of_releases};
use gpucap_tests::{Actor, Build, Driver, Result, Scratch, Stop, World, fetched, project};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of_releases(
        "containerd, CRI",
        &[
            ("a pod of its handler is capped, first process and what is executed", capped),
            ("the annotations of each convention reach the planner", annotations),
            ("a pod with users of its own is capped", own_users),
            ("a pod that asks for nothing is as it would be without us", the_same),
            ("what was configured can be taken out again", undone),
        ],
    )
}

pub(crate) const CONFIG: &str = "/etc/containerd/config.toml";
const SPECIFICATION: &str = "/etc/gpucap/base-spec.json";
pub(crate) const READY: &str = "containerd successfully booted";
/// How a pod shares its node's network and processes.
const NODE: u32 = 2;

/// A node whose containerd has our handler.
pub(crate) struct Node {
    pub(crate) enclosure: Enclosure,
    client: RefCell<Actor>,
    pub(crate) daemon: Daemon,
    image: String,
    cgroups: Cgroups,
    _scratch: Scratch,
}

/// A pod on it.
pub(crate) struct Pod<'a> {
    node: &'a Node,
    id: String,
    config: Value,
}

/// A machine with a containerd and a file of its own defaults, as most administrators begin; it does not run yet.
pub(crate) fn machine(userland: Userland) -> Result<(Enclosure, String)> {
    let enclosure = Enclosure::new(userland, "usr/bin/containerd")?;
    let text = enclosure.output(&["containerd", "config", "default"])?;
    // Less than what this process has itself cannot be given without CAP_SYS_RESOURCE.
    let text = text.replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true");
    let network = json!({
        "cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}],
    });
    fs::create_dir_all(enclosure.path("/etc/cni/net.d"))?;
    fs::write(enclosure.path("/etc/cni/net.d/none.conflist"), network.to_string())?;
    fs::create_dir(enclosure.path("/etc/containerd"))?;
    fs::write(enclosure.path(CONFIG), &text)?;
    Ok((enclosure, text))
}

/// `gpucap configure containerd` in it, as an administrator says it.
pub(crate) fn configure(enclosure: &Enclosure, options: &[&str]) -> Result<String> {
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    enclosure.output(&[&[gpucap.as_str(), "configure", "containerd"], options].concat())
}

impl Node {
    fn new(userland: Userland) -> Result<Self> {
        let (enclosure, written) = machine(userland)?;
        configure(&enclosure, &[])?;
        Self::of(enclosure, &written)
    }

    /// The same on a machine that was told already, whose configuration once was this.
    pub(crate) fn of(enclosure: Enclosure, written: &str) -> Result<Self> {
        let daemon = enclosure.daemon(&["containerd"], READY)?;
        let scratch = Scratch::new()?;
        let root = scratch.path().join("root");
        Image::Glibc.make(&root)?;
        // Without it, who asks for it is skipped.
        drop(add_nvidia_smi(&root, &Driver::Real("535")));
        // The pod's own image is named in the configuration; ours goes by that name.
        let image = written.split(['"', '\'']).find(|it| it.contains("/pause:"));
        let image = image.ok_or_else(|| Stop::fail("no image for a pod's sandbox"))?.to_owned();
        let file = archive(&root, &image)?.display().to_string();
        enclosure.output(&["ctr", "--namespace", "k8s.io", "image", "import", &file])?;
        let client = World::bare(Driver::Absent).run(&fetched::python("grpcio")?)?;
        let client = client.arg(project().join("tests/containers/cri.py"));
        let client = client.arg(enclosure.path("/run/containerd/containerd.sock")).start()?;
        let (client, cgroups) = (RefCell::new(client), Cgroups(unique()));
        Ok(Self { enclosure, client, daemon, image, cgroups, _scratch: scratch })
    }

    /// One call of its interface, which has to succeed.
    pub(crate) fn call(&self, method: &str, request: &Value) -> Result<Value> {
        let answer = self.ask(method, request)?;
        expect(answer.get("error").is_none(), || format!("{method}: {answer}"))?;
        Ok(answer)
    }

    pub(crate) fn ask(&self, method: &str, request: &Value) -> Result<Value> {
        let mut client = self.client.borrow_mut();
        client.order(&format!("{method} {request}"))?;
        serde_json::from_str(&client.line()?).map_err(Stop::fail)
    }

    /// A pod with these annotations, of this runtime class.
    pub(crate) fn pod(&self, class: &str, annotations: Value) -> Result<Pod<'_>> {
        self.pod_in(json!({"network": NODE}), class, annotations)
    }

    /// The same in these namespaces.
    fn pod_in(&self, namespaces: Value, class: &str, annotations: Value) -> Result<Pod<'_>> {
        let name = unique();
        let config = json!({
            "metadata": {"name": name, "uid": name, "namespace": "test"},
            "log_directory": "/var/log",
            "annotations": annotations,
            "linux": {
                "cgroup_parent": format!("/{}", self.cgroups.0),
                "security_context": {"namespace_options": namespaces},
            },
        });
        let request = json!({"config": config, "runtime_handler": class});
        let answer = self.call("RunPodSandbox", &request)?;
        let id = answer["pod_sandbox_id"].as_str().unwrap_or_default().to_owned();
        Ok(Pod { node: self, id, config })
    }
}

impl Pod<'_> {
    /// A container with this command and variable, started.
    pub(crate) fn container(
        &self,
        name: &str,
        command: &[&str],
        env: (&str, &str),
    ) -> Result<String> {
        let answer = self.node.call("CreateContainer", &self.request(name, command, env))?;
        let id = answer["container_id"].as_str().unwrap_or_default().to_owned();
        self.node.call("StartContainer", &json!({"container_id": id}))?;
        Ok(id)
    }

    pub(crate) fn request(
        &self,
        name: &str,
        command: &[&str],
        (key, value): (&str, &str),
    ) -> Value {
        json!({
            "pod_sandbox_id": self.id,
            "sandbox_config": self.config,
            "config": {
                "metadata": {"name": name}, "image": {"image": self.node.image}, "command": command,
                "envs": [{"key": key, "value": value}], "log_path": format!("{name}.log"),
                "linux": {"security_context": self.config["linux"]["security_context"]},
            },
        })
    }

    /// What a command in a container prints.
    pub(crate) fn exec(&self, container: &str, command: &[&str]) -> Result<String> {
        let request = json!({"container_id": container, "cmd": command, "timeout": 20});
        let answer = self.node.call("ExecSync", &request)?;
        let printed = answer["stdout"].as_str().unwrap_or_default().to_owned();
        expect(answer.get("exit_code").is_none(), || format!("{command:?}: {answer}"))?;
        Ok(printed)
    }

    /// Ends it with all its containers.
    pub(crate) fn end(self) -> Result {
        for method in ["StopPodSandbox", "RemovePodSandbox"] {
            self.node.call(method, &json!({"pod_sandbox_id": self.id}))?;
        }
        Ok(())
    }
}

fn capped(userland: Userland) -> Result {
    let node = Node::new(userland)?;
    let pod = node.pod("gpucap", json!({}))?;
    let first = format!("{ASKS}; exec sleep infinity");
    let container = pod.container("app", &["sh", "-c", &first], ("GPU_MEM_LIMIT", "1Gi"))?;
    answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
    // By now it has said what it saw itself. A line of the log begins with the time and the stream.
    let log = fs::read_to_string(node.enclosure.path("/var/log/app.log"))?;
    let said: Vec<_> = log.lines().filter_map(|line| line.split(" stdout F ").nth(1)).collect();
    answers_of_a_slice(&said.join("\n"))?;
    untouched_sandbox(&node, &pod, &container)?;
    refused(&node, &pod)?;
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
    expect(!mounts.contains("gpucap "), || format!("the sandbox was touched: {mounts}"))
}

/// A container whose limit cannot be used is not started, and the kubelet is told why in one line of ours.
fn refused(node: &Node, pod: &Pod<'_>) -> Result {
    let request = pod.request("bad", &["sh", "-c", ASKS], ("GPU_MEM_LIMIT", "abc"));
    let answer = node.call("CreateContainer", &request)?;
    let started = node.ask("StartContainer", &answer)?;
    let said = started["error"].as_str().unwrap_or_default().replace('\\', "");
    expect(said.contains("environment GPU_MEM_LIMIT=\"abc\""), || started.to_string())?;
    let log = fs::read_to_string(node.enclosure.path("/var/log/bad.log")).unwrap_or_default();
    expect(log.is_empty(), || format!("it printed: {log}"))
}

/// For each pattern of annotations that the handler lets through, one that says 1 GiB.
const CONVENTIONS: &[(&str, &str)] = &[
    ("gpucap/mem", "1Gi"),
    ("gpucap/mem.app", "1Gi"),
    ("hami.io/vgpu-devices-allocated", "GPU-00000000-0000-0000-0000-000000000001,NVIDIA,1024,0:;"),
    ("volcano.sh/vgpu-ids-new", "GPU-00000000-0000-0000-0000-000000000001,NVIDIA,1024,0:;"),
    ("nvidia.com/real-allocated", "app[0_GPU-00000000-0000-0000-0000-000000000001_0_1024]"),
    (
        "scheduling.koordinator.sh/device-allocated",
        r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory":"1Gi"}}]}"#,
    ),
    ("scheduler.framework.gpushare.allocation", r#"{"0":{"0":1}}"#),
    ("gpushare.alibabacloud.com/gpumemory", r#"{"0":{"0":1}}"#),
    ("aliyun.com/gpu-mem", "1"),
];

fn annotations(userland: Userland) -> Result {
    let node = Node::new(userland)?;
    for (key, value) in CONVENTIONS {
        let pod = node.pod("gpucap", json!({*key: value}))?;
        let container = pod.container("app", &["sleep", "infinity"], ("NONE", ""))?;
        let limits = pod.exec(&container, &["sh", "-c", "cat /.gpucap/limits; true"])?;
        expect(limits.contains("\nmem=1073741824\n"), || format!("{key}: {limits}"))?;
        pod.end()?;
    }
    Ok(())
}

/// What a process shows of how it was made: its rights, its bounds and the places that are mounted.
const SELF: &str = "while read -r word rest; do
        case $word in Cap*|NoNewPrivs:|Seccomp*|Groups:|Umask:) echo \"$word $rest\" ;; esac
    done </proc/self/status
    cat /proc/self/limits
    while read -r _ _ _ _ place options _; do echo \"$place $options\"; done </proc/self/mountinfo";

fn the_same(userland: Userland) -> Result {
    let node = Node::new(userland)?;
    let seen = |class: &str| -> Result<String> {
        let pod = node.pod(class, json!({}))?;
        let container = pod.container("app", &["sleep", "infinity"], ("NONE", ""))?;
        let seen = pod.exec(&container, &["sh", "-c", SELF])?;
        pod.end()?;
        Ok(seen)
    };
    let (ours, other) = (seen("gpucap")?, seen("")?);
    let differs = |(ours, other): &(&str, &str)| ours != other;
    let differences: Vec<_> = ours.lines().zip(other.lines()).filter(differs).collect();
    expect(ours == other && ours.contains("Max open files"), || format!("{differences:?}"))
}

/// A plugin for networks that makes none, and says that it did.
const NETWORK: &str = r#"#!/bin/sh
[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "eth0", "sandbox": "pod"}],
    "ips": [{"version": "4", "address": "192.0.2.2/24", "interface": 0}]}'
"#;

fn own_users(userland: Userland) -> Result {
    let node = Node::new(userland)?;
    let version = node.enclosure.output(&["containerd", "--version"])?;
    if version.contains(" 1.6.") {
        return Err(Stop::skip("containerd 1.6 has no users of their own for pods"));
    }
    fs::create_dir_all(node.enclosure.path("/usr/lib/cni"))?;
    for name in ["none", "loopback"] {
        let plugin = node.enclosure.path("/usr/lib/cni").join(name);
        fs::write(&plugin, NETWORK)?;
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755))?;
    }
    let users = json!([{"host_id": 100_000, "container_id": 0, "length": 65536}]);
    let namespaces = json!({"userns_options": {"mode": 0, "uids": users, "gids": users}});
    let pod = node.pod_in(namespaces, "gpucap", json!({}))?;
    let container = pod.container("app", &["sleep", "infinity"], ("GPU_MEM_LIMIT", "1Gi"))?;
    let users = pod.exec(&container, &["cat", "/proc/self/uid_map"])?;
    expect(users.split_whitespace().eq(["0", "100000", "65536"]), || users)?;
    answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
    pod.end()
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
    enclosure.stop(&mut enclosure.daemon(&["containerd"], READY)?)?;
    configure(&enclosure, &["--undo"])?;
    expect(fs::read_to_string(enclosure.path(CONFIG))? == written, || "not as it was".into())?;
    expect(!enclosure.path(SPECIFICATION).exists(), || "the specification is left".into())?;
    let after = enclosure.output(&["containerd", "config", "dump"])?;
    expect(after == before, || after)?;
    enclosure.daemon(&["containerd"], READY).map(drop)
}
