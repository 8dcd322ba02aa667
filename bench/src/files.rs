//! The files that a bench needs: the shim as it ships, the null driver, the clients.
//!
//! The shim is built as it ships, for old machines, if cargo-zigbuild is there; a plain build is the
//! same code, but needs one library more. With `GPUCAP_ARTIFACTS`, the library in that directory is
//! taken as it is. The C files are compiled into a directory of this run, which
//! goes away with the value, as does the one in shared memory where the ledgers lie.

use crate::run::{Effort, Result, Stop};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// Everything that is built for a run.
#[derive(Debug)]
pub struct Files {
    /// `libgpucap.so`.
    pub shim: PathBuf,
    /// The directory with the null driver, under the real one's name.
    pub driver: PathBuf,
    /// The client that obeys.
    pub client: PathBuf,
    /// A program that ends at once.
    pub idle: PathBuf,
    /// A library with nothing in it.
    pub empty: PathBuf,
    /// How the shim was built.
    pub shim_build: &'static str,
    programs: PathBuf,
    ledgers: PathBuf,
}

impl Files {
    /// Builds everything.
    ///
    /// # Errors
    /// If a compiler is missing or refuses.
    pub fn build(effort: Effort) -> Result<Self> {
        let programs = target()?.join(format!("tmp/bench-{}", process::id()));
        let ledgers = PathBuf::from(format!("/dev/shm/gpucap-bench-{}", process::id()));
        fs::create_dir_all(&programs)?;
        fs::create_dir_all(&ledgers)?;
        let (shim, shim_build) = shim(effort)?;
        let files = Self {
            shim,
            shim_build,
            driver: programs.clone(),
            client: programs.join("client"),
            idle: programs.join("idle"),
            empty: programs.join("empty.so"),
            programs,
            ledgers,
        };
        let library = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"];
        compile(&["null/cuda.c"], &files.driver.join("libcuda.so.1"), &library)?;
        compile(&["client/empty.c"], &files.empty, &["-shared", "-fPIC"])?;
        compile(&["client/idle.c"], &files.idle, &[])?;
        let client = [
            "client/client.c",
            "client/crowd.c",
            "client/memory.c",
            "client/families.c",
            "client/launch.c",
            "client/lookup.c",
            "client/share.c",
        ];
        compile(&client, &files.client, &["-pthread", "-ldl"])?;
        Ok(files)
    }

    /// The command `gpucap`, built as it is for this machine.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn gpucap(&self) -> Result<PathBuf> {
        if let Some(directory) = env::var_os("GPUCAP_ARTIFACTS") {
            return Ok(fs::canonicalize(directory)?.join("gpucap"));
        }
        let target = target()?;
        cargo("build", &["--release", "-p", "gpucap-hook"], &target)?;
        Ok(target.join("release/gpucap"))
    }

    /// A directory in which the stub driver of the tests has the real one's file names: a card whose kernels take time.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn stub(&self) -> Result<PathBuf> {
        let libraries = if let Some(directory) = env::var_os("GPUCAP_ARTIFACTS") {
            fs::canonicalize(directory)?
        } else {
            let target = target()?;
            let packages = ["-p", "gpucap-stub-cuda", "-p", "gpucap-stub-nvml"];
            cargo("build", &[&["--release"], &packages[..]].concat(), &target)?;
            target.join("release")
        };
        let directory = self.programs.join("stub");
        fs::create_dir_all(&directory)?;
        for (library, name) in [
            ("libgpucap_stub_cuda.so", "libcuda.so.1"),
            ("libgpucap_stub_nvml.so", "libnvidia-ml.so.1"),
        ] {
            let library = libraries.join(library);
            if !library.exists() {
                return Err(Stop::Skip(format!("{} is not there", library.display())));
            }
            symlink(library, directory.join(name))?;
        }
        Ok(directory)
    }

    /// The path of a ledger that only users of the same name share, or of something else that belongs into memory.
    #[must_use]
    pub fn ledger(&self, name: &str) -> PathBuf {
        self.ledgers.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed does no harm.
        drop(fs::remove_dir_all(&self.programs));
        drop(fs::remove_dir_all(&self.ledgers));
    }
}

/// The project's root.
#[must_use]
pub fn project() -> &'static Path {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.parent().unwrap_or(bench)
}

/// Cargo's target directory: this program lies in `<target>/<profile>`.
fn target() -> Result<PathBuf> {
    let own = env::current_exe()?;
    own.ancestors().nth(2).map(Path::to_path_buf).ok_or_else(|| Stop::fail("no target directory"))
}

/// The library and how it was built.
fn shim(effort: Effort) -> Result<(PathBuf, &'static str)> {
    let target = target()?;
    let (directory, build) = if let Some(directory) = env::var_os("GPUCAP_ARTIFACTS") {
        (fs::canonicalize(directory)?, "as given")
    } else if effort == Effort::Full && zigbuild(&["--help"], &target).is_ok() {
        zigbuild(&["--release", "--target", SHIPPED, "-p", "gpucap-shim"], &target)?;
        (target.join("x86_64-unknown-linux-gnu/release"), "as shipped")
    } else {
        cargo("build", &["--release", "-p", "gpucap-shim"], &target)?;
        (target.join("release"), "plain build")
    };
    let shim = directory.join("libgpucap.so");
    if shim.exists() { Ok((shim, build)) } else { Err(Stop::fail("libgpucap.so was not built")) }
}

/// As `ci/run symbols` builds it.
const SHIPPED: &str = "x86_64-unknown-linux-gnu.2.17";

fn zigbuild(arguments: &[&str], target: &Path) -> Result {
    cargo("zigbuild", arguments, target)
}

fn cargo(command: &str, arguments: &[&str], target: &Path) -> Result {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(project()).env("CARGO_TARGET_DIR", target);
    run(cargo.arg(command).args(arguments))
}

fn compile(sources: &[&str], output: &Path, flags: &[&str]) -> Result {
    let mut cc = Command::new("cc");
    cc.current_dir(project().join("bench"));
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-D_GNU_SOURCE"]);
    cc.args(["-I", "../include"]).args(sources).arg("-o").arg(output).args(flags);
    run(&mut cc)
}

fn run(command: &mut Command) -> Result {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Stop::fail(format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Stop::fail(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))))
}
