//! What a runtime does to a container's paths after the hook: masks some and makes some read-only.
//!
//! Both are mounts, which would cover those of the hook; so no such path may be equal to one of the hook's, above one
//! or below one.

use serde_json::Value;

use crate::encoding::json;

/// Where the hook mounts what the limit depends on.
const OURS: [&str; 3] = ["/.gpucap", "/etc/ld.so.preload", "/etc/ld-nix.so.preload"];

/// The first path of `linux.maskedPaths` and `linux.readonlyPaths` that would come over ours.
pub(crate) fn covering(config: &Value) -> Option<String> {
    let lists = [["linux", "maskedPaths"], ["linux", "readonlyPaths"]];
    let mut paths =
        lists.iter().flat_map(|path| json::list(config, path)).filter_map(Value::as_str);
    paths.find(|path| OURS.iter().any(|ours| meet(path, ours))).map(str::to_owned)
}

/// Whether one of two paths is the other or above it.
fn meet(one: &str, other: &str) -> bool {
    components(one).iter().zip(&components(other)).all(|(one, other)| one == other)
}

/// A path as the kernel finds it: without doubled slashes and dots.
pub(crate) fn cleaned(path: &str) -> String {
    format!("/{}", components(path).join("/"))
}

fn components(path: &str) -> Vec<&str> {
    let mut components = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => drop(components.pop()),
            name => components.push(name),
        }
    }
    components
}
