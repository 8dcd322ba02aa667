//! A container beside a program that gpucap does not manage, on a node that publishes what the driver samples of it.
//!
//! The card goes round its processes. A container under 30 % beside a program that keeps it busy is charged for the turns
//! of that program, and gets half of its share, until the node says whose they were. The judge is the stub's own count of
//! what each process had done. What a container can do to look like such a program is none of its gain: the node knows its
//! processes however they hide.

use crate::container::{Container, json};
use crate::image::add;
use crate::node::Node;
use crate::peers::{sharing, start};
use crate::runtime::Runtime;
use crate::{expect, trials_of};
use gpucap_tests::{Actor, Driver, Installation, Program, Result, Run, Stop, World};
use libtest_mimic::Trial;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("beside a program without gpucap a container gets its share, if the node samples", shares),
        ("launches that differ by their data gain little by the node's samples", by_data),
        ("a container without a compute limit shows the time that it used", unlimited),
        ("a run without a compute limit shows the time that it used", run),
        ("no process of a container with a share looks like one of none", hidden),
        ("what a process that samples has left is removed", left),
    ])
}

/// A node with a card, and the files of gpucap.
pub(crate) struct Sampled {
    pub(crate) node: Arc<Node>,
    installed: Installation,
    runtime: Runtime,
}

/// The process that samples, and the address at which it serves.
pub(crate) struct Sampler(Child, String);

impl Drop for Sampler {
    fn drop(&mut self) {
        // If it has ended already, the test has failed.
        drop(self.0.kill().and_then(|()| self.0.wait()));
    }
}

