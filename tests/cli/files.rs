//! `gpucap configure` and the files of others: what an administrator wrote stays, to the byte, and so do owner, mode and
//! links.
//!
//! Each test configures an engine, takes it out again, and compares with what was there before.

use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Build, Driver, Output, Result, Run, Scratch, Stop, World, trial};
use libtest_mimic::Trial;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("configure: undoing one handler leaves the specification to the other", shared),
        trial("configure: undo restores containerd's own default to the byte", default),
        trial("configure: undo restores daemon.json to the byte, however it is written", daemon),
        trial("configure: undo restores line ends and lists of config.toml", toml),
        trial("configure: undo removes files that configure made", made),
        trial("configure: podman and CRI-O share a file, and both are named", both),
        trial("configure: a file of another program is neither overwritten nor removed", foreign),
        trial("configure: owner, mode and links of a file stay", attributes),
        trial("configure: a write that fails leaves nothing behind", failed),
        trial("configure: a user who may not write is told to be root", unprivileged),
    ]
}

/// A directory for the files of one engine.
struct Place {
    scratch: Scratch,
    engine: &'static str,
}

impl Place {
    fn new(engine: &'static str) -> Result<Self> {
        let missing = || Stop::skip("containerd is missing (ci/run --install gets it)");
        let known = || Command::new("containerd").arg("--version").output().is_ok();
        if engine == "containerd" && !known() {
            return Err(missing());
        }
        Ok(Self { scratch: Scratch::new()?, engine })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("file")
    }

    fn specification(&self) -> PathBuf {
        self.path("base-spec.json")
    }

    fn run(&self, words: &[&str]) -> Result<Run> {
        let (file, specification) = (self.file(), self.specification());
        let run = gpucap(&["configure", self.engine])?.arg("--file").arg(file);
        let run = match self.engine {
            "containerd" => run.arg("--specification").arg(specification),
            _ => run,
        };
        Ok(words.iter().fold(run, Run::arg))
    }

    fn configure(&self, words: &[&str]) -> Result<Output> {
        self.run(words)?.output()?.success()
    }

    /// The file is as before once what was put in is taken out, and not in between.
    fn restores(&self, text: &str, words: &[&str]) -> Result {
        fs::write(self.file(), text)?;
        self.configure(words)?;
        let during = fs::read_to_string(self.file())?;
        expect(during != text && during.contains("gpucap"), || during.clone())?;
        says(&self.configure(words)?, "Nothing to change")?;
        self.configure(&[words, &["--undo"]].concat())?;
        let after = fs::read_to_string(self.file())?;
        let differs = || after.lines().zip(text.lines()).find(|(after, text)| after != text);
        expect(after == text, || format!("{text:.400?} became {after:.400?}: {:?}", differs()))
    }
}

/// The table of a handler in a file of containerd 1.x.
fn handler(name: &str) -> String {
    format!("plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.{name}")
}

fn shared() -> Result {
    let node = Place::new("containerd")?;
    let runc = format!("version = 2\n[{}]\nruntime_type = \"x\"\n", handler("runc"));
    fs::write(node.file(), &runc)?;
    node.configure(&[])?;
    node.configure(&["--handler", "runc"])?;
    let output = node.configure(&["--handler", "runc", "--undo"])?;
    says(&output, "stays: another handler names it")?;
    expect(node.specification().exists(), || "handler gpucap names what is gone".into())?;
    // A file that this one imports, or that imports this one, is not passed over either.
    let part = node.path("part.toml");
    let imports = format!("imports = [\"{}\"]\n{runc}", part.display());
    fs::rename(node.file(), &part)?;
    fs::write(node.file(), &imports)?;
    node.configure(&["--undo"])?;
    expect(node.specification().exists(), || "an imported handler names what is gone".into())?;
    fs::rename(&part, node.file())?;
    node.configure(&["--undo"])?;
    expect(!node.specification().exists(), || "no handler names what was left".into())
}

