//! Kubernetes' own programs: where they are.
//!
//! A user has them from a release of Kubernetes (`kubernetes-server-linux-amd64.tar.gz`) in a folder that `KUBE_BIN`
//! names, or in `PATH`. A program that lies where the cluster has places of its own is copied to where it sees it.

use gpucap_tests::{Result, Scratch, Stop, fetched};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// All that the cluster starts.
const NAMES: [&str; 5] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"];
/// What the cluster has places of its own for.
const HIDDEN: [&str; 5] = ["/etc", "/opt", "/run", "/usr", "/var"];

/// The folder that has them.
pub(crate) struct Programs(Vec<PathBuf>);

impl Programs {
    /// Finds all of them.
    ///
    /// # Errors
    /// Skips if one is not here.
    pub(crate) fn find(scratch: &Scratch) -> Result<Self> {
        let find = |name: &str| -> Result<PathBuf> {
            let Some(folder) = env::var_os("KUBE_BIN") else { return fetched::in_path(name) };
            let program = PathBuf::from(folder).join(name);
            let missing = || Stop::skip(format!("no {}", program.display()));
            fs::canonicalize(&program).map_err(|_| missing())
        };
        // None is copied before all are found.
        NAMES.iter().try_for_each(|name| find(name).map(drop))?;
        Ok(Self(NAMES.iter().map(|name| seen(&find(name)?, scratch)).collect::<Result<_>>()?))
    }

    /// The path of one.
    pub(crate) fn path(&self, name: &str) -> String {
        let at = NAMES.iter().position(|it| *it == name);
        at.map(|at| self.0[at].display().to_string()).unwrap_or_default()
    }
}

/// Where the cluster sees a program, which may be a copy of it.
pub(crate) fn seen(program: &Path, scratch: &Scratch) -> Result<PathBuf> {
    let program = fs::canonicalize(program)?;
    if !HIDDEN.iter().any(|place| program.starts_with(place)) {
        return Ok(program);
    }
    let copy = scratch.path().join(program.file_name().unwrap_or_default());
    fs::copy(program, &copy)?;
    Ok(copy)
}
