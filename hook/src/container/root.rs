//! A container's root directory, and a walk below it that nothing in the image can lead out of.
//!
//! Each component is opened by itself and never followed; a symlink is read, and its target is walked from the link's
//! directory or from the container's root. `..` goes back along the walk, at most to the root. So the magic links of
//! a `/proc` in the image have no effect, and a process that moves directories at the same time cannot make the walk
//! end elsewhere. This is what `openat2` offers with `RESOLVE_IN_ROOT`; kernels before 5.6 lack it, and one walk for
//! all kernels is tested on all of them.

use crate::sys::at::{self, OFlags};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// As many symlinks as the kernel itself would follow.
const MOST_LINKS: u32 = 40;

/// An open directory that is, or will be, a container's `/`.
#[derive(Debug)]
pub(crate) struct Root(File);

/// A name in a directory of the container, whatever kind of file it is.
#[derive(Debug)]
pub(crate) struct Place {
    parent: File,
    name: CString,
}

/// What a file is, whatever its name: on the host and in a container the same file has the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// That of an open file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// Opens a directory by its path in the present mount namespace; symlinks on the way are the host's own.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

impl Root {
    /// The root that an open directory is.
    pub(crate) const fn new(directory: File) -> Self {
        Self(directory)
    }

    /// Opens a path without following it (`O_PATH`), for inspection.
    pub(crate) fn open_path(&self, path: &str) -> io::Result<File> {
        Ok(self.walk(path)?.1)
    }

