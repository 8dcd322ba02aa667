//! The archive of a release, its installation below a root of its own, and what is left afterwards.

use crate::{ended, expect, tree};
use gpucap_tests::release::{ARCHIVE, make, real, unpacked};
use gpucap_tests::{Result, Scratch, Stop, markdown, project, trial};
use libtest_mimic::Trial;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The DRA driver, which only its image needs.
const DRA: &str = "deploy/gpucap-dra";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("release: the archive is whole, and the same when made again", archive),
        trial("release: --install gets what is missing of the tools that build it", tools),
        trial("release: each link of its documents leads to a file of it", documents),
        trial(
            "release: what is installed runs, and uninstalling leaves what was there before",
            round,
        ),
        trial("release: its DRA driver is of this version, and stays out of a machine", driver),
        trial("release: what an engine still names is not taken away", named),
        trial("release: an upgrade is one rename, and keeps the version before", upgrade),
        trial("release: a version stays while a process has its library loaded", loaded),
        trial("release: installing again changes no file", again),
        trial("release: its scripts do nothing if they are given a word", words),
        trial("release: it is not installed on a machine with another processor", elsewhere),
        trial("release: each crate of what ships has the text of its licence", texts),
        trial("release: the notices name each crate of which its files hold a line", notices),
    ]
}

fn archive() -> Result {
    let (one, two) = (Scratch::new()?, Scratch::new()?);
    let root = unpacked(&one)?;
    ended(
        Command::new("sha256sum").args(["-c", "--quiet", "SHA256SUMS"]).current_dir(&root),
        true,
    )?;
    let listed = fs::read_to_string(root.join("SHA256SUMS"))?;
    let files = tree(&root)?.into_iter().filter(|name| root.join(name).is_file());
    let unlisted: Vec<_> =
        files.filter(|name| !listed.contains(&format!("  ./{name}\n"))).collect();
    expect(unlisted == ["SHA256SUMS"], || format!("{unlisted:?}"))?;
    let sums = format!("{ARCHIVE}.sha256");
    let made = |place: &Path| -> Result<String> {
        make(place)?;
        ended(Command::new("sha256sum").args(["-c", &sums]).current_dir(place), true)?;
        Ok(fs::read_to_string(place.join(&sums))?)
    };
    let both = (made(one.path())?, made(two.path())?);
    expect(both.0 == both.1, || format!("two archives of the same files differ: {both:?}"))
}

