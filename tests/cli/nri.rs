//! `gpucap nri`, seen from a runtime: what is asked and what is answered, on a socket of the test's own.
//!
//! The runtime's side ([`wire`]) is written after the protocol's description and shares nothing with the plugin.

mod wire;

use crate::expect;
use gpucap_tests::{Build, Result, Scratch, Stop, trial};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wire::{Answer, Runtime, flag, map, message, text, texts};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("nri: a container that asks gets variables, annotations and hooks", adjusted),
        trial("nri: one that does not ask is left alone", left_alone),
        trial("nri: a refusal is one line, and the next container has its answer", refused),
        trial("nri: it is ready after the last part of what runs, and says so", ready),
        trial("nri: a runtime that goes away is waited for", reconnects),
        trial("nri: one that comes later is found", comes_later),
        trial("nri: a slip in the node's configuration refuses who asks or has a GPU", broken_node),
        trial("nri: an allocation of the node counts", allocated),
        trial("nri: a runtime that starts it has it until the connection ends", launched),
        trial("nri: what a runtime sends does not fill its memory", bounded),
        trial("nri: what a pod's author writes keeps no other pod waiting", in_time),
        trial("nri: a decision that does not come is a refusal", late),
        trial("nri: what cannot be used is said at once", unusable),
    ]
}

/// The plugin, with a socket and a node of its own. Ends with the test.
struct Plugin {
    scratch: Scratch,
    listener: UnixListener,
    child: Child,
}

impl Plugin {
    fn start() -> Result<Self> {
        Self::with(&json!({}))
    }

