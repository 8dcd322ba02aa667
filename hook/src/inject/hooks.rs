//! The hook's entry in `config.json`, in CDI, and in an engine's configuration.
//!
//! One place defines the path of the program, its arguments and its timeout, so that each writer finds the entry of
//! an earlier one.

use gpucap_plan::Node;
use oci_spec::runtime::HookBuilder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{env, io};

/// The stages at which the hook enforces, and forgets; also the words by which it is called there.
pub(crate) const STAGES: [&str; 2] = ["createRuntime", "poststop"];
/// The words that come before the stage.
const WORDS: [&str; 2] = ["gpucap", "hook"];
/// How long a runtime waits for it, in seconds. It needs milliseconds.
const TIMEOUT: i64 = 10;

/// Returns the path of this command that outlives upgrades: where releases are installed side by side (`install.sh`),
/// that of the link to the current one. A path with a version in it would disappear with that version, and the hook
/// of every container with it.
pub(crate) fn program() -> io::Result<PathBuf> {
    let own = env::current_exe()?;
    Ok(behind_link(&own).unwrap_or(own))
}

fn behind_link(own: &Path) -> Option<PathBuf> {
    // <prefix>/versions/<version>/bin/gpucap
    let [_, _, versions, prefix] = own.ancestors().skip(1).take(4).collect::<Vec<_>>()[..] else {
        return None;
    };
    let inside = own.strip_prefix(versions).ok()?.iter().skip(1).collect::<PathBuf>();
    let link = prefix.join("current").join(inside);
    (versions.ends_with("versions") && link.canonicalize().ok()? == own).then_some(link)
}

/// Returns whether a document of an engine has the hook of any version of gpucap, at any depth.
pub(crate) fn is_in(document: &Value) -> bool {
    let words = document["args"].as_array().map_or(&[][..], Vec::as_slice);
    let is_ours = matches!(words, [name, verb, ..] if name == WORDS[0] && verb == WORDS[1]);
    is_ours
        || match document {
            Value::Array(list) => list.iter().any(is_in),
            Value::Object(members) => members.values().any(is_in),
            _ => false,
        }
}

/// The hook of this program, with this configuration of the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks<'a> {
    pub(crate) program: &'a Path,
    pub(crate) config: &'a Path,
}

impl Hooks<'_> {
    /// As the specification has it, for one of the [`STAGES`]. Its environment is not empty, since some engines drop an
    /// empty list, and then runc gives a hook that of the container.
    pub(crate) fn at(self, stage: &str) -> Value {
        let mut words = WORDS.map(str::to_owned).to_vec();
        words.push(stage.into());
        if self.config != Path::new(Node::PATH) {
            words.extend(["--config".into(), self.config.display().to_string()]);
        }
        let hook = HookBuilder::default()
            .path(self.program)
            .args(words)
            .env(vec!["PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned()])
            .timeout(TIMEOUT)
            .build();
        // Nothing in it can fail to be JSON but a path that is not UTF-8.
        hook.ok().and_then(|hook| serde_json::to_value(hook).ok()).unwrap_or_default()
    }
}
