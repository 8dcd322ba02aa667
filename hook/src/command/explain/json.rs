//! The answer about a process for programs. The form is part of what we promise: names and meanings stay, new ones may
//! come.
//!
//! ```text
//! { "version": 1, "verdict": "limited" | "not limited" | "broken", "reason": text | null,
//!   "process": { "pid", "command", "mapped": path | null } | null,
//!   "limits": { "file": [ { "gpu", "memory_bytes", "memory_percent", "core_percent", "core_max_percent" } ] | null,
//!               "run": the same | null,
//!               "GPU_MEM_LIMIT" | "GPU_CORE_PCT" | "GPU_PROFILE" | "GPU_CORE_POLICY" | "GPU_CORE_MAX_PCT"
//!               | "GPU_CORE_PRIORITY": text | null } | null,
//!   "library": [ { "list", "path", "is_there" } ],
//!   "ledger": path | null, "ledger_problem": text | null,
//!   "holds": [ { "gpu", "used_bytes", "context_bytes", "cap_bytes", "refusals" } ] }
//! ```
//!
//! `core_percent` is guaranteed, 0 for low priority; `core_max_percent` is the most, with what others leave unused.
//! `file` is of a container's limits file, `run` of what `gpucap run` started: both as they are now.
//! `process` is null of a program that would be started from here, `limits` and `ledger` where none is set or usable.

use super::facts::{Asking, Facts, Holding, Seen};
use super::verdict::Verdict;
use crate::container::effective_limit::EffectiveLimit;
use gpucap_core::config::{
    GPU_CORE_MAX_PCT, GPU_CORE_PCT, GPU_CORE_POLICY, GPU_CORE_PRIORITY, GPU_MEM_LIMIT, GPU_PROFILE,
};
use gpucap_core::limits::Limits;
use gpucap_core::units::Share;
use serde_json::{Value, json};
use std::fmt::Display;

/// The JSON text, with a line end.
pub(super) fn render(facts: &Facts, verdict: &Verdict) -> String {
    let (word, reason) = match verdict {
        Verdict::Limited => ("limited", None),
        Verdict::NotLimited(why) => ("not limited", Some(why.says())),
        Verdict::Broken(broken) => ("broken", Some(broken.clone())),
    };
    let set = !matches!(facts.limits, Ok(None));
    let holds = facts.holds.as_deref().unwrap_or_default();
    let value = json!({
        "version": 1,
        "verdict": word,
        "reason": reason,
        "process": facts.process.as_ref().map(process),
        "limits": facts.limits.as_ref().ok().and_then(Option::as_ref).map(|it| limits(facts, it)),
        "library": facts.asked_by.iter().map(asking).collect::<Vec<_>>(),
        "ledger": set.then(|| facts.ledger.to_string_lossy()),
        "ledger_problem": facts.holds.as_ref().err(),
        "holds": holds.iter().map(held).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn process(seen: &Seen) -> Value {
    json!({"pid": seen.pid, "command": seen.command, "mapped": seen.mapped})
}

fn limits(facts: &Facts, limits: &Limits) -> Value {
    let config = limits.config();
    let entries = || facts.effective.iter().map(effective).collect::<Vec<_>>();
    json!({
        "file": facts.has_file.then(entries),
        "run": (!facts.has_file && !facts.effective.is_empty()).then(entries),
        GPU_MEM_LIMIT.name: text(config.memory.as_ref()),
        GPU_CORE_PCT.name: text(config.core.as_ref()),
        GPU_PROFILE.name: text(config.profile.as_ref()),
        GPU_CORE_POLICY.name: text(config.core_policy.as_ref()),
        GPU_CORE_MAX_PCT.name: text(config.core_max.as_ref()),
        GPU_CORE_PRIORITY.name: text(config.core_priority.as_ref()),
    })
}

fn text(value: Option<&impl Display>) -> Option<String> {
    value.map(ToString::to_string)
}

fn effective(effective: &EffectiveLimit) -> Value {
    let of_whole = |share: Share| f64::from(share.parts()) / 100.0;
    let core = effective.now.core;
    json!({
        "gpu": effective.gpu.to_string(),
        "memory_bytes": effective.now.memory.bytes.map(|bytes| bytes.0),
        "memory_percent": effective.now.memory.part.map(of_whole),
        "core_percent": core.map(|core| core.guaranteed().map_or(0.0, of_whole)),
        "core_max_percent": core.map(|core| of_whole(core.most())),
    })
}

fn asking(asking: &Asking) -> Value {
    let path = asking.library.to_string_lossy();
    json!({"list": asking.list, "path": path, "is_there": asking.is_there})
}

fn held(held: &Holding) -> Value {
    json!({
        "gpu": held.uuid.gpu().to_string(),
        "used_bytes": held.used,
        "context_bytes": held.context,
        "cap_bytes": held.limit,
        "refusals": held.refusals,
    })
}
