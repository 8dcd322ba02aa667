//! The engines that call a runtime, with the ways in which each of them is told of a hook.
//!
//! Each keeps its state in the test's own directory; a daemon is one that the test started, and ends with it.

use crate::capped::{begin, is_capped};
use crate::container::{Container, Runtime};
use crate::expect;
use gpucap_tests::{Driver, Result, Run, Stop, World, trial};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("podman: a container of its own is capped, and what is executed in it", podman_caps),
        trial("podman: a refusal is what the user sees", podman_refuses),
        trial("containerd: a container is capped, and what is executed in it", containerd_caps),
        trial("containerd: a refusal is what the user sees", containerd_refuses),
        trial(
            "containerd: with gpucap as its runtime, a container is capped and sees its limit",
            wrapped,
        ),
        trial(
            "containerd: a refusal of gpucap as its runtime is what the user sees",
            wrapped_refuses,
        ),
    ]
}

/// podman, with our hook in a directory of hooks. What it keeps for a run has to lie at a short path.
pub(crate) struct Podman(pub(crate) Container, PathBuf);

impl Podman {
    pub(crate) fn new() -> Result<Self> {
        installed("podman")?;
        let container = Container::new(Runtime::Runc)?;
        fs::create_dir(container.path("hooks.d"))?;
        let hook = json!({
            "version": "1.0.0", "hook": container.hook("createRuntime", &[])?, "when": {"always": true},
            "stages": ["createRuntime"],
        });
        fs::write(container.path("hooks.d/gpucap.json"), hook.to_string())?;
        let short = std::env::temp_dir().join(container.id());
        Ok(Self(container, short))
    }

    /// `podman` with these words.
    pub(crate) fn command(&self, words: &[&str]) -> Result<Run> {
        let place = |name: &str| self.0.path(name).display().to_string();
        let run = plain("podman")?;
        let run = run.arg("--runroot").arg(&self.1);
        let places = [("--root", "storage"), ("--hooks-dir", "hooks.d")];
        let run = places.iter().fold(run, |run, (word, name)| run.arg(word).arg(place(name)));
        let fixed = ["--cgroup-manager", "cgroupfs", "--runtime", "runc"];
        Ok(fixed.iter().chain(words).fold(run, Run::arg))
    }

    /// `podman run` of the actor under this limit.
    fn run(&self, limit: &str) -> Result<Run> {
        self.run_with(&[], limit)
    }

