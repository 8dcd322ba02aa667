//! Pods on a node, as a kubelet asks an engine for them: through the engine's CRI, with the kubelet's own labels.
//!
//! Which engine answers, and how it was told of us, is the business of [`crate::cri`] and [`crate::crio`]. A pod has
//! the network and the processes of its node unless a test says otherwise, so no plugin for networks is asked for.

use crate::cgroups::Cgroups;
use crate::container::unique;
use crate::enclosure::{Daemon, Enclosure};
use crate::enforced::{ASKS, answers_of_a_slice};
use crate::expect;
use crate::image::{Image, add_nvidia_smi, archive};
use gpucap_tests::{Actor, Driver, Result, Scratch, Stop, World, fetched, project};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// How a pod shares its node's network.
const NODE: u32 = 2;
/// How a container of a pod has processes of its own, as the kubelet asks unless its pod says otherwise.
const CONTAINER: u32 = 1;

/// A node whose engine runs.
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
    pub(crate) id: String,
    config: Value,
    containers: RefCell<Vec<String>>,
}

impl Node {
    /// One whose engine listens here. `import` gives it the archive of our image, which goes by this name.
    pub(crate) fn new(
        enclosure: Enclosure,
        daemon: Daemon,
        socket: &str,
        image: &str,
        import: impl FnOnce(&Enclosure, &str) -> Result,
    ) -> Result<Self> {
        let scratch = Scratch::new()?;
        let root = scratch.path().join("root");
        Image::Glibc.make(&root)?;
        // Without it, who asks for it is skipped.
        drop(add_nvidia_smi(&root, &Driver::Real("535")));
        import(&enclosure, &archive(&root, image)?.display().to_string())?;
        let client = World::bare(Driver::Absent).run(&fetched::python("grpcio")?)?;
        let client = client.arg(project().join("tests/containers/cri.py"));
        let client = RefCell::new(client.arg(enclosure.path(socket)).start()?);
        let (image, cgroups) = (image.to_owned(), Cgroups(unique()));
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
        self.pod_in(json!({"network": NODE, "pid": CONTAINER}), class, annotations)
    }

