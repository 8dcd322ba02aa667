//! Where the clients are, if they are.

use gpucap_tests::{Result, Stop, project};
use std::env;
use std::fs;
use std::path::PathBuf;

/// The Python that has this package.
pub(crate) fn python(package: &str) -> Result<PathBuf> {
    let venv = cache().join("venv");
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
pub(crate) fn nvtop() -> Result<PathBuf> {
    let path = cache().join("nvtop/usr/bin/nvtop");
    if path.exists() { Ok(path) } else { Err(missing("nvtop")) }
}

/// A script of ours that a client's Python runs.
pub(crate) fn script(name: &str) -> PathBuf {
    project().join("tests/clients").join(name)
}

fn cache() -> PathBuf {
    env::var_os("GPUCAP_CLIENTS").map_or_else(|| project().join("target/clients"), PathBuf::from)
}

fn missing(client: &str) -> Stop {
    Stop::skip(format!("no {client}: run ci/clients"))
}