fn default() -> Result {
    let node = Place::new("containerd")?;
    let output = Command::new("containerd").args(["config", "default"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in [&[][..], &["--handler", "runc"], &["--handler", "runc", "--nri"]] {
        node.restores(&text, words)?;
    }
    Ok(())
}

fn daemon() -> Result {
    let place = Place::new("docker")?;
    for text in [
        "{}",
        "{ }\n",
        "{\"debug\":true}",
        "{\"runtimes\":{}}\n",
        "{\"runtimes\": { \"x\": {\"path\": \"y\"} }, \"debug\": true}\n",
        "{\n  \"exec-opts\": [\"native.cgroupdriver=systemd\"],\n  \"mtu\": 12345678901234567890123,\n  \
         \"x\": 1.10\n}",
        "{\r\n    \"log-opts\": {\"max-size\": \"1m\"},\r\n    \"runtimes\": {\r\n        \"x\": {}\r\n    \
         }\r\n}\r\n",
        "{\n\t\"runtimes\": {\n\t},\n\t\"bip\": \"\\u0031{\\\"\"\n\n}\n\n",
        "{ \"runtimes\": {\n    \"x\": {}\n  }\n, \"debug\"\n:\ntrue }\n",
    ] {
        place.restores(text, &[]).map_err(|why| Stop::fail(format!("{text:?}: {why:?}")))?;
        let known: Result<serde_json::Value> = {
            place.configure(&[])?;
            serde_json::from_slice(&fs::read(place.file())?).map_err(Stop::fail)
        };
        expect(known?["runtimes"]["gpucap"]["path"].is_string(), || text.to_owned())?;
    }
    Ok(())
}

fn toml() -> Result {
    let node = Place::new("containerd")?;
    let runc = handler("runc");
    let own = "pod_annotations = [\n  \"own/*\",\n  \"cdi.k8s.io/*\", # ours\n]\n";
    for body in ["x = 1\n", "pod_annotations = [] # none\n", "pod_annotations = ['a' ]\n", own] {
        let text =
            format!("# kept\nversion = 2\n\n[{runc}]\n  base_runtime_spec = '' # no\n{body}");
        for text in [&text, &text.replace('\n', "\r\n"), &text.replacen('\n', "\r\n", 3)] {
            node.restores(text, &["--handler", "runc"])?;
            node.restores(text, &["--nri"])?;
        }
    }
    Ok(())
}

fn made() -> Result {
    for engine in ["docker", "containerd", "podman"] {
        let place = Place::new(engine)?;
        place.configure(&[])?;
        let mode = fs::metadata(place.file())?.mode() & 0o777;
        expect(mode & 0o600 == 0o600, || format!("{engine}: {mode:o}"))?;
        place.configure(&["--undo"])?;
        let left = fs::read_dir(place.scratch.path())?.count();
        expect(left == 0, || format!("{engine}: {left} files are left"))?;
    }
    Ok(())
}

fn both() -> Result {
    for engine in ["podman", "crio"] {
        let (place, reads) = (Place::new(engine)?, "podman and CRI-O");
        says(&place.configure(&[])?, reads)?;
        says(&place.configure(&["--undo"])?, reads)?;
    }
    Ok(())
}

fn foreign() -> Result {
    let hook = "{\"version\": \"1.0.0\", \"hook\": {\"path\": \"/own\", \"args\": [\"own\"]}}\n";
    for engine in ["podman", "containerd"] {
        let place = Place::new(engine)?;
        let file = if engine == "podman" { place.file() } else { place.specification() };
        fs::write(&file, hook)?;
        let output = place.run(&[])?.output()?;
        ended(&output, 1)?;
        says(&output, "not made by gpucap")?;
        place.configure(&["--undo"])?;
        let after = fs::read_to_string(&file)?;
        expect(after == hook, || after.clone())?;
    }
    Ok(())
}

/// The owner, if this test may give a file away.
fn given_away(file: &Path) -> (u32, u32) {
    drop(chown(file, Some(65534), Some(4)));
    fs::metadata(file).map_or((0, 0), |it| (it.uid(), it.gid()))
}

fn attributes() -> Result {
    let place = Place::new("docker")?;
    let target = place.path("target/daemon.json");
    fs::create_dir(place.path("target"))?;
    fs::write(&target, "{\"debug\": true}\n")?;
    fs::set_permissions(&target, Permissions::from_mode(0o640))?;
    let owner = given_away(&target);
    symlink("target/daemon.json", place.file())?;
    for words in [&[][..], &["--undo"]] {
        place.configure(words)?;
        let is_link = fs::symlink_metadata(place.file())?.is_symlink();
        let held = fs::metadata(&target)?;
        let found = (held.uid(), held.gid(), held.mode() & 0o7777);
        let expected = (owner.0, owner.1, 0o640);
        expect(is_link && found == expected, || format!("link {is_link}, {found:?}"))?;
    }
    expect(fs::read_dir(place.path("target"))?.count() == 1, || "something was left".into())?;
    // A link to nothing is an administrator's mistake, and stays what it is.
    fs::remove_file(&target)?;
    ended(&place.run(&[])?.output()?, 1)?;
    expect(fs::symlink_metadata(place.file())?.is_symlink(), || "the link is gone".into())
}

fn failed() -> Result {
    let place = Place::new("docker")?;
    let text = format!("{{\"x\": \"{}\"}}\n", "y".repeat(2000));
    fs::write(place.file(), &text)?;
    let run = place.run(&[])?;
    let limited = ["sh", "-c", "ulimit -f 1; trap '' XFSZ; exec \"$@\"", "sh"];
    let output = run.through(&limited.map(std::ffi::OsStr::new)).output()?;
    ended(&output, 1)?;
    says(&output, "too large")?;
    let left = fs::read_dir(place.scratch.path())?.count();
    let after = fs::read_to_string(place.file())?;
    expect(left == 1 && after == text, || format!("{left} files, {after}"))
}

fn unprivileged() -> Result {
    let scratch = Scratch::new()?;
    let directory = scratch.path().join("etc");
    fs::create_dir(&directory)?;
    fs::set_permissions(&directory, Permissions::from_mode(0o555))?;
    let program = Build::shipped()?.gpucap()?;
    let words = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
    let run = World::bare(Driver::Absent).run(Path::new("setpriv"))?;
    let run = words.iter().fold(run, Run::arg).arg(program).arg("configure").arg("docker");
    let output = run.arg("--file").arg(directory.join("daemon.json")).output()?;
    if output.stderr.contains("setpriv:") {
        return Err(Stop::skip(format!("no other user can be had: {}", output.stderr.trim())));
    }
    ended(&output, 1)?;
    says(&output, "permission denied; run it as root")
}