    /// Opens the regular file at a path for reading. `None`: another kind of file, or none.
    pub(crate) fn open(&self, path: &str) -> io::Result<Option<File>> {
        match self.walk(path) {
            Ok((place, _)) => place.open(),
            Err(why) if is_absent(&why) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The place with this name in a directory of the container.
    pub(crate) fn place(&self, directory: &str, name: &CStr) -> io::Result<Place> {
        Ok(Place { parent: self.open_path(directory)?, name: name.to_owned() })
    }

    /// All directories that are come through on the way to a directory, and that directory, each with its path. The way
    /// of a link is that to where it leads.
    pub(crate) fn way(&self, directory: &str) -> io::Result<Vec<(String, File)>> {
        let mut passed = Vec::new();
        self.walk_through(directory, &mut passed)?;
        Ok(passed)
    }

    fn walk(&self, path: &str) -> io::Result<(Place, File)> {
        self.walk_through(path, &mut Vec::new())
    }

    fn walk_through(
        &self,
        path: &str,
        passed: &mut Vec<(String, File)>,
    ) -> io::Result<(Place, File)> {
        // The directories come through; the last is where the walk is.
        let mut way = vec![self.0.try_clone()?];
        let mut names: Vec<CString> = Vec::new();
        let mut ahead = components(path.as_bytes());
        let mut links = 0;
        passed.push((shown(&names), self.0.try_clone()?));
        while let Some(next) = ahead.pop() {
            if next.as_bytes() == b".." {
                way.truncate(way.len().saturating_sub(1).max(1));
                names.pop();
                continue;
            }
            let here = way.last().ok_or(io::ErrorKind::NotFound)?;
            let found = at::open_path(here, &next)?;
            if found.metadata()?.is_symlink() {
                links += 1;
                if links > MOST_LINKS {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                let target = at::target(&found)?;
                if target.starts_with(b"/") {
                    way.truncate(1);
                    names.clear();
                }
                ahead.extend(components(&target));
            } else {
                names.push(next);
                passed.push((shown(&names), found.try_clone()?));
                way.push(found);
            }
        }
        let file = way.pop().ok_or(io::ErrorKind::NotFound)?;
        let parent = match way.pop() {
            Some(parent) => parent,
            None => self.0.try_clone()?,
        };
        let name = names.pop().unwrap_or_else(|| c".".to_owned());
        Ok((Place { parent, name }, file))
    }
}

/// A path in the container, fit for a line of a log.
fn shown(names: &[CString]) -> String {
    let names: Vec<_> =
        names.iter().map(|name| name.to_bytes().escape_ascii().to_string()).collect();
    format!("/{}", names.join("/"))
}

impl Place {
    /// A name in an open directory.
    pub(crate) fn new(directory: &File, name: &CStr) -> io::Result<Self> {
        Ok(Self { parent: directory.try_clone()?, name: name.to_owned() })
    }

    /// Opens the topmost mount at the place, for inspection.
    pub(crate) fn top(&self) -> io::Result<File> {
        at::open_path(&self.parent, &self.name)
    }

    /// The same; `None` if nothing is there.
    pub(crate) fn found(&self) -> io::Result<Option<File>> {
        match self.top() {
            Err(why) if is_absent(&why) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The directory.
    pub(crate) const fn parent(&self) -> &File {
        &self.parent
    }

    /// The name in it.
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    /// Opens the regular file at the place for reading. `None`: another kind of file, or none.
    pub(crate) fn open(&self) -> io::Result<Option<File>> {
        match self.top() {
            Ok(there) if there.metadata()?.is_file() => {
                // Between looking and opening it may have become a fifo.
                let file = at::open(&self.parent, &self.name, OFlags::NONBLOCK, 0)?;
                Ok(file.metadata()?.is_file().then_some(file))
            }
            Ok(_) => Ok(None),
            Err(why) if is_absent(&why) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Ensures that the place is a directory; anything else is removed. The directory's content may stay: it will be
    /// mounted over.
    pub(crate) fn make_directory(&self) -> io::Result<()> {
        match self.top() {
            Ok(there) if there.metadata()?.is_dir() => return Ok(()),
            Ok(_) => at::remove(&self.parent, &self.name, false)?,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
        at::make_directory(&self.parent, &self.name)
    }

    /// Ensures that the place is a regular file; anything else is removed.
    pub(crate) fn make_file(&self) -> io::Result<()> {
        match self.top() {
            Ok(there) => {
                let metadata = there.metadata()?;
                if metadata.is_file() {
                    return Ok(());
                }
                at::remove(&self.parent, &self.name, metadata.is_dir())?;
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
        at::create(&self.parent, &self.name, 0o644).map(drop)
    }
}

/// Reads a file of the container to its end, which has to be near.
pub(crate) fn read(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The components of a path, last first.
fn components(path: &[u8]) -> Vec<CString> {
    let names = path.split(|&byte| byte == b'/').rev();
    // A name with a zero byte cannot come from the kernel, nor from us.
    names
        .filter(|name| !name.is_empty() && *name != b".")
        .filter_map(|name| CString::new(name).ok())
        .collect()
}

fn is_absent(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || why.raw_os_error() == Some(libc::ELOOP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// A tree of its own below the target directory.
    fn tree(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gpucap-root-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(path.join("inside/a/b")).expect("a directory");
        fs::write(path.join("secret"), "outside").expect("a file");
        fs::write(path.join("inside/a/file"), "inside").expect("a file");
        path
    }

    fn root(tree: &Path) -> Root {
        Root::new(open_directory(&tree.join("inside")).expect("the root"))
    }

    fn text(root: &Root, path: &str) -> Option<String> {
        let file = root.open(path).expect("a path that can be walked")?;
        Some(String::from_utf8(read(file, 100).expect("a short file")).expect("text"))
    }

    #[test]
    fn no_link_leads_out_of_the_root() {
        let tree = tree("out");
        let secret = tree.join("secret");
        symlink(&secret, tree.join("inside/absolute")).expect("a link");
        symlink("../secret", tree.join("inside/up")).expect("a link");
        symlink("../../../../../../../etc/passwd", tree.join("inside/a/far")).expect("a link");
        symlink("/proc/self/root", tree.join("inside/magic")).expect("a link");
        let root = root(&tree);
        for path in ["absolute", "up", "../secret", "a/../../secret", "a/far", "magic/etc/passwd"] {
            assert_eq!(text(&root, path), None, "{path}");
        }
        fs::remove_dir_all(tree).expect("removed");
    }

    #[test]
    fn links_inside_the_root_are_followed() {
        let tree = tree("in");
        symlink("/a", tree.join("inside/whole")).expect("a link");
        symlink("../file", tree.join("inside/a/b/up")).expect("a link");
        symlink("loop", tree.join("inside/loop")).expect("a link");
        let root = root(&tree);
        for path in ["a/file", "/a/./file", "whole/file", "a/b/up", "whole/b/../b/up"] {
            assert_eq!(text(&root, path).as_deref(), Some("inside"), "{path}");
        }
        for path in ["loop", "a", "a/file/x", "a/none"] {
            assert_eq!(text(&root, path), None, "{path}");
        }
        fs::remove_dir_all(tree).expect("removed");
    }

    #[test]
    fn what_is_in_the_way_of_a_place_is_taken_away() {
        let tree = tree("place");
        let inside = tree.join("inside");
        symlink(tree.join("secret"), inside.join("link")).expect("a link");
        symlink("/nowhere", inside.join("a/link")).expect("a link");
        fs::create_dir(inside.join("empty")).expect("a directory");
        let root = root(&tree);
        let place = |directory, name| root.place(directory, name).expect("a directory");
        place("", c"link").make_file().expect("a file");
        place("a", c"link").make_directory().expect("a directory");
        place("", c"empty").make_file().expect("a file");
        place("a", c"file").make_directory().expect("a directory");
        let kind = |path: &str| fs::symlink_metadata(inside.join(path)).expect("there").file_type();
        assert!(kind("link").is_file() && kind("empty").is_file());
        assert!(kind("a/link").is_dir() && kind("a/file").is_dir());
        assert_eq!(fs::read_to_string(tree.join("secret")).expect("a file"), "outside");
        assert!(place("", c"a").make_file().is_err(), "a directory with something in it stays");
        fs::remove_dir_all(tree).expect("removed");
    }
}
