//! The groups that an engine makes for a test's containers, which no namespace takes away with it.
//!
//! They lie below one whose name says which test binary it belongs to, so what a killed one left is known as such.

use crate::container::PREFIX;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// The groups below this name, in each hierarchy. Removed when dropped, which has to be when nothing runs in them.
#[derive(Debug)]
pub(crate) struct Cgroups(pub(crate) String);

impl Drop for Cgroups {
    fn drop(&mut self) {
        for group in groups().filter(|path| path.ends_with(&self.0)) {
            remove(&group);
        }
    }
}

/// Removes the groups of test binaries that have ended.
pub(crate) fn remove_left() {
    for group in groups() {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove(&group);
        }
    }
}

/// Every group of any test: at the top of each hierarchy, of which there may be one or many.
fn groups() -> impl Iterator<Item = PathBuf> {
    let tops = inner(Path::new(ROOT));
    let second: Vec<_> = tops.iter().flat_map(|top| inner(top)).collect();
    tops.into_iter().chain(second).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
    })
}

fn inner(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect()
}

/// One in which a process is ending yet stays; the next run removes it.
fn remove(group: &Path) {
    inner(group).iter().for_each(|inner| remove(inner));
    drop(fs::remove_dir(group));
}
