//! The plan for programs. The form is part of what we promise: names and meanings stay, new ones may come.
//!
//! ```text
//! { "version": 1, "plan": "limits" | "not asked" | "refused", "reason": text | null,
//!   "limits": [ { ...GPU, "context_bytes": number | null } ], "notes": [ text ],
//!   "sources": [ { "convention", "source", "said", "named": [ GPU ], "others": LIMIT | "refused" } ] }
//! GPU: { "gpu": "GPU-<uuid>" | "MIG-<uuid>" | "*", ...LIMIT }
//! LIMIT: { "mem_bytes": number | null, "mem_percent": number | null, "core_percent": number | null,
//!        "core_max_percent": number | null, "core_policy": "fixed" | "burst" | null,
//!        "core_priority": "normal" | "low" | null }
//! ```
//!
//! With both forms of memory, the lower holds. `context_bytes` is charged for each context; null: built in. Of a source,
//! LIMIT is what it says. Of the limits, `core_percent` is guaranteed, 0 for low priority, and `core_max_percent` is the
//! most; policy and priority are those granted.

use gpucap_core::config::{CorePolicy, CorePriority};
use gpucap_core::limits::file::Entry;
use gpucap_core::units::Share;
use gpucap_plan::{Decision, DeviceLimit, Grant, Plan};
use serde_json::{Value, json};
use std::fmt::Display;

/// The JSON text, with a line end.
pub(super) fn render(decision: &Decision) -> String {
    let (plan, reason, limits) = match &decision.plan {
        Plan::Limits(file) => ("limits", None, file.entries.iter().map(entry).collect()),
        Plan::NotAsked => ("not asked", None, vec![]),
        Plan::Refuse(reason) => ("refused", Some(reason.to_string()), vec![]),
    };
    let value = json!({
        "version": 1,
        "plan": plan,
        "reason": reason,
        "limits": limits,
        "sources": decision.grants.iter().map(grant).collect::<Vec<_>>(),
        "notes": decision.notes.iter().map(|note| &note.text).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn entry(entry: &Entry) -> Value {
    let mut value = gpu(entry.key, DeviceLimit { memory: entry.memory, ..Default::default() });
    if let Some(limit) = entry.compute() {
        let policy = if limit.borrows() { CorePolicy::Burst } else { CorePolicy::Fixed };
        let is_low = limit.guaranteed().is_none();
        let priority = if is_low { CorePriority::Low } else { CorePriority::Normal };
        value["core_percent"] = json!(limit.guaranteed().map_or(0.0, of_whole));
        value["core_max_percent"] = json!(of_whole(limit.most()));
        value["core_policy"] = json!(policy.to_string());
        value["core_priority"] = json!(priority.to_string());
    }
    value["context_bytes"] = json!(entry.context);
    value
}

fn grant(grant: &Grant) -> Value {
    let named = grant.by_device.named.iter().map(|&(name, limit)| gpu(name, limit));
    json!({
        "convention": grant.convention,
        "source": grant.source,
        "said": grant.said.to_string(),
        "named": named.collect::<Vec<_>>(),
        "others": grant.by_device.others.map_or_else(|| json!("refused"), limit),
    })
}

fn gpu(name: impl Display, held: DeviceLimit) -> Value {
    let mut value = limit(held);
    value["gpu"] = json!(name.to_string());
    value
}

fn limit(limit: DeviceLimit) -> Value {
    json!({
        "mem_bytes": limit.memory.bytes.map(|bytes| bytes.0),
        "mem_percent": limit.memory.part.map(of_whole),
        "core_percent": limit.core.map(of_whole),
        "core_max_percent": limit.core_max.map(of_whole),
        "core_policy": limit.core_policy.map(|policy| policy.to_string()),
        "core_priority": limit.core_priority.map(|priority| priority.to_string()),
    })
}

fn of_whole(share: Share) -> f64 {
    f64::from(share.parts()) / 100.0
}
