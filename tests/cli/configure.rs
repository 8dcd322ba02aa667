//! `gpucap configure`: what it writes, the engine itself understands.

use crate::{ended, expect, gpucap, says};
use gpucap_tests::{Build, Driver, Output, Result, Run, Scratch, Stop, World, trial};
use libtest_mimic::Trial;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("configure: containerd knows the handler, and its own as before", containerd),
        trial("configure: undoing leaves the file as it was", undone),
        trial("configure: a dry run changes nothing", dry_run),
        trial("configure: the directory of hooks has a file of ours", directory_of_hooks),
        trial(
            "configure: an installed command is named by a link that upgrades keep",
            installation,
        ),
        trial("configure: Docker has a runtime of ours beside its own", docker),
        trial("configure: a file that cannot be read as TOML is left alone", no_toml),
        trial("configure: a relative path is written as an absolute one", relative),
        trial("configure: what an engine could not call is refused", not_there),
        trial("configure: a node's configuration that cannot be used is left to be mended", slip),
    ]
}

/// What a node may have today: the handler of the NVIDIA runtime is the default.
const TODAY: &str = "version = 2 # the format of containerd 1.x
[plugins.\"io.containerd.grpc.v1.cri\".containerd]
default_runtime_name = \"nvidia\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]
runtime_type = \"io.containerd.runc.v2\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]
BinaryName = \"/usr/bin/nvidia-container-runtime\"
";

fn configure(scratch: &Scratch, words: &[&str]) -> Result<Output> {
    let place = |name: &str| scratch.path().join(name).display().to_string();
    let (file, specification) = (place("config.toml"), place("base-spec.json"));
    let fixed = ["configure", "containerd", "--file", &file, "--specification", &specification];
    gpucap(&[&fixed[..], words].concat())?.output()
}

fn installed(program: &str) -> Result {
    match Command::new(program).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Stop::skip(format!("{program} is missing (ci/run --install gets it)"))),
    }
}

/// A node's directory, with its configuration.
fn node() -> Result<Scratch> {
    installed("containerd")?;
    let scratch = Scratch::new()?;
    fs::write(scratch.path().join("config.toml"), TODAY)?;
    Ok(scratch)
}

