//! The files of a node, installed beside one another: the command, the library, and `gpucap-driver`, which finds a stub
//! driver of the test's choice.
//!
//! The command starts that program with an environment of its own making, so the choice is made by a script in its
//! place. Of the environment that it was given it keeps a list in [`Installation::asked`].

use crate::{Build, Driver, Result, Stop};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of a node.
#[derive(Debug)]
pub struct Installation {
    directory: PathBuf,
}

impl Installation {
    /// Installs them into a new directory.
    ///
    /// # Errors
    /// If they are not built or cannot be put there.
    pub fn new(directory: &Path) -> Result<Self> {
        let build = Build::shipped()?;
        fs::create_dir(directory)?;
        // The command looks for the others beside itself, wherever a link would lead.
        put(&build.gpucap()?, &directory.join("gpucap"))?;
        symlink(build.shim()?, directory.join("libgpucap.so"))?;
        let installation = Self { directory: directory.to_owned() };
        installation.driver(&[])?;
        Ok(installation)
    }

    /// The command.
    #[must_use]
    pub fn gpucap(&self) -> PathBuf {
        self.directory.join("gpucap")
    }

    /// The directory of the driver's card, for programs that are to meet the same one.
    #[must_use]
    pub fn card(&self) -> PathBuf {
        self.directory.join("card")
    }

    /// From now on the driver has these settings of the stub.
    ///
    /// # Errors
    /// If they cannot be written down.
    pub fn driver(&self, settings: &[(&str, &str)]) -> Result {
        let program = Build::shipped()?.driver()?;
        let libraries = Driver::Stub.libraries()?.unwrap_or_default();
        let exports: String =
            settings.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
        self.script(&format!(
            "export LD_LIBRARY_PATH={} STUB_GPU_DIR={}\n{exports}exec {} \"$@\"",
            libraries.display(),
            self.card().display(),
            program.display(),
        ))
    }

    /// From now on there is this in the place of the program that asks the driver.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn script(&self, body: &str) -> Result {
        let path = self.directory.join("gpucap-driver");
        let asked = self.directory.join("asked");
        let text =
            format!("#!/bin/sh\n{{ echo \"asked $*\"; env; }} >>{}\n{body}\n", asked.display());
        let source = path.with_extension("sh");
        fs::write(&source, text)?;
        put(&source, &path)
    }

    /// With which words and in which environment that program was started, each time.
    #[must_use]
    pub fn asked(&self) -> String {
        fs::read_to_string(self.directory.join("asked")).unwrap_or_default()
    }
}

/// Puts a program there, in place of the one that is. Another process writes it: a child that is forked off here for
/// another test in the mean time would hold it open for writing, and then it cannot be executed.
fn put(from: &Path, to: &Path) -> Result {
    let output = Command::new("install").args(["-m", "755"]).arg(from).arg(to).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Stop::fail(String::from_utf8_lossy(&output.stderr)))
    }
}
