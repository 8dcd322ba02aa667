//! podman, told by `gpucap configure podman`.
//!
//! It has a directory of hooks for all containers; its runtime is its own choice unless the test says another. The
//! container's root is a directory of the test: no image is needed.

use crate::cgroups::Cgroups;
use crate::container::unique;
use crate::enclosure::{Enclosure, Userland};
use crate::enforced::{begin, is_limited};
use crate::image::Image;
use crate::{SUCCESS, expect, trials_of_releases};
use gpucap_tests::{Build, Result, Run, Scratch, Stop};
use libtest_mimic::Trial;
use std::fs;
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of_releases(
        "podman",
        &[
            ("a container is limited, and what is executed in it", limited),
            ("a refusal is what the user sees", refused),
            (
                "a slice as a CDI device limits a container, whatever the user's variable says",
                device,
            ),
            ("a user's own container is limited, too", rootless),
            ("hooks that it reads elsewhere are put there, or nowhere", elsewhere),
            ("what was configured can be taken out again", undone),
        ],
    )
}

/// Where podman reads hooks unless it is told otherwise.
const DEFAULT: &str = "/usr/share/containers/oci/hooks.d/gpucap.json";

/// A machine with podman.
pub(crate) struct Podman {
    enclosure: Enclosure,
    cgroups: Cgroups,
    scratch: Scratch,
}

impl Podman {
    fn new(userland: Userland) -> Result<Self> {
        Self::of(Enclosure::new(userland, "usr/bin/podman")?)
    }

    fn of(enclosure: Enclosure) -> Result<Self> {
        let scratch = Scratch::new()?;
        Image::Glibc.make(&scratch.path().join("root"))?;
        Ok(Self { enclosure, cgroups: Cgroups(unique()), scratch })
    }

    /// The same, of whose hooks podman knows.
    ///
    /// # Errors
    /// Skips without podman.
    pub(crate) fn configured(userland: Userland) -> Result<Self> {
        let podman = Self::new(userland)?;
        podman.gpucap(&["configure", "podman"])?;
        Ok(podman)
    }

    /// The same on a machine whose processes are numbered as the driver does.
    ///
    /// # Errors
    /// Skips without podman.
    pub(crate) fn among_all(userland: Userland) -> Result<Self> {
        let ends = "podman --cgroup-manager cgroupfs rm --force --all --time 0";
        let podman = Self::of(Enclosure::among_all(userland, "usr/bin/podman", ends)?)?;
        podman.gpucap(&["configure", "podman"])?;
        Ok(podman)
    }

    fn gpucap(&self, words: &[&str]) -> Result<String> {
        let gpucap = Build::shipped()?.gpucap()?.display().to_string();
        self.enclosure.output(&[&[gpucap.as_str()], words].concat())
    }

    /// Where it runs.
    pub(crate) fn enclosure(&self) -> &Enclosure {
        &self.enclosure
    }

    /// A file of the test, by the same name in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// `podman` with these words.
    ///
    /// # Errors
    /// If the harness cannot prepare it.
    pub(crate) fn command(&self, words: &[&str]) -> Result<Run> {
        self.enclosure.run(&[&["podman", "--cgroup-manager", "cgroupfs"], words].concat())
    }

    /// What `podman run` needs on any machine of a test.
    pub(crate) fn limits(&self) -> [String; 3] {
        let parent = format!("--cgroup-parent=/{}", self.cgroups.0);
        // More of either than this process has itself cannot be given without CAP_SYS_RESOURCE.
        [parent, "--ulimit=nofile=1024:1024".into(), "--ulimit=nproc=4096:4096".into()]
    }

    /// `podman run` of these words under this limit.
    ///
    /// # Errors
    /// If the harness cannot prepare it.
    pub(crate) fn run(&self, global: &[&str], limit: &str, words: &[&str]) -> Result<Run> {
        let limit = format!("GPU_MEM_LIMIT={limit}");
        let limits = self.limits();
        let root = self.scratch.path().join("root").display().to_string();
        let mut run = vec!["run", "--rm", "-i", "--network", "host", "--name", "test"];
        run.extend(limits.iter().map(String::as_str));
        for entry in [limit.as_str(), "STUB_GPU_DIR=/tmp", "STUB_GPU_CONTEXT_MEM=0"] {
            run.extend(["--env", entry]);
        }
        let (options, words) = words.split_at(words.len() - 1);
        run.extend(options);
        run.extend(["--rootfs", &root]);
        self.command(&[global, &run, words].concat())
    }

    /// Fails unless the actor is limited, as first process and executed later.
    fn limits_to(&self, limit: &str, options: &[&str]) -> Result {
        let mut first = begin(&self.run(&[], limit, &[options, &["/actor"]].concat())?)?;
        is_limited(&mut first)?;
        let mut later = begin(&self.command(&["exec", "-i", "test", "/actor"])?)?;
        is_limited(&mut later)?;
        later.end()?.success()?;
        first.end()?.success().map(drop)
    }
}

fn limited(userland: Userland) -> Result {
    Podman::configured(userland)?.limits_to("1Gi", &[])
}

