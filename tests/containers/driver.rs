//! What was measured on the node reaches its containers, and a driver that can keeps their memory limits too.
//!
//! The host's driver and the container's are one stub with one card. Only under cgroup v2 has a container a cgroup for
//! the driver to limit, so it is mounted in the place of what this machine has; runc makes the container's own there.
//! The wall is proved by a process that the library is not loaded into: put into the cgroup, it gets what the container
//! may have and no more.

use crate::container::{Container, json};
use crate::enforced::{begin, is_limited};
use crate::refused::refuses;
use crate::runtime::Runtime;
use crate::{GIB, OUT_OF_MEMORY, SUCCESS, expect};
use gpucap_tests::{Actor, Driver, Installation, Output, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("driver: a context costs what was measured on the node", price),
        trial(
            "driver: what was measured under another driver is a line and no price",
            other_driver,
        ),
        trial("driver: what others than root could have written is not believed", writable),
        trial("driver: it limits the container's cgroup, on the card that is limited", wall),
        trial("driver: a limit that it keeps is shown and counted once", once),
        trial("driver: a limit that it keeps moves with the container's", moved),
        trial("driver: one that cannot is passed over, and refuses where it is demanded", unable),
        trial("driver: one that fails is passed over, and refuses where it is demanded", failing),
        trial("driver: one that hangs is given up", hanging),
        trial("driver: nothing that an engine's environment holds reaches it", environment),
        trial("driver: a container in the root cgroup is not limited there", no_cgroup),
    ]
}

const MIB: u64 = 1 << 20;
const PRICE: u64 = 415 * MIB;
const ABLE: (&str, &str) = ("STUB_GPU_MEMORY_LIMITS", "on");
const VERSION: &str =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  595.10.01  Sat Nov 21 00:00:00 UTC 2026";

/// A node with one of our installations, on which a container is to start.
struct Host {
    container: Container,
    installation: Installation,
}

impl Host {
    /// One whose driver has these settings, and whose cards were measured with them.
    fn new(native: &str, settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(native, settings, VERSION)
    }

    /// One on which this driver runs.
    fn of(native: &str, settings: &[(&str, &str)], version: &str) -> Result<Self> {
        let container = Container::new(Runtime::RUNC)?;
        let installation = Installation::new(&container.path("node"))?;
        fs::write(container.path("version"), version)?;
        let node = container.path("node.json");
        let mut value = json(&node)?;
        value["state_dir"] = json!(container.path("state"));
        value["native_limits"] = json!(native);
        fs::write(&node, value.to_string())?;
        let gpucap = installation.gpucap();
        fs::create_dir(installation.card())?;
        let container = container
            .with(|config| config["hooks"]["createRuntime"][0]["path"] = json!(gpucap))
            .mount(&installation.card(), "/card", "rw")
            .env("STUB_GPU_DIR=/card")
            .env(&format!("STUB_GPU_CONTEXT_MEM={PRICE}"));
        let container = mounts(&container).into_iter().fold(container, Container::prepare);
        let host = Self { container, installation };
        host.driver(settings)?;
        host.gpucap(&["calibrate"])?.success()?;
        Ok(host)
    }

    fn driver(&self, settings: &[(&str, &str)]) -> Result {
        let price = PRICE.to_string();
        self.installation.driver(&[&[("STUB_GPU_CONTEXT_MEM", &price[..])], settings].concat())
    }

    fn change(mut self, change: impl FnOnce(Container) -> Container) -> Self {
        self.container = change(self.container);
        self
    }

    /// The command where cgroups and the driver's own file are as the hook saw them.
    fn as_the_hook(&self, words: &[&str]) -> Result<Output> {
        let run = World::bare(Driver::Absent).run(&self.installation.gpucap())?;
        let run = words.iter().fold(run, |run, word| run.arg(word));
        let run = run.arg("--config").arg(self.container.path("node.json"));
        let script = format!("{}\nexec \"$@\"", mounts(&self.container).join("\n"));
        let words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", &script, "sh"];
        run.through(&words.map(std::ffi::OsStr::new)).output()
    }

