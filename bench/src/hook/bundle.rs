//! The containers that the hook and the wrapper are measured with, and what each may take of their start.

use serde_json::json;

/// The most that a container's start may pay, in nanoseconds.
pub(super) const START: f64 = 3_000_000.0;
/// One container that asks for a slice and one that does not, and what they have in their environments.
pub(super) const CONTAINERS: [(&str, &str); 2] =
    [("asks", "GPU_MEM_LIMIT=4Gi"), ("silent", "GPU_MEM_LIMIT=")];

/// What an engine tells the runtime of a container with this in its environment.
pub(super) fn config(entry: &str) -> String {
    let config = json!({
        "process": {"env": [entry]},
        "root": {"path": "root"},
        "linux": {"namespaces": [{"type": "mount"}]},
    });
    config.to_string()
}
