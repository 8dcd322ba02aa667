//! Whether a container's seccomp profile keeps its programs from making user namespaces.
//!
//! In a user namespace of its own any program may mount: over the preload list, for the programs that it starts there.
//! The profiles that Docker and containerd have by default forbid it, that of podman does not; Kubernetes runs pods without
//! one unless they ask for it.

use serde_json::Value;

use crate::encoding::json;

/// The system calls that make one. Default profiles allow `clone` for arguments that make none.
const CALLS: [&str; 3] = ["unshare", "clone", "clone3"];

/// Whether one of them is allowed. Without a profile all are.
pub(crate) fn allows_user_namespaces(config: &Value) -> bool {
    let Some(profile) = json::at(config, &["linux", "seccomp"]).filter(|it| it.is_object()) else {
        return true;
    };
    CALLS.iter().any(|call| allows(profile, call))
}

fn allows(profile: &Value, call: &str) -> bool {
    let is_named = |rule: &&Value| json::list(rule, &["names"]).any(|name| name == call);
    let mut rules = json::list(profile, &["syscalls"]).filter(is_named);
    let permits = |value: &Value, key: &str| {
        matches!(json::text(value, &[key]), Some("SCMP_ACT_ALLOW" | "SCMP_ACT_LOG"))
    };
    // A rule with arguments is taken for one about namespaces.
    if permits(profile, "defaultAction") {
        rules.all(|rule| permits(rule, "action"))
    } else {
        rules.any(|rule| permits(rule, "action") && json::list(rule, &["args"]).next().is_none())
    }
}