    /// The command on the host.
    fn gpucap(&self, words: &[&str]) -> Result<Output> {
        let run = World::bare(Driver::Absent).run(&self.installation.gpucap())?;
        let run = words.iter().fold(run, |run, word| run.arg(word));
        run.arg("--config").arg(self.container.path("node.json")).output()
    }

    fn start(&self) -> Result<Actor> {
        let started = self.container.run(&["/actor"]).and_then(|run| begin(&run));
        started
            .map_err(|stop| stop.explained(|why| format!("{why}--- log\n{}", self.container.log())))
    }

    /// The running container, as the host knows it.
    fn kept(&self) -> Result<Value> {
        let output = self.gpucap(&["status", "--json"])?.success()?;
        let value: Value = serde_json::from_str(&output.stdout).map_err(Stop::fail)?;
        let ledgers = value["ledgers"].as_array().into_iter().flatten();
        let own = ledgers.map(|it| &it["container"]).find(|it| it["id"] == self.container.id());
        own.cloned().ok_or_else(|| Stop::fail(output))
    }

    /// A program without the library, in the container's cgroup or in none that is limited.
    fn outsider(&self, cgroup: Option<&Path>) -> Result<Actor> {
        let run = World::bare(Driver::Stub).actor()?.env("STUB_GPU_DIR", self.installation.card());
        let run = run.env("STUB_GPU_COUNT", "2").env("STUB_GPU_CONTEXT_MEM", "0");
        let Some(cgroup) = cgroup else { return begin_on_both(&run) };
        let enter = format!("echo $$ >'{}/cgroup.procs'; exec \"$@\"", cgroup.display());
        let words = ["sh", "-c", enter.as_str(), "sh"].map(std::ffi::OsStr::new);
        begin_on_both(&run.through(&words))
    }
}

/// The driver's own file, and cgroup v2 alone, as the command and the runtime see the machine.
fn mounts(container: &Container) -> [String; 2] {
    let version = container.path("version").display().to_string();
    [
        format!(
            "mount -t tmpfs own /proc/driver; mkdir /proc/driver/nvidia
             cp '{version}' /proc/driver/nvidia/version"
        ),
        "umount -l /sys/fs/cgroup; mount -t cgroup2 own /sys/fs/cgroup".into(),
    ]
}

/// Where this machine has the cgroup that lies at `/sys/fs/cgroup` for the runtime.
fn seen_here(cgroup: &Value) -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let unified = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let point = unified.and_then(|line| line.split(' ').nth(4));
    let point = point.ok_or_else(|| Stop::skip("no unified hierarchy of cgroups here"))?;
    let own = cgroup.as_str().and_then(|path| path.strip_prefix("/sys/fs/cgroup/"));
    Ok(Path::new(point).join(own.ok_or_else(|| Stop::fail(format!("not a cgroup: {cgroup}")))?))
}

/// An actor with contexts on two cards, that on the first one being current.
fn begin_on_both(run: &Run) -> Result<Actor> {
    let mut actor = run.start()?;
    actor.expect(&[("init", SUCCESS), ("context 1", SUCCESS), ("context 0", SUCCESS)])?;
    Ok(actor)
}

fn free(actor: &mut Actor) -> Result<u64> {
    Ok(actor.call("info z")?.extra)
}

fn price() -> Result {
    let host = Host::new("off", &[])?;
    let mut actor = host.start()?;
    let left = free(&mut actor)?;
    expect(left == GIB - PRICE, || format!("free: {left}: {}", host.container.log()))?;
    actor.expect(&[
        (&format!("alloc a {}", left + 1), OUT_OF_MEMORY),
        (&format!("alloc a {left}"), SUCCESS),
    ])?;
    let bundle = host.container.path("").display().to_string();
    let seen = host.as_the_hook(&["explain", &bundle])?.success()?;
    expect(seen.stdout.contains("a context 415MiB"), || seen.to_string())?;
    // Nothing is asked of the driver for it.
    let asked = host.installation.asked();
    expect(!asked.contains("asked limit /sys/fs/cgroup/gpucap-test"), || asked)?;
    actor.end()?.success().map(drop)
}

