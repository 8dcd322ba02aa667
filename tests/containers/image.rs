//! The images of the tests: this machine's own C library, or that of an older system, a few programs, the stub driver
//! and the actor.
//!
//! Each kind is made once; a container's root is a tree of links to its files. Programs in a container add and remove
//! names, and write to no file that was there.

use gpucap_tests::{Build, Compiler, Driver, Program, Result, Scratch, Stop, project};
use serde_json::json;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Where a driver's libraries are found without any configuration.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// Directories that a runtime mounts on, or a program expects.
const DIRECTORIES: [&str; 6] = ["proc", "dev", "tmp", "etc", "bin", LIBRARIES];
const TOOLS: [&str; 5] = ["cat", "true", "env", "sh", "sleep"];
const DRIVER: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// The kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    /// A C library, a few tools, `/actor` and the stub driver.
    Glibc,
    /// One program, `/actor`, which is linked statically.
    Static,
    /// As the first, with a C library that says that it is an old one.
    Old,
    /// As the first, of Debian 11: glibc 2.31, and no `libgcc_s`.
    Debian11,
}

impl Image {
    /// Makes a root of this kind.
    pub(crate) fn make(self, root: &Path) -> Result {
        static MADE: Mutex<Vec<(Image, PathBuf)>> = Mutex::new(Vec::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.iter().any(|(kind, _)| *kind == self) {
            // Goes away with everything else of this run.
            let directory = std::mem::ManuallyDrop::new(Scratch::new()?).path().to_path_buf();
            self.fill(&directory)?;
            made.push((self, directory));
        }
        let original = made.iter().find(|(kind, _)| *kind == self).map(|(_, path)| path);
        let original = original.ok_or_else(|| Stop::fail("no image"))?;
        tree(&["-al"], original, root)
    }

    fn fill(self, root: &Path) -> Result {
        if self == Self::Debian11 {
            return older(root, "debian-11");
        }
        empty(root)?;
        if self == Self::Static {
            return copy(
                &Program::new("waits").flags(&["-static"]).build()?,
                root,
                "actor".as_ref(),
            );
        }
        add(root, &Program::new("actor").build()?, "actor")?;
        add_tools(root, &TOOLS)?;
        let stub = Build::shipped()?.stub_directory()?;
        for library in DRIVER {
            add(root, &stub.join(library), &format!("{LIBRARIES}/{library}"))?;
        }
        // What the library under test needs as it was built here; as it ships, nothing more.
        add_needed(root, &Build::shipped()?.shim()?)?;
        if self == Self::Old { age(root) } else { Ok(()) }
    }
}

/// A system that `ci/systems` fetched, with the actor and the stub driver: all for a machine of its time.
fn older(root: &Path, system: &str) -> Result {
    let stub = Build::for_old_machines()?.stub_directory()?;
    let cache = env::var_os("GPUCAP_SYSTEMS")
        .map_or_else(|| project().join("target/systems"), PathBuf::from);
    let system = cache.join(system);
    if !system.exists() {
        return Err(Stop::skip(format!("no {}: run ci/systems", system.display())));
    }
    let actor = Program::new("actor").compiler(Compiler::OldGlibc).build()?;
    tree(&["-a"], &system, root)?;
    for directory in DIRECTORIES {
        fs::create_dir_all(root.join(directory))?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    copy(&actor, root, "actor".as_ref())?;
    DRIVER
        .iter()
        .try_for_each(|name| copy(&stub.join(name), root, &Path::new(LIBRARIES).join(name)))
}

/// Copies what lies in a directory into another.
fn tree(how: &[&str], from: &Path, to: &Path) -> Result {
    ended(Command::new("cp").args(how).arg("-T").args([from, to])).map(drop)
}

/// Has the C library name no version of our time.
fn age(root: &Path) -> Result {
    let libraries = needed(Path::new("/bin/cat"))?;
    let library = libraries.iter().find(|path| path.ends_with("libc.so.6"));
    let library =
        inside(root, library.ok_or_else(|| Stop::skip("cat is not linked with libc.so.6"))?);
    let mut bytes = fs::read(&library)?;
    let version = b"GLIBC_2.";
    let places: Vec<usize> = bytes
        .windows(version.len())
        .enumerate()
        .filter(|(_, it)| it == version)
        .map(|(at, _)| at)
        .collect();
    for at in places {
        bytes[at + version.len() - 2] = b'1';
    }
    Ok(fs::write(library, bytes)?)
}

/// An archive of this root under a name, as `docker save` writes it. Without a command of its own it sleeps.
pub(crate) fn archive(root: &Path, name: &str) -> Result<PathBuf> {
    archive_that_runs(root, name, &["sleep"], &["infinity"])
}

/// The same, with this program and its words.
pub(crate) fn archive_that_runs(
    root: &Path,
    name: &str,
    program: &[&str],
    words: &[&str],
) -> Result<PathBuf> {
    let place = root.with_extension("archive");
    fs::create_dir(&place)?;
    let tar = |directory: &Path, file: &Path| -> Result {
        let mut tar = Command::new("tar");
        ended(
            tar.args(["--owner=0", "--group=0", "-cf"]).arg(file).arg("-C").arg(directory).arg("."),
        )
        .map(drop)
    };
    // Other tests make links to its files in the mean time, which tar takes for a change.
    let (layer, copy) = (place.join("layer.tar"), root.with_extension("copy"));
    tree(&["-a"], root, &copy)?;
    tar(&copy, &layer)?;
    let sum = ended(Command::new("sha256sum").arg(&layer))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let config = json!({
        "architecture": "amd64", "os": "linux",
        "config": {
            "Entrypoint": program, "Cmd": words,
            "Env": ["PATH=/bin", "STUB_GPU_DIR=/tmp", "STUB_GPU_CONTEXT_MEM=0"],
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{sum}")]},
    });
    fs::write(place.join("config.json"), config.to_string())?;
    let manifest = json!([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]);
    fs::write(place.join("manifest.json"), manifest.to_string())?;
    let file = root.with_extension("tar");
    tar(&place, &file)?;
    [place, copy].iter().try_for_each(fs::remove_dir_all)?;
    Ok(file)
}

/// What a tool of this machine prints, which has to succeed.
fn ended(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Stop::fail(String::from_utf8_lossy(&output.stderr)))
    }
}

/// Adds a real driver's nvidia-smi.
pub(crate) fn add_nvidia_smi(root: &Path, driver: &Driver) -> Result {
    add(root, &driver.nvidia_smi()?, "bin/nvidia-smi")
}

/// The same, where the image has a C library of its own.
pub(crate) fn add_nvidia_smi_alone(root: &Path, driver: &Driver) -> Result {
    copy(&driver.nvidia_smi()?, root, Path::new("bin/nvidia-smi"))
}

/// Adds a program or library with all the libraries that it needs.
pub(crate) fn add(root: &Path, file: &Path, name: &str) -> Result {
    copy(file, root, Path::new(name))?;
    add_needed(root, file)
}

/// Adds all the libraries that a program or library needs.
pub(crate) fn add_needed(root: &Path, file: &Path) -> Result {
    needed(file)?.iter().try_for_each(|path| copy(path, root, path))
}

fn empty(root: &Path) -> Result {
    for directory in DIRECTORIES {
        fs::create_dir_all(root.join(directory))?;
    }
    // A runtime may take over these rights for what it mounts there.
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    // As in every image of today, so that the way to the loader is one of links.
    for (name, target) in [("lib64", "usr/lib64"), ("lib", "usr/lib")] {
        fs::create_dir_all(root.join(target))?;
        symlink(target, root.join(name))?;
    }
    Ok(())
}

fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn copy(file: &Path, root: &Path, name: &Path) -> Result {
    let place = inside(root, name);
    if place.exists() {
        return Ok(());
    }
    fs::create_dir_all(place.parent().unwrap_or(root))?;
    fs::copy(file, &place)?;
    Ok(())
}

/// The libraries that a file needs, the loader among them, by their paths here.
fn needed(file: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("ldd").arg(file).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths =
        text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(PathBuf::from).collect())
}

/// Adds programs of this machine.
pub(crate) fn add_tools(root: &Path, tools: &[&str]) -> Result {
    tools.iter().try_for_each(|tool| add(root, &tool_path(tool)?, &format!("bin/{tool}")))
}

fn tool_path(tool: &str) -> Result<PathBuf> {
    let places = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(tool));
    places
        .into_iter()
        .find(|path| path.exists())
        .ok_or_else(|| Stop::skip(format!("no {tool} here")))
}