fn refused(userland: Userland) -> Result {
    // crun keeps what a hook says to itself.
    let podman = Podman::configured(userland)?;
    let output = podman.run(&["--runtime", "runc"], "abc", &["env"])?.output()?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())?;
    expect(output.stderr.contains("GPU_MEM_LIMIT=\"abc\""), || output.to_string())?;
    let output = podman.run(&[], "abc", &["env"])?.output()?;
    expect(output.code() != Some(0) && output.stdout.is_empty(), || output.to_string())?;
    let log = fs::read_to_string(podman.enclosure.path("/var/log/gpucap.log"))?;
    expect(log.lines().count() == 2, || log)
}

fn device(userland: Userland) -> Result {
    let podman = Podman::new(userland)?;
    let slice = ["cdi", "generate", "own", "--mem", "1Gi", "--cores", "30"];
    podman.gpucap(&[&slice[..], &["--output", "/var/run/cdi"]].concat())?;
    podman.limits_to("64Gi", &["--device", "gpucap/slice=own"])?;
    let mut first =
        podman.run(&[], "64Gi", &["--device", "gpucap/slice=own", "/actor"])?.start()?;
    first.expect(&[("init", SUCCESS)])?;
    let pages = podman.command(&["exec", "test", "sh", "-c", "cat /.gpucap/pages/*"])?;
    let pages = pages.output()?.success()?;
    expect(pages.stdout.starts_with("gpucapCP"), || pages.to_string())?;
    first.end()?.success().map(drop)
}

/// What starts a program as a user, who has a home with a container's root in it, and no more than a user has.
fn user(podman: &Podman) -> Result<Vec<&'static str>> {
    let script = "echo 'tester:x:1000:1000::/var/home:/bin/sh' >>/etc/passwd
        echo 'tester:x:1000:' >>/etc/group
        rm -f /etc/subuid /etc/subgid
        mkdir -p /run/user/1000 /var/home
        cp -a \"$1\" /var/home/root
        chown -R 1000:1000 /run/user/1000 /var/home";
    let root = podman.scratch.path().join("root").display().to_string();
    podman.enclosure.output(&["sh", "-ec", script, "sh", &root])?;
    let words = "setpriv --reuid 1000 --regid 1000 --clear-groups \
                 env HOME=/var/home XDG_RUNTIME_DIR=/run/user/1000";
    let words: Vec<_> = words.split_whitespace().collect();
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    let sees = podman.enclosure.run(&[&words[..], &[&gpucap, "--version"]].concat())?.output()?;
    match sees.code() {
        Some(0) => Ok(words),
        _ => Err(Stop::skip(format!("no other user may execute {gpucap}"))),
    }
}

fn rootless(userland: Userland) -> Result {
    let podman = Podman::configured(userland)?;
    let tester = user(&podman)?;
    let run = "podman --cgroup-manager cgroupfs run --rm -i --network host --cgroups disabled \
               --env STUB_GPU_CONTEXT_MEM=0 --env STUB_GPU_DIR=/tmp --env GPU_CORE_PCT=30 --env";
    let run = |limit: &'static str, program: &'static str| {
        let words = tester.iter().copied().chain(run.split_whitespace());
        let words: Vec<_> = words.chain([limit, "--rootfs", "/var/home/root", program]).collect();
        podman.enclosure.run(&words)
    };
    let mut first = begin(&run("GPU_MEM_LIMIT=1Gi", "/actor")?)?;
    is_limited(&mut first)?;
    first.end()?.success()?;
    let refused = run("GPU_MEM_LIMIT=abc", "env")?.output()?;
    expect(refused.code() != Some(0) && refused.stdout.is_empty(), || refused.to_string())
}

fn elsewhere(userland: Userland) -> Result {
    let podman = Podman::new(userland)?;
    let script = "mkdir -p /etc/containers/containers.conf.d
        printf '[engine]\\nhooks_dir = [\"/etc/own\"]\\n' >/etc/containers/containers.conf.d/50-own.conf";
    podman.enclosure.output(&["sh", "-ec", script])?;
    let gpucap = Build::shipped()?.gpucap()?.display().to_string();
    let refused = podman.enclosure.run(&[&gpucap, "configure", "podman"])?.output()?;
    let says = "containers.conf.d/50-own.conf: by hooks_dir hooks are read from /etc/own alone";
    expect(refused.code() == Some(1) && refused.stderr.contains(says), || refused.to_string())?;
    // As it says, and rightly: where it would have been put, it is not read.
    podman.gpucap(&["configure", "podman", "--file", DEFAULT])?;
    let seen = podman.run(&[], "abc", &["env"])?.output()?.success()?;
    expect(seen.stdout.contains("GPU_MEM_LIMIT=abc\n"), || seen.to_string())?;
    podman.gpucap(&["configure", "podman", "--file", "/etc/own/gpucap.json"])?;
    podman.limits_to("1Gi", &[])
}

fn undone(userland: Userland) -> Result {
    let podman = Podman::configured(userland)?;
    podman.gpucap(&["configure", "podman", "--undo"])?;
    let left = podman.enclosure.path(DEFAULT);
    expect(!left.exists(), || "the hook is left".into())?;
    let seen = podman.run(&[], "abc", &["env"])?.output()?.success()?;
    expect(seen.stdout.contains("GPU_MEM_LIMIT=abc\n"), || seen.to_string())
}
