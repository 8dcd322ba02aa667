//! The state that a runtime gives a hook on its standard input.
//!
//! Parsed leniently: crun writes `starting` and adds a `root`, runc writes pid 1 and crun 0 where there is none yet,
//! youki leaves it out. A newer version of the specification must not stop a container.

use std::collections::BTreeMap;

use crate::encoding::json;
use crate::reason::Reason;

/// What a runtime says of a container.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct State {
    /// Its id.
    pub id: String,
    /// `creating`, `created`, `running`, `stopped`, or crun's `starting`.
    pub status: Option<String>,
    /// Its process on the host, where there is one. Stale in poststop.
    pub pid: Option<u32>,
    /// The directory of `config.json`; in the stage startContainer of crun, `/`.
    pub bundle: String,
    /// The root file system, where crun says it.
    pub root: Option<String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl State {
    /// The state that has these bytes.
    ///
    /// # Errors
    /// It is no JSON, or has no id or bundle.
    pub fn parse(bytes: &[u8]) -> Result<Self, Reason> {
        const WHAT: &str = "the state that the runtime gave";
        let value = json::parse(WHAT, bytes)?;
        let needed = |key| {
            let text = json::text(&value, &[key]).filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| Reason::document(WHAT, format!("no {key}")))
        };
        let pid = value.get("pid").and_then(serde_json::Value::as_u64);
        Ok(Self {
            id: needed("id")?,
            bundle: needed("bundle")?,
            status: json::text(&value, &["status"]).map(str::to_owned),
            pid: pid.filter(|&pid| pid > 0).and_then(|pid| u32::try_from(pid).ok()),
            root: json::text(&value, &["root"]).map(str::to_owned),
            annotations: json::texts(&value, &["annotations"]),
        })
    }

    /// Whether the runtime says that the container is not started yet.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.status.as_deref(), Some("creating" | "created"))
    }
}