fn dump(file: &Path) -> Result<String> {
    let output =
        Command::new("containerd").arg("--config").arg(file).args(["config", "dump"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(Stop::fail(text)) }
}

fn containerd() -> Result {
    let node = node()?;
    let file = node.path().join("config.toml");
    let before = dump(&file)?;
    configure(&node, &[])?.success()?;
    let after = dump(&file)?;
    let specification = node.path().join("base-spec.json").display().to_string();
    let named = format!("base_runtime_spec = \"{specification}\"");
    expect(after.contains(&named) && !before.contains(&named), || after.clone())?;
    expect(after.matches("nvidia-container-runtime").count() == 2, || after.clone())?;
    // Nothing of what it knew before is lost, its own defaults included.
    let lost: Vec<&str> = before.lines().filter(|line| !after.contains(line)).collect();
    expect(lost.is_empty(), || format!("lost: {lost:?}"))?;
    let text = fs::read_to_string(&specification)?;
    expect(text.contains("\"createRuntime\"") && text.contains("\"capabilities\""), || text)
}

fn undone() -> Result {
    let node = node()?;
    configure(&node, &[])?.success()?;
    says(&configure(&node, &[])?.success()?, "Nothing to change")?;
    configure(&node, &["--undo"])?.success()?;
    let text = fs::read_to_string(node.path().join("config.toml"))?;
    expect(text == TODAY, || text)?;
    expect(!node.path().join("base-spec.json").exists(), || "the specification was left".into())
}

fn dry_run() -> Result {
    let node = node()?;
    let output = configure(&node, &["--dry-run"])?.success()?;
    says(&output, "+base_runtime_spec")?;
    let text = fs::read_to_string(node.path().join("config.toml"))?;
    expect(text == TODAY && fs::read_dir(node.path())?.count() == 1, || text)
}

fn directory_of_hooks() -> Result {
    for engine in ["podman", "crio"] {
        let scratch = Scratch::new()?;
        let path = scratch.path().join("hooks.d/gpucap.json");
        let file = path.display().to_string();
        let node = scratch.path().join("node.json");
        let config = node.display().to_string();
        fs::write(&node, "{}")?;
        let words = ["configure", engine, "--file", &file, "--config", &config];
        let output = gpucap(&words)?.output()?.success()?;
        // Of a variable that a device plugin and the pod both set, CRI-O leaves the pod's.
        let warns = |output: &Output| output.stdout.contains("`kubelet_checkpoint`");
        expect(warns(&output) == (engine == "crio"), || output.to_string())?;
        // podman runs for each container, and CRI-O watches the directory.
        expect(!output.stdout.contains("restart"), || output.to_string())?;
        let text = fs::read_to_string(&path)?;
        expect(text.contains("createRuntime") && text.contains("\"always\": true"), || text)?;
        gpucap(&["configure", engine, "--file", &file, "--undo"])?.output()?.success()?;
        expect(!path.exists(), || "the file was left".into())?;
        fs::write(&node, r#"{"kubelet_checkpoint": "/k"}"#)?;
        let output = gpucap(&words)?.output()?.success()?;
        expect(!warns(&output), || output.to_string())?;
    }
    Ok(())
}

fn installation() -> Result {
    let scratch = Scratch::new()?;
    let place = |name: &str| scratch.path().join(name).display().to_string();
    for version in ["1", "2"] {
        fs::create_dir_all(place(&format!("versions/{version}/bin")))?;
        fs::copy(Build::shipped()?.gpucap()?, place(&format!("versions/{version}/bin/gpucap")))?;
    }
    symlink("versions/2", place("current"))?;
    let told = |command: &str| -> Result<String> {
        let file = place("hooks.json");
        let run = World::bare(Driver::Absent).run(place(command).as_ref())?;
        let words = ["configure", "podman", "--file", &file];
        words.iter().fold(run, Run::arg).output()?.success()?;
        Ok(fs::read_to_string(file)?)
    };
    let names =
        |text: &str, command: &str| text.contains(&format!("\"path\": \"{}\"", place(command)));
    for command in ["current/bin/gpucap", "versions/2/bin/gpucap"] {
        let text = told(command)?;
        expect(names(&text, "current/bin/gpucap"), || format!("{command}: {text}"))?;
    }
    // One that the link does not lead to speaks for itself.
    let text = told("versions/1/bin/gpucap")?;
    expect(names(&text, "versions/1/bin/gpucap"), || text.clone())
}

fn slip() -> Result {
    let scratch = Scratch::new()?;
    fs::write(scratch.path().join("config.toml"), TODAY)?;
    let node = scratch.path().join("node.json");
    fs::write(&node, r#"{"annotation_domain": "example.com", "typo": 1}"#)?;
    let output = configure(&scratch, &["--config", &node.display().to_string()])?;
    ended(&output, 1)?;
    says(&output, "typo")?;
    let text = fs::read_to_string(scratch.path().join("config.toml"))?;
    expect(text == TODAY, || text)
}

/// An engine calls the hook in a directory of its own.
fn relative() -> Result {
    let scratch = Scratch::new()?;
    let place = |name: &str| scratch.path().join(name).display().to_string();
    fs::write(place("node.json"), "{}")?;
    fs::write(place("gpucap"), "#!/bin/sh\n")?;
    fs::set_permissions(place("gpucap"), fs::Permissions::from_mode(0o755))?;
    let there = ["env".as_ref(), "-C".as_ref(), scratch.path().as_os_str()];
    let told = |words: &[&str]| gpucap(words)?.through(&there).output()?.success();
    for engine in ["podman", "docker"] {
        let words = ["configure", engine, "--file", "own.json"];
        told(&[&words[..], &["--config", "node.json", "--program", "./gpucap"]].concat())?;
        let text = fs::read_to_string(place("own.json"))?;
        let names = |it: &str| text.contains(&format!("{}\"", place(it)));
        expect(names("node.json") && names("gpucap"), || text.clone())?;
        told(
            &[&words[..], &["--config", "node.json", "--program", "./gpucap", "--undo"]].concat(),
        )?;
        expect(!Path::new(&place("own.json")).exists(), || "the file was left".into())?;
    }
    let said = told(&["cdi", "generate", "job", "--mem", "1Gi", "--config", "node.json"])?;
    says(&said, &format!("{}\"", place("node.json")))
}

fn not_there() -> Result {
    let scratch = Scratch::new()?;
    let place = |name: &str| scratch.path().join(name).display().to_string();
    let (file, text) = (place("own.json"), place("text"));
    fs::write(&text, "{\"lending\": \"sometimes\"}")?;
    for engine in ["podman", "docker"] {
        for (option, path, why) in [
            ("--config", "/nosuch/node.json", "/nosuch/node.json: there is no such file"),
            ("--config", text.as_str(), "\"lending\": "),
            ("--program", "/nosuch/gpucap", "/nosuch/gpucap: no such file"),
            ("--program", text.as_str(), "not a program"),
        ] {
            let output = gpucap(&["configure", engine, "--file", &file, option, path])?.output()?;
            ended(&output, 1)?;
            says(&output, why)?;
            expect(!Path::new(&file).exists(), || "something was written".into())?;
        }
    }
    let output =
        gpucap(&["cdi", "generate", "j", "--mem", "1Gi", "--config", "/nosuch"])?.output()?;
    ended(&output, 1)?;
    says(&output, "/nosuch: there is no such file")
}

fn docker() -> Result {
    let scratch = Scratch::new()?;
    let path = scratch.path().join("daemon.json");
    let today = "{\n    \"default-runtime\": \"nvidia\",\n    \"runtimes\": {\n        \"nvidia\": {\n            \
                 \"path\": \"nvidia-container-runtime\"\n        }\n    }\n}\n";
    fs::write(&path, today)?;
    let file = path.display().to_string();
    let node = scratch.path().join("own.json");
    fs::write(&node, "{}")?;
    let config = node.display().to_string();
    let words = ["configure", "docker", "--file", &file, "--config", &config];
    gpucap(&words)?.output()?.success()?;
    let text = fs::read_to_string(&path)?;
    let said = |word: &str| text.contains(word);
    let named = format!("--gpucap-config={config}");
    expect(said("\"gpucap\": {") && said(&named), || text.clone())?;
    expect(said("\"default-runtime\": \"nvidia\""), || text.clone())?;
    gpucap(&[&words[..], &["--undo"]].concat())?.output()?.success()?;
    let text = fs::read_to_string(&path)?;
    expect(text == today, || text)
}

fn no_toml() -> Result {
    let node = node()?;
    fs::write(node.path().join("config.toml"), "version = \n")?;
    let output = configure(&node, &[])?;
    ended(&output, 1)?;
    says(&output, "config.toml")?;
    expect(fs::read_dir(node.path())?.count() == 1, || "something was written".into())
}
