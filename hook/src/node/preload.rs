//! The paths of `libgpucap.so` and its companions, and how `LD_PRELOAD` is set to name it.
//!
//! The library is looked for beside the command (a build), in `../lib` and `../lib/gpucap` (an installation below any
//! prefix), then in `/usr/lib/gpucap`. No variable names another place: one that pointed at a wrong file would be a limit
//! that silently is none.

use crate::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file that is preloaded.
pub(crate) const LIBRARY: &str = "libgpucap.so";

/// The possible paths of an installed file if the command is `program`.
fn places(program: &Path, file: &str) -> Vec<PathBuf> {
    let beside = program.parent().unwrap_or_else(|| Path::new("/"));
    let prefix = beside.parent().unwrap_or_else(|| Path::new("/"));
    let mut places = vec![
        beside.join(file),
        prefix.join("lib").join(file),
        prefix.join("lib/gpucap").join(file),
        Path::new("/usr/lib/gpucap").join(file),
    ];
    places.dedup();
    places
}

/// The library of the command `program`.
///
/// # Errors
/// If it is not found, or in a path that `LD_PRELOAD` cannot name.
pub(crate) fn library(program: &Path) -> Result<PathBuf> {
    let library = find(program).map_err(Error::NoLibrary)?;
    let bytes = library.as_os_str().as_bytes();
    match bytes.iter().copied().find(|&byte| is_separator(byte)) {
        Some(sign) => Err(Error::Unloadable { library, sign: char::from(sign) }),
        None => Ok(library),
    }
}

/// The same, whatever `LD_PRELOAD` can name; the places, if it is in none of them.
pub(crate) fn find(program: &Path) -> std::result::Result<PathBuf, Vec<PathBuf>> {
    find_named(program, LIBRARY)
}

/// The path of another installed file, beside the library.
pub(crate) fn find_named(program: &Path, file: &str) -> std::result::Result<PathBuf, Vec<PathBuf>> {
    let places = places(program, file);
    places.iter().find(|place| place.is_file()).cloned().ok_or(places)
}

/// Whether the value of `LD_PRELOAD`, or the text of `/etc/ld.so.preload`, names a file of our name: the path. Only a
/// whole path counts: where the loader would find a bare name, cannot be known here.
pub(crate) fn named(list: &OsStr) -> Option<&Path> {
    list.as_bytes()
        .split(|&byte| is_separator(byte) || byte == b'\n' || byte == b'\t')
        .map(|word| Path::new(OsStr::from_bytes(word)))
        .find(|path| path.is_absolute() && path.file_name() == Some(OsStr::new(LIBRARY)))
}

/// `LD_PRELOAD` with the library in front of its current value.
pub(crate) fn joined(list: Option<&OsStr>, library: &Path) -> OsString {
    let mut joined = library.as_os_str().to_owned();
    if let Some(list) = list.filter(|list| !list.is_empty()) {
        joined.push(":");
        joined.push(list);
    }
    joined
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b':' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_preloaded_already_stays_behind_the_library() {
        let library = Path::new("/a/libgpucap.so");
        for (before, after) in [
            (None, "/a/libgpucap.so"),
            (Some(""), "/a/libgpucap.so"),
            (Some("libx.so /y/z.so"), "/a/libgpucap.so:libx.so /y/z.so"),
        ] {
            assert_eq!(joined(before.map(OsStr::new), library), after);
        }
    }

    #[test]
    fn the_library_is_found_in_a_list() {
        let found = |list: &str| named(OsStr::new(list)).map(Path::to_path_buf);
        let library = Some(PathBuf::from("/a/libgpucap.so"));
        assert_eq!(found("/a/libgpucap.so"), library);
        assert_eq!(found("libx.so:/a/libgpucap.so"), library);
        assert_eq!(found("libx.so /a/libgpucap.so libz.so"), library);
        assert_eq!(found("/etc/x.so\n/a/libgpucap.so\n"), library);
        for list in
            ["", "libgpucap.so", "/a/libgpucap.so.old", "/a/xlibgpucap.so", "a/libgpucap.so"]
        {
            assert_eq!(found(list), None, "{list}");
        }
    }

    #[test]
    fn the_library_beside_the_command_comes_first() {
        let places = places(Path::new("/opt/x/bin/gpucap"), LIBRARY);
        let expected = ["/opt/x/bin/", "/opt/x/lib/", "/opt/x/lib/gpucap/", "/usr/lib/gpucap/"];
        assert_eq!(places, expected.map(|place| PathBuf::from(place.to_owned() + LIBRARY)));
    }
}
