//! The files that containerd reads besides: `imports`, by path or pattern.
//!
//! containerd 1.x takes a plugin's table from the last file that has it, and forgets the others'; 2.x joins them. Either
//! way a file behind ours that has the handlers (NVIDIA's GPU operator writes such a one) says what a handler is, and
//! ours belongs there.

use crate::command::configure::toml;
use std::fs;
use std::path::{Path, PathBuf};
use toml_edit::Item;

/// The imported file that has a table of this plugin, if any has: the last, which wins.
pub(super) fn having(text: &str, path: &Path, plugin: &str) -> Option<PathBuf> {
    all(text, path).filter(|file| file != path && has(file, plugin)).last()
}

/// The imported files, in the order in which they are read.
pub(super) fn all(text: &str, path: &Path) -> impl Iterator<Item = PathBuf> {
    let document = toml::parse(text).ok();
    let list = document.as_ref().and_then(|it| it.get("imports")?.as_array());
    let patterns = list.into_iter().flatten().filter_map(|item| item.as_str());
    // As in containerd: a relative path starts at the directory of the file that names it.
    let beside = path.parent().unwrap_or_else(|| Path::new("/"));
    let files: Vec<_> = patterns.flat_map(|pattern| matching(&beside.join(pattern))).collect();
    files.into_iter()
}

/// The files of a pattern, in the order in which they are read. A `*` stands in the last part alone.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((start, end)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let directory = pattern.parent().unwrap_or_else(|| Path::new("/"));
    let fits = |name: &str| {
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(fits))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

fn has(file: &Path, plugin: &str) -> bool {
    let document = fs::read_to_string(file).ok().and_then(|text| toml::parse(&text).ok());
    document.is_some_and(|it| it.get("plugins").and_then(|it| it.get(plugin)).is_some_and(is_table))
}

fn is_table(item: &Item) -> bool {
    item.is_table_like()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLUGIN: &str = "io.containerd.grpc.v1.cri";

    #[test]
    fn the_last_import_that_has_the_handlers_is_found() {
        let directory = std::env::temp_dir().join(format!("gpucap-imports-{}", std::process::id()));
        let conf = directory.join("conf.d");
        fs::create_dir_all(&conf).expect("a directory");
        let main = directory.join("config.toml");
        let handlers = format!("version = 2\n[plugins.\"{PLUGIN}\".containerd.runtimes.nvidia]\n");
        for (name, text) in [
            ("10-log.toml", "version = 2\n[debug]\nlevel = \"info\"\n"),
            ("50-nvidia.toml", &handlers),
            ("99-nvidia.toml", &handlers),
            ("99-nvidia.toml.bak", &handlers),
            ("torn.toml", "[plugins"),
        ] {
            fs::write(conf.join(name), text).expect("a file");
        }
        let whole = format!("imports = [\"{}/*.toml\"]\n", conf.display());
        let found = |text: &str| having(text, &main, PLUGIN);
        assert_eq!(found(&whole), Some(conf.join("99-nvidia.toml")));
        assert_eq!(found("imports = [\"conf.d/5*.toml\"]\n"), Some(conf.join("50-nvidia.toml")));
        assert_eq!(
            found("imports = [\"conf.d/50-nvidia.toml\"]\n"),
            Some(conf.join("50-nvidia.toml"))
        );
        for text in [
            "",
            "imports = []\n",
            "imports = [\"conf.d/1*.toml\"]\n",
            "imports = [\"none/*.toml\"]\n",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(
            having(&whole, &conf.join("99-nvidia.toml"), PLUGIN),
            Some(conf.join("50-nvidia.toml"))
        );
        assert_eq!(having(&whole, &main, "io.containerd.cri.v1.runtime"), None);
        fs::remove_dir_all(directory).expect("removed");
    }
}
