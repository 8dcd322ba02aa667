//! Directories that last as long as a test, or as the test binary.

use crate::{Result, build};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new, empty directory.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = shared()?.join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// Where it lies; absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now goes with the shared directory.
        drop(fs::remove_dir_all(&self.path));
    }
}

/// How the directory of a run begins; its process number follows.
const PREFIX: &str = "harness-";
static SHARED: OnceLock<PathBuf> = OnceLock::new();

/// The directory of this test binary's run. It lies in the target directory: /tmp may forbid programs.
pub(crate) fn shared() -> Result<&'static Path> {
    let path = SHARED.get_or_init(|| {
        let place = build::target_dir().join("tmp");
        remove_left(&place);
        place.join(format!("{PREFIX}{}", std::process::id()))
    });
    fs::create_dir_all(path)?;
    Ok(path)
}

/// Removes what runs left that were killed.
fn remove_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let run = name.strip_prefix(PREFIX);
        if run.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Removes everything that this run left.
pub(crate) fn remove_shared() {
    if let Some(path) = SHARED.get() {
        drop(fs::remove_dir_all(path));
    }
}
