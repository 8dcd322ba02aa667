//! Which mounts are gpucap's, by a process's `mountinfo`.
//!
//! They are told by the place at which they are mounted. The other fields have paths of the machine, such as that of
//! this checkout, in which any word may stand.

use std::path::Path;

/// The lines of gpucap's mounts: at their places in a container's root, or in the root of one as the machine sees it.
pub(crate) fn ours(mountinfo: &str) -> Vec<&str> {
    let is_ours = |line: &&str| {
        let place = Path::new(line.split(' ').nth(4).unwrap_or_default());
        place.iter().any(|part| part == ".gpucap") || place.ends_with("etc/ld.so.preload")
    };
    mountinfo.lines().filter(is_ours).collect()
}