fn other_driver() -> Result {
    let host = Host::of("off", &[], &VERSION.replace("595.10.01", "595.10.02"))?;
    let mut actor = host.start()?;
    let left = free(&mut actor)?;
    expect(left == GIB - 256 * MIB, || format!("free: {left}"))?;
    actor.end()?.success()?;
    let log = host.container.log();
    let line =
        "that of driver \\\"595.10.01\\\", and \\\"595.10.02\\\" runs; run `gpucap calibrate`";
    let lines = log.replace("\\\\", "\\");
    expect(lines.matches("is not used").count() == 1 && lines.contains("595.10.02"), || {
        format!("not `{line}`: {log}")
    })
}

fn writable() -> Result {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::new("off", &[])?;
    let file = host.container.path("state/driver.json");
    fs::set_permissions(file, fs::Permissions::from_mode(0o666))?;
    let mut actor = host.start()?;
    let left = free(&mut actor)?;
    expect(left == GIB - 256 * MIB, || format!("free: {left}"))?;
    actor.end()?.success()?;
    let log = host.container.log();
    expect(log.contains("others than root can write it"), || log)
}

fn wall() -> Result {
    let host = Host::new("required", &[ABLE, ("STUB_GPU_COUNT", "2")])?;
    // The first card alone is limited; the second may be used without.
    let card = "GPU-e220a839-7b1d-cdaf-6e78-9e6aa1b965f4";
    let host = host.change(|it| it.env(&format!("GPU_MEM_LIMIT={card}=1Gi")));
    let mut actor = host.start()?;
    let kept = host.kept()?;
    let expected = json!([{"gpu": card, "bytes_at_start": GIB}]);
    expect(kept["driver_limits"] == expected, || kept.to_string())?;
    let cgroup = seen_here(&kept["cgroup"])?;
    expect(cgroup.ends_with(host.container.id()), || cgroup.display().to_string())?;
    // What the container holds counts, be it seen by the library or not.
    let left = GIB - PRICE;
    let mut within = host.outsider(Some(&cgroup))?;
    within.expect(&[
        (&format!("alloc a {}", left + 1), OUT_OF_MEMORY),
        (&format!("alloc a {left}"), SUCCESS),
        ("alloc b 1", OUT_OF_MEMORY),
        ("context 1", SUCCESS),
        (&format!("alloc c {}", 8 * GIB), SUCCESS),
    ])?;
    let mut elsewhere = host.outsider(None)?;
    elsewhere.expect(&[(&format!("alloc a {}", 8 * GIB), SUCCESS)])?;
    // The library knows nothing of the other one, and the driver does.
    actor.expect(&[("alloc a 1", OUT_OF_MEMORY)])?;
    within.end()?;
    actor.expect(&[("alloc a 1", SUCCESS)])?;
    elsewhere.end()?;
    actor.end()?.success().map(drop)
}

fn once() -> Result {
    let host = Host::new("auto", &[ABLE])?.change(|it| it.env("GPU_MEM_LIMIT=25%"));
    let mut actor = host.start()?;
    for (command, used) in [("total d 0", 0), ("nvml d 0", PRICE), ("nvml2 d 0", PRICE)] {
        let answer = actor.call(command)?;
        let expected = (SUCCESS, 20 * GIB, used);
        expect((answer.code, answer.value, answer.extra) == expected, || {
            format!("{command}: {answer:?}, not {expected:?}")
        })?;
    }
    let left = free(&mut actor)?;
    expect(left == 20 * GIB - PRICE, || format!("free: {left}"))?;
    actor.expect(&[(&format!("alloc a {left}"), SUCCESS), ("alloc b 1", OUT_OF_MEMORY)])?;
    actor.end()?.success().map(drop)
}

