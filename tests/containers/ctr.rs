//! containerd, told of one container by `ctr` and a whole specification, with our hook or with us as its runtime.

use crate::cgroups::Cgroups;
use crate::container::Container;
use crate::enclosure::{Daemon, Enclosure, Userland};
use crate::enforced::{begin, is_limited};
use crate::expect;
use crate::runtime::Runtime;
use gpucap_tests::{Result, Run, trial};
use libtest_mimic::Trial;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "containerd: a container is limited, and what is executed in it",
            containerd_is_limited,
        ),
        trial("containerd: a refusal is what the user sees", containerd_refuses),
        trial(
            "containerd: with gpucap as its runtime, a container is limited and sees its limit",
            wrapped,
        ),
        trial(
            "containerd: a refusal of gpucap as its runtime is what the user sees",
            wrapped_refuses,
        ),
    ]
}

/// containerd, and a container of which it is told by a whole specification.
struct Containerd {
    container: Container,
    enclosure: Enclosure,
    _daemon: Daemon,
    _cgroups: Cgroups,
}

impl Containerd {
    fn start(container: Container) -> Result<Self> {
        let enclosure = Enclosure::new(Userland::Machine, "usr/bin/containerd")?;
        let daemon = enclosure.daemon(&["containerd"], "successfully booted")?;
        let root = json!(container.root());
        let cgroups = Cgroups(container.id().to_owned());
        let container = container.with(|config| {
            config["root"]["path"] = root;
            config["linux"]["cgroupsPath"] = json!(format!("/{}", cgroups.0));
        });
        Ok(Self { container, enclosure, _daemon: daemon, _cgroups: cgroups })
    }

    /// `ctr` with these words.
    fn command(&self, words: &[&str]) -> Result<Run> {
        self.enclosure.run(&[&["ctr"], words].concat())
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

fn containerd_is_limited() -> Result {
    let containerd = Containerd::start(Container::new(Runtime::RUNC)?)?;
    let mut first = begin(&containerd.run()?)?;
    is_limited(&mut first)?;
    let exec = ["task", "exec", "--exec-id", "later", containerd.container.id(), "/actor"];
    is_limited(&mut begin(&containerd.command(&exec)?)?)?;
    first.end()?.success().map(drop)
}

fn containerd_refuses() -> Result {
    let container = Container::new(Runtime::RUNC)?.env("GPU_MEM_LIMIT=abc");
    let output = Containerd::start(container)?.run()?.output()?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())?;
    expect(output.stderr.contains("GPU_MEM_LIMIT"), || output.to_string())
}

fn wrapped() -> Result {
    let containerd = Containerd::start(Container::new(Runtime::RUNC)?.through_gpucap()?)?;
    let env = containerd.run_by_gpucap(&["env"])?.output()?.success()?;
    expect(env.stdout.contains("GPU_MEM_LIMIT=1GiB\n"), || env.to_string())?;
    let mut first = begin(&containerd.run_by_gpucap(&["/actor"])?)?;
    is_limited(&mut first)?;
    let exec = ["task", "exec", "--exec-id", "later", containerd.container.id(), "/actor"];
    is_limited(&mut begin(&containerd.command(&exec)?)?)?;
    let exec = ["task", "exec", "--exec-id", "shown", containerd.container.id(), "env"];
    let env = containerd.command(&exec)?.output()?.success()?;
    expect(env.stdout.contains("GPU_MEM_LIMIT=1GiB\n"), || env.to_string())?;
    first.end()?.success().map(drop)
}

fn wrapped_refuses() -> Result {
    let container = Container::new(Runtime::RUNC)?.through_gpucap()?.env("GPU_MEM_LIMIT=abc");
    let output = Containerd::start(container)?.run_by_gpucap(&["/actor"])?.output()?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())?;
    let why = "is not started: environment GPU_MEM_LIMIT=\"abc\"";
    expect(output.stderr.replace('\\', "").contains(why), || output.to_string())
}