/// The script in a folder of its own, where the tools that install only note how they were called.
fn tools() -> Result {
    let scratch = Scratch::new()?;
    let (ci, own) = (scratch.path().join("ci"), scratch.path().join(".cache/venv/bin"));
    fs::create_dir_all(&ci)?;
    fs::create_dir_all(&own)?;
    for name in ["release", "tools.sh", "shipped.sh"] {
        fs::copy(project().join("ci").join(name), ci.join(name))?;
    }
    let asked = scratch.path().join("asked");
    for (name, body) in [
        ("python3", "exit 1".to_owned()),
        ("rustc", "echo /nonexistent".to_owned()),
        ("pip", format!("echo \"pip $*\" >>{}", asked.display())),
        ("rustup", format!("echo \"rustup $*\" >>{}", asked.display())),
    ] {
        fs::write(own.join(name), format!("#!/bin/sh\n{body}\n"))?;
        fs::set_permissions(own.join(name), fs::Permissions::from_mode(0o755))?;
    }
    let mut release = Command::new(ci.join("release"));
    let output = release.arg("--install").env("CARGO_TARGET_DIR", scratch.path()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let asked = fs::read_to_string(asked).unwrap_or_default();
    let both = || format!("{said}\n{asked}");
    expect(asked.contains(" ziglang\n"), both)?;
    expect(asked.contains("rustup target add x86_64-unknown-linux-musl\n"), both)?;
    expect(output.status.code() == Some(1) && said.contains("ci/release: zig is missing"), both)
}

/// A reader of the archive has no other files: those that the README and the book lead to are in it.
fn documents() -> Result {
    let scratch = Scratch::new()?;
    let root = unpacked(&scratch)?;
    let pages = tree(&root)?.into_iter().filter(|name| name.ends_with(".md"));
    let pages: BTreeMap<_, _> = pages
        .map(|name| Ok((root.join(&name), fs::read_to_string(root.join(&name))?)))
        .collect::<Result<_>>()?;
    expect(pages.contains_key(&root.join("README.md")), || "no README".into())?;
    expect(pages.keys().any(|page| page.ends_with("docs/src/troubleshooting.md")), || {
        format!("no book among {:?}", pages.keys())
    })?;
    markdown::none_dead(&pages, markdown::links, markdown::anchors)
}

fn installed(release: &Path, root: &Path) -> Result<String> {
    ended(Command::new(release.join("install.sh")).env("DESTDIR", root), true)
}

fn round() -> Result {
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let root = scratch.path().join("root");
    for place in ["opt/gpucap", "etc"] {
        fs::create_dir_all(root.join(place))?;
    }
    fs::write(root.join("opt/gpucap/own"), "")?;
    let before = tree(&root)?;
    installed(&release, &root)?;
    let command = root.join("opt/gpucap/current/bin/gpucap");
    let said = ended(Command::new(&command).arg("--version"), true)?;
    expect(said.contains(env!("CARGO_PKG_VERSION")), || said.clone())?;
    // What stands beside it speaks of it.
    let share = root.join("opt/gpucap/current/share");
    for (file, word) in [
        ("bash-completion/completions/gpucap", "status"),
        ("zsh/site-functions/_gpucap", "status"),
        ("fish/vendor_completions.d/gpucap.fish", "status"),
        ("man/man1/gpucap.1", "status"),
        ("man/man1/gpucap-run.1", "EXIT STATUS"),
    ] {
        let text = fs::read_to_string(share.join(file))?;
        expect(text.contains("gpucap") && text.contains(word), || format!("{file}: {text}"))?;
    }
    // It finds the library that came with it.
    let said = ended(Command::new(&command).args(["run", "--mem", "1Gi", "--", "env"]), true)?;
    let library = format!("versions/{}/lib/libgpucap.so", env!("CARGO_PKG_VERSION"));
    expect(said.contains(&library), || said.clone())?;
    ended(Command::new(release.join("uninstall.sh")).env("DESTDIR", &root), true)?;
    let after = tree(&root)?;
    expect(after == before, || format!("{after:?}"))?;
    // Without files of others, nothing at all.
    let empty = scratch.path().join("empty");
    installed(&release, &empty)?;
    ended(Command::new(release.join("uninstall.sh")).env("DESTDIR", &empty), true)?;
    let after = tree(&empty)?;
    expect(after == ["opt"], || format!("{after:?}"))
}

/// Without DESTDIR, below which there may be the files of any machine.
fn elsewhere() -> Result {
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let prefix = scratch.path().join("prefix");
    let install = |well| {
        let mut install = Command::new(release.join("install.sh"));
        ended(install.env("PREFIX", &prefix).env_remove("DESTDIR"), well)
    };
    install(true)?;
    fs::remove_dir_all(&prefix)?;
    fs::write(release.join("PROCESSOR"), "riscv64")?;
    install(false)?;
    expect(!prefix.exists(), || "something was installed".to_owned())
}

fn driver() -> Result {
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let said = ended(Command::new(release.join(DRA)).arg("--version"), true)?;
    expect(said == concat!("gpucap-dra ", env!("CARGO_PKG_VERSION"), "\n"), || said.clone())?;
    let root = scratch.path().join("root");
    installed(&release, &root)?;
    let placed = tree(&root)?;
    expect(!placed.iter().any(|it| it.ends_with("gpucap-dra")), || format!("{placed:?}"))
}

fn named() -> Result {
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let root = scratch.path().join("root");
    installed(&release, &root)?;
    let command = root.join("opt/gpucap/current/bin/gpucap");
    let uninstalled =
        |well| ended(Command::new(release.join("uninstall.sh")).env("DESTDIR", &root), well);
    let hook = "{\"path\": \"/opt/gpucap/current/bin/gpucap\"}";
    for (engine, file) in [
        ("podman", "usr/share/containers/oci/hooks.d/gpucap.json"),
        ("docker", "etc/docker/daemon.json"),
        ("containerd", "etc/gpucap/base-spec.json"),
    ] {
        let file = root.join(file);
        let configure = |words: &[&str]| {
            let mut configure = Command::new(&command);
            configure.args(["configure", engine]).arg("--program").arg(&command);
            ended(configure.arg("--file").arg(&file).args(words), true).map(drop)
        };
        fs::create_dir_all(file.parent().unwrap_or(&root))?;
        match engine {
            // It would ask containerd itself for the rest.
            "containerd" => fs::write(&file, hook)?,
            _ => configure(&[])?,
        }
        // As on the machine whose root that is to be.
        let here = fs::read_to_string(&file)?;
        fs::write(&file, here.replace(&root.display().to_string(), ""))?;
        let said = uninstalled(false)?;
        let advice = format!("gpucap configure {engine} --undo");
        expect(said.contains(&advice) && command.exists(), || said.clone())?;
        match engine {
            "containerd" => fs::remove_file(&file)?,
            _ => {
                fs::write(&file, here)?;
                configure(&["--undo"])?;
            }
        }
    }
    uninstalled(true)?;
    expect(!command.exists(), || "it is there".into())
}

fn upgrade() -> Result {
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let root = scratch.path().join("root");
    let prefix = root.join("opt/gpucap");
    for version in ["1", "2", "3"] {
        fs::write(release.join("VERSION"), version)?;
        installed(&release, &root)?;
        let current = fs::read_link(prefix.join("current"))?;
        expect(current == Path::new("versions").join(version), || format!("{current:?}"))?;
    }
    let mut kept: Vec<_> = fs::read_dir(prefix.join("versions"))?
        .map(|it| it.map(|it| it.file_name()))
        .collect::<std::io::Result<_>>()?;
    kept.sort();
    expect(kept == ["2", "3"], || format!("{kept:?}"))
}

/// What a run starts loads the library by the path that the run began with.
fn loaded() -> Result {
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let root = scratch.path().join("root");
    let versions = root.join("opt/gpucap/versions");
    let install = |version: &str| -> Result<Vec<bool>> {
        fs::write(release.join("VERSION"), version)?;
        installed(&release, &root)?;
        Ok(["1", "2", "3", "4"].map(|version| versions.join(version).exists()).to_vec())
    };
    install("1")?;
    let mut run = Command::new("sleep");
    run.arg("1000").env("LD_PRELOAD", versions.join("1/lib/libgpucap.so"));
    let mut run = run.spawn()?;
    let maps = format!("/proc/{}/maps", run.id());
    while !fs::read_to_string(&maps)?.contains("libgpucap.so") {
        std::thread::yield_now();
    }
    let kept = install("2").and_then(|_| install("3"));
    // A second run of the same script, as a pod that is started again makes one.
    let again = install("3");
    let said = ended(Command::new(release.join("uninstall.sh")).env("DESTDIR", &root), true);
    run.kill()?;
    run.wait()?;
    expect(kept.as_ref().is_ok_and(|kept| *kept == [true, true, true, false]), || {
        format!("{kept:?}")
    })?;
    expect(again.as_ref().is_ok_and(|kept| *kept == [true, true, true, false]), || {
        format!("{again:?}")
    })?;
    let named = format!("process {} has the library loaded", run.id());
    expect(said.as_ref().is_ok_and(|said| said.contains(&named)), || format!("{said:?}"))?;
    for version in ["2", "3"] {
        install(version)?;
    }
    expect(install("4")? == [false, false, true, true], || "what no process uses stays".into())
}

fn again() -> Result {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let root = scratch.path().join("root");
    let library = root.join("opt/gpucap/current/lib/libgpucap.so");
    installed(&release, &root)?;
    let first = fs::metadata(&library)?.ino();
    installed(&release, &root)?;
    expect(fs::metadata(&library)?.ino() == first, || "the library is another file".into())?;
    // A library of the same version that was built anew is a new file: who maps the old one keeps it.
    let held = fs::File::open(&library)?;
    let size = held.metadata()?.len();
    fs::write(release.join("files/lib/libgpucap.so"), "new")?;
    installed(&release, &root)?;
    expect(fs::read(&library)? == b"new" && held.metadata()?.len() == size, || {
        "the library was written in place".into()
    })
}

/// Who asks for help does not want an installation, still less to lose one.
fn words() -> Result {
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let root = scratch.path().join("root");
    let run = |script: &str, words: &[&str], well| {
        let mut command = Command::new(release.join(script));
        ended(command.args(words).env("DESTDIR", &root), well)
    };
    let wrong = [&["extra"][..], &["--help", "x"], &["--dry-run"], &[""]];
    let said = run("install.sh", &["--help"], true)?;
    expect(said.contains("Usage: ") && !root.exists(), || said.clone())?;
    for words in wrong {
        let said = run("install.sh", words, false)?;
        expect(said.contains("no arguments") && !root.exists(), || said.clone())?;
    }
    installed(&release, &root)?;
    let before = tree(&root)?;
    let said = run("uninstall.sh", &["--help"], true)?;
    expect(said.contains("Usage: ") && tree(&root)? == before, || said.clone())?;
    for words in wrong {
        let said = run("uninstall.sh", words, false)?;
        expect(said.contains("no arguments") && tree(&root)? == before, || said.clone())?;
    }
    Ok(())
}

/// Without one, no release can be made.
fn texts() -> Result {
    let zig = Command::new("python3").args(["-c", "import ziglang"]).output()?;
    if !zig.status.success() {
        return Err(Stop::skip(
            "zig, whose texts are among them, is missing (ci/run --install gets it)",
        ));
    }
    let scratch = Scratch::new()?;
    ended(
        Command::new(project().join("ci/licences"))
            .arg(scratch.path())
            .arg("x86_64-unknown-linux-gnu"),
        true,
    )?;
    let text = fs::read_to_string(scratch.path().join("crates.txt"))?;
    let (names, texts) = text.split_once(&"=".repeat(80)).ok_or_else(|| Stop::fail("no texts"))?;
    // One of the command's, one of the driver's, whose package has no text.
    for name in ["oci-spec ", "kube "] {
        let line = names.lines().find(|line| line.starts_with(name)).unwrap_or("none");
        expect(texts.contains(line), || format!("no text of {name}"))?;
    }
    Ok(())
}

/// What is compiled tells where a panic would be: in which file of which crate. Whatever says so is linked.
fn notices() -> Result {
    if real().is_none() {
        return Err(Stop::skip("only a real release has notices: ci/run --full release"));
    }
    let scratch = Scratch::new()?;
    let release = unpacked(&scratch)?;
    let notices = fs::read_to_string(release.join("licences/crates.txt"))?;
    let named: BTreeSet<&str> = notices.lines().take_while(|line| !line.starts_with('=')).collect();
    let mut linked = BTreeSet::new();
    for file in ["files/bin/gpucap", "files/lib/gpucap-driver", "files/lib/libgpucap.so", DRA] {
        linked.extend(crates(&fs::read(release.join(file))?));
    }
    expect(linked.len() > 10, || format!("only {linked:?}"))?;
    let missing: Vec<_> = linked.iter().filter(|name| !named.contains(name.as_str())).collect();
    expect(missing.is_empty(), || format!("no notice of {missing:?}"))?;
    let texts = notices.matches("Permission is hereby granted").count();
    expect(texts > 10, || format!("only {texts} texts of a licence"))?;
    for other in ["rust-standard-library.html", "musl.txt", "llvm.txt"] {
        let length = fs::metadata(release.join("licences").join(other))?.len();
        expect(length > 1000, || format!("{other} has {length} bytes"))?;
    }
    Ok(())
}

/// `NAME VERSION` of each crate whose sources a file names.
fn crates(file: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(file);
    let folders = text.split("/registry/src/").skip(1);
    folders
        .filter_map(|rest| {
            let folder = rest.split('/').nth(1)?;
            let at = folder
                .match_indices('-')
                .map(|(at, _)| at)
                .find(|at| folder[at + 1..].starts_with(|sign: char| sign.is_ascii_digit()))?;
            Some(format!("{} {}", &folder[..at], &folder[at + 1..]))
        })
        .collect()
}
