//! Where things of other people are, if they have been fetched: `ci/clients`, `ci/engines`.

use crate::{Result, Stop, project};
use std::env;
use std::fs;
use std::path::PathBuf;

/// The Python that has this package.
///
/// # Errors
/// Skips if it has not been fetched.
pub fn python(package: &str) -> Result<PathBuf> {
    let venv = clients().join("venv");
    let libraries = fs::read_dir(venv.join("lib")).into_iter().flatten().flatten();
    let packages = libraries.flat_map(|python| fs::read_dir(python.path().join("site-packages")));
    let start = format!("{}-", package.replace('-', "_"));
    let has = packages.flatten().flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(&start) && name.ends_with(".dist-info")
    });
    if has { Ok(venv.join("bin/python")) } else { Err(missing(package)) }
}

/// Debian's nvtop.
///
/// # Errors
/// Skips if it has not been fetched.
pub fn nvtop() -> Result<PathBuf> {
    program("nvtop", "usr/bin/nvtop")
}

/// A program of a client, by its path below the client's folder.
///
/// # Errors
/// Skips if it has not been fetched.
pub fn program(client: &str, path: &str) -> Result<PathBuf> {
    let program = clients().join(client).join(path);
    if program.exists() { Ok(program) } else { Err(missing(client)) }
}

/// The folder of a client, which has what it needs in `libraries`.
///
/// # Errors
/// Skips if it has not been fetched.
pub fn tree(client: &str) -> Result<PathBuf> {
    let tree = clients().join(client);
    if tree.join("libraries").exists() { Ok(tree) } else { Err(missing(client)) }
}

/// The userland of a Debian release that has this program, by its path below it.
///
/// # Errors
/// Skips if it has not been fetched.
pub fn userland(release: &str, program: &str) -> Result<PathBuf> {
    let tree = cache("GPUCAP_ENGINES", "target/engines").join(release);
    let has = tree.join(program).exists();
    if has {
        Ok(tree)
    } else {
        Err(Stop::skip(format!("no {program} of {release}: run ci/engines")))
    }
}

/// A program that the user put in `PATH`, since no distribution that they know has it.
///
/// # Errors
/// Skips if it is not there.
pub fn in_path(program: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|place| place.join(program)).find(|it| it.is_file());
    found.ok_or_else(|| Stop::skip(format!("no {program} in PATH")))
}

fn clients() -> PathBuf {
    cache("GPUCAP_CLIENTS", "target/clients")
}

fn cache(variable: &str, default: &str) -> PathBuf {
    env::var_os(variable).map_or_else(|| project().join(default), PathBuf::from)
}

fn missing(client: &str) -> Stop {
    Stop::skip(format!("no {client}: run ci/clients"))
}
