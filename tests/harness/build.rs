//! The libraries under test: where they are, and how they get there.
//!
//! Cargo is asked to build them on first use, in the profile that ships (`TEST_PROFILE` names another). With
//! `GPUCAP_ARTIFACTS` the files in that directory are taken as they are; those in its folder `triggers`, if there is
//! one, for a shim whose triggers can be taken out.

use crate::{Result, Stop, program::project};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A directory with the libraries and programs of one build.
#[derive(Debug, Clone)]
pub struct Build {
    directory: PathBuf,
}

impl Build {
    /// What ships.
    ///
    /// # Errors
    /// If cargo cannot build it.
    pub fn shipped() -> Result<&'static Self> {
        static BUILD: OnceLock<Result<Build>> = OnceLock::new();
        BUILD.get_or_init(Self::make_shipped).as_ref().map_err(Stop::clone)
    }

    /// What ships, if that is what is tested: built for old machines, the stub too.
    ///
    /// # Errors
    /// Skips if everything is built for this machine.
    pub fn for_old_machines() -> Result<&'static Self> {
        if env::var_os("GPUCAP_ARTIFACTS").is_none() {
            return Err(Stop::skip("built for this machine alone: see ci/run --full shipped"));
        }
        Self::shipped()
    }

    /// Library and command of an earlier commit: `ci/run --full versions` builds them.
    ///
    /// # Errors
    /// Skips if `GPUCAP_EARLIER` names no folder with them.
    pub fn earlier() -> Result<&'static Self> {
        static BUILD: OnceLock<Result<Build>> = OnceLock::new();
        let find = || match env::var_os("GPUCAP_EARLIER") {
            Some(directory) => Ok(Self { directory: fs::canonicalize(directory)? }),
            None => Err(Stop::skip("no earlier version is built: see ci/run --full versions")),
        };
        BUILD.get_or_init(find).as_ref().map_err(Stop::clone)
    }

    /// A shim whose triggers can be taken out by `GPUCAP_TEST_OMIT`: nothing that ships can do this.
    ///
    /// # Errors
    /// If cargo cannot build it. Skips where only what ships was carried to: on a card's machine.
    pub fn with_removable_triggers() -> Result<&'static Self> {
        static BUILD: OnceLock<Result<Build>> = OnceLock::new();
        BUILD.get_or_init(Self::make_removable).as_ref().map_err(Stop::clone)
    }

    /// The program `gpucap-dra`: the quick build, since none of its promises is about speed and the other takes minutes;
    /// that of `GPUCAP_ARTIFACTS`, if what ships is tested.
    ///
    /// # Errors
    /// If cargo cannot build it.
    pub fn dra() -> Result<PathBuf> {
        static PROGRAM: OnceLock<Result<PathBuf>> = OnceLock::new();
        let make = || {
            let build = match env::var_os("GPUCAP_ARTIFACTS") {
                Some(_) => Self::make_shipped()?,
                None => Self::cargo_with(&target_dir(), &["-p", "gpucap-dra"], None, "dev")?,
            };
            build.file("gpucap-dra")
        };
        PROGRAM.get_or_init(make).clone()
    }

    fn make_shipped() -> Result<Self> {
        if let Some(directory) = env::var_os("GPUCAP_ARTIFACTS") {
            return Ok(Self { directory: fs::canonicalize(directory)? });
        }
        Self::cargo(&target_dir(), &[], None)
    }

    fn make_removable() -> Result<Self> {
        let given =
            env::var_os("GPUCAP_ARTIFACTS").map(|directory| Path::new(&directory).join("triggers"));
        if let Some(directory) = given.filter(|directory| directory.exists()) {
            return Ok(Self { directory: fs::canonicalize(directory)? });
        }
        if !project().join("Cargo.toml").exists() {
            return Err(Stop::skip(
                "a shim that lacks parts is built of the sources, which are not here",
            ));
        }
        let flags = "--cfg gpucap_test_triggers";
        Self::cargo(&target_dir().join("triggers"), &["-p", "gpucap-shim"], Some(flags))
    }

    fn cargo(target: &Path, packages: &[&str], flags: Option<&str>) -> Result<Self> {
        let profile = env::var("TEST_PROFILE").unwrap_or_else(|_| "release".into());
        Self::cargo_with(target, packages, flags, &profile)
    }

    fn cargo_with(
        target: &Path,
        packages: &[&str],
        flags: Option<&str>,
        profile: &str,
    ) -> Result<Self> {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(project()).args(["build", "--quiet", "--profile", profile]);
        cargo.args(packages).env("CARGO_TARGET_DIR", target);
        // What cargo has set for this program. The build script of `ring` takes it for a change, here and in the next build
        // by hand: all that stands on it was built again each time, for minutes.
        let of_this = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        };
        env::vars_os().map(|(name, _)| name).filter(of_this).for_each(|name| {
            cargo.env_remove(name);
        });
        if let Some(flags) = flags {
            cargo.env("RUSTFLAGS", flags);
        }
        let output = cargo.output()?;
        if !output.status.success() {
            return Err(Stop::fail(format!(
                "cargo build: {}",
                String::from_utf8_lossy(&output.stderr)
            )));
        }
        let folder = if profile == "dev" { "debug" } else { profile };
        Ok(Self { directory: target.join(folder) })
    }

    /// `libgpucap.so`.
    ///
    /// # Errors
    /// If the build did not make it.
    pub fn shim(&self) -> Result<PathBuf> {
        self.file("libgpucap.so")
    }

    /// The program `gpucap`.
    ///
    /// # Errors
    /// If the build did not make it.
    pub fn gpucap(&self) -> Result<PathBuf> {
        self.file("gpucap")
    }

    /// The program `gpucap-driver`.
    ///
    /// # Errors
    /// If the build did not make it.
    pub fn driver(&self) -> Result<PathBuf> {
        self.file("gpucap-driver")
    }

    /// A directory in which the stub driver has the real one's file names.
    ///
    /// # Errors
    /// If the build did not make the stub.
    pub fn stub_directory(&self) -> Result<&'static Path> {
        static DIRECTORY: OnceLock<Result<PathBuf>> = OnceLock::new();
        let make = || {
            let directory = crate::scratch::shared()?.join("stub");
            fs::create_dir_all(&directory)?;
            for (library, names) in [
                ("libgpucap_stub_cuda.so", ["libcuda.so", "libcuda.so.1"]),
                ("libgpucap_stub_nvml.so", ["libnvidia-ml.so", "libnvidia-ml.so.1"]),
            ] {
                let library = self.file(library)?;
                for name in names {
                    symlink(&library, directory.join(name))?;
                }
            }
            Ok(directory)
        };
        DIRECTORY.get_or_init(make).as_deref().map_err(Stop::clone)
    }

    fn file(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        if path.exists() {
            Ok(path)
        } else {
            Err(Stop::fail(format!("{} was not built", path.display())))
        }
    }
}

/// Cargo's target directory: the test binary lies in `<target>/<profile>/deps`.
pub(crate) fn target_dir() -> PathBuf {
    let from_exe = || Some(env::current_exe().ok()?.ancestors().nth(3)?.to_path_buf());
    from_exe().unwrap_or_else(|| project().join("target"))
}
