//! The metrics of the chart as a cluster runs them: the command of the container, with its mounts and its capabilities alone,
//! shows a container that runs on the node.

use crate::capped::begin;
use crate::enclosure::Userland;
use crate::image::{Image, add};
use crate::podman::Podman;
use crate::{expect, trials_of_releases};
use gpucap_tests::chart;
use gpucap_tests::{Build, Result, Stop};
use libtest_mimic::Trial;
use serde_json::Value;

pub(crate) fn trials() -> Vec<Trial> {
    let rules = &[("the metrics component shows a container, and says if it cannot", shown as _)];
    trials_of_releases("podman", rules)
}

/// The container of the metrics, and the volumes of its pod.
struct Component {
    container: Value,
    volumes: Vec<Value>,
}

impl Component {
    fn metrics() -> Result<Self> {
        let objects = chart::rendered(&["--set", "metrics.enabled=true"])?;
        let mut set = chart::object(&objects, "DaemonSet", "gpucap")?;
        let pod = set["spec"]["template"]["spec"].take();
        let mut containers = pod["containers"].as_array().into_iter().flatten();
        let container = containers.find(|it| it["name"] == "metrics").cloned();
        Ok(Self {
            container: container.ok_or_else(|| Stop::fail("no container"))?,
            volumes: pod["volumes"].as_array().cloned().unwrap_or_default(),
        })
    }

    fn list(&self, place: &str) -> impl Iterator<Item = &Value> {
        self.container.pointer(place).and_then(Value::as_array).into_iter().flatten()
    }

    /// The command, which prints once instead of listening.
    fn command(&self) -> Vec<String> {
        let words = self.list("/command").filter_map(Value::as_str);
        words.filter(|word| !word.starts_with("--listen")).map(str::to_owned).collect()
    }

    /// The places of the node that it has, and where.
    fn mounts(&self) -> Result<Vec<[String; 2]>> {
        let mount = |mount: &Value| {
            let volume = self.volumes.iter().find(|it| it["name"] == mount["name"]);
            let path = volume.and_then(|it| it["hostPath"]["path"].as_str());
            let place = path.zip(mount["mountPath"].as_str());
            place.map(|(from, to)| [from.to_owned(), to.to_owned()])
        };
        let mounts: Option<_> = self.list("/volumeMounts").map(mount).collect();
        mounts.ok_or_else(|| Stop::fail("a mount is of no place of the node"))
    }

    /// What it prints on this node, with these mounts.
    fn prints(&self, podman: &Podman, mounts: &[[String; 2]]) -> Result<String> {
        let gpucap = Build::shipped()?.gpucap()?;
        let root = podman.path("component");
        if !root.exists() {
            Image::Glibc.make(&root)?;
            add(&root, &gpucap, "bin/gpucap")?;
        }
        let mut words: Vec<String> =
            "run --rm --network none --pid host --read-only --cap-drop all"
                .split(' ')
                .map(str::to_owned)
                .collect();
        let capabilities = self.list("/securityContext/capabilities/add");
        words.extend(capabilities.filter_map(Value::as_str).map(|it| format!("--cap-add={it}")));
        words.extend(mounts.iter().map(|[from, to]| format!("--volume={from}:{to}:ro")));
        words.extend(podman.limits());
        words.extend(["--rootfs".into(), root.display().to_string()]);
        words.extend(self.command());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(podman.command(&words)?.output()?.success()?.stdout)
    }
}

fn shown(userland: Userland) -> Result {
    let component = Component::metrics()?;
    let podman = Podman::configured(userland)?;
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    // The places of the node are there, whatever is in them, and the release is installed.
    let mounts = component.mounts()?;
    let script = "mount -t tmpfs opt /opt; mkdir -p /opt/gpucap/current/bin
        cp \"$1\" /opt/gpucap/current/bin/gpucap; shift; mkdir -p \"$@\"";
    let places = mounts.iter().map(|[from, _]| from.as_str());
    let words: Vec<_> = ["sh", "-ec", script, "sh", &gpucap].into_iter().chain(places).collect();
    podman.enclosure().output(&words)?;
    let mut first = begin(&podman.run(&[], "1Gi", &["/actor"])?)?;
    first.call("alloc a 1048576")?;
    let text = component.prints(&podman, &mounts)?;
    let row = |start: &str, end: &str| {
        text.lines().any(|line| line.starts_with(start) && line.ends_with(end))
    };
    for (start, end) in [
        ("gpucap_memory_limit_bytes{kind=\"container\",id=\"", " 1073741824.0"),
        ("gpucap_memory_used_bytes{kind=\"container\",id=\"", " 269484032.0"),
        ("gpucap_containers ", "1.0"),
        ("gpucap_containers_refused_total{reason=\"image\"}", " 0"),
        ("gpucap_build_info{version=\"", "\"} 1"),
        ("gpucap_run_dir_present ", "1.0"),
    ] {
        expect(row(start, end), || format!("no {start}...{end} in: {text}"))?;
    }
    // Without the place of the records it knows of no container, and must not say that there is none.
    let less: Vec<_> = mounts.into_iter().filter(|[from, _]| !from.starts_with("/run")).collect();
    let text = component.prints(&podman, &less)?;
    let says = text.contains("\ngpucap_run_dir_present 0.0\n");
    expect(says && !text.contains("\ngpucap_containers "), || text.clone())?;
    first.end()?.success().map(drop)
}