    /// On a node with this configuration.
    fn with(node: &serde_json::Value) -> Result<Self> {
        let scratch = Scratch::new()?;
        let mut node = node.clone();
        node["state_dir"] = json!(scratch.path());
        fs::write(scratch.path().join("node.json"), node.to_string())?;
        let listener = UnixListener::bind(scratch.path().join("socket"))?;
        let child = command(&scratch)?.spawn()?;
        Ok(Self { scratch, listener, child })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The runtime, once the plugin has come.
    fn runtime(&self) -> Result<Runtime> {
        Runtime::of(self.listener.accept()?.0)
    }

    /// The same, with everything said that comes before the first container.
    fn asked(&self) -> Result<Runtime> {
        let mut runtime = self.runtime()?;
        runtime.begin()?;
        Ok(runtime)
    }

    fn is_ready(&self) -> bool {
        self.path("ready").exists()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(scratch: &Scratch) -> Result<Command> {
    let mut command = Command::new(Build::shipped()?.gpucap()?);
    let said = fs::File::create(scratch.path().join("said"))?;
    command.arg("nri").stdin(Stdio::null()).stderr(said);
    for (word, name) in
        [("--socket", "socket"), ("--config", "node.json"), ("--ready-file", "ready")]
    {
        command.arg(word).arg(scratch.path().join(name));
    }
    command.args(["--program", "/opt/gpucap"]);
    Ok(command)
}

/// A question about a container `app` with these annotations of its pod, and this environment.
fn container(annotations: &[(&str, &str)], env: &[&str]) -> Vec<u8> {
    let pod = [text(2, "p"), text(3, "u1"), text(4, "n"), map(6, annotations)].concat();
    let container = [text(1, "id"), text(3, "app"), texts(8, env)].concat();
    [message(1, &pod), message(2, &container)].concat()
}

fn adjusted() -> Result {
    let plugin = Plugin::start()?;
    let asked = container(&[("gpucap/core-pct", "30"), ("x/y", "z")], &["GPU_MEM_LIMIT=1Gi"]);
    let answer = plugin.asked()?.ask("CreateContainer", &asked)?.adjustment()?;
    let pairs = |field| -> Vec<(String, String)> {
        let pairs = answer.all(field).into_iter();
        pairs.map(|pair| (pair.text(1), pair.text(2))).collect()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let expected = [pair("gpucap/core-pct", "30%"), pair("gpucap/mem", "1GiB")];
    expect(pairs(2) == expected, || format!("annotations: {:?}", pairs(2)))?;
    let expected = [pair("GPU_MEM_LIMIT", "1GiB"), pair("GPU_CORE_PCT", "30%")];
    expect(pairs(4) == expected, || format!("variables: {:?}", pairs(4)))?;
    let hooks = answer.all(5);
    let config = plugin.path("node.json").display().to_string();
    for (field, stage) in [(2, "createRuntime"), (6, "poststop")] {
        let hooks = hooks.iter().flat_map(|hooks| hooks.all(field)).collect::<Vec<_>>();
        let [hook] = &hooks[..] else { return Err(Stop::fail(format!("{} hooks", hooks.len()))) };
        let words = hook.texts(2);
        expect(words == ["gpucap", "hook", stage, "--config", &config], || format!("{words:?}"))?;
        expect(hook.text(1) == "/opt/gpucap", || hook.text(1))?;
        expect(hook.texts(3).len() == 1, || "an environment that an engine drops".into())?;
    }
    Ok(())
}

fn left_alone() -> Result {
    let plugin = Plugin::start()?;
    let answer = plugin.asked()?.ask("CreateContainer", &container(&[], &["PATH=/bin"]))?;
    expect(answer == Answer::default(), || format!("{answer:?}"))?;
    let answer = plugin.asked()?.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMT=4Gi"]))?;
    expect(answer == Answer::default(), || format!("{answer:?}"))?;
    let said = fs::read_to_string(plugin.path("said"))?;
    let line = "gpucap: nri: container app of pod n/p: environment GPU_MEM_LIMT is not read: is \
                GPU_MEM_LIMIT meant?\n";
    expect(said.contains(line), || said)
}

fn refused() -> Result {
    let plugin = Plugin::start()?;
    let mut runtime = plugin.asked()?;
    for _ in 0..3 {
        let answer = runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=abc"]))?;
        let why =
            "gpucap: nri: container app of pod n/p is not made: environment GPU_MEM_LIMIT=\"abc\"";
        expect(answer.code != 0 && answer.why.starts_with(why), || format!("{answer:?}"))?;
        expect(!answer.why.contains('\n'), || answer.why.clone())?;
    }
    runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?.adjustment()?;
    let answer = runtime.ask("CreateContainer", &[0x12, 99])?;
    expect(answer.code != 0, || "a container that cannot be read was made".into())?;
    let answer = runtime.ask("RemoveContainer", &[])?;
    expect(answer.code == 12, || format!("{answer:?}"))?;
    runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?.adjustment().map(drop)
}

fn ready() -> Result {
    let plugin = Plugin::start()?;
    let mut runtime = plugin.runtime()?;
    let registered = runtime.registered()?;
    expect(registered == ("gpucap".into(), "10".into()), || format!("{registered:?}"))?;
    let configured = runtime.ask("Configure", &text(2, "fake"))?;
    expect(configured.number(2) == 1 << 3, || format!("{configured:?}"))?;
    for more in [true, true, false] {
        expect(!plugin.is_ready(), || "ready before it knew what runs".into())?;
        let pods = message(1, &text(2, "p")).repeat(1000);
        let answer = runtime.ask("Synchronize", &[pods, flag(3, more)].concat())?;
        let said = (answer.code, answer.number(2) == 1, answer.all(1).len());
        expect(said == (0, more, 0), || format!("{answer:?}"))?;
    }
    // Its answer to a question that comes later: by then the file was made.
    runtime.ask("CreateContainer", &container(&[], &[]))?;
    expect(plugin.is_ready(), || "not ready".into())?;
    runtime.ask("Shutdown", &[])?;
    runtime.ask("CreateContainer", &container(&[], &[]))?;
    expect(!plugin.is_ready(), || "ready after the runtime said that it goes".into())
}

fn reconnects() -> Result {
    let plugin = Plugin::start()?;
    for _ in 0..3 {
        let mut runtime = plugin.runtime()?;
        runtime.registered()?;
        expect(!plugin.is_ready(), || "ready without a runtime".into())?;
        runtime.begun()?;
        runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?.adjustment()?;
        expect(plugin.is_ready(), || "not ready".into())?;
    }
    // One that does not want it may want it later; one that dies in the middle of a word may live again.
    let mut unwilling = plugin.runtime()?;
    unwilling.refuse("not now")?;
    drop(unwilling);
    let mut dying = plugin.asked()?;
    dying.half()?;
    drop(dying);
    plugin.asked()?.ask("CreateContainer", &container(&[], &[])).map(drop)
}

fn comes_later() -> Result {
    let mut plugin = Plugin::start()?;
    drop(plugin.asked()?);
    fs::remove_file(plugin.path("socket"))?;
    plugin.listener = UnixListener::bind(plugin.path("socket"))?;
    plugin
        .asked()?
        .ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?
        .adjustment()
        .map(drop)
}

fn broken_node() -> Result {
    let plugin = Plugin::with(&json!({"misspelt": 1}))?;
    let mut runtime = plugin.asked()?;
    let answer = runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?;
    expect(answer.code != 0 && answer.why.contains("misspelt"), || format!("{answer:?}"))?;
    // What it has may be a limit of the node's own.
    let answer =
        runtime.ask("CreateContainer", &container(&[], &["NVIDIA_VISIBLE_DEVICES=GPU-1"]))?;
    expect(answer.code != 0 && answer.why.contains("misspelt"), || format!("{answer:?}"))?;
    let answer = runtime.ask("CreateContainer", &container(&[], &[]))?;
    expect(answer == Answer::default(), || format!("{answer:?}"))?;
    // It is read for each container.
    fs::write(plugin.path("node.json"), "{}")?;
    runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?.adjustment().map(drop)
}

fn allocated() -> Result {
    let plugin = Plugin::start()?;
    fs::create_dir_all(plugin.path("alloc/u1"))?;
    fs::write(plugin.path("alloc/u1/app.json"), r#"{"gpus":{"*":{"mem":"512Mi"}}}"#)?;
    let answer =
        plugin.asked()?.ask("CreateContainer", &container(&[("gpucap/mem", "1Gi")], &[]))?;
    let env = answer.adjustment()?.all(4);
    let env: Vec<_> = env.iter().map(|pair| (pair.text(1), pair.text(2))).collect();
    expect(env == [("GPU_MEM_LIMIT".into(), "512MiB".into())], || format!("{env:?}"))
}

fn launched() -> Result {
    let scratch = Scratch::new()?;
    let place = |name: &str| scratch.path().join(name);
    let file = place("07-own.name");
    fs::create_dir_all(place("versions/1/bin"))?;
    fs::copy(Build::shipped()?.gpucap()?, place("versions/1/bin/gpucap"))?;
    symlink("versions/1", place("current"))?;
    symlink("current/bin/gpucap", &file)?;
    let begin = |socket: Option<OwnedFd>| -> Result<Child> {
        let mut command = Command::new(&file);
        command.env_clear().stderr(Stdio::null());
        if let Some(socket) = socket {
            command.env("NRI_PLUGIN_NAME", "own.name").env("NRI_PLUGIN_IDX", "07");
            command.env("NRI_PLUGIN_SOCKET", "0").stdin(socket);
        }
        Ok(command.spawn()?)
    };
    let (own, other) = UnixStream::pair()?;
    let mut child = begin(Some(other.into()))?;
    let mut runtime = Runtime::of(own)?;
    let registered = runtime.registered()?;
    expect(registered == ("own.name".into(), "07".into()), || format!("{registered:?}"))?;
    runtime.begun()?;
    let answer = runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?;
    let hooks = answer.adjustment()?.all(5);
    let hooks: Vec<_> = hooks.iter().flat_map(|hooks| hooks.all(2)).collect();
    let paths: Vec<_> = hooks.iter().map(|hook| hook.text(1)).collect();
    // The container may live longer than the version that made it.
    let lasting = place("current/bin/gpucap").display().to_string();
    expect(paths == [lasting], || format!("{paths:?}"))?;
    drop(runtime);
    expect(child.wait()?.success(), || "it did not end well".into())?;
    expect(!begin(None)?.wait()?.success(), || "without a socket it ended well".into())
}

fn bounded() -> Result {
    let plugin = Plugin::start()?;
    let mut runtime = plugin.asked()?;
    for _ in 0..64 {
        // Of an unknown connection, and of a message that is longer than any may be.
        runtime.piece(9, &vec![0; 1 << 20])?;
    }
    let mut long = (200u32 << 20).to_be_bytes().to_vec();
    long.extend([0, 0, 0, 99, 1, 0]);
    runtime.piece(1, &long)?;
    for _ in 0..200 {
        runtime.piece(1, &vec![0; 1 << 20])?;
    }
    let answer = runtime.answer(99)?;
    expect(answer.code == 8, || format!("{answer:?}"))?;
    runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?.adjustment()?;
    let status = fs::read_to_string(format!("/proc/{}/status", plugin.child.id()))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
    expect(kib.is_some_and(|kib| kib < 32 << 10), || format!("{peak:?} for 264 MiB"))
}

/// As long as a runtime waits, which then drops the plugin and makes all containers without it.
const DROPPED: Duration = Duration::from_secs(2);

type Annotations<'a> = &'a [(&'a str, &'a str)];

fn in_time() -> Result {
    let plugin = Plugin::start()?;
    let mut runtime = plugin.asked()?;
    let foreign = |count| (0..count).map(|number| format!("GPU_{number:x}="));
    let doubled = ["GPU_MEM_LIMIT", "GPU_CORE_PCT", "GPU_PROFILE", "CUDA_MEM_LIMIT"]
        .into_iter()
        .chain(["CUDA_CORE_LIMIT", "CUDA_DEVICE_SM_LIMIT"])
        .flat_map(|name| [1, 2].map(|value| format!("{name}={value}")));
    let list = |name: &str, count| {
        let entries: Vec<_> = (0..count).map(|entry| format!("{entry}=1")).collect();
        format!("{name}={}", entries.join(","))
    };
    let gpu = |number| format!("GPU-aaaaaaaa-aaaa-aaaa-aaaa-{number:012x},NVIDIA,1000,30:");
    let gpus: String = (0..6000).map(gpu).collect();
    let hami = [("hami.io/vgpu-devices-allocated", gpus.as_str())];
    let hostile: [(&str, Vec<String>, Annotations<'_>); 5] = [
        ("20000 variables", foreign(20_000).collect(), &[]),
        ("64 readings of 8000 variables", foreign(8000).chain(doubled.clone()).collect(), &[]),
        ("a list of 40000 GPUs", vec![list("GPU_CORE_PCT", 40_000)], &[]),
        ("6000 GPUs in an annotation, read 64 times", doubled.collect(), &hami),
        (
            "a value of 1 MB",
            vec![format!("NVIDIA_VISIBLE_DEVICES={}", "GPU-0,".repeat(175_000))],
            &[],
        ),
    ];
    for (what, env, annotations) in hostile {
        let env: Vec<&str> = env.iter().map(String::as_str).collect();
        let asked = Instant::now();
        runtime.ask("CreateContainer", &container(annotations, &env))?;
        let took = asked.elapsed();
        expect(took < DROPPED, || format!("{what}: answered after {took:?}"))?;
    }
    runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?.adjustment().map(drop)
}

fn late() -> Result {
    let plugin = Plugin::start()?;
    let mut runtime = plugin.asked()?;
    // A file that is there and says nothing, like one on a server that is away.
    fs::remove_file(plugin.path("node.json"))?;
    let made = Command::new("mkfifo").arg(plugin.path("node.json")).status()?;
    expect(made.success(), || "no fifo".into())?;
    for _ in 0..8 {
        let answer = runtime.ask("CreateContainer", &container(&[], &["GPU_MEM_LIMIT=1Gi"]))?;
        let why = "gpucap: nri: container app of pod n/p is not made: ";
        expect(answer.code != 0 && answer.why.starts_with(why), || format!("{answer:?}"))?;
    }
    let threads = fs::read_dir(format!("/proc/{}/task", plugin.child.id()))?.count();
    expect(threads <= 5, || format!("{threads} threads"))
}

fn unusable() -> Result {
    let scratch = Scratch::new()?;
    fs::write(scratch.path().join("node.json"), "{}")?;
    let fails = |command: &mut Command| -> Result<ExitStatus> { Ok(command.spawn()?.wait()?) };
    let status = fails(command(&scratch)?.args(["--index", "1"]))?;
    expect(status.code() == Some(1), || format!("an index of one digit: {status}"))?;
    let status = fails(command(&scratch)?.args(["--name", "a b"]))?;
    expect(status.code() == Some(1), || format!("a name with a gap: {status}"))?;
    // Where the ready file cannot be made.
    fs::create_dir(scratch.path().join("ready"))?;
    let status = fails(&mut command(&scratch)?)?;
    expect(status.code() == Some(1), || format!("a ready file that is a directory: {status}"))
}
