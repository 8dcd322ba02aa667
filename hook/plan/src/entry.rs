//! The hook's entry in `config.json`, in a CDI device, and in an engine's configuration.
//!
//! One place defines the words of the program, its arguments and its timeout, so that each writer finds the entry of
//! an earlier one, and the hook finds the slices that a CDI device has in it ([`Slice`]). Where the program is on this
//! machine is the writer's to know.

use oci_spec::runtime::HookBuilder;
use serde_json::{Value, json};
use std::path::Path;

use crate::document::node::Node;
use crate::document::slice::{LIMIT, OPTION, Slice, WORDS};

/// The stages at which the hook enforces, and forgets; also the words by which it is called there.
pub const STAGES: [&str; 2] = ["createRuntime", "poststop"];
/// How long a runtime waits for it, in seconds. It needs milliseconds.
const TIMEOUT: i64 = 10;

/// The hook of this program, with this configuration of the node.
#[derive(Clone, Copy, Debug)]
pub struct Hooks<'a> {
    /// The command.
    pub program: &'a Path,
    /// The node's configuration.
    pub config: &'a Path,
}

impl Hooks<'_> {
    /// As the specification has it, for one of the [`STAGES`]. Its environment is not empty, since some engines drop an
    /// empty list, and then runc gives a hook that of the container.
    #[must_use]
    pub fn at(self, stage: &str) -> Value {
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

    /// The same with a slice that the container is to have: only the stage that enforces has to know it.
    #[must_use]
    pub fn with_slice(self, stage: &str, slice: &Slice) -> Value {
        self.with(stage, [(OPTION, slice.to_string())])
    }

    /// The same with limits as variables.
    #[must_use]
    pub fn with_limits(self, stage: &str, variables: &[(&str, String)]) -> Value {
        let texts = variables.iter().map(|(name, value)| format!("{name}={value}"));
        self.with(stage, texts.map(|text| (LIMIT, text)))
    }

    fn with(self, stage: &str, options: impl IntoIterator<Item = (&'static str, String)>) -> Value {
        let mut entry = self.at(stage);
        if let Some(words) = entry.get_mut("args").and_then(Value::as_array_mut)
            && stage == STAGES[0]
        {
            words.extend(options.into_iter().flat_map(|(name, text)| [json!(name), json!(text)]));
        }
        entry
    }
}

/// Returns whether a document of an engine has the hook of any version of gpucap, at any depth.
#[must_use]
pub fn is_in(document: &Value) -> bool {
    let words = document.get("args").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_ours = matches!(words, [name, verb, ..] if name == WORDS[0] && verb == WORDS[1]);
    is_ours
        || match document {
            Value::Array(list) => list.iter().any(is_in),
            Value::Object(members) => members.values().any(is_in),
            _ => false,
        }
}
