//! Files replaced in one step: an engine that reads one at the same time sees the old or the new content, never a
//! part.
//!
//! The new file has the owner and mode of the old one and is never more readable than that, since an engine's
//! configuration may hold passwords. A symbolic link stays one: the file that it names is replaced. A failure leaves
//! the old file and nothing else.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// What a replaced file has to survive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Survives {
    /// The death of this process. For files that last as long as a container.
    Process,
    /// That of the machine, too.
    Machine,
}

/// Gives a file this content; makes it where there is none.
pub(crate) fn replace(path: &Path, content: &[u8], survives: Survives) -> io::Result<()> {
    let path = behind_links(path)?;
    let old = match fs::metadata(&path) {
        Ok(old) => Some(old),
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => return Err(why),
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".gpucap-{}", std::process::id()));
    let new = path.with_file_name(name);
    let file = create(&new, old.as_ref())?;
    let written = fill(file, content, old.as_ref(), survives)
        .and_then(|()| fs::rename(&new, &path))
        .and_then(|()| settle(&path, survives));
    if written.is_err() {
        // Gone already if only the directory could not be flushed.
        drop(fs::remove_file(&new));
    }
    written
}

/// Removes a file, or the link that stands for it.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    settle(path, Survives::Machine)
}

/// The file itself. A link to nothing is an error: which file its administrator means is not known.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(io::Error::other("a symbolic link to a file that is not there")),
            Err(_) => Ok(path.to_owned()),
        },
        other => other,
    }
}

/// A new file, which no other user can read before it has the owner and mode of the old one.
fn create(path: &Path, old: Option<&Metadata>) -> io::Result<File> {
    let mode = if old.is_some() { 0o600 } else { 0o644 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

fn fill(
    mut file: File,
    content: &[u8],
    old: Option<&Metadata>,
    survives: Survives,
) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(old) = old {
        fchown(&file, Some(old.uid()), Some(old.gid()))?;
        file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
    }
    if survives == Survives::Machine { file.sync_all() } else { Ok(()) }
}

/// Makes the change of name itself last.
fn settle(path: &Path, survives: Survives) -> io::Result<()> {
    match path.parent().filter(|_| survives == Survives::Machine) {
        // A name alone is one in the current directory.
        Some(directory) if directory.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_directory_is_one_of_the_current_directory() {
        settle(Path::new("name"), Survives::Machine).expect("the current directory");
    }

    #[test]
    fn a_secret_is_readable_by_no_other_user_at_any_moment() {
        let directory = std::env::temp_dir().join(format!("gpucap-replace-{}", std::process::id()));
        fs::create_dir(&directory).expect("a directory");
        let (path, new) = (directory.join("config"), directory.join("new"));
        replace(&path, b"old", Survives::Process).expect("made");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("a mode");
        let mode = |path: &Path| fs::metadata(path).expect("a file").mode() & 0o777;
        let old = fs::metadata(&path).expect("a file");
        let file = create(&new, Some(&old)).expect("made");
        assert_eq!(mode(&new), 0o600, "before anything is in it");
        fill(file, b"secret", Some(&old), Survives::Machine).expect("written");
        assert_eq!(mode(&new), 0o640);
        assert!(create(&new, Some(&old)).is_err(), "an existing file is not used");
        fs::remove_file(&new).expect("removed");
        replace(&path, b"new", Survives::Machine).expect("replaced");
        assert_eq!((fs::read(&path).expect("a file"), mode(&path)), (b"new".to_vec(), 0o640));
        fs::remove_dir_all(directory).expect("removed");
    }
}
