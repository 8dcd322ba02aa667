//! The metrics of the chart as a cluster runs them: the command of the container, with its mounts and its capabilities alone,
//! shows a container that runs on the node.

use crate::enclosure::Userland;
use crate::enforced::begin;
use crate::image::{Image, add, add_tools};
use crate::podman::Podman;
use crate::sampled::value;
use crate::{expect, trials_of_releases};
use gpucap_tests::chart;
use gpucap_tests::{Build, Installation, Program, Result, Run, Stop};
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    trials_of_releases(
        "podman",
        &[
            ("the metrics component shows a container, and says if it cannot", shown),
            ("the metrics component with samples shows what a container used", sampled),
        ],
    )
}

/// The container of the metrics, and the volumes of its pod.
struct Component {
    container: Value,
    volumes: Vec<Value>,
}

impl Component {
    /// With these options of the chart.
    fn metrics(options: &str) -> Result<Self> {
        let options = format!("metrics.enabled=true,{options}");
        let objects = chart::rendered(&["--set", &options])?;
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

    fn command(&self) -> Vec<String> {
        self.list("/command").filter_map(Value::as_str).map(str::to_owned).collect()
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

    /// A run of these words on this node, with these mounts and what its security context allows.
    fn run(&self, podman: &Podman, mounts: &[[String; 2]], command: &[String]) -> Result<Run> {
        let gpucap = Build::shipped()?.gpucap()?;
        let root = podman.path("component");
        if !root.exists() {
            Image::Glibc.make(&root)?;
            add(&root, &gpucap, "bin/gpucap")?;
            add_tools(&root, &["nsenter"])?;
        }
        let start = "run --rm --name component --network none --pid host --user 0 --cap-drop all";
        let mut words: Vec<String> = start.split(' ').map(str::to_owned).collect();
        let security = &self.container["securityContext"];
        words.extend((security["readOnlyRootFilesystem"] == true).then(|| "--read-only".into()));
        if security["allowPrivilegeEscalation"] == false {
            words.push("--security-opt=no-new-privileges".into());
        }
        let capabilities = self.list("/securityContext/capabilities/add");
        words.extend(capabilities.filter_map(Value::as_str).map(|it| format!("--cap-add={it}")));
        words.extend(mounts.iter().map(|[from, to]| format!("--volume={from}:{to}:ro")));
        words.extend(podman.limits());
        words.extend(["--rootfs".into(), root.display().to_string()]);
        words.extend_from_slice(command);
        podman.command(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// What it prints once, instead of listening.
    fn prints(&self, podman: &Podman, mounts: &[[String; 2]]) -> Result<String> {
        let command = self.command().into_iter().filter(|word| !word.starts_with("--listen"));
        let run = self.run(podman, mounts, &command.collect::<Vec<_>>())?;
        Ok(run.output()?.success()?.stdout)
    }
}

fn shown(userland: Userland) -> Result {
    let component = Component::metrics("metrics.sample=false")?;
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

/// What a client gets at the port of the component, in its network namespace.
fn scraped(podman: &Podman) -> Result<String> {
    let inspect = ["inspect", "--format", "{{.State.Pid}}", "component"];
    let pid = podman.command(&inspect)?.output()?.success()?.stdout;
    let net = format!("--net=/proc/{}/ns/net", pid.trim());
    let script =
        "exec 3<>/dev/tcp/127.0.0.1/9744; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
    let output = Command::new("nsenter").args([&net, "bash", "-c", script]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// As above, on a node whose programs are of the stub driver. Of the command one word differs: the node's first process
/// is another one here.
fn sampled(userland: Userland) -> Result {
    let component = Component::metrics("metrics.sample=true,node.run=nice -n 0")?;
    let podman = Podman::among_all(userland)?;
    let installed = Installation::new(&podman.path("installed"))?;
    fs::create_dir(installed.card())?;
    let directory = podman.path("installed").display().to_string();
    let mounts = component.mounts()?;
    let script = "mount -t tmpfs opt /opt; mkdir -p /opt/gpucap/current/bin /opt/gpucap/current/lib
        cp \"$1/gpucap\" /opt/gpucap/current/bin; cp \"$1/gpucap-driver\" /opt/gpucap/current/lib
        shift; mkdir -p \"$@\"";
    let places = mounts.iter().map(|[from, _]| from.as_str());
    let words: Vec<_> = ["sh", "-ec", script, "sh", &directory].into_iter().chain(places).collect();
    podman.enclosure().output(&words)?;
    let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    add(&podman.path("root"), &share, "share")?;
    let card = format!("--volume={}:/card", installed.card().display());
    let mut first =
        begin(&podman.run(&[], "1Gi", &[&card, "--env=STUB_GPU_DIR=/card", "/actor"])?)?;
    first.call("alloc a 1048576")?;
    let mut command = component.command();
    let target = command.iter_mut().skip_while(|word| *word != "-t").nth(1);
    let target = target.ok_or_else(|| Stop::fail("it enters no process"))?;
    expect(target == "1", || target.clone())?;
    podman.enclosure().keeper().clone_into(target);
    let mut server = component.run(&podman, &mounts, &command)?.start()?;
    let since = Instant::now();
    while !scraped(&podman).is_ok_and(|text| text.contains("gpucap_containers 1.0")) {
        if since.elapsed() > Duration::from_secs(30) {
            server.kill()?;
            return Err(Stop::fail(server.end()?));
        }
        thread::sleep(Duration::from_millis(100));
    }
    let words =
        "exec --env STUB_GPU_DIR=/card --env STUB_GPU_CONTEXT_MEM=0 test /share k_5ms 4 4000";
    podman.command(&words.split(' ').collect::<Vec<_>>())?.output()?.success()?;
    let text = scraped(&podman)?;
    let seconds = value(&text, "core_sampled_seconds_total").unwrap_or(0.0);
    expect((2.0..=6.0).contains(&seconds), || format!("{seconds} s\n{text}"))?;
    podman.command(&["kill", "component"])?.output()?.success()?;
    first.end()?.success().map(drop)
}