    /// The same with more options.
    pub(crate) fn run_with(&self, options: &[&str], limit: &str) -> Result<Run> {
        let limit = format!("GPU_MEM_LIMIT={limit}");
        let root = self.0.root().display().to_string();
        let mut words = vec!["run", "--rm", "-i", "--network", "host", "--name", self.0.id()];
        // More of either than this process has itself cannot be given without CAP_SYS_RESOURCE.
        words.extend(["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]);
        for entry in [limit.as_str(), "STUB_GPU_DIR=/tmp", "STUB_GPU_CONTEXT_MEM=0"] {
            words.extend(["--env", entry]);
        }
        words.extend(options);
        words.extend(["--rootfs", &root, "/actor"]);
        self.command(&words)
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        // Of a test that failed: the container may still run.
        let command = self.command(&["rm", "--force", "--ignore", self.0.id()]);
        drop(command.and_then(|run| run.output()));
        drop(fs::remove_dir_all(&self.1));
    }
}

fn podman_caps() -> Result {
    let podman = Podman::new()?;
    let mut first = begin(&podman.run("1Gi")?)?;
    is_capped(&mut first)?;
    is_capped(&mut begin(&podman.command(&["exec", "-i", podman.0.id(), "/actor"])?)?)?;
    first.end()?.success().map(drop)
}

fn podman_refuses() -> Result {
    let output = Podman::new()?.run("abc")?.output()?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())?;
    expect(output.stderr.contains("GPU_MEM_LIMIT=\"abc\""), || output.to_string())
}

/// containerd, and a container of which it is told by a whole specification.
struct Containerd {
    container: Container,
    daemon: Child,
}

impl Containerd {
    fn start(container: Container) -> Result<Self> {
        installed("containerd")?;
        let place = |name: &str| container.path(name).display().to_string();
        let config = format!(
            "version = 2\nroot = '{}'\nstate = '{}'\ndisabled_plugins = ['io.containerd.grpc.v1.cri']\n\
             [grpc]\naddress = '{}'\n",
            place("storage"),
            place("daemon"),
            place("socket"),
        );
        fs::write(container.path("containerd.toml"), config)?;
        let mut daemon = Command::new("containerd")
            .args(["--config", &place("containerd.toml"), "--log-level", "info"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = daemon.stderr.take().map(BufReader::new);
        let mut lines = log.into_iter().flat_map(BufRead::lines).map_while(std::result::Result::ok);
        let ready = lines.any(|line| line.contains("successfully booted"));
        // Read on, so that it is not held up by a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let root = json!(container.root());
        let container = container.with(|config| config["root"]["path"] = root);
        let containerd = Self { container, daemon };
        if ready { Ok(containerd) } else { Err(Stop::skip("containerd does not start here")) }
    }

    /// `ctr` with these words.
    fn command(&self, words: &[&str]) -> Result<Run> {
        let run = plain("ctr")?.arg("--address").arg(self.container.path("socket"));
        Ok(words.iter().fold(run, Run::arg))
    }

    /// `ctr run` of the actor.
    fn run(&self) -> Result<Run> {
        self.run_with(&[], &["/actor"])
    }

    /// `ctr run` of these words, with more options.
    fn run_with(&self, options: &[&str], words: &[&str]) -> Result<Run> {
        self.container.write(words)?;
        let config = self.container.path("config.json").display().to_string();
        let fixed = ["run", "--rm", "--config", &config];
        self.command(&[&fixed, options, &[self.container.id()]].concat())
    }

    /// `ctr run` of these words by a runtime that is ours. It takes a program alone, so a script says the rest.
    fn run_by_gpucap(&self, words: &[&str]) -> Result<Run> {
        let script = self.container.path("runtime");
        let line = self.container.through().join("' '");
        fs::write(&script, format!("#!/bin/sh\nexec '{line}' \"$@\"\n"))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        self.run_with(&["--runc-binary", &script.display().to_string()], words)
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let id = self.container.id();
        for words in [&["task", "rm", "--force", id][..], &["container", "rm", id]] {
            // As a rule it is gone already.
            drop(self.command(words).and_then(|run| run.output()));
        }
        drop(self.daemon.kill());
        drop(self.daemon.wait());
    }
}

fn containerd_caps() -> Result {
    let containerd = Containerd::start(Container::new(Runtime::Runc)?)?;
    let mut first = begin(&containerd.run()?)?;
    is_capped(&mut first)?;
    let exec = ["task", "exec", "--exec-id", "later", containerd.container.id(), "/actor"];
    is_capped(&mut begin(&containerd.command(&exec)?)?)?;
    first.end()?.success().map(drop)
}

fn containerd_refuses() -> Result {
    let container = Container::new(Runtime::Runc)?.env("GPU_MEM_LIMIT=abc");
    let output = Containerd::start(container)?.run()?.output()?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())?;
    expect(output.stderr.contains("GPU_MEM_LIMIT"), || output.to_string())
}

fn wrapped() -> Result {
    let containerd = Containerd::start(Container::new(Runtime::Runc)?.through_gpucap()?)?;
    let env = containerd.run_by_gpucap(&["env"])?.output()?.success()?;
    expect(env.stdout.contains("GPU_MEM_LIMIT=1GiB\n"), || env.to_string())?;
    let mut first = begin(&containerd.run_by_gpucap(&["/actor"])?)?;
    is_capped(&mut first)?;
    let exec = ["task", "exec", "--exec-id", "later", containerd.container.id(), "/actor"];
    is_capped(&mut begin(&containerd.command(&exec)?)?)?;
    let exec = ["task", "exec", "--exec-id", "shown", containerd.container.id(), "env"];
    let env = containerd.command(&exec)?.output()?.success()?;
    expect(env.stdout.contains("GPU_MEM_LIMIT=1GiB\n"), || env.to_string())?;
    first.end()?.success().map(drop)
}

fn wrapped_refuses() -> Result {
    let container = Container::new(Runtime::Runc)?.through_gpucap()?.env("GPU_MEM_LIMIT=abc");
    let output = Containerd::start(container)?.run_by_gpucap(&["/actor"])?.output()?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())?;
    let why = "runtime: the container is not made: environment GPU_MEM_LIMIT=\"abc\"";
    expect(output.stderr.replace('\\', "").contains(why), || output.to_string())
}

fn plain(program: &str) -> Result<Run> {
    World::bare(Driver::Absent).run(Path::new(program))
}

fn installed(program: &str) -> Result {
    match Command::new(program).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Stop::skip(format!("{program} is missing (ci/run --install gets it)"))),
    }
}