impl Sampler {
    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) -> Result {
        let sent = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status()?;
        expect(sent.success(), || format!("kill -s {name}: {sent}"))
    }

    /// Waits until it has ended.
    pub(crate) fn ended(mut self) -> Result {
        self.0.wait()?;
        Ok(())
    }

    /// The metrics that it serves.
    pub(crate) fn metrics(&self) -> Result<String> {
        let mut stream = TcpStream::connect(&self.1)?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// The value of the first sample of a metric.
pub(crate) fn value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics.lines().find(|line| line.starts_with(&format!("gpucap_{name}{{")))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

impl Sampled {
    /// One on which this runtime starts containers.
    pub(crate) fn new(runtime: Runtime) -> Result<Self> {
        let node = Node::new(runtime)?;
        let installed = Installation::new(&node.path("installed"))?;
        fs::create_dir(installed.card())?;
        Ok(Self { node, installed, runtime })
    }

    /// A container of the node that has its card, and the program that spends time.
    pub(crate) fn container(&self, percent: Option<u16>) -> Result<Container> {
        let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
        let container = match percent {
            None => Container::new(self.runtime)?.on(&self.node)?,
            Some(percent) => {
                let container = sharing(self.runtime, &self.node)?;
                container.env(&format!("GPU_CORE_PCT={percent}"))
            }
        };
        let container = container.mount(&self.installed.card(), "/card", "rw");
        add(&container.root(), &share, "share")?;
        // NVML lists no process that has nothing.
        Ok(container.env("STUB_GPU_DIR=/card").env("STUB_GPU_CONTEXT_MEM=1048576"))
    }

    /// The same with a second root directory in it, `/elsewhere`, that has the card and empty places for usage pages.
    pub(crate) fn with_elsewhere(&self, container: Container) -> Result<Container> {
        let root = container.root().join("elsewhere");
        for directory in [".gpucap/pages", "card", "tmp"] {
            fs::create_dir_all(root.join(directory))?;
        }
        fs::write(root.join(".gpucap/page"), "")?;
        Ok(container.mount(&self.installed.card(), "/elsewhere/card", "rw"))
    }

    /// A program of the machine, without gpucap, that keeps the card busy until it is dropped.
    pub(crate) fn unmanaged(&self) -> Result<Actor> {
        // Then it is in a cgroup of the container, whose processes never count as unmanaged.
        let own = fs::read_to_string("/proc/self/cgroup")?;
        if self.runtime.name() == "crun" && own.lines().any(|line| !line.ends_with(":/")) {
            return Err(Stop::skip("crun keeps containers in the cgroup of the test"));
        }
        let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
        let run = World::bare(Driver::Stub).run(&share)?.env("STUB_GPU_DIR", self.installed.card());
        ["k_5ms", "4", "600000"].iter().fold(run, Run::arg).start()
    }

    /// Starts one on the node.
    pub(crate) fn sampler(&self, container: &Container) -> Result<Sampler> {
        let mut command = Command::new("nsenter");
        command.args(&self.node.entering()[1..]).arg(self.installed.gpucap());
        command.args([
            "metrics",
            "--listen",
            "127.0.0.1:0",
            "--sample",
            "--through",
            "nice -n 0",
            "--config",
        ]);
        let mut child = command.arg(container.path("node.json")).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(said) = child.stderr.take() {
            let mut said = BufReader::new(said);
            said.read_line(&mut line)?;
            // What it complains of is seen with the test.
            thread::spawn(move || {
                said.lines().map_while(std::io::Result::ok).for_each(|it| eprintln!("{it}"))
            });
        }
        let address = line.trim_end().strip_prefix("gpucap: metrics: http://");
        let address = address.and_then(|line| line.strip_suffix("/metrics")).unwrap_or_default();
        let sampler = Sampler(child, address.to_owned());
        expect(!address.is_empty(), || format!("it says {line:?}"))?;
        Ok(sampler)
    }

    /// The links of the node's own pages.
    pub(crate) fn published(&self) -> Vec<PathBuf> {
        let links = fs::read_dir(self.node.inside("run/pages")).into_iter().flatten().flatten();
        let own = links.filter(|link| link.file_name().as_encoded_bytes().contains(&b'.'));
        own.map(|link| link.path()).collect()
    }

    /// What `gpucap status` says of a container.
    pub(crate) fn status(&self, container: &Container) -> Result<String> {
        let gpucap = self.installed.gpucap().display().to_string();
        let config = container.path("node.json").display().to_string();
        let words = [&gpucap, "status", container.id(), "--config", &config];
        Ok(self.node.output(&words)?.success()?.stdout)
    }

    /// How many usage pages `gpucap gc` removes.
    pub(crate) fn swept(&self, container: &Container) -> Result<usize> {
        let gpucap = self.installed.gpucap().display().to_string();
        let config = container.path("node.json").display().to_string();
        let swept = self.node.output(&[&gpucap, "gc", "--config", &config])?.success()?;
        let line = swept.stdout.lines().find_map(|it| it.strip_prefix("usage pages removed: "));
        line.and_then(|it| it.parse().ok()).ok_or_else(|| Stop::fail(&swept))
    }

    /// Waits until the node publishes this many pages.
    pub(crate) fn wait_for_pages(&self, count: usize) -> Result {
        let since = Instant::now();
        while self.published().len() != count {
            let found = || format!("{:?}, not {count}", self.published());
            expect(since.elapsed() < Duration::from_secs(10), found)?;
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// What a program in a container got of the card, in percent.
pub(crate) fn share(container: &Container, words: &[&str]) -> Result<f64> {
    share_with(container, &[], words)
}

/// The same with these options of the runtime.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of seconds")]
pub(crate) fn share_with(container: &Container, options: &[&str], words: &[&str]) -> Result<f64> {
    // crun has a process that is given a variable inherit none.
    let given = ["--env", "STUB_GPU_CONTEXT_MEM=1048576", "--env", "STUB_GPU_DIR=/card"];
    let given = [&given, options].concat();
    let words = [&["/share"], words].concat();
    let output = container.exec(&given, &words)?.output()?.success()?;
    Ok(output.number("busy")? as f64 * 100.0 / output.number("clock")? as f64)
}

/// What a late machine may take from a share, and add to it.
pub(crate) const POINTS: f64 = 3.0;
pub(crate) const MORE: f64 = 2.0;

fn shares(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let _unmanaged = node.unmanaged()?;
    let kernels = [["k_10us", "1000"], ["k_2ms", "8"], ["k_40ms", "2"]];
    for [kernel, depth] in kernels {
        let without = share(&container, &[kernel, depth, "6000"])?;
        println!("{kernel}: {without:.1} of 30 % without samples");
    }
    let _sampler = node.sampler(&container)?;
    node.wait_for_pages(1)?;
    for [kernel, depth] in kernels {
        let with = share(&container, &[kernel, depth, "10000"])?;
        println!("{kernel}: {with:.1} of 30 % with samples");
        if !(30.0 - POINTS..=30.0 + MORE).contains(&with) {
            return Err(Stop::late(format!("{kernel}: {with:.1} of 30 %")));
        }
    }
    first.end().map(drop)
}

/// What they gain beside such a program: while no doubt of their estimates has begun, part of a launch that is long may have
/// been a wait for the other one's turn. Written after runs in which they had 36.2 of 30 %, or 22 where doubt had begun.
const GAIN: f64 = 8.0;

/// Beside such a program, and alone.
fn by_data(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let _sampler = node.sampler(&container)?;
    let alone = share(&container, &["spin_ns", "50", "8000"])?;
    let unmanaged = node.unmanaged()?;
    node.wait_for_pages(1)?;
    let beside = share(&container, &["spin_ns", "50", "8000"])?;
    println!("alone {alone:.1}, beside {beside:.1} of 30 %");
    drop(unmanaged);
    expect(alone <= 30.0 + MORE && beside <= 30.0 + GAIN, || format!("{alone:.1} {beside:.1}"))?;
    first.end().map(drop)
}

fn unlimited(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(None)?;
    let mut first = start(&container)?;
    first.call("alloc a 1048576")?;
    let sampler = node.sampler(&container)?;
    share(&container, &["k_5ms", "4", "4000"])?;
    let metrics = sampler.metrics()?;
    let lines = metrics.lines().filter(|line| line.contains("kind=\"container\""));
    let text = lines.collect::<Vec<_>>().join("\n");
    let of = |name: &str| value(&text, name);
    expect(of("core_busy_seconds_total").is_none(), || text.clone())?;
    let seconds = of("core_sampled_seconds_total").unwrap_or(0.0);
    expect((2.0..=6.0).contains(&seconds), || format!("{seconds} s\n{text}"))?;
    let last = of("last_busy_timestamp_seconds").unwrap_or(0.0);
    expect(last > 1e9, || text.clone())?;
    expect(node.published().is_empty(), || "no container reads a page".into())?;
    first.end().map(drop)
}

/// By its ledger, as long as it runs; and nothing of a program that has none.
fn run(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let _unmanaged = node.unmanaged()?;
    let sampler = node.sampler(&container)?;
    let share = Program::new("share").flags(&["-lcuda", "-pthread"]).build()?;
    let mut run = Command::new(node.installed.gpucap());
    run.args(["run", "--mem", "1Gi", "--"]).arg(share).args(["k_5ms", "4", "600000"]);
    run.env("STUB_GPU_DIR", node.installed.card()).env_remove("GPUCAP_LEDGER");
    run.envs(Driver::Stub.libraries()?.map(|libraries| ("LD_LIBRARY_PATH", libraries)));
    let run = Sampler(run.stdout(Stdio::null()).spawn()?, String::new());
    let own = format!("-{}-", run.0.id());
    let since = Instant::now();
    loop {
        let text = sampler.metrics()?;
        let lines =
            text.lines().filter(|line| line.starts_with("gpucap_core_sampled_seconds_total{"));
        let of_runs: Vec<_> = lines.filter(|line| line.contains("ledger=\"")).collect();
        let seconds = of_runs.first().and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        if seconds.is_some_and(|seconds| seconds >= 1.0) {
            let is_its = of_runs.len() == 1 && of_runs[0].contains(&own);
            let took = since.elapsed().as_secs_f64();
            let fits = is_its && of_runs[0].contains("kind=\"run\"") && seconds < Some(took);
            expect(fits, || format!("in {took} s: {of_runs:?}"))?;
            break;
        }
        expect(since.elapsed() < Duration::from_secs(15), || text.clone())?;
        thread::sleep(Duration::from_millis(100));
    }
    drop(run);
    thread::sleep(Duration::from_secs(3));
    let text = sampler.metrics()?;
    let ended =
        !text.lines().any(|line| line.starts_with("gpucap_core_sampled") && line.contains("-run-"));
    expect(ended, || text.clone())?;
    first.end().map(drop)
}

/// In namespaces of its own, without a parent, and from outside.
fn hidden(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    for tool in ["/usr/bin/unshare", "/usr/bin/setsid"] {
        add(&container.root(), std::path::Path::new(tool), &tool[1..])?;
    }
    let mut first = start(&container)?;
    let _sampler = node.sampler(&container)?;
    for words in [
        &["/share", "k_5ms", "4", "2500"][..],
        &["sh", "-c", "/usr/bin/setsid /share k_5ms 4 2500"],
        &["sh", "-c", "LD_PRELOAD= /usr/bin/unshare -Urmp --fork /share k_5ms 4 2500"],
    ] {
        let given = ["--env", "STUB_GPU_CONTEXT_MEM=1048576", "--env", "STUB_GPU_DIR=/card"];
        let run = container.exec(&given, words)?.start()?;
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(3) {
            expect(node.published().is_empty(), || format!("{words:?}: {:?}", node.published()))?;
            thread::sleep(Duration::from_millis(50));
        }
        drop(run);
    }
    first.end().map(drop)
}

/// By the next one; by `gpucap gc`; and beside one that samples a second one does not publish.
fn left(runtime: Runtime) -> Result {
    let node = Sampled::new(runtime)?;
    let container = node.container(Some(30))?;
    let mut first = start(&container)?;
    let _unmanaged = node.unmanaged()?;
    let sampler = node.sampler(&container)?;
    node.wait_for_pages(1)?;
    let _second = node.sampler(&container)?;
    thread::sleep(Duration::from_secs(1));
    node.wait_for_pages(1)?;
    drop(sampler);
    expect(node.published().len() == 1, || "it is killed".into())?;
    expect(node.swept(&container)? == 1, || "it has a page".into())?;
    // The second one takes over.
    node.wait_for_pages(1)?;
    expect(json(&container.path("node.json")).is_ok(), || "its configuration".into())?;
    first.end().map(drop)
}