    /// The same in these namespaces.
    pub(crate) fn pod_in(
        &self,
        namespaces: Value,
        class: &str,
        annotations: Value,
    ) -> Result<Pod<'_>> {
        let name = unique();
        let config = json!({
            "metadata": {"name": name, "uid": name, "namespace": "test"},
            "log_directory": "/var/log",
            "labels": labels(&name, None),
            "annotations": annotations,
            "linux": {
                "cgroup_parent": format!("/{}", self.cgroups.0),
                "security_context": {"namespace_options": namespaces},
            },
        });
        let request = json!({"config": config, "runtime_handler": class});
        let answer = self.call("RunPodSandbox", &request)?;
        let id = answer["pod_sandbox_id"].as_str().unwrap_or_default().to_owned();
        Ok(Pod { node: self, id, config, containers: RefCell::default() })
    }

    /// A pod of this class that has users of its own is limited.
    pub(crate) fn limits_own_users(&self, class: &str) -> Result {
        let users = json!([{"host_id": 100_000, "container_id": 0, "length": 65536}]);
        let users = json!({"mode": 0, "uids": users, "gids": users});
        let namespaces = json!({"pid": CONTAINER, "userns_options": users});
        let pod = self.pod_in(namespaces, class, json!({}))?;
        let container = pod.container("app", &["sleep", "infinity"], ("GPU_MEM_LIMIT", "1Gi"))?;
        let users = pod.exec(&container, &["cat", "/proc/self/uid_map"])?;
        expect(users.split_whitespace().eq(["0", "100000", "65536"]), || users)?;
        answers_of_a_slice(&pod.exec(&container, &["sh", "-c", ASKS])?)?;
        pod.end()
    }

    /// Pods of this class that share the card's time read each other's usage pages.
    pub(crate) fn shows_peers(&self, class: &str) -> Result {
        let pods = [self.pod(class, json!({}))?, self.pod(class, json!({}))?];
        let start = |pod: &Pod<'_>| {
            pod.container("app", &["sleep", "infinity"], ("GPU_PROFILE", "3g.20gb"))
        };
        let [one, other] = &pods;
        let (in_one, in_other) = (start(one)?, start(other)?);
        one.exec(&in_one, &["sh", "-c", "echo told 1<>/.gpucap/page"])?;
        let lines = "for page in /.gpucap/pages/*; do read -r line <$page; echo \"$line\"; done";
        let heard = other.exec(&in_other, &["sh", "-c", lines])?;
        // Beside each of the two pages the node says what its container has of the time, and until when it is held back.
        let count = |wanted: &str| heard.lines().filter(|line| line.starts_with(wanted)).count();
        let found = [heard.lines().count(), count("told"), count("* 42.85"), count("gpucapHD")];
        expect(found == [6, 1, 2, 2], || heard.clone())?;
        pods.into_iter().try_for_each(Pod::end)
    }

    /// No usage page is left of pods that are over.
    pub(crate) fn has_no_pages(&self) -> Result {
        let left = fs::read_dir(self.enclosure.path("/run/gpucap/pages/all"))?.count();
        expect(left == 0, || format!("{left} pages of pods that are over"))
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
        self.containers.borrow_mut().push(id.clone());
        Ok(id)
    }

    pub(crate) fn request(
        &self,
        name: &str,
        command: &[&str],
        (key, value): (&str, &str),
    ) -> Value {
        let pod = self.config["metadata"]["name"].as_str().unwrap_or_default();
        json!({
            "pod_sandbox_id": self.id,
            "sandbox_config": self.config,
            "config": {
                "metadata": {"name": name}, "image": {"image": self.node.image}, "command": command,
                "envs": [{"key": key, "value": value}], "log_path": format!("{name}.log"),
                "labels": labels(pod, Some(name)),
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

    /// Fails unless the first process of this container said [`ASKS`], and was answered as in a slice.
    pub(crate) fn first_was_limited(&self, name: &str) -> Result {
        let log = self.node.enclosure.path(&format!("/var/log/{name}.log"));
        let log = fs::read_to_string(log)?;
        let said: Vec<_> = log.lines().filter_map(|line| line.split(" stdout F ").nth(1)).collect();
        answers_of_a_slice(&said.join("\n"))
    }

    /// What the engine answers if a container is to start whose limit cannot be used; it must not run.
    pub(crate) fn refused(&self) -> Result<String> {
        let request = self.request("bad", &["sh", "-c", ASKS], ("GPU_MEM_LIMIT", "abc"));
        let mut answer = self.node.ask("CreateContainer", &request)?;
        if answer.get("error").is_none() {
            answer = self.node.ask("StartContainer", &answer)?;
        }
        let said = answer["error"].as_str().map(|said| said.replace('\\', ""));
        let said = said.ok_or_else(|| Stop::fail(format!("it was started: {answer}")))?;
        let log = self.node.enclosure.path("/var/log/bad.log");
        let log = fs::read_to_string(log).unwrap_or_default();
        expect(log.is_empty(), || format!("it printed: {log}"))?;
        Ok(said)
    }

    /// Ends it with all its containers.
    pub(crate) fn end(self) -> Result {
        // A shell and `sleep` hear nothing as first processes, and an engine may wait long for them.
        for container in self.containers.take() {
            self.node.call("StopContainer", &json!({"container_id": container, "timeout": 0}))?;
        }
        for method in ["StopPodSandbox", "RemovePodSandbox"] {
            self.node.call(method, &json!({"pod_sandbox_id": self.id}))?;
        }
        Ok(())
    }
}

/// What the kubelet writes on everything that it asks for.
fn labels(pod: &str, container: Option<&str>) -> Value {
    let mut labels = json!({
        "io.kubernetes.pod.name": pod,
        "io.kubernetes.pod.namespace": "test",
        "io.kubernetes.pod.uid": pod,
    });
    if let Some(name) = container {
        labels["io.kubernetes.container.name"] = json!(name);
    }
    labels
}

/// A plugin for networks that makes none, and says that it did.
const NETWORK: &str = r#"#!/bin/sh
case $CNI_COMMAND in
    VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.4.0"]}' ;;
    ADD) echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "eth0", "sandbox": "pod"}],
        "ips": [{"version": "4", "address": "192.0.2.2/24", "interface": 0}]}' ;;
esac
"#;

/// Has an engine that will run here use that plugin.
pub(crate) fn no_network(enclosure: &Enclosure) -> Result {
    let network = json!({"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]});
    fs::create_dir_all(enclosure.path("/etc/cni/net.d"))?;
    fs::write(enclosure.path("/etc/cni/net.d/none.conflist"), network.to_string())?;
    fs::create_dir_all(enclosure.path("/usr/lib/cni"))?;
    for name in ["none", "loopback"] {
        let plugin = enclosure.path("/usr/lib/cni").join(name);
        fs::write(&plugin, NETWORK)?;
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// For each convention of annotations, one that says 1 GiB to a container called `app`.
pub(crate) const CONVENTIONS: &[(&str, &str)] = &[
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

/// The annotations of each convention reach the planner, of pods of this class.
pub(crate) fn conventions(node: &Node, class: &str) -> Result {
    for (key, value) in CONVENTIONS {
        let pod = node.pod(class, json!({*key: value}))?;
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

/// What that is in a container that asks for nothing, in a pod of this class.
pub(crate) fn seen_by_itself(node: &Node, class: &str) -> Result<String> {
    let pod = node.pod(class, json!({}))?;
    let container = pod.container("app", &["sleep", "infinity"], ("NONE", ""))?;
    let seen = pod.exec(&container, &["sh", "-c", SELF])?;
    pod.end()?;
    expect(seen.contains("Max open files"), || seen.clone())?;
    Ok(seen)
}

/// Fails unless these are the same, lines of which one has more options than the other among them.
pub(crate) fn are_the_same(ours: &str, other: &str) -> Result {
    let differs = |(ours, other): &(&str, &str)| ours != other;
    let differences: Vec<_> = ours.lines().zip(other.lines()).filter(differs).collect();
    expect(ours == other, || format!("{differences:?}"))
}