fn moved() -> Result {
    let host = Host::new("auto", &[ABLE])?;
    let mut actor = host.start()?;
    is_limited(&mut actor)?;
    let cgroup = seen_here(&host.kept()?["cgroup"])?;
    let id = host.container.id();
    let mut within = host.outsider(Some(&cgroup))?;
    // The container holds a context and 1 MiB.
    let left = |limit: u64| limit - PRICE - MIB;
    let alloc = |bytes: u64| format!("alloc a {bytes}");
    within.expect(&[(&alloc(left(GIB) + 1), OUT_OF_MEMORY)])?;
    host.as_the_hook(&["limit", id, "--mem", "2Gi"])?.success()?;
    within
        .expect(&[(&alloc(left(2 * GIB) + 1), OUT_OF_MEMORY), (&alloc(left(GIB) + 1), SUCCESS)])?;
    // More is held than was given at first: the driver refuses to go back, and the library does.
    let said = host.as_the_hook(&["limit", id, "--reset"])?.success()?;
    expect(said.stderr.contains("the driver's own limit stays as it is"), || said.to_string())?;
    within.end()?;
    let said = host.as_the_hook(&["limit", id, "--reset"])?.success()?;
    expect(said.stderr.is_empty(), || said.to_string())?;
    let mut within = host.outsider(Some(&cgroup))?;
    within.expect(&[(&alloc(left(GIB) + 1), OUT_OF_MEMORY), (&alloc(left(GIB)), SUCCESS)])?;
    within.end()?;
    actor.end()?.success().map(drop)
}

fn unable() -> Result {
    let host = Host::new("auto", &[])?;
    let mut actor = host.start()?;
    is_limited(&mut actor)?;
    expect(host.kept()?["cgroup"].is_null(), || "something is kept".into())?;
    actor.end()?.success()?;
    let log = host.container.log();
    expect(log.contains("the driver keeps no limit by itself here"), || log)?;
    let host = Host::new("required", &[])?;
    refuses(&host.container, "the driver cannot, as `gpucap calibrate` found")
}

fn failing() -> Result {
    // After the one that `gpucap calibrate` tried, at which the driver was able.
    let fails = [ABLE, ("STUB_GPU_FAIL", "nvmlDeviceSetMemoryLimits_v1:999")];
    let host = Host::new("auto", &[ABLE])?;
    host.driver(&fails)?;
    let mut actor = host.start()?;
    is_limited(&mut actor)?;
    expect(host.kept()?["cgroup"].is_null(), || "something is kept".into())?;
    actor.end()?.success()?;
    let log = host.container.log();
    expect(
        log.contains("the library alone does: for GPU-") && log.contains("answers 999"),
        || log,
    )?;
    let host = Host::new("required", &[ABLE])?;
    host.driver(&fails)?;
    refuses(&host.container, "demands that the driver keeps its limit too: for GPU-")?;
    // What was set is read back.
    host.driver(&[ABLE, ("STUB_GPU_FAIL", "nvmlDeviceGetMemoryLimits_v1:4")])?;
    refuses(&host.container, "answers 4 Insufficient Permissions")
}

fn hanging() -> Result {
    let host = Host::new("required", &[ABLE])?;
    host.installation.script("exec sleep 600")?;
    refuses(&host.container, "no answer in 5 s")
}

fn environment() -> Result {
    let host = Host::new("auto", &[ABLE])?.change(|it| {
        it.with(|config| {
            let env = json!(["PATH=/usr/bin", "LD_PRELOAD=/own.so", "LD_LIBRARY_PATH=/own"]);
            config["hooks"]["createRuntime"][0]["env"] = env;
        })
    });
    let mut actor = host.start()?;
    expect(!host.kept()?["cgroup"].is_null(), || "nothing is kept".into())?;
    actor.end()?.success()?;
    let asked = host.installation.asked();
    expect(asked.contains("asked limit ") && !asked.contains("/own"), || asked)
}

fn no_cgroup() -> Result {
    let alone = |host: Host| {
        host.change(|it| it.with(|config| config["linux"]["cgroupsPath"] = json!("/")))
    };
    let host = alone(Host::new("auto", &[ABLE])?);
    let mut actor = host.start()?;
    is_limited(&mut actor)?;
    actor.end()?.success()?;
    let log = host.container.log();
    expect(log.contains("it has no cgroup of its own"), || log)?;
    refuses(&alone(Host::new("required", &[ABLE])?).container, "it has no cgroup of its own")
}
