//! A container outlives the version that put it under its limits: upgrades, and the end of the installation.
//!
//! The versions are the same files under other numbers, put on the machine by `install.sh`; the hook is called by the
//! path that engines are told of, behind the link `current`.

use crate::container::Container;
use crate::earlier::changed;
use crate::enforced::{begin, is_limited};
use crate::runtime::Runtime;
use crate::{GIB, expect, trials_of};
use gpucap_tests::{Actor, Build, Result, Scratch, Stop, project};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    trials_of(&[
        ("one that runs keeps its library through upgrades, and a new one has the new", keeps),
        ("the command of a later version looks at it and changes its limits", looked_at),
        ("it goes on when gpucap is taken off the machine, and ends well", uninstalled),
    ])
}

/// An installation, and where its releases are made.
struct Machine(Scratch);

impl Machine {
    /// A machine with version 1.
    fn new() -> Result<Self> {
        let machine = Self(Scratch::new()?);
        machine.install("1")?;
        Ok(machine)
    }

    fn install(&self, version: &str) -> Result {
        let release = self.0.path().join(format!("release-{version}"));
        let build = Build::shipped()?;
        let files = [(build.gpucap()?, "bin"), (build.driver()?, "lib"), (build.shim()?, "lib")];
        for (file, place) in files {
            let directory = release.join("files").join(place);
            fs::create_dir_all(&directory)?;
            fs::copy(&file, directory.join(file.file_name().unwrap_or_default()))?;
        }
        fs::write(release.join("VERSION"), version)?;
        fs::write(release.join("PROCESSOR"), std::env::consts::ARCH)?;
        let script = release.join("install.sh");
        fs::copy(project().join("hook/deploy/install.sh"), &script)?;
        self.script(&script)
    }

    fn uninstall(&self) -> Result {
        self.script(&project().join("hook/deploy/uninstall.sh"))
    }

    fn script(&self, script: &Path) -> Result {
        let output = Command::new(script).env("PREFIX", self.path("")).output()?;
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        expect(output.status.success(), || format!("{}: {}", script.display(), said()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("opt").join(name)
    }

    /// The command, as engines are told of it.
    fn gpucap(&self) -> PathBuf {
        self.path("current/bin/gpucap")
    }

    fn library(&self, version: &str) -> Result<u64> {
        Ok(fs::metadata(self.path(&format!("versions/{version}/lib/libgpucap.so")))?.ino())
    }

    fn container(&self, runtime: Runtime) -> Result<Container> {
        Ok(Container::new(runtime)?.called(&self.gpucap()))
    }
}

/// Which file is preloaded there.
fn preloaded(container: &Container) -> Result<u64> {
    let maps = container.exec(&[], &["cat", "/proc/self/maps"])?.output()?.success()?;
    let line = maps.stdout.lines().find(|line| line.contains("/.gpucap/libgpucap.so"));
    let inode = line.and_then(|line| line.split_whitespace().nth(4)?.parse().ok());
    inode.ok_or_else(|| Stop::fail(&maps))
}

/// One that is executed now is limited, and by the same budget.
fn executed_is_limited(container: &Container, first: &mut Actor) -> Result {
    let mut later = begin(&container.exec(&[], &["/actor"])?)?;
    is_limited(&mut later)?;
    let seen = first.call("info d")?;
    // Two contexts at their price, and what each holds.
    let free = GIB - (512 << 20) - (2 << 20);
    expect(seen.extra == free, || format!("{seen:?}: not {free} bytes free"))?;
    later.end().map(drop)
}

fn keeps(runtime: Runtime) -> Result {
    let machine = Machine::new()?;
    let container = machine.container(runtime)?;
    let mut first = begin(&container.run(&["/actor"])?)?;
    is_limited(&mut first)?;
    let library = machine.library("1")?;
    // With the third, nothing is left of the first but what the container holds.
    for version in ["2", "3"] {
        machine.install(version)?;
        expect(preloaded(&container)? == library, || format!("another library after {version}"))?;
        executed_is_limited(&container, &mut first)?;
    }
    expect(!machine.path("versions/1").exists(), || "version 1 is there".into())?;
    let newer = machine.container(runtime)?;
    let mut actor = begin(&newer.run(&["/actor"])?)?;
    is_limited(&mut actor)?;
    let expected = machine.library("3")?;
    expect(preloaded(&newer)? == expected, || "a new container has an old library".into())?;
    actor.end()?.success()?;
    first.end()?.success().map(drop)
}

fn looked_at(runtime: Runtime) -> Result {
    let machine = Machine::new()?;
    let container = machine.container(runtime)?;
    let run = container.run(&["/actor"])?;
    let mut actor = begin(&run)?;
    is_limited(&mut actor)?;
    machine.install("2")?;
    changed(&container, &run, &machine.gpucap())?;
    let total = actor.call("total d 0")?;
    expect(total.value == GIB / 2, || format!("{total:?}"))?;
    actor.end()?.success().map(drop)
}

fn uninstalled(runtime: Runtime) -> Result {
    let machine = Machine::new()?;
    let container = machine.container(runtime)?;
    let mut first = begin(&container.run(&["/actor"])?)?;
    is_limited(&mut first)?;
    machine.uninstall()?;
    expect(!machine.path("").exists(), || "the installation is there".into())?;
    executed_is_limited(&container, &mut first)?;
    // The hook at its end is gone.
    let ended = first.end()?;
    if !runtime.insists_on_its_last_hook() {
        return ended.success().map(drop);
    }
    let says = ended.code() == Some(1) && ended.stderr.contains("failed to run post stop hooks");
    expect(says, || ended.to_string())?;
    machine.install("1")?;
    container.delete()?.success().map(drop)
}
