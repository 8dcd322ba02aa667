//! Where the demo plays: its files, the driver that its programs meet, their environment.
//!
//! Everything that it makes is in one directory of its own, which is removed with it. The ledger is the exception: it
//! is in the usual place of ledgers, under a name by which a later run removes it if the demo was killed.

use super::actor;
use crate::container::ledgers::{self, Name};
use crate::error::{Error, Result};
use crate::node::preload;
use crate::node::proc::PidNamespaces;
use crate::node::proc::Process;
use crate::sys;
use gpucap_core::config::{GPUCAP_LEDGER, OPTIONS};
use gpucap_core::limits::file;
use std::ffi::OsStr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The program that prints its view of the GPU.
pub(super) const PROGRAM: &str = "gpucap-demo";

/// A set stage. Struck when dropped.
pub(super) struct Stage {
    gpucap: PathBuf,
    program: PathBuf,
    directory: PathBuf,
    /// The ledger that the limited programs share.
    pub(super) ledger: PathBuf,
    /// Why the stub driver plays; `None` if there is a real one.
    pub(super) stub: Option<String>,
}

impl Stage {
    /// Finds the programs, and a driver that works.
    ///
    /// # Errors
    /// Something is not there that was built or installed with this command.
    pub(super) fn set(stub: bool) -> Result<Self> {
        if Path::new(file::PATH).exists() {
            return Err(Error::Demo(format!(
                "{} limits this container already, so no card can be shown without a limit; see \
                 `gpucap status` and `gpucap explain`",
                file::PATH
            )));
        }
        let gpucap =
            env::current_exe().map_err(|why| Error::Demo(format!("/proc/self/exe: {why}")))?;
        preload::library(&gpucap).map_err(|error| Error::Demo(error.to_string()))?;
        let program = beside(&gpucap, PROGRAM)?;
        let name = Name::of_run(sys::uid(), Process::own())
            .map_err(|why| Error::Demo(format!("/proc/self: {why}")))?;
        let ledger = name.path();
        // The same name, since no other process ever has it.
        let directory = env::temp_dir().join(ledger.file_name().unwrap_or_default());
        let made = fs::DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|why| Error::Demo(format!("{}: {why}", directory.display())))?;
        let mut stage = Self {
            ledger,
            gpucap,
            program,
            directory,
            stub: stub.then(|| "requested with --stub".to_owned()),
        };
        ledgers::sweep();
        sweep();
        ledgers::make(&stage.ledger)
            .map_err(|why| Error::Demo(format!("{}: {why}", stage.ledger.display())))?;
        if !stub {
            let trial = actor::output(&mut stage.bare(&[]), "looking for a GPU")?;
            stage.stub = (!trial.success).then(|| trial.stderr.trim().to_owned());
        }
        if stage.stub.is_some() {
            stage.link("libcuda.so.1", "libgpucap_stub_cuda.so")?;
            stage.link("libnvidia-ml.so.1", "libgpucap_stub_nvml.so")?;
        }
        Ok(stage)
    }

    /// Gives the driver's name to one of the demo's libraries.
    fn link(&self, name: &str, library: &str) -> Result {
        let library = beside(&self.gpucap, library)?;
        symlink(library, self.directory.join(name))
            .map_err(|why| Error::Demo(format!("{}: {why}", self.directory.display())))
    }

    /// The program as it is.
    pub(super) fn bare(&self, arguments: &[&str]) -> Command {
        self.command(&self.program, arguments)
    }

    /// The program through `gpucap run` with this limit.
    pub(super) fn limited(&self, limit: u64, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.gpucap, &["run", "--mem", &limit.to_string(), "--"]);
        command.arg(&self.program).args(arguments).env(GPUCAP_LEDGER.name, &self.ledger);
        command
    }

    /// A command in the demo's environment: the user's own settings must not change the output.
    fn command(&self, file: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(file);
        command.args(arguments);
        for row in OPTIONS {
            command.env_remove(row.name);
        }
        let preloaded = env::var_os("LD_PRELOAD");
        if preloaded.as_deref().is_some_and(|list| preload::named(list).is_some()) {
            command.env_remove("LD_PRELOAD");
        }
        if self.stub.is_some() {
            let mut libraries = self.directory.clone().into_os_string();
            if let Some(others) = env::var_os("LD_LIBRARY_PATH").filter(|list| !list.is_empty()) {
                libraries.push(OsStr::new(":"));
                libraries.push(others);
            }
            command.env("LD_LIBRARY_PATH", libraries).env("STUB_GPU_DIR", &self.directory);
        }
        command
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed is a few small files in a directory for such.
        drop(fs::remove_file(&self.ledger));
        drop(fs::remove_dir_all(&self.directory));
    }
}

/// Takes the directories of demos away that were killed.
fn sweep() {
    let entries = fs::read_dir(env::temp_dir()).into_iter().flatten().flatten();
    let entries: Vec<_> = entries.collect();
    let namespaces = PidNamespaces::default();
    for entry in entries {
        let name = entry.file_name().to_str().and_then(Name::parse);
        let ours = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == sys::uid());
        if ours && name.is_some_and(|name| ledgers::maker_has_ended(name, sys::uid(), &namespaces))
        {
            // Another process may have done so in the mean time.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// A file in the directory of the command.
fn beside(gpucap: &Path, name: &str) -> Result<PathBuf> {
    let file = gpucap.with_file_name(name);
    if file.is_file() {
        return Ok(file);
    }
    Err(Error::Demo(format!("{} is not there; `cargo build --release` makes it", file.display())))
}
