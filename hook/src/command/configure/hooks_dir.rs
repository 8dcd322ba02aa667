//! From which directories podman and CRI-O read hooks: `hooks_dir`, as the files of their configuration leave it.
//!
//! A list in a later file stands in for the one before; podman adds to it where the list says `{append = true}`, and goes
//! on adding then. podman 5 and 6 differ in which of these files they read, and 6 passes over a main file of lower rank:
//! here all are read, in the order of their rank, so that a file which either would heed is named. What a caller of podman says
//! by `CONTAINERS_CONF` or `--hooks-dir` is his own affair and not looked at.

use super::change::read;
use super::options::Engine;
use super::toml;
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use toml_edit::{Array, Item, Value};

/// Fails unless the engine reads hooks from the directory of this file, which is the one that it reads by default.
///
/// # Errors
/// If it does not, or if a file of its configuration cannot be read.
pub(super) fn must_lead_to(file: &Path, engine: Engine, root: &Path) -> Result<()> {
    let directory = file.parent().unwrap_or_else(|| Path::new("/"));
    let (mut directories, mut by, mut appends) = (vec![directory.to_owned()], None, false);
    for file in files(engine, root) {
        let Some(list) = list(&file, engine)? else { continue };
        let says = |value: &Value| value.as_inline_table()?.get("append")?.as_bool();
        appends = list.iter().find_map(says).unwrap_or(appends);
        if !appends {
            directories.clear();
        }
        directories.extend(list.iter().filter_map(Value::as_str).map(PathBuf::from));
        by = Some(file);
    }
    let Some(by) = by.filter(|_| !directories.iter().any(|held| held == directory)) else {
        return Ok(());
    };
    let shown: Vec<_> = directories.iter().map(|it| it.display().to_string()).collect();
    let reads = match shown.last() {
        Some(last) => format!(
            "hooks are read from {} alone: name {} too, or give --file {last}/gpucap.json",
            shown.join(" and "),
            directory.display()
        ),
        None => format!("hooks are read from nowhere: name {}", directory.display()),
    };
    Err(Error::Configure(format!("{}: by hooks_dir {reads}", by.display())))
}

/// What this file says of it, if it is there and says anything.
fn list(file: &Path, engine: Engine) -> Result<Option<Array>> {
    let Some(text) = read(file)? else { return Ok(None) };
    let document =
        toml::parse(&text).map_err(|why| Error::Configure(format!("{}: {why}", file.display())))?;
    let path: &[_] = match engine {
        Engine::Crio => &["crio", "runtime", "hooks_dir"],
        _ => &["engine", "hooks_dir"],
    };
    let held =
        path.iter().try_fold(document.as_item(), |item, name| item.as_table_like()?.get(name));
    Ok(held.and_then(Item::as_array).cloned())
}

/// The files of its configuration, the most important last.
fn files(engine: Engine, root: &Path) -> Vec<PathBuf> {
    if engine == Engine::Crio { crio(root) } else { podman(root) }
}

/// Those of podman as root has it.
fn podman(root: &Path) -> Vec<PathBuf> {
    let places = ["usr/share/containers", "etc/containers", "root/.config/containers"];
    let of_place = |place: PathBuf| {
        let parts = ["containers.conf.d", "containers.rootful.conf.d"];
        let parts = parts.map(|name| within(&place.join(name), Some(OsStr::new("conf"))));
        [vec![place.join("containers.conf")], parts.concat()].concat()
    };
    places.iter().flat_map(|place| of_place(root.join(place))).collect()
}

/// Those of CRI-O.
fn crio(root: &Path) -> Vec<PathBuf> {
    let main = root.join("etc/crio/crio.conf");
    let parts = within(&root.join("etc/crio/crio.conf.d"), None);
    [vec![main], parts].concat()
}

