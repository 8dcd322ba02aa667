//! The archive of a release, as `ci/release` makes it: of this build's files, or a real one.
//!
//! `ci/run --full release` builds a real one and names it in `GPUCAP_RELEASE`. One of this build's files has no notices of
//! what others wrote, and is made once for all tests of a binary.

use crate::{Build, Result, Scratch, Stop, project};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The name of the archive.
pub const ARCHIVE: &str = concat!("gpucap-", env!("CARGO_PKG_VERSION"), "-x86_64-linux.tar.gz");

/// The archive of a real release, if one is tested.
#[must_use]
pub fn real() -> Option<PathBuf> {
    env::var_os("GPUCAP_RELEASE").map(PathBuf::from)
}

/// Makes the archive of this build's files in a directory.
///
/// # Errors
/// If `ci/release` fails.
pub fn make(output: &Path) -> Result {
    let gpucap = Build::shipped()?.gpucap()?;
    let mut release = Command::new(project().join("ci/release"));
    release.arg("--from").args(gpucap.parent()).arg("--output").arg(output);
    succeeds(&mut release)
}

/// Unpacks the release that is tested into a directory of one test; its root there.
///
/// # Errors
/// If it cannot be made or unpacked.
pub fn unpacked(scratch: &Scratch) -> Result<PathBuf> {
    static RELEASE: OnceLock<Result<Scratch>> = OnceLock::new();
    let own = || {
        let scratch = Scratch::new()?;
        make(scratch.path())?;
        Ok(scratch)
    };
    let archive = match real() {
        Some(archive) => archive,
        None => RELEASE.get_or_init(own).as_ref().map_err(Stop::clone)?.path().join(ARCHIVE),
    };
    succeeds(Command::new("tar").arg("-C").arg(scratch.path()).arg("-xzf").arg(archive))?;
    Ok(scratch.path().join(concat!("gpucap-", env!("CARGO_PKG_VERSION"))))
}

fn succeeds(command: &mut Command) -> Result {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    Err(Stop::fail(format!("{command:?}: {}: {text}", output.status)))
}
