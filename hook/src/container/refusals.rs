//! How many containers the hook has refused, by reason: what remains of a refusal, for `gpucap metrics`.
//!
//! ```text
//! <run_dir>/refused/REASON       as many bytes as refusals; for root alone
//! ```
//!
//! A refusal is one byte that is appended: no lock, nothing to be read, and a hook that is killed leaves no half count.
//! A file that has [`LONGEST`] bytes starts over, as a counter of Prometheus may. The directory is in memory as a rule, so
//! the counts begin at zero with each boot.

use crate::sys::at::{self, OFlags};
use gpucap_plan::Node;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The most that is counted of one reason before its count starts over: 256 KiB.
const LONGEST: u64 = 1 << 18;

/// The directory, open: also from within a container's namespace.
#[derive(Debug)]
pub(crate) struct Refusals(File);

impl Refusals {
    /// Opens it, after making it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(path)?;
        super::root::open_directory(path).map(Self)
    }

    /// Counts a refusal.
    pub(crate) fn count(&self, reason: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
        let mut file = at::open(&self.0, &CString::new(reason)?, flags, 0o600)?;
        if file.metadata()?.len() >= LONGEST {
            file.set_len(0)?;
        }
        file.write_all(b"x")
    }
}

/// How many containers were refused for each of the reasons.
pub(crate) fn all(directory: &Path, reasons: &[&'static str]) -> Vec<(&'static str, u64)> {
    let count = |reason: &str| {
        let metadata = fs::symlink_metadata(directory.join(reason));
        metadata.ok().filter(fs::Metadata::is_file).map_or(0, |file| file.len())
    };
    reasons.iter().map(|&reason| (reason, count(reason))).collect()
}

/// The directory of the counts.
pub(crate) fn directory(node: &Node) -> PathBuf {
    Path::new(&node.run_dir).join("refused")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_counted_once_and_a_full_count_starts_over() {
        let path = std::env::temp_dir().join(format!("gpucap-refused-{}", std::process::id()));
        assert_eq!(all(&path, &["image"]), [("image", 0)]);
        let refusals = Refusals::open(&path).expect("a directory");
        for reason in ["image", "request", "image"] {
            refusals.count(reason).expect("counted");
        }
        let reasons = ["request", "policy", "image"];
        assert_eq!(all(&path, &reasons), [("request", 1), ("policy", 0), ("image", 2)]);
        File::create(path.join("image")).and_then(|it| it.set_len(LONGEST)).expect("a full count");
        refusals.count("image").expect("counted");
        assert_eq!(all(&path, &["image"]), [("image", 1)]);
        fs::remove_dir_all(path).expect("removed");
    }
}
