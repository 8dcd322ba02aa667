//! The plan for programs. The form is part of what we promise: names and meanings stay, new ones may come.
//!
//! ```text
//! { "version": 1, "plan": "limits" | "not asked" | "refused", "reason": text | null,
//!   "limits": [ { ...GPU, "context_bytes": number | null } ], "notes": [ text ],
//!   "sources": [ { "convention", "source", "said", "named": [ GPU ], "others": CAP | "refused" } ] }
//! GPU: { "gpu": "GPU-<uuid>" | "MIG-<uuid>" | "*", ...CAP }
//! CAP: { "mem_bytes": number | null, "mem_percent": number | null, "core_percent": number | null }
//! ```
//!
//! With both forms of memory, the lower holds. `context_bytes` is charged for each context; null: built in.

use gpucap_core::limits::file::Entry;
use gpucap_core::units::Share;
use gpucap_plan::{Cap, Decision, Grant, Plan};
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
        "notes": decision.notes,
    });
    format!("{value:#}\n")
}

fn entry(entry: &Entry) -> Value {
    let mut value = gpu(entry.key, Cap { memory: entry.memory, core: entry.core });
    value["context_bytes"] = json!(entry.context);
    value
}

fn grant(grant: &Grant) -> Value {
    let named = grant.caps.named.iter().map(|&(name, cap)| gpu(name, cap));
    json!({
        "convention": grant.convention,
        "source": grant.source,
        "said": grant.said.to_string(),
        "named": named.collect::<Vec<_>>(),
        "others": grant.caps.others.map_or_else(|| json!("refused"), cap),
    })
}

fn gpu(name: impl Display, held: Cap) -> Value {
    let mut value = cap(held);
    value["gpu"] = json!(name.to_string());
    value
}

fn cap(cap: Cap) -> Value {
    let percent = |share: Option<Share>| share.map(|share| f64::from(share.parts()) / 100.0);
    json!({
        "mem_bytes": cap.memory.bytes.map(|bytes| bytes.0),
        "mem_percent": percent(cap.memory.part),
        "core_percent": percent(cap.core),
    })
}
