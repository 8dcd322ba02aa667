//! Docker, told by `gpucap configure docker` and a reload, as an administrator does it.
//!
//! Docker has no place for hooks: `gpucap runtime` stands before its runtime. Its containers have the network of the
//! machine, so that nothing of that is changed.

use crate::cgroups::Cgroups;
use crate::container::unique;
use crate::enclosure::{Daemon, Enclosure, Userland};
use crate::enforced::{ASKS, answers_of_a_slice};
use crate::image::{Image, archive};
use crate::{expect, trials_of_releases};
use gpucap_tests::{Build, Output, Result, Run, Scratch};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of_releases(
        "Docker",
        &[
            ("a container of its runtime is limited, and what is executed in it", limited),
            ("what was configured can be taken out again", undone),
        ],
    )
}

const CONFIG: &str = "/etc/docker/daemon.json";
const IMAGE: &str = "gpucap-test:1";
const READY: &str = "API listen on";

/// A machine with a Docker that knows nothing of us.
struct Docker {
    enclosure: Enclosure,
    written: String,
    daemon: Daemon,
    _cgroups: Cgroups,
}

impl Docker {
    fn new(userland: Userland) -> Result<Self> {
        let enclosure = Enclosure::new(userland, "usr/sbin/dockerd")?;
        let cgroups = Cgroups(unique());
        let config = json!({
            "bridge": "none", "iptables": false, "ip6tables": false,
            "cgroup-parent": format!("/{}", cgroups.0),
        });
        let written = format!("{config:#}\n");
        fs::create_dir(enclosure.path("/etc/docker"))?;
        fs::write(enclosure.path(CONFIG), &written)?;
        let daemon = enclosure.daemon(&["dockerd"], READY)?;
        Ok(Self { enclosure, written, daemon, _cgroups: cgroups })
    }

    /// `gpucap configure docker`.
    fn configure(&self, options: &[&str]) -> Result<String> {
        let gpucap = Build::shipped()?.gpucap()?.display().to_string();
        self.enclosure.output(&[&[gpucap.as_str(), "configure", "docker"], options].concat())
    }

    fn reload(&self) -> Result {
        self.enclosure.signal(&self.daemon, "HUP")?;
        self.daemon.says("Reloaded configuration")
    }

    fn restart(&mut self) -> Result {
        self.enclosure.stop(&self.daemon)?;
        self.daemon = self.enclosure.daemon(&["dockerd"], READY)?;
        Ok(())
    }

    /// The names of the runtimes that it knows.
    fn runtimes(&self) -> Result<String> {
        let words = ["info", "--format", "{{range $name, $it := .Runtimes}}{{$name}} {{end}}"];
        Ok(self.command(&words)?.output()?.success()?.stdout)
    }

    /// `docker` with these words.
    fn command(&self, words: &[&str]) -> Result<Run> {
        self.enclosure.run(&[&["docker"], words].concat())
    }

    /// `docker run` of a shell under our runtime.
    fn run(&self, limit: &str, options: &[&str], script: &str) -> Result<Run> {
        let limit = format!("GPU_MEM_LIMIT={limit}");
        let ours = ["run", "--runtime", "gpucap", "--network", "host", "--env", &limit];
        let shell = ["--entrypoint", "sh", IMAGE, "-c", script];
        self.command(&[&ours, options, &shell].concat())
    }

    /// What a detached container prints: by its log, since the client loses the output of a container that ends at once on a
    /// machine that stands still.
    fn printed(&self, container: &Run) -> Result<Output> {
        let started = container.output()?.success()?;
        let id = started.stdout.trim();
        let code = self.command(&["wait", id])?.output()?.success()?;
        let printed = self.command(&["logs", id])?.output()?.success()?;
        expect(code.stdout == "0\n" && !printed.stdout.is_empty(), || format!("{code}{printed}"))?;
        Ok(printed)
    }
}

fn limited(userland: Userland) -> Result {
    let docker = Docker::new(userland)?;
    docker.configure(&[])?;
    docker.reload()?;
    let scratch = Scratch::new()?;
    let root = scratch.path().join("root");
    Image::Glibc.make(&root)?;
    let file = archive(&root, IMAGE)?.display().to_string();
    docker.command(&["load", "--input", &file])?.output()?.success()?;
    let first = docker.printed(&docker.run("1Gi", &["--detach"], &format!("env; {ASKS}"))?)?;
    let (env, answers) = first.stdout.split_once("0 0 0\n").unwrap_or_default();
    expect(env.contains("GPU_MEM_LIMIT=1GiB\n"), || first.to_string())?;
    answers_of_a_slice(&format!("0 0 0\n{answers}"))?;
    let options = ["--rm", "--detach", "--name", "later", "--env", "GPU_CORE_PCT=30"];
    docker.run("1Gi", &options, "exec sleep infinity")?.output()?.success()?;
    let exec = ["exec", "--env", "GPU_MEM_LIMIT=64Gi", "later", "sh", "-c", ASKS];
    answers_of_a_slice(&docker.command(&exec)?.output()?.success()?.stdout)?;
    let pages = docker.command(&["exec", "later", "sh", "-c", "cat /.gpucap/pages/*"])?;
    let pages = pages.output()?.success()?;
    expect(pages.stdout.starts_with("gpucapCP"), || pages.to_string())?;
    let refused = docker.run("abc", &["--rm"], "env")?.output()?;
    expect(refused.code() != Some(0) && refused.stdout.is_empty(), || refused.to_string())?;
    let said = refused.stderr.replace('\\', "");
    expect(said.contains("environment GPU_MEM_LIMIT=\"abc\""), || refused.to_string())?;
    // Another runtime is none of our business.
    let free =
        ["run", "--detach", "--network", "host", "--env", "GPU_MEM_LIMIT=1Gi", "--entrypoint"];
    let free = [&free[..], &["cat", IMAGE, "/proc/self/mountinfo"]].concat();
    let free = docker.printed(&docker.command(&free)?)?;
    expect(!free.stdout.contains(" /.gpucap"), || free.to_string())
}

fn undone(userland: Userland) -> Result {
    let mut docker = Docker::new(userland)?;
    docker.configure(&["--dry-run"])?;
    let file = |docker: &Docker| fs::read_to_string(docker.enclosure.path(CONFIG));
    expect(file(&docker)? == docker.written, || "a dry run changed it".into())?;
    docker.configure(&[])?;
    docker.reload()?;
    let during = docker.runtimes()?;
    expect(during.contains("gpucap "), || during)?;
    let said = docker.configure(&["--undo"])?;
    expect(file(&docker)? == docker.written, || "not as it was".into())?;
    // A reload changes only what the file still says something of.
    expect(said.contains("restart dockerd"), || said)?;
    docker.restart()?;
    let after = docker.runtimes()?;
    expect(!after.contains("gpucap "), || after)
}