/// The files of a directory that end like this, by name.
fn within(directory: &Path, extension: Option<&OsStr>) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && (extension.is_none() || path.extension() == extension))
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    const DEFAULT: &str = "/usr/share/containers/oci/hooks.d";

    /// Returns the message for a machine with these files: nothing, or the error.
    fn said(engine: Engine, files: &[(&str, &str)]) -> Option<String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gpucap-hooks-dir-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        let file = Path::new(DEFAULT).join("gpucap.json");
        let result = must_lead_to(&file, engine, &root);
        drop(fs::remove_dir_all(&root));
        result.err().map(|why| why.to_string().replace(&root.display().to_string(), ""))
    }

    const MAIN: &str = "etc/containers/containers.conf";
    const PART: &str = "etc/containers/containers.conf.d/50-own.conf";
    const OWN: &str = "[engine]\nhooks_dir = [\"/own\"]\n";

    #[test]
    fn the_default_holds_unless_a_file_changes_it() {
        let default = format!("[engine]\nhooks_dir = [\"/own\", \"{DEFAULT}/\"]\n");
        for files in [
            [].as_slice(),
            &[(MAIN, "[engine]\nruntime = \"crun\"\n")],
            &[(MAIN, &default)],
            &[("etc/containers/containers.conf.d/own.conf.bak", OWN)],
            &[("usr/share/containers/containers.conf", OWN), (MAIN, &default)],
            &[("etc/crio/crio.conf", "[crio.runtime]\nhooks_dir = [\"/own\"]\n")],
        ] {
            assert_eq!(said(Engine::Podman, files), None, "{files:?}");
        }
    }

    #[test]
    fn a_redirection_is_found_wherever_it_is_said() {
        for file in [
            "usr/share/containers/containers.conf",
            "usr/share/containers/containers.rootful.conf.d/1.conf",
            MAIN,
            PART,
            "root/.config/containers/containers.conf",
        ] {
            let said = said(Engine::Podman, &[(file, OWN)]).expect("an error");
            assert!(said.contains(&format!("/{file}: by hooks_dir")), "{said}");
            assert!(said.contains("read from /own alone"), "{said}");
            assert!(said.contains("--file /own/gpucap.json"), "{said}");
        }
        let none = said(Engine::Podman, &[(MAIN, "[engine]\nhooks_dir = []\n")]);
        assert!(none.is_some_and(|said| said.contains("from nowhere")));
    }

    #[test]
    fn a_list_may_add_to_the_one_before() {
        let default = format!("[engine]\nhooks_dir = [\"{DEFAULT}\"]\n");
        let more = "[engine]\nhooks_dir = [\"/own\", {append = true}]\n";
        let other = "etc/containers/containers.conf.d/60-other.conf";
        assert_eq!(said(Engine::Podman, &[(PART, more)]), None);
        assert_eq!(said(Engine::Podman, &[(MAIN, &default), (PART, more)]), None);
        assert_eq!(said(Engine::Podman, &[(MAIN, &default), (PART, more), (other, OWN)]), None);
        let again = "[engine]\nhooks_dir = [\"/own\", {append = false}]\n";
        let files = [(MAIN, default.as_str()), (PART, more), (other, again)];
        assert!(said(Engine::Podman, &files).is_some());
        assert!(said(Engine::Podman, &[(MAIN, &default), (PART, OWN)]).is_some());
    }

    #[test]
    fn crio_has_files_of_its_own() {
        let own = "[crio.runtime]\nhooks_dir = [\"/own\"]\n";
        for file in ["etc/crio/crio.conf", "etc/crio/crio.conf.d/10-own"] {
            let said = said(Engine::Crio, &[(file, own)]).expect("an error");
            assert!(said.contains(file), "{said}");
        }
        assert_eq!(said(Engine::Crio, &[(MAIN, OWN)]), None);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let said = said(Engine::Podman, &[(PART, "[engine")]).expect("an error");
        assert!(said.contains(PART), "{said}");
    }
}
