//! The chart's images, built by podman as the manual says, of the files of a release: each has what is its own, and runs.
//!
//! No registry is asked: what stands for the base image has this machine's nsenter and shell.

use crate::enclosure::{Enclosure, Userland};
use crate::image::{add_needed, add_tools};
use crate::{expect, trials_of_releases};
use gpucap_tests::release::{real, unpacked};
use gpucap_tests::{Result, Scratch, Stop, chart};
use libtest_mimic::Trial;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    let rules = &[("the images have the installer and the DRA driver, each its own", built as _)];
    trials_of_releases("podman", rules)
}

/// What the Containerfile begins with.
const BASE: &str = "docker.io/library/busybox:1.36.1";
const TOOLS: [&str; 4] = ["cat", "dirname", "nsenter", "sh"];
const INSTALLER: &str = "localhost/gpucap:own";
const DRIVER: &str = "localhost/gpucap-dra:own";

/// A machine that builds images.
struct Builder {
    enclosure: Enclosure,
    release: String,
    _scratch: Scratch,
}

impl Builder {
    /// One with the base image and an unpacked release.
    fn new(userland: Userland) -> Result<Self> {
        let enclosure = Enclosure::new(userland, "usr/bin/podman")?;
        let scratch = Scratch::new()?;
        let release = unpacked(&scratch)?;
        if real().is_none() {
            // This build has no notices.
            fs::create_dir(release.join("licences"))?;
            fs::write(release.join("licences/crates.txt"), "none\n")?;
        }
        let root = scratch.path().join("base");
        fs::create_dir_all(root.join("bin"))?;
        add_tools(&root, &TOOLS)?;
        for program in ["deploy/gpucap-dra", "files/bin/gpucap"] {
            // As it ships, nothing.
            add_needed(&root, &release.join(program))?;
        }
        // Not every userland has tar.
        let archive = scratch.path().join("base.tar");
        let mut made = Command::new("tar");
        made.arg("-cf").arg(&archive).arg("-C").arg(&root).arg(".");
        expect(made.status()?.success(), || "tar".into())?;
        let builder = Self { enclosure, release: text(&release), _scratch: scratch };
        builder.podman(&["import", "--quiet", &text(&archive), BASE])?;
        Ok(builder)
    }

    fn podman(&self, words: &[&str]) -> Result<String> {
        self.enclosure.output(&[&["podman"], words].concat())
    }

    /// Builds an image by the words of the manual.
    fn build(&self, name: &str, words: &[&str]) -> Result {
        let file = format!("{}/deploy/Containerfile", self.release);
        let start = ["build", "--quiet", "--pull=never", "-t", name, "-f", &file];
        self.podman(&[&start[..], words, &[&self.release]].concat()).map(drop)
    }

    /// The files of an image below /gpucap, and how many bytes it adds to the base.
    fn content(&self, image: &str) -> Result<(Vec<String>, u64)> {
        let script =
            "cd /gpucap; for file in * */* */*/*; do [ ! -f \"$file\" ] || echo \"$file\"; done";
        let files = self.runs(image, "/bin/sh", &["-c", script])?;
        let files = files.lines().map(str::to_owned).collect();
        let size = |image| -> Result<u64> {
            let size = self.podman(&["image", "inspect", "--format", "{{.Size}}", image])?;
            size.trim().parse().map_err(Stop::fail)
        };
        Ok((files, size(image)? - size(BASE)?))
    }

    /// The program that an image starts by itself.
    fn entry(&self, image: &str) -> Result<String> {
        let words = ["image", "inspect", "--format", "{{index .Config.Entrypoint 0}}", image];
        Ok(self.podman(&words)?.trim().to_owned())
    }

    /// What a program of an image prints, in a container without any right.
    fn runs(&self, image: &str, program: &str, words: &[&str]) -> Result<String> {
        let start = "run --rm --network none --read-only --cap-drop all --cgroups disabled";
        let start: Vec<_> = start.split(' ').collect();
        let limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"];
        let program = ["--entrypoint", program, image];
        self.podman(&[&start[..], &limits, &program, words].concat())
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The program that the chart starts in the container of a DaemonSet.
fn started(name: &str) -> Result<String> {
    let set = chart::object(&chart::rendered(&["--set", "dra.enabled=true"])?, "DaemonSet", name)?;
    let command = &set["spec"]["template"]["spec"]["containers"][0]["command"][0];
    command.as_str().map(str::to_owned).ok_or_else(|| Stop::fail(set.to_string()))
}

fn built(userland: Userland) -> Result {
    let builder = Builder::new(userland)?;
    builder.build(INSTALLER, &[])?;
    builder.build(DRIVER, &["--target", "dra"])?;
    let (files, size) = builder.content(DRIVER)?;
    println!("{DRIVER}: {size} bytes beside the base");
    let own: Vec<_> = files.iter().filter(|file| !file.starts_with("licences/")).collect();
    let complete = own == ["LICENSE", "gpucap-dra"] && files.len() > own.len();
    expect(complete, || format!("{files:?}"))?;
    let program = started("gpucap-dra")?;
    expect(builder.entry(DRIVER)? == program, || format!("the image does not start {program}"))?;
    let said = builder.runs(DRIVER, &program, &["--version"])?;
    let version = env!("CARGO_PKG_VERSION");
    expect(said == format!("gpucap-dra {version}\n"), || said.clone())?;
    let (files, size) = builder.content(INSTALLER)?;
    println!("{INSTALLER}: {size} bytes beside the base");
    for file in ["node.sh", "install.sh", "files/bin/gpucap", "licences/crates.txt", "LICENSE"] {
        expect(files.iter().any(|it| it == file), || format!("no {file} in {files:?}"))?;
    }
    let other = files.iter().any(|file| file.ends_with("gpucap-dra"));
    expect(!other, || format!("{files:?}"))?;
    let said = builder.runs(INSTALLER, "/gpucap/files/bin/gpucap", &["--version"])?;
    expect(said.contains(version), || said.clone())?;
    // Of the wrong words it says what is right: all that it begins with is there.
    let script = "\"$0\" nothing 2>&1 || echo \"$?\"";
    let said = builder.runs(INSTALLER, "/bin/sh", &["-c", script, &builder.entry(INSTALLER)?])?;
    expect(said.ends_with("node.sh: install or uninstall\n2\n"), || said.clone())
}
